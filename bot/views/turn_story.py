"""Tell a turn of the record as a story: what was asked, found, checked, withheld, said, and done with it; pure.

Nothing in an entry keeps the rest from being told: what cannot be read is left out, and what was erased is said to be.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from bot.views.sanitize import replace_unencodable
from storage.types import Document, DocumentId, EntryKind, LogEntry, Passage

ERASED = "erased"
UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class StoryPassage:
    """A passage that was found, with its words where they are known."""

    id: str
    corpus: str
    document: str  # the document's key
    title: str = ""
    section: str = ""
    url: str = ""
    date: str = ""
    text: str = ""
    quote: str = ""
    score: float | None = None  # of the search that found it
    number: int = 0  # of its footnote; 0 where it has none


@dataclass(frozen=True, slots=True)
class StoryStep:
    """A search, or a call of a model."""

    stage: str
    milliseconds: float
    query: str = ""
    found: tuple[StoryPassage, ...] = ()
    is_search: bool = False
    model: str = ""
    tokens: int = 0
    error: str = ""
    reply: str = ""
    facts: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class StoryClaim:
    """A statement that was held against passages."""

    text: str
    origin: str
    verdict: str
    reasoning: str
    evidence: tuple[StoryPassage, ...]
    looked_at: tuple[StoryPassage, ...]


@dataclass(frozen=True, slots=True)
class StorySentence:
    text: str
    numbers: tuple[int, ...] = ()
    note: str = ""
    reason: str = ""  # why it was withheld
    paragraph: bool = False


@dataclass(frozen=True, slots=True)
class StoryEvent:
    """What became of the answer afterwards: an entry that follows its end."""

    seq: int
    at: datetime | None
    kind: str
    by: str
    text: str  # the words that were delivered or written
    facts: Mapping[str, Any]
    erased: bool = False

    @property
    def title(self) -> str:
        """What was done, in a word or two."""
        did = next((words for fact, words in _EDITS if self.kind == EntryKind.EDITED and self.facts.get(fact)), "")
        done = did or _FEEDBACK.get(_text(self.facts.get("what")), "")
        return done or _KINDS.get(self.kind) or self.kind.replace("_", " ").capitalize()


_EDITS = (("retracted", "Taken back"), ("stopped", "Stopped"), ("withheld", "Not shown"))
_KINDS = {EntryKind.RECHECK.value: "Checked again"}
_FEEDBACK = {
    "up": "Found helpful",
    "down": "Found not helpful",
    "ask": "A person was asked",
    "share": "Shared",
    "example": "As an example",
    "answer": "Pinned to its question",
}


@dataclass(frozen=True, slots=True)
class TurnStory:
    """All that is on record of a turn, in the order in which it is told."""

    turn_id: str
    at: datetime | None
    closed_at: datetime | None
    status: str
    erased: bool
    opened: Mapping[str, Any]
    closed: Mapping[str, Any]
    question: str
    who: str
    where: str
    earlier: tuple[str, ...]
    steps: tuple[StoryStep, ...]
    claims: tuple[StoryClaim, ...]
    text: str
    sentences: tuple[StorySentence, ...]
    spoken: tuple[StorySentence, ...]
    withheld: tuple[StorySentence, ...]
    sources: tuple[StoryPassage, ...]
    nearest: tuple[StoryPassage, ...]
    failure: Mapping[str, Any]
    usage: Mapping[str, Any]
    events: tuple[StoryEvent, ...]
    retracted: bool
    damage: tuple[str, ...] = ()  # what cannot be read, entry by entry


Found = Mapping[str, tuple[Passage, Document]]


def list_passages(entries: Iterable[LogEntry]) -> tuple[frozenset[str], frozenset[DocumentId]]:
    """Return the ids of the passages that a turn was given, and the documents that they are of."""
    steps = (entry.body for entry in entries if entry.kind is EntryKind.STEP)
    hits = [_read_hit(one) for body in steps for one in _list(body.get("hits"))]
    named = [hit for hit in hits if hit.id and hit.document]
    return frozenset(one.id for one in named), frozenset((one.corpus, one.document) for one in named)


def build_story(entries: Sequence[LogEntry], found: Found) -> TurnStory | None:
    """Tell the entries of one turn, oldest first; None where it was never opened.

    `found` are other passages than it cites, by id. An id is made of a passage's words: what has it is what was found.
    """
    opened = next((entry for entry in entries if entry.kind is EntryKind.TURN_OPENED), None)
    if opened is None:
        return None
    closed = next((entry for entry in entries if entry.kind is EntryKind.TURN_CLOSED), None)
    said: Mapping[str, Any] = _object(closed.body) if closed else {}
    sources = tuple(_read_source(one) for one in _objects(said.get("citations")))
    known = collect_passages(entries, found)
    asker = _object(_object(opened.body).get("asker"))
    events = tuple(_read_event(entry) for entry in entries if entry.kind not in _OWN)
    steps = (entry for entry in entries if entry.kind is EntryKind.STEP)
    return TurnStory(
        opened.turn_id,
        opened.at,
        closed.at if closed else None,
        UNFINISHED if closed is None else _text(said.get("status")) or ("damaged" if closed.damaged else ERASED),
        any(one.erased or not (one.body or one.damaged) for one in (opened, closed) if one),
        _object(opened.body),
        said,
        _text(_object(opened.body).get("question")),
        _name(asker, "name", "user"),
        _name(asker, "channel_name", "channel") if asker.get("channel") else "",
        tuple(map(_text, _list(_object(opened.body).get("earlier")))),
        tuple(_read_step(_object(entry.body), known) for entry in steps),
        tuple(_read_claim(one, known) for one in _objects(said.get("claims"))),
        _text(said.get("text")),
        tuple(map(_read_sentence, _objects(said.get("sentences")))),
        tuple(map(_read_sentence, _objects(said.get("spoken")))),
        tuple(map(_read_sentence, _objects(said.get("withheld")))),
        sources,
        tuple(_read_page(one) for one in _objects(said.get("nearest"))),
        _object(said.get("failure")),
        _object(said.get("usage")),
        events,
        any(event.kind == EntryKind.EDITED.value and event.facts.get("retracted") for event in events),
        tuple(f"entry {entry.seq}: {entry.damaged}" for entry in entries if entry.damaged),
    )


def collect_passages(entries: Iterable[LogEntry], found: Found) -> dict[str, StoryPassage]:
    """Return by id all passages that a turn was given, as they were then where the record has their words.

    An id is made of a passage's words: what is `found` by it today says what it said then.
    """
    given, recorded = dict[str, StoryPassage](), dict[str, StoryPassage]()
    for entry in entries:
        body = _object(entry.body)
        given |= {one.id: one for one in map(_read_hit, _list(body.get("hits")))}
        pages = map(_read_page, (*_objects(body.get("kept")), *_objects(body.get("nearest"))))
        recorded |= {one.id: one for one in (*pages, *map(_read_source, _objects(body.get("citations"))))}
    return given | {one: _describe(*row) for one, row in found.items()} | recorded


_OWN = frozenset({EntryKind.TURN_OPENED, EntryKind.STEP, EntryKind.TURN_CLOSED})
_TOLD_APART = frozenset({"by", "text", "comment", "lost"})


def _read_event(entry: LogEntry) -> StoryEvent:
    body = _object(entry.body)
    lost = (" ".join(_describe_lost(one)) for one in _objects(body.get("lost")))
    text = _text(body.get("text")) or _text(body.get("comment")) or "\n".join(lost)
    facts = {name: value for name, value in body.items() if name not in _TOLD_APART and value not in ("", [], None)}
    by, erased = _text(body.get("by")), not body and not entry.damaged
    return StoryEvent(entry.seq, entry.at, entry.kind.value, by, text, facts, erased)


def _describe_lost(one: Mapping[str, Any]) -> Iterator[str]:
    """Yield that a sentence no longer stands in its page, and what stands there now."""
    what = "is gone" if one.get("removed") else "has changed"
    yield f"“{_text(one.get('text'))}” no longer stands: “{_text(one.get('title'))}” {what}."
    if now := _text(one.get("now")):
        yield f"It now says: “{now}”"


def _read_step(body: Mapping[str, Any], known: Mapping[str, StoryPassage]) -> StoryStep:
    hits = (_read_hit(one) for one in _list(body.get("hits")))
    facts = _object(body.get("facts"))
    return StoryStep(
        _text(body.get("stage")),
        _number(body.get("milliseconds")),
        _text(body.get("query")),
        tuple(_join(known, hit) for hit in hits),
        "template" not in body,
        _text(body.get("model")),
        int(_number(body.get("prompt_tokens")) + _number(body.get("completion_tokens"))),
        _text(body.get("error")),
        _text(body.get("reply")),
        facts,
    )


def _read_hit(one: Any) -> StoryPassage:
    passage, score, corpus, document = (*_list(one), None, None, None, None)[:4]
    return StoryPassage(_text(passage), _text(corpus), _text(document), score=_number(score))


def _join(known: Mapping[str, StoryPassage], hit: StoryPassage) -> StoryPassage:
    if hit.id not in known:
        return hit
    return replace(known[hit.id], score=hit.score)


def _read_claim(body: Mapping[str, Any], known: Mapping[str, StoryPassage]) -> StoryClaim:
    claim = _object(body.get("claim"))

    def named(name: str) -> tuple[StoryPassage, ...]:
        ids = dict.fromkeys(map(_text, _list(body.get(name))))
        return tuple(known.get(id_) or StoryPassage(id_, "", "") for id_ in ids if id_)

    verdict, reasoning = _text(body.get("verdict")), _text(body.get("reasoning"))
    return StoryClaim(
        _text(claim.get("text")), _text(claim.get("origin")), verdict, reasoning, named("evidence"), named("looked_at")
    )


def _read_sentence(body: Mapping[str, Any]) -> StorySentence:
    numbers = tuple(int(_number(one)) for one in _list(body.get("citations")))
    note, reason = _text(body.get("note")), _text(body.get("reason"))
    return StorySentence(_text(body.get("text")), numbers, note, reason, paragraph=bool(body.get("paragraph")))


def _read_source(body: Mapping[str, Any]) -> StoryPassage:
    text: dict[str, Any] = {
        name: _text(body.get(name)) for name in ("corpus", "document", "title", "section", "url", "date", "quote")
    }
    return StoryPassage(
        _text(body.get("passage_id")),
        **text,
        text=_text(body.get("passage_text")),
        number=int(_number(body.get("number"))),
    )


def _read_page(body: Mapping[str, Any]) -> StoryPassage:
    passage, document = _object(body.get("passage")), _object(body.get("document"))
    identity = _text(passage.get("id")) or _text(body.get("passage_id"))
    named = (identity, _text(passage.get("corpus")), _text(passage.get("document")))
    title, url = (_text(document.get(name)) or _text(body.get(name)) for name in ("title", "url"))
    about = (title, _text(passage.get("section")), url)
    text = _text(passage.get("text"))
    return StoryPassage(*named, *about, _text(document.get("date")), text)


def _describe(passage: Passage, document: Document) -> StoryPassage:
    date = document.date.isoformat() if document.date else ""
    place = (passage.id, passage.corpus, passage.document, document.title, passage.section, document.url)
    return StoryPassage(*place, date, passage.text)


def _name(asker: Mapping[str, Any], name: str, key: str) -> str:
    """Return how the record names a person or a place: by a name where it is known, and always by its id."""
    platform, workspace, own = (_text(asker.get(part)) for part in ("platform", "workspace", key))
    by_id = f"{platform}:{workspace}/{own}" if workspace else f"{platform}:{own}" if own else platform
    known = _text(asker.get(name))
    return f"{known} ({by_id})" if known else by_id


def _text(value: Any) -> str:
    return replace_unencodable(value) if isinstance(value, str) else ""


def _number(value: Any) -> float:
    finite = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST
    return float(value) if finite else 0.0


_MOST = 10.0**15  # no figure is larger; what is not a number compares as none


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    return (one for one in _list(value) if isinstance(one, Mapping))
