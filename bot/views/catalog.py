"""Word what the bot says itself: sentences by language from the JSON files in `words/`; answers, verdicts, reasons."""

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType

from bot.types import Failure
from pipeline.types import Answer, AnsweredSentence, Status, Turn
from storage.types import CheckedClaim, Citation, Verdict, VerdictReason


def translate(message_id: str, language: str, **facts: object) -> str:
    """Return the sentence of an id in a language (ISO 639-1), with its facts; in English where there is none.

    Raises:
        KeyError: There is no such id, or a fact is missing.
    """
    return _load_language(language)[message_id].format(**facts)


def has_message(message_id: str) -> bool:
    return message_id in _load_language("en")


def list_languages() -> tuple[str, ...]:
    return tuple(sorted(_load_catalog()))


def _load_language(language: str) -> Mapping[str, str]:
    table = _load_catalog()
    return table.get(language, table["en"])


@cache
def _load_catalog() -> Mapping[str, Mapping[str, str]]:
    table: dict[str, dict[str, str]] = {}
    for file in (resources.files("bot.views") / "words").iterdir():
        if file.name.endswith(".json"):
            subject: dict[str, dict[str, str]] = json.loads(file.read_text(encoding="utf-8"))
            for language, sentences in subject.items():
                table.setdefault(language, {}).update(sentences)
    return table


def find_apology(kind: str, language: str) -> str:
    """Return the sentence for a failure of this kind; empty if there is none."""
    return translate(kind, language) if has_message(kind) else ""


def render_failure(status: Status, failure: Failure, language: str) -> str:
    """Return the reply in place of an answer, without technical details: the asker cannot fix what failed."""
    sentence = find_apology(failure.kind, language)
    if status is Status.REFUSED:
        return sentence or failure.message
    if not sentence:
        return translate("failed", language)
    again = translate("again_later", language)
    return f"{sentence}{again}" if sentence.endswith("。") else f"{sentence} {again}"


def render_left_out(withheld: int, total: int, language: str) -> str:
    """Say how many statements of an answer were left out as unconfirmed."""
    return translate("withheld", language, withheld=withheld, total=total)


def is_count(line: str) -> bool:
    """Return whether a line counts the statements of an answer, in any language."""
    return _load_counts().fullmatch(line.strip()) is not None


@cache
def _load_counts() -> re.Pattern[str]:
    templates = (table[key] for table in _load_catalog().values() for key in ("withheld", "statements"))
    return re.compile("|".join(r"\d+".join(map(re.escape, re.split(r"\{\w+\}", template))) for template in templates))


def render_answer_text(answer: Answer, question: Turn) -> str:
    """Return the text of an answer: its sentences with footnote marks, or our own words for its status; pure.

    An abstention after statements were withheld says how many, and not that nothing was found.
    """
    if answer.status is Status.ANSWERED:
        return "".join(map(render_sentence, answer.sentences)).strip()
    if answer.status is Status.CHATTED:
        from pipeline.stages.question_analysis import detect_small_talk  # its patterns are for those who answer

        kind = detect_small_talk(question.text)
        return translate(kind.value if kind else "greeting", question.language)
    if answer.status is Status.ABSTAINED:
        if not answer.withheld:
            return translate("abstained", question.language)
        counted = render_left_out(answer.withheld, answer.withheld, question.language)
        return f"{translate('unconfirmed', question.language)}\n\n{counted}"
    return "" if answer.status is Status.CANCELLED else translate("failed", question.language)


def render_verdict_text(answer: Answer, question: Turn) -> str:
    """Return the text of a check: the verdict and why."""
    found = list_asked_claims(answer)
    lines = [f"{one.verdict}: {render_reason(one, question.language, answer.citations)}" for one in found]
    if len(found) > 1:
        return "\n".join(f"“{one.claim.text}” {line}" for one, line in zip(found, lines, strict=True))
    return lines[0] if lines else render_answer_text(answer, question)


def find_asked_claim(answer: Answer) -> CheckedClaim | None:
    """Return the claim that somebody asked about, with its verdict; None where there is none."""
    return next(iter(list_asked_claims(answer)), None)


def list_asked_claims(answer: Answer) -> tuple[CheckedClaim, ...]:
    """Return the claims that somebody asked about: several where a whole text was checked."""
    return tuple(checked for checked in answer.claims if checked.claim.origin == "user")


def render_sentence(sentence: AnsweredSentence) -> str:
    """Return a sentence as it stands in an answer, with its note and footnote marks."""
    note = f"({sentence.note}) " if sentence.note else ""
    before = "\n\n" if sentence.paragraph else " "
    return f"{before}{note}{sentence.text} {render_marks(sentence.citations)}"


def render_marks(numbers: Iterable[int]) -> str:
    return "".join(f"[{number}]" for number in numbers)


_QUOTED_FACTS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "absent": ("said",),
    "contradicted": ("said", "instead"),
    "differs": ("title",),
    "elsewhere": ("said", "instead"),
    "nearest": ("quote",),
    "otherwise": ("quote",),
    "said": ("quote",),
    "unnamed": ("said", "instead"),
})  # fmt: skip
"""What each kind quotes; the others quote nothing."""


def render_reason(found: CheckedClaim, language: str, citations: Iterable[Citation] = ()) -> str:
    """Return why a claim has its verdict: without ids and scores, and in no word that a model wrote.

    Where rules give no reasons, as a model gave the verdict, what its evidence says is quoted from `citations`.
    """
    because = (found.because, _quote_evidence(found, {citation.passage_id: citation.quote for citation in citations}))
    return next(filter(None, (_render_reasons(some, language) for some in because)), "")


def _quote_evidence(found: CheckedClaim, quotes: Mapping[str, str]) -> tuple[VerdictReason, ...]:
    """Return a verdict's reasons as the first quotation of its evidence, or of what comes nearest, gives them."""
    settled = found.verdict is not Verdict.NOT_ENOUGH_INFO
    quote = next((quotes[one] for one in (found.evidence if settled else found.looked_at) if one in quotes), "")
    match found.verdict:
        case Verdict.SUPPORTS:
            return (VerdictReason("said", (quote,)) if quote else VerdictReason("so"),)
        case Verdict.REFUTES:
            return (VerdictReason("otherwise", (quote,)),) if quote else ()
        case Verdict.NOT_ENOUGH_INFO:
            return (VerdictReason("not_said"), *((VerdictReason("nearest", (quote,)),) if quote else ()))


def _render_reasons(reasons: Iterable[VerdictReason], language: str) -> str:
    return " ".join(sentence for reason in reasons if (sentence := _render_reason_sentence(reason, language)))


def _render_reason_sentence(reason: VerdictReason, language: str) -> str:
    """Return a reason as a sentence; empty for one that this version does not know."""
    message_id, names = f"reason_{reason.kind}", _QUOTED_FACTS.get(reason.kind, ())
    if not has_message(message_id) or len(names) != len(reason.facts):
        return ""
    return translate(message_id, language, **dict(zip(names, reason.facts, strict=True)))
