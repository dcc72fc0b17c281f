"""A model that reads what it is shown: it takes out sentences by their words, weighs claims by them, and copies notes.

It says the same at the same place of either system, whatever the form of the call, and lies where it may: what it
claims is false in a part, and its draft repeats that. It knows the conversation by its question alone.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial

from evaluation.pretending import Pretender
from evaluation.systems.conversing import Known
from storage.language.words import content_terms

_PIECE = 9
_MOST_NOTES = 4
_ENOUGH = 0.6
"""Share of a claim's words, and of a question's, that a sentence must have."""
_NUMBERED = re.compile(r"^(\d+): (.*)$", re.MULTILINE)
_NOTE = re.compile(r"^\[(\d+)\] (.*) \(from: .*\)$", re.MULTILINE)
_CLAIM = re.compile(r"^Claim(?: (\d+))?: (.*)$", re.MULTILINE)
_FEEDBACK = "\n".join(
    f"{name}: It is as it should be. 100/100"
    for name in ("Relevant", "Natural", "Non-repetitive", "Temporally correct")
)


def reader(known: Known) -> Pretender:
    """Return the model for one conversation."""
    return Pretender("reader", {stage: partial(say, known) for stage, say in _SPEECH.items()}, _PIECE)


def _query(known: Known, _: str) -> str:
    return f"Search: yes\nQuery: {known.posed.text.rstrip('?')}\nTime: none"


def _bullets(known: Known, turn: str) -> str:
    asked = set(content_terms(known.posed.text))
    told = [
        f"- {text} [{number}]"
        for number, text in _NUMBERED.findall(turn)
        if len(asked & set(content_terms(text))) >= _ENOUGH * len(asked) or text in known.true
    ]
    return "\n".join(told) or "None"


def _claims(known: Known, turn: str) -> str:
    said = (*known.true, *known.false)
    if "Which claims" in turn or "Which facts" in turn:
        return "\n".join(f"- {text} | none" for text in said)
    return " ".join(said)


def _verdicts(_: Known, turn: str) -> str:
    sentences = _NUMBERED.findall(turn)
    lines = [(number, *_judged(claim, sentences)) for number, claim in _CLAIM.findall(turn)]
    if lines[0][0]:
        return "\n".join(
            f"{claim}. {verdict}{f' [{named}]' if named else ''} So it is." for claim, verdict, named in lines
        )
    _, verdict, named = lines[0]
    return f"Reasoning: So it is.\nSentences: {named or '-'}\nVerdict: {verdict}"


def _judged(claim: str, sentences: list[tuple[str, str]]) -> tuple[str, str]:
    """Return a verdict by words, and the number of the sentence that settles it: other numbers refute."""
    terms = {term for term in content_terms(claim) if not term.isdigit()}
    shares = {number: len(terms & set(content_terms(text))) / max(1, len(terms)) for number, text in sentences}
    best = max(shares, key=lambda number: shares[number], default="")
    if not best or shares[best] < _ENOUGH:
        return "NOT ENOUGH INFO", ""
    figures = set(re.findall(r"\d+", claim))
    return ("SUPPORTS" if figures <= set(re.findall(r"\d+", dict(sentences)[best])) else "REFUTES"), best


def _draft(known: Known, turn: str) -> str:
    """Copy the notes, and repeat what is false as if the first of them said so."""
    notes = _NOTE.findall(turn)[:_MOST_NOTES]
    copied = [f"{text.rstrip('.')} [{number}]." for number, text in notes]
    lies = [f"{text.rstrip('.')} [{notes[0][0]}]." for text in known.false] if notes else []
    return " ".join((*copied, *lies)) or "NOTHING"


_SPEECH: Mapping[str, Callable[[Known, str], str]] = {
    "query": _query,
    "summarise": _bullets,
    "generate": _claims,
    "split": _claims,
    "verify": _verdicts,
    "draft": _draft,
    "refine": lambda _, __: _FEEDBACK,
}
"""What is said at each stage, by the conversation and the turn's part of the prompt."""
