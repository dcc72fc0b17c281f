"""What a turn was, from the record alone: its question, its answer as it was given, and what it was made from. Pure.

`bot.turn_record` writes these entries. Those of older versions say less; what they do not say counts against whoever
wants to see the turn again: its corpora are then all that it could read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from bot.access import Asker
from bot.desk.types import Place, Task
from bot.turns import Answered
from storage.types import EntryKind, LogEntry


@dataclass(frozen=True, slots=True)
class Recalled:
    """A turn of the record."""

    turn_id: str
    task: Task
    question: str
    asker: Asker
    place: Place
    """Where it was asked."""
    at: datetime | None
    """When it was opened, by our clock."""
    language: str = ""
    message: str = ""
    """The message that asked."""
    ticket: int = 0
    because: str = ""
    answered: Answered | None = None
    """What was answered; None of a turn that was never closed."""
    delivered: tuple[str, ...] = ()
    """The messages that show it; none once it was taken back."""
    retracted: bool = False
    cited: frozenset[str] = field(default_factory=frozenset)
    """The corpora that the answer cites."""
    touched: frozenset[str] = field(default_factory=frozenset)
    """The corpora of all that it was made from: cited, found, checked, or said earlier in its conversation."""

    @property
    def corpora(self) -> frozenset[str]:
        """All corpora that must be readable to whoever is to see how it was made."""
        return self.cited | self.touched

    def asked(self, text: str) -> bool:
        """Return whether this is the question as it was asked, as far as the record can tell."""
        return bool(self.question == _mended(text))


def recalled(entries: Sequence[LogEntry]) -> Recalled | None:
    """Return what the entries of one turn, oldest first, say of it; None where it was never opened.

    Raises:
        ValueError: An entry is not as any version wrote it.
    """
    opened = _first(entries, EntryKind.TURN_OPENED)
    if not opened:
        return None
    body, closed = opened.body, _first(entries, EntryKind.TURN_CLOSED)
    asker = _asker(body.get("asker"))
    answered = _answered(closed) if closed else None
    retracted = any(entry.kind is EntryKind.EDITED and entry.body.get("retracted") for entry in entries)
    cited = frozenset(citation.corpus for citation in answered.answer.citations) if answered else frozenset[str]()
    return Recalled(
        opened.turn_id,
        "check" if body.get("task") == "check" else "ask",
        _mended(str(body.get("question", ""))),
        asker,
        Place(asker.platform, asker.workspace, asker.channel, str(body.get("thread", ""))),
        opened.at,
        language=str(body.get("language", "")),
        message=str(body.get("message", "")),
        ticket=int(body.get("ticket", 0)),
        because=str(body.get("because", "")),
        answered=answered,
        delivered=() if retracted else _delivered(entries),
        retracted=retracted,
        cited=cited,
        touched=_touched(body, entries) | cited,
    )


def _first(entries: Iterable[LogEntry], kind: EntryKind) -> LogEntry | None:
    return next((entry for entry in entries if entry.kind is kind), None)


def _asker(body: object) -> Asker:
    """Return who asked; of one who is not named, somebody who may read nothing."""
    known = body if isinstance(body, Mapping) and body.get("platform") and body.get("kind") else None
    asker: Asker = _adapter(Asker).validate_python(_mended(known or {"platform": "slack", "kind": "dm"}))
    return asker


def _answered(closed: LogEntry) -> Answered:
    body = _mended(closed.body)
    answer = {
        "status": body.get("status", "failed"),
        "sentences": body.get("sentences", ()),
        "citations": body.get("citations", ()),
        "claims": body.get("claims", ()),
        "nearest": [_page(page) for page in body.get("nearest", ())],
        "withheld": len(body.get("withheld", ())),
    }
    outcome = {
        "answer_id": closed.turn_id,
        "answer": answer,
        "text": body.get("text", ""),
        "system": body.get("system", ""),
        "model": body.get("model"),
        "usage": body.get("usage") or {},
        "seconds": body.get("seconds") or 0.0,
        "failure": body.get("failure"),
    }
    answered: Answered = _adapter(Answered).validate_python(outcome)
    return answered


def _page(page: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return one of the nearest pages; of an older entry, which names it only, one of a corpus that nobody may read."""
    if "passage" in page:
        return page
    passage = dict.fromkeys(("corpus", "document", "section", "text", "hash"), "")
    document = {"corpus": "", "key": "", "title": page.get("title", ""), "url": page.get("url", "")}
    return {
        "passage": passage | {"id": page.get("passage_id", ""), "position": 0},
        "document": document,
        "score": 0.0,
    }


def _touched(opened: Mapping[str, Any], entries: Iterable[LogEntry]) -> frozenset[str]:
    """Return the corpora of all that was found, and of what was said earlier."""
    readable, earlier = frozenset(opened.get("corpora", ())), frozenset(opened.get("earlier_corpora", ()))
    hits = [hit for entry in entries if entry.kind is EntryKind.STEP for hit in entry.body.get("hits", ())]
    unnamed = any(len(hit) < len(_NOTED) for hit in hits) or (opened.get("earlier") and "earlier_corpora" not in opened)
    return earlier | (readable if unnamed else frozenset(hit[_NOTED.index("corpus")] for hit in hits))


_NOTED = ("passage", "score", "corpus")
"""What a step says of each hit; older ones leave out the last."""


def _delivered(entries: Iterable[LogEntry]) -> tuple[str, ...]:
    posts = [entry.body.get("messages", ()) for entry in entries if entry.kind is EntryKind.DELIVERED]
    return tuple(map(str, posts[-1])) if posts else ()


def _mended(value: Any) -> Any:
    """Return a value of JSON whose every text can be written as UTF-8: half a surrogate pair becomes a mark."""
    match value:
        case str() if not value.isascii():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case Mapping():
            return {key: _mended(item) for key, item in value.items()}
        case list() | tuple():
            return [_mended(item) for item in value]
        case _:
            return value


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
