"""Stage 5's reply: why, which sentences settle it, and one of three verdicts. Pure.

A verdict is never found by a mere substring: one that is denied, hedged or only listed is not given. What is not
clearly SUPPORTS is not SUPPORTS.
"""

import re
from dataclasses import dataclass
from typing import Any

from pipeline.errors import UnreadableReply
from pipeline.forms import Form
from pipeline.parsing.reading import (
    INTEGER,
    STRING,
    field,
    labelled,
    list_schema,
    numbers,
    object_schema,
    whole_numbers,
)
from storage.types import Verdict

_WORDINGS = {
    Verdict.SUPPORTS: r"SUPPORTS|SUPPORTED|SUPPORT",
    Verdict.REFUTES: r"REFUTES|REFUTED|REFUTE|CONTRADICTS|CONTRADICTED",
    Verdict.NOT_ENOUGH_INFO: r"NOT[ _-]ENOUGH[ _-](?:INFO(?:RMATION)?|EVIDENCE)|NOT[ _-]ENOUGHINFO|NEI|"
    r"INSUFFICIENT[ _](?:INFO(?:RMATION)?|EVIDENCE)|UNVERIFIABLE|CANNOT BE DETERMINED",
}
ANY = "|".join(_WORDINGS.values())
"""The pattern of a verdict in any of its wordings."""
_SENTENCES = ("sentences", "sentence", "evidence")
_LABELS = ("verdict", "result", "fact-checking result", "label", "conclusion", "answer", "final answer")
_SHOUTED = re.compile(rf"(?<![\w-])(?:{ANY})(?![\w-])")
_SAID = re.compile(
    r"\b(?:claim|statement|it) is (?:therefore |thus |fully |clearly |also )*((?:not )?(?:supported|refuted))\b"
)
_DENIED = re.compile(
    r"(?:\b(?:not|no|never|neither|nor|cannot|hardly|barely|only|part(?:ly|ially)?|mostly|almost|might|may|would|could|"
    r"fails? to|whether|if|or)|n['’]t)(?:\W+\w+){0,3}\W*$",
    re.IGNORECASE,
)
HEDGED = re.compile(r"\W*(?:only|part(?:ly|ially|s)?|in part|mostly|to some extent|except|or|nor|/)\b", re.IGNORECASE)
_NAMED = re.compile(r"\bsentences?\s+((?:\d{1,4}(?:\s*(?:,|and|&|–|-)\s*)?)+)|\[(\d{1,4})\]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verifier says of a claim, and the numbers of the sentences that settle it."""

    verdict: Verdict
    sentences: tuple[int, ...] = ()
    reasoning: str = ""


def verification(count: int, *, reasoned: bool) -> Form[Verification]:
    """Return the form of a verification against `count` numbered sentences, with reasoning before it or without."""
    before = {"reasoning": STRING} if reasoned else {}
    verdicts = {"type": "string", "enum": [verdict.value for verdict in Verdict]}
    return Form(
        object_schema(**before, sentences=list_schema(INTEGER), verdict=verdicts),
        from_json=lambda found: _from_json(found, count, reasoned=reasoned),
        from_text=lambda text: _from_text(text, count),
    )


def _from_json(found: Any, count: int, *, reasoned: bool) -> Verification:
    verdict = _verdict_in(field(found, "verdict", str).upper())
    sentences = whole_numbers(field(found, "sentences", list), count)
    return _settled(verdict, sentences, field(found, "reasoning", str) if reasoned else "", count)


def _from_text(text: str, count: int) -> Verification:
    labels = labelled(text, *_LABELS)
    verdict = _verdict_in(labels.upper()) if labels is not None else _last_verdict(text)
    named = labelled(text, *_SENTENCES)
    sentences = numbers(named, count) if named is not None else mentioned(text, count)
    lines = [line for line in text.splitlines() if labelled(line, *_LABELS, *_SENTENCES) is None]
    reasoning = " ".join(" ".join(lines).split())
    return _settled(verdict, sentences, re.sub(r"^\W*reasoning\W*:\W*", "", reasoning, flags=re.IGNORECASE), count)


def _settled(verdict: Verdict | None, sentences: tuple[int, ...], reasoning: str, count: int) -> Verification:
    if verdict is None:
        raise UnreadableReply("it ends in none of SUPPORTS, REFUTES and NOT ENOUGH INFO")
    if verdict is Verdict.SUPPORTS and not sentences and count != 1:
        raise UnreadableReply("it does not name the numbers of the sentences that support the claim")
    return Verification(verdict, sentences or ((1,) if verdict is Verdict.SUPPORTS else ()), reasoning.strip())


def _last_verdict(text: str) -> Verdict | None:
    """Return the verdict that free text ends in: in capitals, or as "the claim is supported"."""
    said = list(_SAID.finditer(text))
    shouted = list(_SHOUTED.finditer(text))
    if said and (not shouted or said[-1].start() > shouted[-1].start()):
        return _verdict_in(said[-1][1].upper())
    return _given(text, shouted[-1]) if shouted else None


def _verdict_in(text: str) -> Verdict | None:
    """Return the one verdict that a short text in capitals gives; None where it gives none, or lists several."""
    found = list(_SHOUTED.finditer(text))
    given = {_given(text, match) for match in found}
    return given.pop() if len(given) == 1 else None


def _given(text: str, match: re.Match[str]) -> Verdict:
    verdict = verdict_of(match[0])
    before = re.split(r"[.;:\n]", text[: match.start()])[-1]
    if _DENIED.search(before) or HEDGED.match(text, match.end()):
        return Verdict.NOT_ENOUGH_INFO
    return verdict


def verdict_of(wording: str) -> Verdict:
    """Return the verdict that one of its wordings, whatever its case, stands for."""
    return next(verdict for verdict, forms in _WORDINGS.items() if re.fullmatch(forms, wording, re.IGNORECASE))


def mentioned(text: str, count: int) -> tuple[int, ...]:
    """Return the numbers of the sentences that free text speaks of."""
    return numbers(" ".join(match[1] or match[2] for match in _NAMED.finditer(text)), count)
