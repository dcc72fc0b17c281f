"""The stretches of a passage that may be quoted: whole sentences of prose, whole rows of a table, lines of code."""

import re

from storage.language.sentences import sentence_spans
from storage.types import Kind, Passage, Span

_LINE = re.compile(r"\S(?:[^\n]*\S)?")
_MARK = re.compile(r"(?:[-•*✓]|\d{1,3}[.)])\s+(?=\S)")
_MARKED_LINE = re.compile(r"[^\S\n]*(?:[-•*✓]|\d{1,3}[.)])\s|[^\S\n]{2,}\S")


def quotable_spans(passage: Passage) -> tuple[Span, ...]:
    """Return the stretches of a passage's text that stand for themselves, in order, without the mark of a list item."""
    text = passage.text
    if passage.kind is not Kind.PROSE:
        return tuple(match.span() for match in _LINE.finditer(text))
    return tuple((_after_mark(text, span), span[1]) for span in sentence_spans(text))


def in_list(text: str, span: Span) -> bool:
    """Return whether a sentence stands on a line that is marked, or indented, as an item of a list."""
    return bool(_MARKED_LINE.match(text, text.rfind("\n", 0, span[0]) + 1))


def _after_mark(text: str, span: Span) -> int:
    opens_line = not text[text.rfind("\n", 0, span[0]) + 1 : span[0]].strip()
    mark = _MARK.match(text, *span) if opens_line else None
    return mark.end() if mark else span[0]
