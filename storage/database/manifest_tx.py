"""Transactions of the manifest: commit and purge versions, list changes for followers, find documents by address."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import sqlalchemy as sa

from storage.database.bodies import seal_body
from storage.database.document_versions import VersionChange
from storage.database.engine import INSERTS, split_chunks
from storage.database.refresh_log import fetch_last_runs
from storage.database.schema import (
    RETIRED,
    bodies,
    corpora,
    documents,
    failures,
    followers,
    forgotten,
    pending,
    sequence,
)
from storage.types import CorpusInfo, DenseMode, Document, DocumentId, DocumentRef

DOCUMENT_COLUMNS = [column for column in documents.c if column.name not in {"passages", "retired"}]

# Statements that are executed once for each of many rows; their parameters begin with an underscore.
_RETIRE = sa.update(documents).where(documents.c.number == sa.bindparam("_number")).values(retired=sa.bindparam("_at"))
_BLANK_FINGERPRINT = sa.update(documents).where(documents.c.number == sa.bindparam("_number")).values(fingerprint="")
_THE_CORPUS = corpora.c.name == sa.bindparam("_corpus")
_COUNT_CHANGES = (
    sa.update(corpora)
    .where(_THE_CORPUS)
    .values(
        generation=corpora.c.generation + 1,
        documents=corpora.c.documents + sa.bindparam("_documents"),
        passages=corpora.c.passages + sa.bindparam("_passages"),
    )
)
_SETTLED = sa.delete(pending).where(
    *(pending.c[name] == sa.bindparam(f"_{name}") for name in ("corpus", "key", "follower"))
)


@dataclass(frozen=True, slots=True)
class Commit:
    """The result of a commit: the number of each new version by its document, and the documents in conflict."""

    numbers: Mapping[DocumentId, int]
    conflicts: frozenset[DocumentId]


class _Standing(NamedTuple):
    number: int
    passages: int


def begin_changes(connection: sa.Connection, names: Collection[DocumentId], follower: str) -> None:
    """Record the documents whose vectors the home `follower` is about to change."""
    adding = INSERTS[connection.dialect.name](pending).on_conflict_do_nothing()
    rows = ({"corpus": corpus, "key": key, "follower": follower} for corpus, key in sorted(set(names)))
    execute_each(connection, adding, rows)


def settle_changes(connection: sa.Connection, names: Iterable[DocumentId], follower: str) -> None:
    rows = ({"_corpus": corpus, "_key": key, "_follower": follower} for corpus, key in names)
    execute_each(connection, _SETTLED, rows)


def adopt_changes(connection: sa.Connection, follower: str, at: datetime) -> tuple[DocumentId, ...]:
    """Return the documents whose vectors may be wrong, because `follower` or a dead home did not finish changing them.

    A home counts as dead if it was not seen for minutes. Its documents are recorded as this home's from now on.
    """
    living = sa.select(followers.c.name).where(followers.c.seen >= at - LIVING, followers.c.name != follower)
    left = connection.execute(sa.select(pending).where(pending.c.follower.not_in(living))).all()
    begin_changes(connection, {(row.corpus, row.key) for row in left}, follower)
    connection.execute(sa.delete(pending).where(pending.c.follower.not_in(living), pending.c.follower != follower))
    return tuple(sorted({(row.corpus, row.key) for row in left}))


def commit_versions(connection: sa.Connection, planned: Sequence[VersionChange]) -> Commit:
    """Add new versions and retire the versions that they replace, all at once. Each document appears once in `planned`.

    A document is in conflict if it was forgotten, or if its current version is not the one that the change replaces. It
    stays unchanged, but loses its fingerprint, so that the next refresh reads it again.
    """
    number = _lock_sequence(connection)
    add_missing_corpora(connection, {change.corpus for change in planned})
    standing, blocked = _fetch_standing(connection, planned)
    retired: list[dict[str, int]] = []
    made: list[tuple[int, VersionChange, Document]] = []
    conflicts: list[DocumentId] = []
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for change in planned:
        name = (change.corpus, change.key)
        before = standing.get(name)
        if change.document and (name in blocked or change.over not in {None, before.number if before else 0}):
            conflicts.append(name)
            continue
        if not (before or change.document):
            continue
        number += 1
        if before:
            retired.append({"_number": before.number, "_at": number})
        if change.document:
            made.append((number, change, change.document))
        counts[change.corpus]["_documents"] += bool(change.document) - bool(before)
        counts[change.corpus]["_passages"] += change.passages - (before.passages if before else 0)
    connection.execute(sa.update(sequence).values(value=number))
    execute_each(connection, _RETIRE, retired)
    execute_each(connection, sa.insert(documents), (_document_row(*row) for row in made))
    execute_each(connection, sa.insert(bodies), (_body_row(*row) for row in made))
    lost = (standing[name].number for name in conflicts if name in standing)
    execute_each(connection, _BLANK_FINGERPRINT, ({"_number": lost_number} for lost_number in lost))
    zero = {"_documents": 0, "_passages": 0}
    execute_each(connection, _COUNT_CHANGES, (zero | {"_corpus": one} | of for one, of in sorted(counts.items())))
    return Commit({(one.corpus, one.key): at for at, one, _ in made}, frozenset(conflicts))


def _lock_sequence(connection: sa.Connection) -> int:
    """Return the number of the last change, and block other commits until this transaction ends."""
    return int(connection.execute(sa.select(sequence.c.value).with_for_update()).scalar_one())


def _fetch_standing(
    connection: sa.Connection, changes: Sequence[VersionChange]
) -> tuple[dict[DocumentId, _Standing], set[DocumentId]]:
    """Return the current versions of the documents to change, and which of them are forgotten."""
    standing: dict[DocumentId, _Standing] = {}
    blocked: set[DocumentId] = set()
    columns = documents.c.key, documents.c.number, documents.c.passages
    for corpus, keys in _group_keys((change.corpus, change.key) for change in changes):
        for chunk in split_chunks(keys):
            query = sa.select(*columns).where(*filter_current(corpus, chunk))
            standing |= {(corpus, row.key): _Standing(row.number, row.passages) for row in connection.execute(query)}
            gone = sa.select(forgotten.c.key).where(forgotten.c.corpus == corpus, forgotten.c.key.in_(chunk))
            blocked |= {(corpus, key) for key in connection.execute(gone).scalars()}
    return standing, blocked


def filter_current(corpus: str, keys: Collection[str]) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions that select the current versions of these documents."""
    return documents.c.corpus == corpus, documents.c.key.in_(keys), documents.c.retired == 0


def erase_bodies(connection: sa.Connection, corpus: str, keys: Collection[str]) -> None:
    """Delete the texts of all versions of these documents, so that even an outdated index cannot find them."""
    for chunk in split_chunks(keys):
        versions = sa.select(documents.c.number).where(documents.c.corpus == corpus, documents.c.key.in_(chunk))
        connection.execute(sa.delete(bodies).where(bodies.c.number.in_(versions)))


@dataclass(frozen=True, slots=True)
class Lag:
    """The next changes that an index has to follow; `upto` is the number of the last of them."""

    upto: int
    head: int  # the number of the last change
    added: tuple[int, ...]  # versions that are current at `upto`
    retired: tuple[int, ...]  # versions that the index holds, retired at `upto`


def fetch_lag(connection: sa.Connection, followed: int, most: int) -> Lag:
    """Return the next changes after the number `followed`, as many as contain about `most` passages."""
    head = connection.execute(sa.select(sequence.c.value)).scalar_one()
    after = documents.c.number > followed, documents.c.number <= head
    query = sa.select(documents.c.number, documents.c.passages, documents.c.retired).where(*after)
    rows = connection.execute(query.order_by(documents.c.number).limit(LAG_DOCUMENTS)).all()
    upto, held, cut = head, 0, len(rows) == LAG_DOCUMENTS
    for place, row in enumerate(rows):
        held += row.passages
        if held >= most or (cut and place == len(rows) - 1):
            upto, rows = row.number, rows[: place + 1]
            break
    left = sa.select(documents.c.number).where(RETIRED, documents.c.retired > followed, documents.c.retired <= upto)
    retired = (number for number in connection.execute(left).scalars() if number <= followed)
    added = tuple(row.number for row in rows if not 0 < row.retired <= upto)
    return Lag(upto, head, added, tuple(retired))


LAG_DOCUMENTS = 2_000


def record_follower(connection: sa.Connection, name: str, followed: int, at: datetime) -> bool:
    """Record how far an index has followed the manifest, and purge retired versions that no index needs any more.

    The texts of retired versions are purged without waiting for homes that were not seen for minutes, and their numbers
    without waiting for homes that were not seen for a month. Returns False if the index of this home misses purged
    numbers: it may have outdated content, which can no longer be determined.
    """
    known = sa.update(followers).where(followers.c.name == name).values(followed=followed, seen=at)
    if not connection.execute(known).rowcount:
        purged = connection.execute(sa.select(sequence.c.purged)).scalar_one()
        if 0 < followed < purged:
            return False
        connection.execute(sa.insert(followers), {"name": name, "followed": followed, "seen": at})
    connection.execute(sa.delete(followers).where(followers.c.seen < at - FORGETTING))
    least = sa.func.min(followers.c.followed)
    served = connection.execute(sa.select(least).where(followers.c.seen >= at - LIVING)).scalar_one()
    passed = connection.execute(sa.select(least)).scalar_one()
    retired = sa.select(documents.c.number).where(RETIRED, documents.c.retired <= served)
    connection.execute(sa.delete(bodies).where(bodies.c.number.in_(retired)))
    gone = RETIRED, documents.c.retired <= passed
    if connection.execute(sa.delete(documents).where(*gone)).rowcount:
        connection.execute(sa.update(sequence).where(sequence.c.purged < passed).values(purged=passed))
    return True


@dataclass(frozen=True, slots=True)
class Follower:
    """The state of a home's index: how many changes it has not followed yet, and when the home was last seen."""

    lacks: int
    seen: datetime


def fetch_followers(connection: sa.Connection) -> tuple[Follower, ...]:
    head = sa.select(sequence.c.value).scalar_subquery()
    query = sa.select((head - followers.c.followed).label("lacks"), followers.c.seen).order_by(followers.c.seen.desc())
    return tuple(Follower(row.lacks, row.seen) for row in connection.execute(query))


LIVING = timedelta(minutes=5)
FORGETTING = timedelta(days=30)


def add_missing_corpora(connection: sa.Connection, names: Collection[str]) -> None:
    known = connection.execute(sa.select(corpora.c.name).where(corpora.c.name.in_(names))).scalars()
    adding = INSERTS[connection.dialect.name](corpora).on_conflict_do_nothing()
    execute_each(connection, adding, ({"name": name} for name in sorted(set(names) - set(known))))


def execute_each(connection: sa.Connection, statement: sa.Executable, rows: Iterable[Mapping[str, Any]]) -> None:
    """Execute the statement once for each row. For no rows, SQLAlchemy would execute it once without values."""
    if parameters := list(rows):
        connection.execute(statement, parameters)


def _group_keys(names: Iterable[DocumentId]) -> list[tuple[str, set[str]]]:
    keys: defaultdict[str, set[str]] = defaultdict(set)
    for corpus, key in names:
        keys[corpus].add(key)
    return sorted(keys.items())


def _document_row(number: int, change: VersionChange, document: Document) -> dict[str, Any]:
    return {
        "number": number,
        "corpus": document.corpus,
        "key": document.key,
        "title": document.title,
        "url": document.url,
        "revision": document.revision,
        "date": document.date,
        "language": document.language,
        "fingerprint": document.fingerprint,
        "aliases": "\n".join(document.aliases),
        "disambiguation": document.disambiguation,
        "passages": change.passages,
    }


def _body_row(number: int, change: VersionChange, document: Document) -> dict[str, Any]:
    return {"number": number, "body": change.body, "seal": seal_body(document.title, change.body)}


_REVISION_PARAMETERS = frozenset({"oldid", "diff", "rev", "revision", "version", "pageversion", "curid_revision"})
"""Parameters by which wikis name a revision of a page, not another page."""
_LAST_CHARACTER = chr(0x10FFFF)
_SAFE_CHARACTERS = "/:@!$&'()*+,;=~-._"


def normalize_url(address: str) -> str:
    """Remove the parts of an address that do not change the page: fragment, revision, final slash. Pure."""
    parts = _split_url(address)
    if parts is None:
        return address
    scheme, host, path, query = parts
    return f"{scheme}://{host}{unquote(path)}" + (f"?{query}" if query else "")


def _split_url(address: str) -> tuple[str, str, str, str] | None:
    try:
        parts = urlsplit(address.strip())
    except ValueError:  # such as half an IPv6 address
        return None
    if not parts.scheme or not parts.netloc:
        return None
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    parameters = sorted(pair for pair in pairs if pair[0].lower() not in _REVISION_PARAMETERS)
    return parts.scheme.lower(), parts.netloc.lower(), parts.path.rstrip("/"), urlencode(parameters)


def find_documents(connection: sa.Connection, address: str, among: sa.Table = documents) -> tuple[DocumentRef, ...]:
    """Return the documents with this address, key or title, sorted by corpus and key.

    `among` is `documents` or `forgotten`.
    """
    stripped = address.strip()
    if not stripped:
        return ()
    named = among.c.corpus, among.c.key, among.c.title, among.c.url
    # Corpora are named one by one because the index over keys begins with them.
    by_key = sa.and_(among.c.corpus.in_(sa.select(corpora.c.name)), among.c.key == stripped)
    standing = [documents.c.retired == 0] if among is documents else []
    query = sa.select(*named).where(sa.or_(by_key, among.c.title == stripped), *standing)
    rows = {(row.corpus, row.key): DocumentRef(*row) for row in connection.execute(query)}
    for condition in _url_conditions(stripped, among.c.url, ranges=connection.dialect.name == "sqlite"):
        matching = (DocumentRef(*row) for row in connection.execute(sa.select(*named).where(condition, *standing)))
        rows |= {(row.corpus, row.key): row for row in matching if normalize_url(row.url) == normalize_url(stripped)}
    return tuple(rows[name] for name in sorted(rows))


def _url_conditions(address: str, url: sa.ColumnElement[str], *, ranges: bool) -> list[sa.ColumnElement[bool]]:
    """Return conditions that together match every spelling of an address.

    Each condition can use the database's index over addresses. Each must be a query of its own.
    """
    parts = _split_url(address)
    if parts is None:
        return []
    scheme, host, path, _ = parts
    spelled = {path, unquote(path), quote(unquote(path), safe=_SAFE_CHARACTERS), quote(unquote(path), safe="/")}
    bases = sorted(f"{scheme}://{host}{spelling}" for spelling in spelled)
    same = url.in_([*bases, *(f"{base}/" for base in bases)])
    starts = [f"{base}{then}" for base in bases for then in ("?", "/?", "#", "/#")]
    # SQLite uses no index for LIKE, and PostgreSQL does not order letters by their bytes.
    within = (sa.and_(url >= start, url < start + _LAST_CHARACTER) for start in starts)
    prefixed = (url.startswith(start, autoescape=True) for start in starts)
    return [same, *(within if ranges else prefixed)]


def fetch_corpora(connection: sa.Connection) -> tuple[CorpusInfo, ...]:
    """Return the corpora by name, with their sizes and states."""
    runs = fetch_last_runs(connection)
    return tuple(
        CorpusInfo(
            row.name,
            row.documents,
            row.passages,
            row.refreshed_at,
            row.failures,
            row.edition,
            runs.get(row.name),
            row.forgotten,
            DenseMode(row.dense),
        )
        for row in connection.execute(_overview_query())
    )


IS_CORPUS = sa.or_(
    corpora.c.documents > 0,
    corpora.c.refreshed_at.is_not(None),
    sa.exists().where(forgotten.c.corpus == corpora.c.name),
)
"""An empty corpus without a complete refresh is not listed: it was removed, or its first source was mistyped."""


def _overview_query() -> sa.Select[Any]:
    def number(table: sa.Table) -> sa.ScalarSelect[int]:
        of_corpus = table.c.corpus == corpora.c.name
        return sa.select(sa.func.count()).select_from(table).where(of_corpus).scalar_subquery()

    return (
        sa.select(
            corpora.c.name,
            corpora.c.documents,
            corpora.c.passages,
            corpora.c.dense,
            corpora.c.refreshed_at,
            corpora.c.edition,
            number(failures).label("failures"),
            number(forgotten).label("forgotten"),
        )
        .where(IS_CORPUS)
        .order_by(corpora.c.name)
    )
