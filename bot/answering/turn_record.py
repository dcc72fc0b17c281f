"""Write a turn's log entries, and read a turn back from them.

Entries of older versions have fewer fields. Unknown facts default to the restrictive value: a turn without recorded
corpora counts as made from every corpus that it could read.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any

from pydantic import TypeAdapter

from bot import read_version
from bot.access import Asker
from bot.settings.tables.settings_tables import Settings
from bot.types import Failure, Place, TaskKind, TurnRequest, TurnResult
from bot.views.catalog import translate
from pipeline.errors import UnreadableReply
from pipeline.gate import WithheldSentence
from pipeline.replies.reply_format import extract_json_object
from pipeline.replies.stage_replies import query_format
from pipeline.types import Answer, AnsweredSentence, Conversation, Status, Usage
from storage.indexes.embedding import CROSS_ENCODER_SHA256
from storage.types import Document, DocumentId, EntryKind, Hit, LogEntry, Passage, SearchQuery, Step

INTERRUPTED = "interrupted"  # the failure kind of a turn whose process ended first
_OPTIONAL = ("effort", "pinned", "quoted_because", "web_fault", "study")  # fields of a result, recorded only if set


def read_versions(embedder: str) -> Mapping[str, str]:
    """Return the versions of code, prompts, local check, cross-encoder and embedder with which this process answers."""
    return {
        "version": read_version(),
        "prompts": digest_files("pipeline.prompts", ".j2", ".json"),
        "support": digest_files("pipeline.support", "weights.json"),
        "reader": CROSS_ENCODER_SHA256[:16],
        "embedder": embedder,
    }


def digest_settings(settings: Settings) -> str:
    """Return a short hash of the settings, except the database's address and the values of secrets."""
    plain = json.dumps(settings.model_dump(mode="json", exclude={"database"}), sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:16]


@cache
def digest_files(package: str, *endings: str) -> str:
    """Return a short hash of the names and contents of a package's files."""
    whole = hashlib.sha256()
    files = [file for file in resources.files(package).iterdir() if file.name.endswith(endings)]
    for file in sorted(files, key=lambda file: file.name):
        for part in (file.name.encode(), file.read_bytes()):
            whole.update(len(part).to_bytes(8))
            whole.update(part)
    return whole.hexdigest()[:16]


def build_opening(
    request: TurnRequest, talk: Conversation, corpora: Mapping[str, datetime | None], ran: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the body of a turn's opening entry: who asks what, which corpora may be read, and what will answer.

    `corpora` are those that may be read, each with its last refresh; `ran` has the task, the system, the models that
    may be called, and all versions. Earlier turns may come from corpora that cannot be read now; these corpora are
    listed, because the evidence view of this turn shows something of them.
    """
    return {
        "asker": request.asker,
        "thread": request.thread,
        "message": request.message,
        "ticket": request.ticket,
        "because": request.because,
        "question": talk.question.text,
        "language": talk.question.language,
        "earlier": [turn.text for turn in talk.earlier],
        "earlier_corpora": sorted({corpus for turn in talk.earlier for corpus in turn.corpora}),
        "earlier_documents": sorted({document for turn in talk.earlier for document in turn.documents}),
        "corpora": corpora,
        **({"taken": request.taken} if request.taken else {}),
        **ran,
    }


def build_closing_entries(
    result: TurnResult,
    steps: Sequence[Step],
    withheld: Sequence[WithheldSentence],
    spoken: Sequence[AnsweredSentence],
) -> tuple[LogEntry, ...]:
    """Return the entries of a turn's steps and of its end: its answer, its evidence, and the withheld sentences.

    `spoken` are the sentences that were shown as they passed the gate; they are recorded only for a turn that broke off
    and therefore has no answer.
    """
    answer = result.answer
    body = {
        "status": answer.status,
        "text": result.text,
        "sentences": answer.sentences,
        "spoken": () if answer.sentences else spoken,
        "citations": answer.citations,
        "claims": answer.claims,
        "nearest": [_keep_page(hit) for hit in answer.nearest],
        "withheld": withheld,
        "system": result.system,
        "model": result.model,
        "usage": result.usage,
        "seconds": result.seconds,
        "failure": result.failure,
    }
    body |= {name: value for name in _OPTIONAL if (value := getattr(result, name))}
    entries = (_build_step(result.answer_id, step) for step in steps)
    return (*entries, LogEntry(result.answer_id, EntryKind.TURN_CLOSED, body))


def build_interruption(opened: LogEntry) -> LogEntry:
    """Return the closing entry of a turn whose process ended before the turn did; the turn's steps are unknown."""
    hint = "The question is asked again." if opened.body.get("ticket") else "Ask again."
    failure = Failure(INTERRUPTED, "The process ended before the turn did.", hint)
    text = translate("failed", str(opened.body.get("language", "")))
    return build_unanswered(opened.turn_id, Status.FAILED, failure, text)


def build_unanswered(turn_id: str, status: Status, failure: Failure, text: str = "") -> LogEntry:
    """Return the closing entry of a turn without an answer. `text` is the reply; default: the failure's message."""
    result = TurnResult(turn_id, Answer(status), text or failure.message, "", None, Usage(), 0.0, failure)
    (closed,) = build_closing_entries(result, (), (), ())
    return closed


def _build_step(turn_id: str, step: Step) -> LogEntry:
    times = {"milliseconds": step.milliseconds, "began": step.began}
    return LogEntry(turn_id, EntryKind.STEP, {**step.facts, "stage": step.stage, **times})


def _keep_page(hit: Hit) -> Mapping[str, Any]:
    """Return a search hit as recorded: its fields, and also its id, title and address, which lists of pages read."""
    named = {"passage_id": hit.passage.id, "title": hit.document.title, "url": hit.document.url}
    return named | {part.name: getattr(hit, part.name) for part in fields(hit)}


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """A turn as recorded in the log."""

    turn_id: str
    task: TaskKind
    question: str
    asker: Asker
    place: Place  # where it was asked
    at: datetime | None  # when it was opened, by our clock
    language: str = ""
    message: str = ""  # the message that asked
    ticket: int = 0
    because: str = ""
    result: TurnResult | None = None  # None if the turn was never closed
    delivered: tuple[str, ...] = ()  # the messages that show it; empty if it was retracted
    retracted: bool = False
    cited: frozenset[str] = field(default_factory=frozenset)  # the corpora that the answer cites
    touched: frozenset[str] = field(default_factory=frozenset)
    """All corpora behind it: cited, found, checked, or used earlier in its conversation."""
    stated: frozenset[DocumentId] = field(default_factory=frozenset)  # the documents that the answer cites
    weighed: frozenset[DocumentId] = field(default_factory=frozenset)
    """The documents that its claims were compared with, and those behind the earlier turns."""

    @property
    def documents(self) -> frozenset[DocumentId]:
        """The documents behind the turn's evidence, which is shown only while none of them is forgotten."""
        return self.stated | self.weighed

    @property
    def corpora(self) -> frozenset[str]:
        """The corpora behind the turn's evidence, which is shown only where all of them are readable."""
        return self.cited | self.touched

    def may_show_answer(self, here: Collection[str], gone: Collection[DocumentId] = ()) -> bool:
        """Return whether the answer may be shown where the corpora `here` are readable, and `gone` are forgotten.

        All cited corpora must be readable, and no cited document may be in `gone`. A fact-check gives reasons without
        footnotes, so everything behind it must be readable.
        """
        if self.task == "check":
            return self.may_show_evidence(here, gone)
        return not self.retracted and self.cited <= set(here) and self.stated.isdisjoint(gone)

    def may_show_evidence(self, here: Collection[str], gone: Collection[DocumentId] = ()) -> bool:
        """Return whether everything behind the turn may be shown where the corpora `here` are readable.

        None of it may belong to the forgotten documents `gone`. An unknown corpus counts as unreadable.
        """
        return not self.retracted and self.corpora <= set(here) and self.documents.isdisjoint(gone)

    def asks(self, text: str) -> bool:
        """Return whether `text` is the recorded question."""
        return bool(self.question == _repair_surrogates(text))


def read_turn_record(entries: Sequence[LogEntry]) -> TurnRecord | None:
    """Return a turn from its entries, oldest first; None if it was never opened.

    Raises `ValueError` if an entry has an unknown format.
    """
    opened = _find_first(entries, EntryKind.TURN_OPENED)
    if not opened:
        return None
    body, closed = opened.body, _find_first(entries, EntryKind.TURN_CLOSED)
    asker = _read_asker(body.get("asker"))
    result = replace(_read_result(closed), query=find_query(entries)) if closed else None
    retracted = any(entry.kind is EntryKind.EDITED and entry.body.get("retracted") for entry in entries)
    stated = result.cited_documents if result else frozenset[DocumentId]()
    cited = frozenset(corpus for corpus, _ in stated)
    return TurnRecord(
        opened.turn_id,
        "check" if body.get("task") == "check" else "ask",
        _repair_surrogates(str(body.get("question", ""))),
        asker,
        Place(asker.platform, asker.workspace, asker.channel, str(body.get("thread", ""))),
        opened.at,
        language=str(body.get("language", "")),
        message=str(body.get("message", "")),
        ticket=int(body.get("ticket", 0)),
        because=str(body.get("because", "")),
        result=result,
        delivered=() if retracted else _find_delivered(entries),
        retracted=retracted,
        cited=cited,
        touched=_find_touched_corpora(body, entries) | cited,
        stated=stated,
        weighed=_find_weighed_documents(body, entries, result),
    )


def _find_first(entries: Iterable[LogEntry], kind: EntryKind) -> LogEntry | None:
    return next((entry for entry in entries if entry.kind is kind), None)


def _read_asker(body: object) -> Asker:
    """Return the asker; if none is recorded, one who may read nothing."""
    recorded = body if isinstance(body, Mapping) and body.get("platform") and body.get("kind") else None
    asker: Asker = _adapter(Asker).validate_python(_repair_surrogates(recorded or {"platform": "slack", "kind": "dm"}))
    return asker


def _read_result(closed: LogEntry) -> TurnResult:
    body = _repair_surrogates(closed.body)
    answer = {
        "status": body.get("status", "failed"),
        "sentences": body.get("sentences", ()),
        "citations": body.get("citations", ()),
        "claims": body.get("claims", ()),
        "nearest": [_restore_page(page) for page in body.get("nearest", ())],
        "withheld": len(body.get("withheld", ())),
    }
    fields_read = {
        "answer_id": closed.turn_id,
        "answer": answer,
        "text": body.get("text", ""),
        "system": body.get("system", ""),
        "model": body.get("model"),
        "usage": body.get("usage") or {},
        "seconds": body.get("seconds") or 0.0,
        "failure": body.get("failure"),
        **{name: body.get(name) for name in _OPTIONAL},
    }
    result: TurnResult = _adapter(TurnResult).validate_python(fields_read)
    return result


def _restore_page(page: Mapping[str, Any]) -> Mapping[str, Any]:
    """Restore one of the nearest pages from the record.

    An older entry does not name the page's corpus, so the page counts as unreadable.
    """
    if "passage" in page:
        return page
    passage: dict[str, Any] = dict.fromkeys(("corpus", "document", "section", "text", "hash"), "")
    document = {"corpus": "", "key": "", "title": page.get("title", ""), "url": page.get("url", "")}
    passage |= {"id": page.get("passage_id", ""), "position": 0}
    return {"passage": passage, "document": document, "score": 0.0}


def read_kept_passages(entries: Iterable[LogEntry]) -> Mapping[str, tuple[Passage, Document]]:
    """Return the passages of web pages by id, each with its page; only the record stores them."""
    kept = [hit for entry in entries if entry.kind is EntryKind.STEP for hit in entry.body.get("kept", ())]
    hits: list[Hit] = _adapter(list[Hit]).validate_python(_repair_surrogates(kept))
    return {hit.passage.id: (hit.passage, hit.document) for hit in hits}


def _find_touched_corpora(opened: Mapping[str, Any], entries: Iterable[LogEntry]) -> frozenset[str]:
    """Return the corpora of all found passages, of the earlier turns, and of the examples shown to the model."""
    readable, earlier = frozenset(opened.get("corpora", ())), frozenset(opened.get("earlier_corpora", ()))
    hits = _list_hits(entries)
    steps = [entry.body for entry in entries if entry.kind is EntryKind.STEP]
    shown = {str(corpus) for body in steps for corpus in body.get("demo_corpora", ())}
    unnamed = any(len(hit) <= _HIT_FIELDS.index("corpus") for hit in hits) or (
        opened.get("earlier") and "earlier_corpora" not in opened
    )
    return earlier | shown | (readable if unnamed else frozenset(hit[_HIT_FIELDS.index("corpus")] for hit in hits))


def _find_weighed_documents(
    opened: Mapping[str, Any], entries: Iterable[LogEntry], result: TurnResult | None
) -> frozenset[DocumentId]:
    """Return the documents that the turn's claims were compared with, and those behind the earlier turns."""
    unknown = (opened.get("earlier_corpora") or ()) if "earlier_documents" not in opened else ()
    earlier = (*opened.get("earlier_documents", ()), *((corpus, "") for corpus in unknown))
    claims = result.answer.claims if result else ()
    passages = {passage for checked in claims for passage in (*checked.evidence, *checked.looked_at)}
    weighed = {(*hit, "", "")[_HIT_FIELDS.index("corpus") :][:2] for hit in _list_hits(entries) if hit[0] in passages}
    return frozenset((str(corpus), str(key)) for corpus, key in (*earlier, *weighed))


def _list_hits(entries: Iterable[LogEntry]) -> list[Sequence[Any]]:
    return [hit for entry in entries if entry.kind is EntryKind.STEP for hit in entry.body.get("hits", ())]


_HIT_FIELDS = ("passage", "score", "corpus", "document")  # the fields of a step's hits; older steps lack the last ones


def _find_delivered(entries: Iterable[LogEntry]) -> tuple[str, ...]:
    posts = [entry.body.get("messages", ()) for entry in entries if entry.kind is EntryKind.DELIVERED]
    return tuple(map(str, posts[-1])) if posts else ()


def _repair_surrogates(value: Any) -> Any:
    """Return a JSON value with lone surrogates replaced, so that its texts can be encoded as UTF-8."""
    match value:
        case str() if not value.isascii():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case Mapping():
            return {key: _repair_surrogates(item) for key, item in value.items()}
        case list() | tuple():
            return [_repair_surrogates(item) for item in value]
        case _:
            return value


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def find_query(entries: Sequence[LogEntry]) -> SearchQuery | None:
    """Return the query that the model wrote; if it wrote none, the query of the turn's first search."""
    steps = [entry.body for entry in entries if entry.kind is EntryKind.STEP]
    for step in sorted(steps, key=lambda step: step.get("template") == "web_query"):  # the web's last: it omits names
        if step.get("stage") == "query" and (query := _read_query(step)):
            return query
    first = next((step for step in steps if step.get("stage") == "search"), None)
    return SearchQuery(str(first["query"]), first.get("time")) if first and first.get("query") else None


def _read_query(step: Mapping[str, Any]) -> SearchQuery | None:
    reply = str(step.get("reply", ""))
    try:
        form = query_format()
        return form.from_json(extract_json_object(reply)) if step.get("format") == "schema" else form.from_text(reply)
    except UnreadableReply:
        return None
