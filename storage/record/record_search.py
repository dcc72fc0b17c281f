"""Find turns in the record by filters and words, page by page; also unanswered questions, and figures over time."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Text,
    and_,
    case,
    distinct,
    false,
    func,
    literal_column,
    or_,
    select,
    tuple_,
    type_coerce,
)

from storage.database.engine import Database, split_chunks
from storage.database.schema import document_titles, entries, turn_documents, turn_words, turns
from storage.language.words import words
from storage.record.entry_rows import ENTRY_COLUMNS, parse_entry, read_body, read_moment
from storage.record.question_groups import QuestionGroup, group_questions
from storage.record.turn_index import ERASED, list_terms
from storage.types import DocumentId, EntryKind, LogEntry, Verdict

UNFINISHED = "unfinished"  # the status of a turn that was never closed
RETRACTED = "retracted"  # the filter for retracted answers, whatever their status was
Step = Literal["day", "week", "month", "all"]
_MOST_GROUPED = 5_000


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Conditions on turns. A field that is empty sets no condition."""

    platform: str = ""
    workspace: str = ""
    channel: str = ""  # such as `slack:T1/C1`, `C1`, or a name
    asker: str = ""  # such as `slack:T1/U1`, `U1`, or a name
    since: datetime | None = None
    until: datetime | None = None  # exclusive
    status: str = ""
    verdict: str = ""  # a verdict on any of its claims
    corpus: str = ""  # the corpus of a page that it cites, or of a nearest page
    document: str = ""  # the key or the title of such a page
    rating: str = ""  # `up`, `down`, or `any`
    words: str = ""
    """Words of the question or answer, in any form and order; "a phrase" in quotes, `begin*` for a prefix."""
    before: int | None = None  # the number of an opening entry, for the next page
    limit: int = 50


EVERY_TURN = RecordFilter()


@dataclass(frozen=True, slots=True)
class TurnSummary:
    """A turn as one line of a list."""

    turn_id: str
    seq: int
    at: datetime
    task: str
    platform: str
    workspace: str
    channel: str  # such as `slack:T1/C1`; empty at the terminal
    channel_name: str
    asker: str  # such as `slack:T1/U1`
    asker_name: str
    question: str
    status: str
    system: str
    model: str
    outcome: str  # the outcome of its delivery
    retracted: bool
    sentences: int
    withheld: int
    claims: int
    supported: int
    refuted: int
    up: int  # people whose last rating was "helpful"
    down: int
    seconds: float
    tokens: int
    cost: float
    erased: bool  # whether its texts were erased from the record


@dataclass(frozen=True, slots=True)
class CitedDocument:
    """A document, the number of answers that cite it, and when it was last cited."""

    corpus: str
    document: str
    title: str
    answers: int
    last: datetime


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts of questions and answers in a period."""

    begin: datetime
    end: datetime
    turns: int = 0
    askers: int = 0
    answered: int = 0
    abstained: int = 0
    failed: int = 0  # refused, failed, cancelled, or never closed
    retracted: int = 0
    claims: int = 0
    supported: int = 0
    up: int = 0
    down: int = 0
    seconds: float = 0.0  # the median time of an answer
    slow_seconds: float = 0.0  # the 95th percentile
    tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True)
class RecordSearch:
    """Searches the record. Every method is one read transaction, and raises `StorageError`."""

    database: Database

    async def find(self, wanted: RecordFilter) -> tuple[TurnSummary, ...]:
        """Return the turns that match a filter, newest first."""
        return await self.database.read(lambda connection: _find_turns(connection, wanted))

    async def count(self, wanted: RecordFilter) -> int:
        def count(connection: Connection) -> int:
            query = select(func.count()).select_from(turns).where(*_conditions(connection, wanted))
            return connection.execute(query).scalar_one()

        return await self.database.read(count)

    async def unanswered(
        self, since: datetime | None = None, until: datetime | None = None, *, corpus: str = ""
    ) -> tuple[QuestionGroup[TurnSummary], ...]:
        """Return unanswered questions, grouped by similarity, the most frequent first."""
        criteria = RecordFilter(since=since, until=until, corpus=corpus, status="abstained", limit=_MOST_GROUPED)

        def group(connection: Connection) -> tuple[QuestionGroup[TurnSummary], ...]:
            matches = _find_turns(connection, criteria)
            return group_questions([summary for summary in matches if not summary.erased], lambda turn: turn.question)

        return await self.database.read(group)  # in a thread, as grouping thousands of questions takes a while

    async def nearest_corpora(self, numbers: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Return, by the turns' numbers, the corpora of the pages that these turns cite or list as nearest."""
        query = select(turn_documents.c.seq, turn_documents.c.corpus).distinct().order_by(turn_documents.c.corpus)
        chosen = query.where(turn_documents.c.seq.in_(numbers))
        rows = await self.database.read(lambda connection: connection.execute(chosen).all())
        found: dict[int, tuple[str, ...]] = {}
        for row in rows:
            found[row.seq] = (*found.get(row.seq, ()), row.corpus)
        return found

    async def figures(
        self, since: datetime, until: datetime, step: Step = "day", wanted: RecordFilter = EVERY_TURN
    ) -> tuple[Figures, ...]:
        """Return the figures of each step. Days, weeks and months begin at midnight in the time zone of `since`."""
        steps = tuple(list_steps(since, until, step))
        return await self.database.read(lambda connection: tuple(_measure(connection, wanted, *step) for step in steps))

    async def first(self) -> datetime | None:
        """Return when the first turn was opened; None for an empty record."""
        query = select(turns.c.at).order_by(turns.c.at).limit(1)
        return await self.database.read(lambda connection: connection.execute(query).scalar())

    async def citing(self, corpus: str, document: str, *, limit: int = 50) -> tuple[TurnSummary, ...]:
        """Return the turns whose answers cite a document, newest first."""
        cited = turn_documents.c.corpus == corpus, turn_documents.c.document == document, turn_documents.c.cited
        chosen = turns.c.seq.in_(select(turn_documents.c.seq).where(*cited))
        query = select(*_SUMMARY).where(chosen).order_by(turns.c.seq.desc()).limit(limit)
        return await self.database.read(lambda connection: tuple(map(_parse_summary, connection.execute(query))))

    async def citations_since(self, since: datetime, corpora: Sequence[str]) -> tuple[tuple[str, DocumentId], ...]:
        """Return (turn id, cited document) for the answers since a moment that are neither retracted nor erased."""
        stands = turns.c.at >= since, turns.c.status == _ANSWERED, ~turns.c.retracted, ~turns.c.erased
        joined = select(turns.c.turn_id, turn_documents.c.corpus, turn_documents.c.document).join_from(
            turns, turn_documents, turn_documents.c.seq == turns.c.seq
        )
        query = joined.where(*stands, turn_documents.c.cited, turn_documents.c.corpus.in_(corpora))
        rows = await self.database.read(lambda connection: connection.execute(query.order_by(turns.c.seq)).all())
        return tuple((row.turn_id, (row.corpus, row.document)) for row in rows)

    async def cited_documents(self, corpus: str = "", *, limit: int = 1_000) -> tuple[CitedDocument, ...]:
        """Return the documents that answers cite, the most cited first."""
        key = turn_documents.c.corpus, turn_documents.c.document
        count, last = func.count().label("answers"), func.max(turn_documents.c.seq).label("last")
        counted = select(*key, count, last).where(turn_documents.c.cited).group_by(*key).order_by(count.desc(), *key)
        most = (counted.where(turn_documents.c.corpus == corpus) if corpus else counted).limit(limit).subquery()
        same = document_titles.c.corpus == most.c.corpus, document_titles.c.document == most.c.document
        named = select(most.c.corpus, most.c.document, document_titles.c.title, most.c.answers, turns.c.at)
        joined = named.join_from(most, document_titles, and_(*same)).join(turns, turns.c.seq == most.c.last)
        query = joined.order_by(most.c.answers.desc(), most.c.corpus, most.c.document)
        rows = await self.database.read(lambda connection: connection.execute(query).all())
        return tuple(CitedDocument(*row) for row in rows)

    async def entries_of(self, turn_ids: Sequence[str]) -> dict[str, tuple[LogEntry, ...]]:
        """Return all entries of these turns except their steps, oldest first."""
        chosen = select(*ENTRY_COLUMNS).where(entries.c.kind != EntryKind.STEP.value).order_by(entries.c.seq)
        queries = [chosen.where(entries.c.turn_id.in_(ids)) for ids in split_chunks(turn_ids)]
        rows = await self.database.read(lambda it: [row for query in queries for row in it.execute(query)])
        found: dict[str, tuple[LogEntry, ...]] = {}
        for row in rows:
            found[row.turn_id] = (*found.get(row.turn_id, ()), parse_entry(row))
        return found

    async def feedback(self, wanted: RecordFilter) -> tuple[tuple[TurnSummary, LogEntry], ...]:
        """Return users' actions on the turns that match a filter, newest first.

        In this filter, `before` is the number of an action's entry.
        """
        return await self.database.read(lambda connection: _find_feedback(connection, wanted))


def _find_turns(connection: Connection, wanted: RecordFilter) -> tuple[TurnSummary, ...]:
    query = select(*_SUMMARY).where(*_conditions(connection, wanted)).order_by(turns.c.seq.desc()).limit(wanted.limit)
    return tuple(map(_parse_summary, connection.execute(query)))


_STATUS = func.coalesce(func.nullif(turns.c.status, ""), UNFINISHED).label("status")
_SUMMARY = [_STATUS if part.name == "status" else turns.c[part.name] for part in fields(TurnSummary)]


def _parse_summary(row: Row[*tuple[Any, ...]]) -> TurnSummary:
    return TurnSummary(*row[: len(_SUMMARY)])


def _conditions(connection: Connection, wanted: RecordFilter, *, paged: bool = True) -> Iterator[ColumnElement[bool]]:
    for column in (turns.c.platform, turns.c.workspace):
        if value := getattr(wanted, column.name):
            yield column == value
    if wanted.channel:
        yield _named(turns.c.channel, turns.c.channel_name, wanted.channel.removeprefix("#"))
    if wanted.asker:
        yield _named(turns.c.asker, turns.c.asker_name, wanted.asker.removeprefix("@"))
    if wanted.since:
        yield turns.c.at >= wanted.since
    if wanted.until:
        yield turns.c.at < wanted.until
    if wanted.before is not None and paged:
        yield turns.c.seq < wanted.before
    yield from _outcome_conditions(wanted)
    yield from _document_conditions(wanted)
    if wanted.words.strip():
        yield turns.c.seq.in_(_match_words(connection, wanted.words))


def _named(column: ColumnElement[str], name: ColumnElement[str], value: str) -> ColumnElement[bool]:
    """Return the condition that a value is the full id in a column, the last part of the id, or the name."""
    if ":" in value and "/" in value:
        return column == value
    ids = column.endswith(f"/{value}", autoescape=True)
    return or_(ids, func.lower(name) == value.lower())


def _outcome_conditions(wanted: RecordFilter) -> Iterator[ColumnElement[bool]]:
    if wanted.status == RETRACTED:
        yield turns.c.retracted
    elif wanted.status == ERASED:
        yield or_(turns.c.erased, turns.c.status == ERASED)
    elif wanted.status:
        yield turns.c.status == ("" if wanted.status == UNFINISHED else wanted.status)
    match wanted.verdict:
        case Verdict.SUPPORTS.value:
            yield turns.c.supported > 0
        case Verdict.REFUTES.value:
            yield turns.c.refuted > 0
        case Verdict.NOT_ENOUGH_INFO.value:
            yield turns.c.claims > turns.c.supported + turns.c.refuted
    match wanted.rating:
        case "up":
            yield turns.c.up > 0
        case "down":
            yield turns.c.down > 0
        case "any":
            yield turns.c.up + turns.c.down > 0


def _document_conditions(wanted: RecordFilter) -> Iterator[ColumnElement[bool]]:
    if wanted.document:
        yield turns.c.seq.in_(_select_citing(wanted))
    elif wanted.corpus:  # many turns have the same corpus: checking each turn is faster
        same = turn_documents.c.seq == turns.c.seq, turn_documents.c.corpus == wanted.corpus
        yield select(turn_documents.c.seq).where(*same).exists()


def _select_citing(wanted: RecordFilter) -> Select[int]:
    """Select the numbers of the turns that cite a document, or list it as a nearest page. Key or title names it."""
    titles = document_titles.c
    named = or_(titles.document == wanted.document, func.lower(titles.title) == wanted.document.lower())
    keys = select(titles.corpus, titles.document).where(named)
    keys = keys.where(titles.corpus == wanted.corpus) if wanted.corpus else keys
    return select(turn_documents.c.seq).where(tuple_(turn_documents.c.corpus, turn_documents.c.document).in_(keys))


_SIMPLE: ColumnElement[str] = literal_column("'simple'")
_UNIT = re.compile(r'"([^"]*)"?|([^\s"]+)')


def _match_words(connection: Connection, typed: str) -> Select[int]:
    """Select the numbers of the turns that contain all words and phrases of the search text."""
    units = list(_parse_words(typed))
    matching = select(turn_words.c.rowid)
    if connection.dialect.name == "sqlite":
        query = " AND ".join(f'"{phrase}"{"*" if begins else ""}' for phrase, begins in units)
        return matching.where(turn_words.c.terms.match(query) if units else false())
    vector = func.to_tsvector(_SIMPLE, turn_words.c.terms)
    queries = [
        func.to_tsquery(_SIMPLE, f"'{phrase}':*".replace("\\", ""))
        if begins
        else func.phraseto_tsquery(_SIMPLE, phrase)
        for phrase, begins in units
    ]
    return matching.where(and_(*(vector.op("@@")(query) for query in queries)) if units else false())


def _parse_words(typed: str) -> Iterator[tuple[str, bool]]:
    """Yield the phrases of a search text as terms, each with whether it is a prefix.

    A word in a script without spaces is several phrases: each of its terms is one.
    """
    for quoted, word in _UNIT.findall(typed):
        text = quoted or word.rstrip("*")
        terms = list_terms(text).replace('"', "").replace("'", "").split()
        if word.endswith("*") or len(terms) != len(words(text)):
            yield from ((term, word.endswith("*")) for term in terms)
        elif terms:
            yield " ".join(terms), False


def list_steps(since: datetime, until: datetime, step: Step) -> Iterator[tuple[datetime, datetime]]:
    """Yield the begin and end of each step from `since` to `until`. The first and the last may be incomplete."""
    begin = since
    while begin < until:
        day = begin.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
        match step:
            case "day":
                end = day + timedelta(days=1)
            case "week":
                end = day + timedelta(days=7 - day.weekday())
            case "month":
                end = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
            case "all":
                end = until
        yield begin, min(end, until)
        begin = end


_ANSWERED, _ABSTAINED = "answered", "abstained"
_ENDED_WELL = (_ANSWERED, _ABSTAINED, "chatted")


def _measure(connection: Connection, wanted: RecordFilter, begin: datetime, end: datetime) -> Figures:
    within = tuple(_conditions(connection, replace(wanted, since=begin, until=end)))
    counts = {
        "turns": func.count(),
        "askers": func.count(distinct(func.nullif(turns.c.asker, ""))),
        "answered": _count_where(turns.c.status == _ANSWERED),
        "abstained": _count_where(turns.c.status == _ABSTAINED),
        "failed": _count_where(turns.c.status.not_in(_ENDED_WELL)),
        "retracted": _count_where(turns.c.retracted),
        **{name: _sum(turns.c[name]) for name in ("claims", "supported", "up", "down", "tokens", "cost")},
    }
    query = select(*(value.label(name) for name, value in counts.items())).where(*within)
    figures = connection.execute(query).one()._asdict()
    timed = select(turns.c.seconds).where(*within, turns.c.status == _ANSWERED)
    taken = sorted(connection.execute(timed).scalars())
    median, slow = (taken[int(len(taken) * part)] if taken else 0.0 for part in (0.5, 0.95))
    return Figures(begin, end, seconds=median, slow_seconds=slow, **figures)


def _count_where(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


def _sum(column: ColumnElement[Any]) -> ColumnElement[Any]:
    return func.coalesce(func.sum(column), 0)


def _find_feedback(connection: Connection, wanted: RecordFilter) -> tuple[tuple[TurnSummary, LogEntry], ...]:
    acts = entries.alias("acts")
    columns = (acts.c[name].label(f"act_{name}") for name in ("seq", "kind", "body"))
    query = select(*_SUMMARY, *columns, type_coerce(acts.c.at, Text).label("act_at")).join(
        acts, acts.c.turn_id == turns.c.turn_id
    )
    query = query.where(acts.c.kind == EntryKind.FEEDBACK.value, *_conditions(connection, wanted, paged=False))
    if wanted.before is not None:
        query = query.where(acts.c.seq < wanted.before)
    rows = connection.execute(query.order_by(acts.c.seq.desc()).limit(wanted.limit)).all()
    return tuple((_parse_summary(row), _parse_act(row)) for row in rows)


def _parse_act(row: Row[*tuple[Any, ...]]) -> LogEntry:
    return LogEntry(row.turn_id, EntryKind(row.act_kind), read_body(row.act_body), row.act_seq, read_moment(row.act_at))
