"""Put answers, verdicts and reasons into words, in the reader's language; pure."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from bot.views.catalog import has_message, translate
from bot.views.turn_view import ShownSource, ShownVerdict, View
from pipeline.stages.question_analysis import detect_small_talk
from pipeline.types import Answer, AnsweredSentence, Status, Turn
from storage.types import CheckedClaim, VerdictReason


def render_plain_text(view: View) -> str:
    """Return a view as plain text, in its order: what a reader of the record sees that its reader saw."""
    said = "".join(map(render_sentence, view.sentences)).strip()
    nearest = (view.nearest_label, *map(_plain_source, view.nearest)) if view.nearest else ()
    judged = map(_plain_verdict, view.judgements)
    parts = (view.notice, view.text, *judged, said, view.left_out, *map(_plain_source, view.sources), *nearest)
    return "\n\n".join(filter(None, parts))


def _plain_verdict(found: ShownVerdict) -> str:
    return f"{found.verdict}: “{found.claim}” {found.reason} {_render_marks(found.numbers)}".rstrip()


def _plain_source(source: ShownSource) -> str:
    number = f"[{source.number}] " if source.number else ""
    named = " › ".join(filter(None, (source.title, source.section)))
    return f"{number}{named}{f' {source.url}' if source.url else ''}"


def find_apology(kind: str, language: str) -> str:
    """Return the sentence for a failure of this kind; empty where there is none."""
    return translate(kind, language) if has_message(kind) else ""


def render_left_out(withheld: int, total: int, language: str) -> str:
    """Say how many statements of an answer were left out as unconfirmed."""
    return translate("withheld", language, withheld=withheld, total=total)


def render_answer_text(answer: Answer, question: Turn) -> str:
    """Return the text of an answer: its sentences with footnote marks, or our own words for its status; pure.

    An abstention says how many statements were withheld: that nothing was found is not all that happened then.
    """
    if answer.status is Status.ANSWERED:
        return "".join(map(render_sentence, answer.sentences)).strip()
    if answer.status is Status.CHATTED:
        kind = detect_small_talk(question.text)
        return translate(kind.value if kind else "greeting", question.language)
    if answer.status is Status.ABSTAINED:
        counted = render_left_out(answer.withheld, answer.withheld, question.language) if answer.withheld else ""
        return "\n\n".join(filter(None, (translate("abstained", question.language), counted)))
    return "" if answer.status is Status.CANCELLED else translate("failed", question.language)


def render_verdict_text(answer: Answer, question: Turn) -> str:
    """Return the text of a check: the verdict and why."""
    found = list_asked_claims(answer)
    if len(found) > 1:
        return "\n".join(f"“{one.claim.text}” {one.verdict}: {one.reasoning}" for one in found)
    return f"{found[0].verdict}: {found[0].reasoning}" if found else render_answer_text(answer, question)


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
    return f"{before}{note}{sentence.text} {_render_marks(sentence.citations)}"


def _render_marks(numbers: Iterable[int]) -> str:
    return "".join(f"[{number}]" for number in numbers)


_QUOTED_FACTS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "absent": ("said",),
    "contradicted": ("said", "instead"),
    "differs": ("title",),
    "nearest": ("quote",),
    "said": ("quote",),
    "unnamed": ("said", "instead"),
})  # fmt: skip
"""What each kind quotes; the others quote nothing."""


def render_reason(found: CheckedClaim, language: str) -> str:
    """Return why a claim has its verdict: without ids and scores, which say nothing to a reader."""
    said = [sentence for one in found.because if (sentence := _render_reason_sentence(one, language))]
    return " ".join(said) or found.reasoning


def _render_reason_sentence(reason: VerdictReason, language: str) -> str:
    """Return a reason as a sentence; empty for one that this version does not know."""
    occasion, names = f"reason_{reason.kind}", _QUOTED_FACTS.get(reason.kind, ())
    if not has_message(occasion) or len(names) != len(reason.facts):
        return ""
    return translate(occasion, language, **dict(zip(names, reason.facts, strict=True)))
