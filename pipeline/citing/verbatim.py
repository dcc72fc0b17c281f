"""Code and mathematics inside a reply's text: where they stand, and how they are set aside while the rest is read.

Nothing in them is a citation mark, emphasis or the end of a sentence. A fence that stands on lines of its own is the
matter of `lines`; once it is one text, it is found here too.
"""

import re
from collections.abc import Iterable

from storage.types import Span

_TICKS = re.compile("`+")
_FENCE = 3
"""A run of so many backticks may hold blank lines."""
_MATH = re.compile(
    r"\$\$[^$]{1,500}\$\$"
    r"|(?<![\w$\\])\$(?![\s\d$])[^$\n]{1,200}(?<![\s$\\])\$(?!\w)"
    r"|(?<![\w$\\])\$(?=\d)[^\s$]{1,100}\$(?!\w)"
    r"|\\\([^\n]{1,200}?\\\)"
    # Not a citation mark whose brackets are escaped.
    r"|\\\[(?!\s*\^?[\d\s,;–-]+\\?\])[^\n]{1,300}?\\\]"
)
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
_ASIDE = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
RESERVED = "\ufdd0-\ufdef"
"""The inside of a character class: what stands for text set aside. No text may bring such characters itself."""


def verbatim_spans(text: str) -> list[Span]:
    """Return where code and mathematics stand, in order and apart, with the signs around them."""
    code = _code_spans(text)
    return disjoint([*code, *(found.span() for found in _MATH.finditer(covered(text, code, "`")))])


def disjoint(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, those that overlap as one."""
    apart: list[Span] = []
    for start, end in sorted(spans):
        if apart and start < apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((start, end))
    return apart


def covered(text: str, spans: Iterable[Span], char: str) -> str:
    """Return the text with every character of `spans`, which are in order, replaced by `char`."""
    pieces, at = [], 0
    for start, end in spans:
        pieces += [text[at:start], char * (end - start)]
        at = end
    return "".join([*pieces, text[at:]])


def set_aside(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text with a placeholder for each stretch of code and mathematics, and those stretches."""
    pieces: list[str] = []
    kept: list[str] = []
    at = 0
    for start, end in verbatim_spans(text):
        pieces += [text[at:start], f"{_OPEN}{len(kept)}{_CLOSE}"]
        kept.append(text[start:end])
        at = end
    return "".join([*pieces, text[at:]]), tuple(kept)


def put_back(text: str, kept: tuple[str, ...]) -> str:
    """Return the text with the stretches where their placeholders still stand."""
    return _ASIDE.sub(lambda found: kept[int(found[1])], text)


def _code_spans(text: str) -> list[Span]:
    """Pair each run of backticks with the next run of its length; a short one only within its paragraph."""
    runs = [found.span() for found in _TICKS.finditer(text)]
    later: dict[int, list[int]] = {}
    for place in reversed(range(len(runs))):
        later.setdefault(_length(runs[place]), []).append(place)
    spans: list[Span] = []
    place = 0
    while place < len(runs):
        partners = later[_length(runs[place])]
        while partners and partners[-1] <= place:
            partners.pop()
        span = (runs[place][0], runs[partners[-1]][1]) if partners else None
        if span and (_length(runs[place]) >= _FENCE or "\n\n" not in text[slice(*span)]):
            spans.append(span)
            place = partners[-1]
        place += 1
    return spans


def _length(span: Span) -> int:
    return span[1] - span[0]
