"""Read a recorded turn as a story, for the pages and the terminal: its steps, claims, texts and later events; pure.

Every reader tolerates invalid entries: it leaves out values that it cannot read, and marks erased entries.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from bot.views.sanitize import replace_unencodable
from storage.types import Document, DocumentId, EntryKind, LogEntry, Passage

ERASED = "erased"
UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class StoryPassage:
    """A found passage, with its text if it is known."""

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
    number: int = 0  # of its footnote; 0 if it has none


@dataclass(frozen=True, slots=True)
class StoryStep:
    """A search, or a call of a model."""

    stage: str
    milliseconds: float
    template: str = ""  # of a call's prompt; empty for a search
    query: str = ""
    time: str = ""  # of the query
    found: tuple[StoryPassage, ...] = ()
    model: str = ""
    prompt_tokens: int | None = None  # None if no model was called
    completion_tokens: int = 0
    attempts: int = 1
    stopped: bool = False  # whether the call was ended before its reply was complete
    error: str = ""
    reply: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_search(self) -> bool:
        return not self.template

    @property
    def tokens(self) -> int:
        return (self.prompt_tokens or 0) + self.completion_tokens


@dataclass(frozen=True, slots=True)
class StoryClaim:
    """A statement of the turn that was compared with passages."""

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
    """An entry after the end of the turn, such as its delivery."""

    seq: int
    at: datetime | None
    kind: str
    by: str
    text: str  # the text that was delivered or written
    facts: Mapping[str, Any]
    erased: bool = False

    @property
    def title(self) -> str:
        """A title for people, such as `Stopped`."""
        did = next((words for fact, words in _EDITS if self.kind == EntryKind.EDITED and self.facts.get(fact)), "")
        done = did or _FEEDBACK.get(_text(self.facts.get("what")), "")
        return done or _KINDS.get(self.kind) or self.kind.replace("_", " ").capitalize()


_EDITS = (("retracted", "Taken back"), ("stopped", "Stopped"), ("withheld", "Not shown"))
_KINDS = {EntryKind.RECHECK.value: "Checked again"}
_FEEDBACK = {
    "up": "Found helpful",
    "down": "Found not helpful",
    "rated": "Rated in a comparison",
    "left_study": "Left a comparison",
    "ask": "A person was asked",
    "share": "Shared",
    "example": "As an example",
    "answer": "Pinned to its question",
}


@dataclass(frozen=True, slots=True)
class TurnStory:
    """A recorded turn, in the order in which it is shown."""

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
    damage: tuple[str, ...] = ()  # the damaged entries, each with the reason


Found = Mapping[str, tuple[Passage, Document]]


def list_passages(entries: Iterable[LogEntry]) -> tuple[frozenset[str], frozenset[DocumentId]]:
    """Return the ids of the passages that a turn found, and their documents."""
    steps = (entry.body for entry in entries if entry.kind is EntryKind.STEP)
    hits = [_read_hit(hit) for body in steps for hit in _list(body.get("hits"))]
    named = [hit for hit in hits if hit.id and hit.document]
    return frozenset(hit.id for hit in named), frozenset((hit.corpus, hit.document) for hit in named)


def build_story(entries: Sequence[LogEntry], found: Found) -> TurnStory | None:
    """Return the story of a turn from its entries, oldest first; None if the turn was never opened.

    `found` are further passages by id, as stored now. Their text is the same as at the time of the turn, because an id
    is derived from the text.
    """
    opened = next((entry for entry in entries if entry.kind is EntryKind.TURN_OPENED), None)
    if opened is None:
        return None
    closed = next((entry for entry in entries if entry.kind is EntryKind.TURN_CLOSED), None)
    opening, closing = _object(opened.body), _object(closed.body) if closed else {}
    known = collect_passages(entries, found)
    events = tuple(_read_event(entry) for entry in entries if entry.kind not in _OWN)
    steps = (entry for entry in entries if entry.kind is EntryKind.STEP)
    return TurnStory(
        opened.turn_id,
        opened.at,
        closed.at if closed else None,
        UNFINISHED if closed is None else _text(closing.get("status")) or ("damaged" if closed.damaged else ERASED),
        any(entry.erased or not (entry.body or entry.damaged) for entry in (opened, closed) if entry),
        opening,
        closing,
        _text(opening.get("question")),
        name_person(opening),
        name_place(opening),
        tuple(map(_text, _list(opening.get("earlier")))),
        tuple(read_step(_object(entry.body), known) for entry in steps),
        read_claims(closing, known),
        _text(closing.get("text")),
        read_sentences(closing, "sentences"),
        read_sentences(closing, "spoken"),
        read_sentences(closing, "withheld"),
        tuple(map(_read_source, _objects(closing.get("citations")))),
        tuple(map(_read_page, _objects(closing.get("nearest")))),
        _object(closing.get("failure") or closing.get("quoted_because")),
        _object(closing.get("usage")),
        events,
        any(event.kind == EntryKind.EDITED.value and event.facts.get("retracted") for event in events),
        tuple(f"entry {entry.seq}: {entry.damaged}" for entry in entries if entry.damaged),
    )


def collect_passages(entries: Iterable[LogEntry], found: Found) -> dict[str, StoryPassage]:
    """Return all passages of a turn by id. Texts come from the record, or from `found` (see `build_story`)."""
    hits, recorded = dict[str, StoryPassage](), dict[str, StoryPassage]()
    for entry in entries:
        body = _object(entry.body)
        hits |= {hit.id: hit for hit in map(_read_hit, _list(body.get("hits")))}
        pages = map(_read_page, (*_objects(body.get("kept")), *_objects(body.get("nearest"))))
        recorded |= {page.id: page for page in (*pages, *map(_read_source, _objects(body.get("citations"))))}
    return hits | {key: _describe(*row) for key, row in found.items()} | recorded


_OWN = frozenset({EntryKind.TURN_OPENED, EntryKind.STEP, EntryKind.TURN_CLOSED})
_SHOWN_APART = frozenset({"by", "text", "comment", "lost"})


def _read_event(entry: LogEntry) -> StoryEvent:
    body = _object(entry.body)
    changes = (" ".join(describe_change(lost)) for lost in _objects(body.get("lost")))
    text = _text(body.get("text")) or _text(body.get("comment")) or "\n".join(changes)
    facts = {name: value for name, value in body.items() if name not in _SHOWN_APART and value not in ("", [], None)}
    by, erased = _text(body.get("by")), not body and not entry.damaged
    return StoryEvent(entry.seq, entry.at, entry.kind.value, by, text, facts, erased)


def describe_change(lost: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines about a sentence that no longer holds: the sentence, its page, and the page's old and new text."""
    address = ": ".join(filter(None, (_text(lost.get("corpus")), _text(lost.get("document")))))
    page = f"“{_text(lost.get('title'))}”" + (f" ({address})" if address else "")
    what = "was removed" if lost.get("removed") else "has changed"
    yield f"“{_text(lost.get('text'))}” no longer holds: {page} {what}."
    for name, intro in (("was", "It said"), ("now", "It now says")):
        if text := _text(lost.get(name)):
            yield f"{intro}: “{text}”"


def read_step(body: Mapping[str, Any], known: Mapping[str, StoryPassage]) -> StoryStep:
    hits = map(_read_hit, _list(body.get("hits")))
    return StoryStep(
        _text(body.get("stage")),
        _number(body.get("milliseconds")),
        _text(body.get("template")),
        _text(body.get("query")),
        str(body.get("time") or ""),
        tuple(replace(known[hit.id], score=hit.score) if hit.id in known else hit for hit in hits),
        _text(body.get("model")),
        int(_number(body["prompt_tokens"])) if "prompt_tokens" in body else None,
        int(_number(body.get("completion_tokens"))),
        int(_number(body.get("attempts", 1))),
        body.get("finish") == "stopped",
        _text(body.get("error")),
        _text(body.get("reply")),
        _object(body.get("facts")),
    )


def _read_hit(hit: Any) -> StoryPassage:
    passage, score, corpus, document = (*_list(hit), None, None, None, None)[:4]
    return StoryPassage(_text(passage), _text(corpus), _text(document), score=_number(score))


def read_claims(closing: Mapping[str, Any], known: Mapping[str, StoryPassage]) -> tuple[StoryClaim, ...]:
    """Return the claims of a turn's last entry."""

    def find(ids: Any) -> tuple[StoryPassage, ...]:
        keys = filter(None, dict.fromkeys(map(_text, _list(ids))))
        return tuple(known.get(key) or StoryPassage(key, "", "") for key in keys)

    return tuple(
        StoryClaim(
            _text(_object(checked.get("claim")).get("text")),
            _text(_object(checked.get("claim")).get("origin")),
            _text(checked.get("verdict")),
            _text(checked.get("reasoning")),
            find(checked.get("evidence")),
            find(checked.get("looked_at")),
        )
        for checked in _objects(closing.get("claims"))
    )


def read_sentences(closing: Mapping[str, Any], name: str) -> tuple[StorySentence, ...]:
    """Return the sentences of a turn's last entry under the key `name`: `sentences`, `spoken` or `withheld`."""
    return tuple(
        StorySentence(
            _text(sentence.get("text")),
            tuple(int(_number(number)) for number in _list(sentence.get("citations"))),
            _text(sentence.get("note")),
            _text(sentence.get("reason")),
            paragraph=bool(sentence.get("paragraph")),
        )
        for sentence in _objects(closing.get(name))
    )


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


def name_person(opening: Mapping[str, Any]) -> str:
    """Return who asked: the id, preceded by the name if it is recorded."""
    return _name(_object(opening.get("asker")), "name", "user")


def name_place(opening: Mapping[str, Any]) -> str:
    """Return the channel of a question: its id, preceded by its name if it is recorded; empty if it has no channel."""
    asker = _object(opening.get("asker"))
    return _name(asker, "channel_name", "channel") if asker.get("channel") else ""


def _name(asker: Mapping[str, Any], name: str, key: str) -> str:
    platform, workspace, own = (_text(asker.get(part)) for part in ("platform", "workspace", key))
    identity = f"{platform}:{workspace}/{own}" if workspace else f"{platform}:{own}" if own else platform
    known = _text(asker.get(name))
    return f"{known} ({identity})" if known else identity


def _text(value: Any) -> str:
    return replace_unencodable(value) if isinstance(value, str) else ""


def _number(value: Any) -> float:
    finite = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST
    return float(value) if finite else 0.0


_MOST = 10.0**15  # no recorded figure is larger; a NaN fails the comparison


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    return (item for item in _list(value) if isinstance(item, Mapping))
