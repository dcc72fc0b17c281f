"""Verify what the record says against itself. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storage.types import EntryKind, LogEntry, hash_passage

QUOTE_JOIN = " … "  # joins the sentences of one quote that do not follow each other in the passage

_ENDS = ".!?:;…؟۔।"
_CLOSERS = "\"'”’»)\\]\\d"
_TIGHT_ENDS = "。！？"  # after these the next sentence follows without a blank


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """An inconsistency in the record of a turn."""

    turn_id: str
    what: str


def verify_turn(record: Sequence[LogEntry]) -> tuple[AuditFinding, ...]:
    """Check the entries of one turn; one that was never closed has said nothing.

    Every sentence must cite a citation that is there, every quote must stand verbatim in its passage's text, and that
    text, title and section must have the recorded hash. What `extractive` said must be what it quotes.
    """
    closed = (entry for entry in record if entry.kind is EntryKind.TURN_CLOSED)
    return tuple(AuditFinding(entry.turn_id, what) for entry in closed for what in _turn_faults(entry.body))


def _turn_faults(body: Mapping[str, Any]) -> Iterator[str]:
    citations = {citation.get("number"): citation for citation in body.get("citations", ())}
    for citation in citations.values():
        yield from _citation_faults(citation)
    for sentence in body.get("sentences", ()):
        yield from _sentence_faults(sentence, citations, verbatim=body.get("system") == "extractive")


def _citation_faults(citation: Mapping[str, Any]) -> Iterator[str]:
    name = f"citation {citation.get('number')}"
    title, section, text = (str(citation.get(part, "")) for part in ("title", "section", "passage_text"))
    if not _is_verbatim(str(citation.get("quote", "")), text):
        yield f"{name}: its quote does not stand in its passage"
    if citation.get("passage_hash") != hash_passage(title, section, text):
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
    if verbatim and cited and not any(_is_whole_sentence(text, quote) for quote in cited):
        yield f"{text!r} is not what it quotes"


def _is_verbatim(quote: str, text: str) -> bool:
    pieces = quote.split(QUOTE_JOIN)
    return all(piece.strip() for piece in pieces) and (quote in text or all(piece in text for piece in pieces))


def _is_whole_sentence(sentence: str, quote: str) -> bool:
    """Return whether a quote contains the whole sentence, from the end of the one before to its own end."""
    start = rf"(?:^|{QUOTE_JOIN}|\n\s*|[{_ENDS}][{_CLOSERS}]*\s+|[{_TIGHT_ENDS}])"
    end = rf"(?:$|{QUOTE_JOIN}|\s|(?<=[{_TIGHT_ENDS}]))"
    return bool(sentence) and bool(re.search(f"{start}{re.escape(sentence)}{end}", quote))
