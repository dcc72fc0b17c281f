"""Whether a reply is right, by what its case expects. Pure; format is not judged here: it was read already.

Terms are sought as they stand, whatever the case of their letters; `a|b` is found where one of both is.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.doctoring.cases import Case
from pipeline.citing import Marked
from pipeline.findings import Finding
from pipeline.languages import english_name
from pipeline.parsing.bullets import Bullet
from pipeline.parsing.claims import TimedClaim
from pipeline.parsing.feedback import Feedback
from pipeline.parsing.query import time_of
from pipeline.parsing.verdict import Verification
from pipeline.parsing.verdicts import Ruling
from storage.language.detect import detect
from storage.types import Evidence, SearchQuery, Verdict

PASSING = 90
"""A criterion with at least this score is one that a critic finds no fault with."""
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_PRONOUN = re.compile(
    r"(?:he|she|it|they|his|her|its|their|this|er|sie|ihre?|seine?|elle|ils|elles|il(?! y a\b)|ella|él|ellos|ellas)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is to be said of a reply."""

    wrong: str = ""
    """What is wrong with it; empty where it is right."""
    cited: int = 0
    """How many citations it has."""
    valid: int = 0
    """How many of them bear on the matter."""
    verdicts: tuple[Verdict, Verdict] | None = None
    """The verdict that was expected, and the one that was given."""


def of_query(case: Case, found: SearchQuery | None) -> Judgement:
    """Judge whether something is looked up where it should, in words of substance, and of the right time."""
    expected = case.expected
    if found is None:
        return Judgement("nothing is looked up" if expected["search"] else "")
    if not expected["search"]:
        return Judgement(f"“{found.text}” is looked up")
    if missing := lacking(found.text, expected["terms"]):
        return Judgement(f"“{found.text}” lacks {missing[0]}")
    right = expected["time"] == "any" or found.time == time_of(expected["time"])
    return Judgement("" if right else f"its time is {found.time or 'none'} and not {expected['time']}")


def of_summary(case: Case, found: Sequence[Bullet]) -> Judgement:
    """Judge whether bullets rest on the sentences that are to the point, and on no others."""
    sentences: Sequence[Evidence] = case.facts["sentences"]
    cited = [number for bullet in found for number in bullet.sentences]
    wrong = _wrong_numbers(case, cited)
    for bullet in found:
        stand = " ".join(_written(sentences[number - 1]) for number in bullet.sentences)
        if strange := foreign_numbers(bullet.text, stand):
            wrong = wrong or f"{strange[0]} is not in the sentences behind “{bullet.text}”"
    return Judgement(wrong, len(cited), _valid(case, cited))


def of_reply(case: Case, found: str) -> Judgement:
    """Judge whether free text is one paragraph; what it says is nobody's to judge before it is verified."""
    del case
    return Judgement("" if len([line for line in found.splitlines() if line.strip()]) == 1 else "it is not a paragraph")


def of_claims(case: Case, found: Sequence[TimedClaim]) -> Judgement:
    """Judge whether every fact became a claim that is understood by itself, and nothing else did."""
    facts, avoid = case.expected["claims"], case.expected["avoid"]
    if not facts:
        return Judgement(f"“{found[0].text}” is no fact" if found else "")
    if lost := next((fact for fact in facts if not any(_says(claim, fact) for claim in found)), None):
        return Judgement(f"no claim says, for its time: {lost['text']}")
    said = " ".join(claim.text for claim in found)
    if strange := [term for term in avoid if not lacking(said, [term])]:
        return Judgement(f"a claim speaks of “{strange[0]}”")
    vague = next((claim.text for claim in found if _PRONOUN.match(claim.text)), "")
    return Judgement(f"“{vague}” does not name what it is about" if vague else "")


def of_verification(case: Case, found: Verification) -> Judgement:
    """Judge a verdict, and the sentences it names where they should settle it."""
    expected = Verdict(case.expected["verdict"])
    wrong = "" if found.verdict is expected else f"{found.verdict} and not {expected}"
    if wrong or expected is Verdict.NOT_ENOUGH_INFO:
        return Judgement(wrong, verdicts=(expected, found.verdict))
    valid = set(case.expected["sentences"]) | set(case.expected["may"])
    return Judgement("", len(found.sentences), len(valid & set(found.sentences)), (expected, found.verdict))


def of_rulings(case: Case, found: Sequence[Ruling]) -> Judgement:
    """Judge the verdict on the one claim that was asked about."""
    return of_verification(case, found[0].found)


def of_draft(case: Case, found: Sequence[Marked]) -> Judgement:
    """Judge whether a draft says what its notes say, all that is asked for, in the user's language."""
    findings: Sequence[Finding] = case.facts["findings"]
    sources = {number: _noted(finding) for number, finding in enumerate(findings, start=1)}
    judged = _of_sentences(case, found, sources)
    spoken = english_name(detect(_text(found)))
    if judged.wrong or not found or spoken in {"", case.facts["language"]}:
        return judged
    return Judgement(f"it is in {spoken}", judged.cited, judged.valid)


def of_feedback(case: Case, found: Feedback) -> Judgement:
    """Judge whether the faults of a draft are found; one without any is to be left in peace."""
    given = {point.criterion: point.score for point in found.points}
    faults = [point.criterion for point in case.facts["feedback"].points if point.score < PASSING]
    if unseen := [name for name in faults if given[name] >= PASSING]:
        return Judgement(f"it finds nothing to mend about: {unseen[0]}")
    low = [name for name, score in given.items() if score < PASSING]
    return Judgement(f"it is not {low[0]} to the critic, though it is" if low and not faults else "")


def of_refinement(case: Case, found: Sequence[Marked]) -> Judgement:
    """Judge whether a reply was mended, and nothing added."""
    draft = case.facts["draft"]
    return _of_sentences(case, found, dict.fromkeys(range(1, count_of(draft) + 1), draft))


def count_of(draft: str) -> int:
    """Return how many notes a draft cites, by the highest number in brackets."""
    return max(int(number) for number in re.findall(r"\[(\d+)\]", draft))


def lacking(text: str, terms: Iterable[str]) -> list[str]:
    """Return the terms that a text does not have."""
    folded = text.casefold()
    return [term for term in terms if not any(one.casefold() in folded for one in term.split("|"))]


def foreign_numbers(text: str, source: str) -> list[str]:
    """Return the numbers of a text that its source does not have, however both group their digits."""
    known = {_digits(number) for number in _NUMBER.findall(source)}
    return [number for number in _NUMBER.findall(text) if _digits(number) not in known]


def _of_sentences(case: Case, found: Sequence[Marked], sources: Mapping[int, str]) -> Judgement:
    cited = [number for sentence in found for number in sentence.numbers]
    wrong = _wrong_numbers(case, cited) or _wrong_words(case, found)
    for sentence in found:
        source = " ".join(sources[number] for number in sentence.numbers)
        if not sentence.numbers:
            wrong = wrong or f"“{sentence.text}” cites nothing"
        elif strange := foreign_numbers(sentence.text, source):
            wrong = wrong or f"{strange[0]} is not in what “{sentence.text}” cites"
    return Judgement(wrong, len(cited), _valid(case, cited))


def _wrong_numbers(case: Case, cited: Sequence[int]) -> str:
    must, may = case.expected["must"], case.expected["may"]
    if stray := [number for number in cited if number not in {*must, *may}]:
        return f"[{stray[0]}] has nothing to do with it"
    if missing := [number for number in must if number not in cited]:
        return f"[{missing[0]}] is missing"
    return "nothing is said" if may and not cited else ""


def _wrong_words(case: Case, found: Sequence[Marked]) -> str:
    said = _text(found)
    if missing := lacking(said, case.expected["has"]):
        return f"it does not say {missing[0]}"
    strange = [term for term in case.expected["avoid"] if not lacking(said, [term])]
    return f"it says “{strange[0]}”" if strange else ""


def _valid(case: Case, cited: Iterable[int]) -> int:
    bearing = {*case.expected["must"], *case.expected["may"]}
    return sum(number in bearing for number in cited)


def _says(claim: TimedClaim, fact: Mapping[str, str | list[str]]) -> bool:
    in_time = "time" not in fact or claim.time == time_of(str(fact["time"]))
    return in_time and not lacking(claim.text, fact["terms"])


def _written(sentence: Evidence) -> str:
    return f"{sentence.document.title} {sentence.passage.section} {sentence.text}"


def _noted(finding: Finding) -> str:
    place = finding.evidence[0]
    return f"{place.document.title} {place.passage.section} {finding.text}"


def _text(found: Iterable[Marked]) -> str:
    return " ".join(sentence.text for sentence in found)


def _digits(number: str) -> str:
    return re.sub(r"[.,]", "", number)
