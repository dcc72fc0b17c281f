"""Checks the log against itself: does each sentence stand on a quote, and each quote in the passage it names? Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storage.identity import passage_hash
from storage.types import EntryKind, LogEntry

JOIN = " … "
"""What stands between the sentences of one quote that do not follow each other in the passage."""

_ENDS = ".!?:;…؟۔।"
_CLOSERS = "\"'”’»)\\]\\d"
_TIGHT_ENDS = "。！？"
"""After these the next sentence follows without a blank."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in the record of a turn that should not be there."""

    turn_id: str
    what: str


def verify(record: Sequence[LogEntry]) -> tuple[Finding, ...]:
    """Return what is wrong with the entries of one turn; a turn that was never closed has said nothing.

    Every sentence must cite a citation that is there, every quote must stand verbatim in its passage's text, and that
    text, title and section must have the hash that was recorded. What `extractive` said must be what it quotes.
    """
    closed = (entry for entry in record if entry.kind is EntryKind.TURN_CLOSED)
    return tuple(Finding(entry.turn_id, what) for entry in closed for what in _faults(entry.body))


def _faults(body: Mapping[str, Any]) -> Iterator[str]:
    citations = {citation.get("number"): citation for citation in body.get("citations", ())}
    for citation in citations.values():
        yield from _citation_faults(citation)
    for sentence in body.get("sentences", ()):
        yield from _sentence_faults(sentence, citations, verbatim=body.get("system") == "extractive")


def _citation_faults(citation: Mapping[str, Any]) -> Iterator[str]:
    name = f"citation {citation.get('number')}"
    title, section, text = (str(citation.get(part, "")) for part in ("title", "section", "passage_text"))
    if not _stands(str(citation.get("quote", "")), text):
        yield f"{name}: its quote does not stand in its passage"
    if citation.get("passage_hash") != passage_hash(title, section, text):
        yield f"{name}: its passage does not have the hash that was recorded"


def _sentence_faults(
    sentence: Mapping[str, Any], citations: Mapping[Any, Mapping[str, Any]], *, verbatim: bool
) -> Iterator[str]:
    text, numbers = str(sentence.get("text", "")), sentence.get("citations", ())
    if not numbers:
        yield f"{text!r} cites nothing"
    for number in numbers:
        if number not in citations:
            yield f"{text!r} cites {number}, which is not there"
    cited = [str(citations[number].get("quote", "")) for number in numbers if number in citations]
    if verbatim and cited and not any(_is_piece(text, quote) for quote in cited):
        yield f"{text!r} is not what it quotes"


def _stands(quote: str, text: str) -> bool:
    pieces = quote.split(JOIN)
    return all(piece.strip() for piece in pieces) and (quote in text or all(piece in text for piece in pieces))


def _is_piece(sentence: str, quote: str) -> bool:
    """Return whether a sentence stands whole in a quote: from the end of another sentence or line to its own end."""
    start = rf"(?:^|{JOIN}|\n\s*|[{_ENDS}][{_CLOSERS}]*\s+|[{_TIGHT_ENDS}])"
    end = rf"(?:$|{JOIN}|\s|(?<=[{_TIGHT_ENDS}]))"
    return bool(sentence) and bool(re.search(f"{start}{re.escape(sentence)}{end}", quote))
