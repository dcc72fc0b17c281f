"""Verify that the record of a turn is consistent. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storage.types import EntryKind, LogEntry, hash_passage

QUOTE_JOIN = " … "  # joins the sentences of a quote that are not neighbours in the passage

_ENDS = ".!?:;…؟۔।"
_CLOSERS = "\"'”’»)\\]\\d"
_TIGHT_ENDS = "。！？"  # marks after which the next sentence follows without a space


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """An inconsistency in the record of a turn."""

    turn_id: str
    what: str


def verify_turn(record: Sequence[LogEntry]) -> tuple[AuditFinding, ...]:
    """Check the entries of one turn. A turn that was never closed has no findings.

    Every sentence must cite an existing citation, every quote must be verbatim in its passage's text, and the passage's
    text, title and section must have the recorded hash. Sentences of `extractive` must be quotations.
    """
    closed = (entry for entry in record if entry.kind is EntryKind.TURN_CLOSED)
    return tuple(AuditFinding(entry.turn_id, what) for entry in closed for what in _turn_faults(entry.body))


def _turn_faults(body: Mapping[str, Any]) -> Iterator[str]:
    citations = dict[Any, list[str]]()  # several pages may share a number
    for citation in body.get("citations", ()):
        yield from _citation_faults(citation)
        citations.setdefault(citation.get("number"), []).append(str(citation.get("quote", "")))
    for sentence in body.get("sentences", ()):
        yield from _sentence_faults(sentence, citations, verbatim=body.get("system") == "extractive")


def _citation_faults(citation: Mapping[str, Any]) -> Iterator[str]:
    name = f"citation {citation.get('number')}"
    title, section, text = (str(citation.get(part, "")) for part in ("title", "section", "passage_text"))
    if not _is_verbatim(str(citation.get("quote", "")), text):
        yield f"{name}: its quote is not in its passage"
    if citation.get("passage_hash") != hash_passage(title, section, text):
        yield f"{name}: its passage does not have the hash that was recorded"


def _sentence_faults(
    sentence: Mapping[str, Any], citations: Mapping[Any, Sequence[str]], *, verbatim: bool
) -> Iterator[str]:
    text, numbers = str(sentence.get("text", "")), sentence.get("citations", ())
    if not numbers:
        yield f"{text!r} cites nothing"
    for number in numbers:
        if number not in citations:
            yield f"{text!r} cites {number}, which is not there"
    cited = [quote for number in numbers for quote in citations.get(number, ())]
    if verbatim and cited and not any(_is_said_by(text, quote) for quote in cited):
        yield f"{text!r} is not what it quotes"


_MARK = re.compile(r"\[\d+\]|\s+")


def check_assembled(closed: Mapping[str, Any]) -> Iterator[str]:
    """Check that a closed turn's text consists of its sentences with their notes and footnotes, and nothing else."""
    sentences = closed.get("sentences") or ()
    assembled = "".join(
        "".join(
            (
                f"({sentence['note']})" if sentence.get("note") else "",
                str(sentence.get("text", "")),
                *_render_marks(sentence),
            )
        )
        for sentence in sentences
    )
    if sentences and _strip_spaces(str(closed.get("text", ""))) != _strip_spaces(assembled):
        yield "its text is not its sentences"


def _render_marks(sentence: Mapping[str, Any]) -> Iterator[str]:
    return (f"[{number}]" for number in sentence.get("citations") or ())


def _strip_spaces(text: str) -> str:
    return "".join(text.split())


def strip_marks(text: str) -> str:
    """Return a text without footnote marks and spaces, so that stored and shown texts can be compared."""
    return _MARK.sub("", text)


def check_delivered(answer: str, delivered: Mapping[str, Any]) -> Iterator[str]:
    """Check that the delivered text contains the whole `answer`, unless parts of it did not fit."""
    whole = delivered.get("outcome") == "delivered" and not delivered.get("left_out")
    if whole and answer not in strip_marks(str(delivered.get("text", ""))):
        yield "the delivered text differs from the recorded answer"


def _is_verbatim(quote: str, text: str) -> bool:
    pieces = quote.split(QUOTE_JOIN)
    return all(piece.strip() for piece in pieces) and (quote in text or all(piece in text for piece in pieces))


def _is_said_by(text: str, quote: str) -> bool:
    """Return whether a quote contains a text as a sentence, or each line of it as a sentence or a row in prose."""
    lines = [line for line in text.split("\n") if line.strip("`")]  # without fences of code
    rows = [_words_of_cells(row) for line in quote.split("\n") for row in {line, *line.split(QUOTE_JOIN)}]
    return _is_whole_sentence(text, quote) or all(
        _is_whole_sentence(line, quote) or any(_says_row(_words(line), row) for row in rows) for line in lines
    )


_COUNTED = re.compile(r"(.+?) \(([^()]+)\)")
_Ways = list[list[str]]  # the possible wordings of a cell, each a list of words


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _words_of_cells(row: str) -> list[_Ways]:
    """Return, for each cell of a table row, the ways to say it in words; empty if the line is not a row.

    "Price (euros): 349" can be said as "price 349 euros".
    """
    cells = [cell.partition(": ") for cell in row.split("; ")]
    if len(cells) == 1 or not all(mark for _, mark, _ in cells):
        return []
    (key, _, named), *rest = cells
    return [[_words(f"{key} {named}"), _words(named)], *(_word_cell(label, value) for label, _, value in rest)]


def _word_cell(label: str, value: str) -> _Ways:
    counted = _COUNTED.fullmatch(label)
    ways = [_words(f"{label} {value}")]
    return [*ways, _words(f"{counted[1]} {value} {counted[2]}")] if counted else ways


def _says_row(words: list[str], cells: list[_Ways]) -> bool:
    """Return whether the words say the cells one after the other, and nothing else."""
    if not cells:
        return False
    for ways in cells:
        wording = next((way for way in ways if words[: len(way)] == way), None)
        if wording is None:
            return False
        words = words[len(wording) :]
    return not words


def _is_whole_sentence(sentence: str, quote: str) -> bool:
    """Return whether a quote contains this sentence from beginning to end, and not within a longer sentence."""
    start = rf"(?:^|{QUOTE_JOIN}|\n\s*|[{_ENDS}][{_CLOSERS}]*\s+|[{_TIGHT_ENDS}])"
    end = rf"(?:$|{QUOTE_JOIN}|\s|(?<=[{_TIGHT_ENDS}]))"
    return bool(sentence) and bool(re.search(f"{start}{re.escape(sentence)}{end}", quote))
