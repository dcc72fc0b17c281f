"""What the bot says in its own words, in the asker's language; everything else it says is quoted or checked.

The sentences stand in `bot.words`, by language and occasion; a language that is not there is answered in English.
"""

from bot.words import has, say
from pipeline.small_talk import small_talk
from pipeline.types import Answer, AnsweredSentence, Status, Turn
from storage.types import CheckedClaim


def apology(kind: str, language: str) -> str:
    """Return the sentence for a turn that failed in a way of this kind; empty where there is none for it."""
    return say(kind, language) if has(kind) else ""


def left_out(withheld: int, total: int, language: str) -> str:
    """Say how many statements of an answer were left out because nothing confirmed them."""
    return say("withheld", language, withheld=withheld, total=total)


def wording(answer: Answer, question: Turn) -> str:
    """Return the text of an answer: its sentences with footnote marks, or our own words for its status; pure.

    An abstention says how many statements were withheld: that nothing was found is not all that happened then.
    """
    if answer.status is Status.ANSWERED:
        return "".join(map(marked, answer.sentences)).strip()
    if answer.status is Status.CHATTED:
        kind = small_talk(question.text)
        return say(kind.value if kind else "greeting", question.language)
    if answer.status is Status.ABSTAINED:
        counted = left_out(answer.withheld, answer.withheld, question.language) if answer.withheld else ""
        return "\n\n".join(filter(None, (say("abstained", question.language), counted)))
    return "" if answer.status is Status.CANCELLED else say("failed", question.language)


def verdict(answer: Answer, question: Turn) -> str:
    """Return the text of a check: the verdict and why; pure."""
    found = claims_of(answer)
    if len(found) > 1:
        return "\n".join(f"“{one.claim.text}” {one.verdict}: {one.reasoning}" for one in found)
    return f"{found[0].verdict}: {found[0].reasoning}" if found else wording(answer, question)


def claim_of(answer: Answer) -> CheckedClaim | None:
    """Return the claim that somebody asked about, with its verdict; None in a turn that came to none."""
    return next(iter(claims_of(answer)), None)


def claims_of(answer: Answer) -> tuple[CheckedClaim, ...]:
    """Return the claims that somebody asked about, with their verdicts: several where a whole text was checked."""
    return tuple(checked for checked in answer.claims if checked.claim.origin == "user")


def marked(sentence: AnsweredSentence) -> str:
    """Return a sentence as it stands in an answer: after a blank or an empty line, with its note and footnote marks."""
    note = f"({sentence.note}) " if sentence.note else ""
    marks = "".join(f"[{number}]" for number in sentence.citations)
    before = "\n\n" if sentence.paragraph else " "
    return f"{before}{note}{sentence.text} {marks}"
