"""Marks and addresses that are a part of their sentence's grammar, which to take out would maim it. Pure.

`marks` tells where marks stand; this tells which of them cannot just go. The number of a section or a figure is its
name and stays; an opening such as `According to [1],` goes with its mark; what else hangs on a preposition, or tells
as a person does (`[1] says`), maims.
"""

import re

from pipeline.citing.addresses import address_spans
from pipeline.citing.marks import marks

_NUMBERED = re.compile(
    r"(?<!\bthe )(?<!\bthis )(?<!\bthat )(?<!\ban )(?<!\beach )(?<!\bits )(?<!\bour )(?<!\btheir )"
    r"\b(sections?|articles?|chapters?|figures?|figs?\.|pages?|tables?|steps?|items?|clauses?|equations?|appendix)"
    r" \[(\d{1,3})\](?=,?\s+(?-i:[a-z]))",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"(?:according to|based on|as per|per|in|from|as (?:stated|shown|described|reported|noted|mentioned|explained|seen)"
    r" (?:in|by))(?: (?:sources?|passages?|notes?|documents?))?\s",
    re.IGNORECASE,
)
_HANGS = re.compile(r"\b(?:to|in|from|by|of|see|per|via|with|than)\s\Z", re.IGNORECASE)
_TELLS = re.compile(
    r"\s+(?:(?:also|further) )?"
    r"(?:says?|states?|reports?|notes?|shows?|describes?|mentions?|explains?|claims?|argues?|confirms?)\b"
)
_LEADS_AWAY = re.compile(
    r"\b(?:see|visit|at|on|to|in|from|by|of|via|with|under|and|or|is|are|called)\s+[\[<(]?\Z", re.IGNORECASE
)
_NEAR = 16
"""How many characters before something are looked at."""


def eased(text: str, count: int) -> str:
    """Return a sentence from which marks can be taken that could not before; its own marks stay in it."""
    text = _NUMBERED.sub(r"\1 \2", text)
    first = next(marks(text, count), None)
    if first is None or not _OPENING.fullmatch(text[: first.span[0]].lstrip()):
        return text
    start, end = first.span
    rest = text[end:].lstrip()
    if not rest.startswith(",") or not rest[1:].strip():
        return text
    return f"{text[start:end]} {_begun(rest[1:].lstrip())}"


def is_maimed(text: str, count: int) -> bool:
    """Whether a sentence, eased, with its addresses still in it, loses a part when its marks and addresses go."""
    hanging = (
        _HANGS.search(text[max(0, mark.span[0] - _NEAR) : mark.span[0]]) and _goes_on(text[mark.span[1] :])
        for mark in marks(text, count)
    )
    first = next(marks(text, count), None)
    told = first and not text[: first.span[0]].strip() and _TELLS.match(text, first.span[1])
    led = (_LEADS_AWAY.search(text[max(0, start - _NEAR) : start]) for start, _ in address_spans(text))
    return bool(told) or any(hanging) or any(led)


def _goes_on(after: str) -> bool:
    """Whether a sentence goes on behind a mark: with a comma or a word in small letters."""
    next_char = after.lstrip()[:1]
    return next_char == "," or (after[:1].isspace() and next_char.islower())


def _begun(rest: str) -> str:
    """Return what was in the midst of a sentence as its beginning; a word that has capitals keeps its spelling."""
    word = re.match(r"[^\W\d_]+", rest)
    return rest[0].upper() + rest[1:] if word and word[0].islower() else rest
