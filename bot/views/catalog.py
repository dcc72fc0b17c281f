"""Render the bot's own texts: sentences by language from the JSON files in `words/`, answers, verdicts, reasons."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from types import MappingProxyType

from bot.types import Failure, TurnResult
from pipeline.types import Answer, AnsweredSentence, Status, Turn
from storage.language.lazy_pattern import lazy_compile
from storage.types import CheckedClaim, Citation, Verdict, VerdictReason, is_web_corpus


def translate(message_id: str, language: str, **facts: object) -> str:
    """Return the sentence with this id in a language (ISO 639-1), filled with `facts`.

    It is in English if the translation is missing. Raises `KeyError` if the id is unknown, or a fact is missing.
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
    """Return the sentence that apologises for a failure of this kind; empty if there is none."""
    return translate(kind, language) if has_message(kind) else ""


def render_failure(status: Status, failure: Failure, language: str) -> str:
    """Return the reply in place of an answer, without technical details, because the asker cannot fix what failed."""
    sentence = find_apology(failure.kind, language)
    if status is Status.REFUSED:
        return sentence or failure.message
    if not sentence:
        return translate("failed", language)
    again = translate("again_later", language)
    return f"{sentence}{again}" if sentence.endswith("。") else f"{sentence} {again}"


def render_only_quoted(why: Failure | None, language: str) -> str:
    """Return the line above an answer whose model failed, so that only quotations were looked for; empty for none."""
    if not why:
        return ""
    sentence, quoted = find_apology(why.kind, language), translate("only_quoted", language)
    return f"{sentence}{'' if sentence.endswith('。') else ' '}{quoted}".strip()


def render_notices(done: TurnResult, language: str) -> tuple[str, ...]:
    """Return the lines above an answer that lacks something: its model failed, or, outside a study, the web."""
    web = translate("web_unsearched", language) if done.web_fault and not done.study else ""
    return tuple(filter(None, (render_only_quoted(done.quoted_because, language), web)))


def render_origin(corpus: str, revision: str, language: str) -> str:
    """Return that a page is from the web, and when it was read, as its revision says; empty for own pages."""
    return translate("from_web", language, day=revision.rpartition(" ")[2]) if is_web_corpus(corpus) else ""


def render_left_out(withheld: int, total: int, language: str) -> str:
    """Return the sentence that says how many statements of an answer were withheld as unconfirmed."""
    return translate("withheld", language, withheld=withheld, total=total)


def is_count(line: str) -> bool:
    """Return whether a line says how many statements were left out of an answer, or checked for it, in any language."""
    return _load_counts().fullmatch(line.strip()) is not None


@cache
def _load_counts() -> re.Pattern[str]:
    templates = (table[key] for table in _load_catalog().values() for key in ("withheld", "statements"))
    return re.compile("|".join(r"\d+".join(map(re.escape, re.split(r"\{\w+\}", template))) for template in templates))


def render_answer_text(answer: Answer, question: Turn) -> str:
    """Return the text of an answer: its sentences with footnote marks, or the sentence for its status; pure.

    If statements were withheld, an abstention says how many instead of saying that nothing was found.
    """
    if answer.status is Status.ANSWERED:
        return "".join(map(render_sentence, answer.sentences)).strip()
    if answer.status is Status.CHATTED:
        from pipeline.stages.question_analysis import detect_small_talk  # compiles patterns on import

        kind = detect_small_talk(question.text)
        return translate(kind.value if kind else "greeting", question.language)
    if answer.status is Status.ABSTAINED:
        if not answer.withheld:
            return translate("abstained", question.language)
        counted = render_left_out(answer.withheld, answer.withheld, question.language)
        return f"{translate('unconfirmed', question.language)}\n\n{counted}"
    return "" if answer.status is Status.CANCELLED else translate("failed", question.language)


def render_verdict_text(answer: Answer, question: Turn) -> str:
    """Return the text of a check: each verdict with its reason."""
    claims = list_asked_claims(answer)
    lines = [f"{claim.verdict}: {render_reason(claim, question.language, answer.citations)}" for claim in claims]
    if len(claims) > 1:
        return "\n".join(f"“{checked.claim.text}” {line}" for checked, line in zip(claims, lines, strict=True))
    return lines[0] if lines else render_answer_text(answer, question)


def find_asked_claim(answer: Answer) -> CheckedClaim | None:
    """Return the first claim that the user asked about, with its verdict; None if there is none."""
    return next(iter(list_asked_claims(answer)), None)


def list_asked_claims(answer: Answer) -> tuple[CheckedClaim, ...]:
    """Return the claims that the user asked about: several if a whole text was checked."""
    return tuple(checked for checked in answer.claims if checked.claim.origin == "user")


def render_sentence(sentence: AnsweredSentence) -> str:
    """Return a sentence of an answer with its note and footnote marks."""
    note = f"({sentence.note}) " if sentence.note else ""
    before, after = "\n\n" if sentence.paragraph else " ", " " if split_code(sentence.text)[-1] else "\n"
    return f"{before}{note}{sentence.text}{after}{render_marks(sentence.citations)}"


def split_code(text: str) -> Sequence[str]:
    """Split a text into prose and blocks of code, without their fences: every second piece is code."""
    return _FENCED.split(text)


def render_marks(numbers: Iterable[int]) -> str:
    return "".join(f"[{number}]" for number in numbers)


_FENCED = lazy_compile(r"(?<![^\n])```\n(.+?\n)```(?![^\n])", re.DOTALL)
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
"""The names of the facts that each kind of reason quotes; other kinds quote none."""


def render_reason(checked: CheckedClaim, language: str, citations: Iterable[Citation] = ()) -> str:
    """Return why a claim has its verdict, without ids, scores, or words of a model.

    If a model gave the verdict, so that rules give no reasons, the evidence is quoted from `citations`.
    """
    quotes = {citation.passage_id: citation.quote for citation in citations}
    because = (checked.because, _quote_evidence(checked, quotes))
    return next(filter(None, (_render_reasons(reasons, language) for reasons in because)), "")


def _quote_evidence(checked: CheckedClaim, quotes: Mapping[str, str]) -> tuple[VerdictReason, ...]:
    """Return reasons that quote the passage on which a verdict rests, or the nearest passage if it has no evidence."""
    passages = checked.looked_at if checked.verdict is Verdict.NOT_ENOUGH_INFO else checked.evidence
    quote = next((quotes[passage] for passage in passages if passage in quotes), "")
    match checked.verdict:
        case Verdict.SUPPORTS:
            return (VerdictReason("said", (quote,)) if quote else VerdictReason("so"),)
        case Verdict.REFUTES:
            return (VerdictReason("otherwise", (quote,)),) if quote else ()
        case Verdict.NOT_ENOUGH_INFO:
            return (VerdictReason("not_said"), *((VerdictReason("nearest", (quote,)),) if quote else ()))


def _render_reasons(reasons: Iterable[VerdictReason], language: str) -> str:
    return " ".join(sentence for reason in reasons if (sentence := _render_reason_sentence(reason, language)))


def _render_reason_sentence(reason: VerdictReason, language: str) -> str:
    """Return a reason as a sentence; empty if this version does not know its kind."""
    message_id, names = f"reason_{reason.kind}", _QUOTED_FACTS.get(reason.kind, ())
    if not has_message(message_id) or len(names) != len(reason.facts):
        return ""
    return translate(message_id, language, **dict(zip(names, reason.facts, strict=True)))
