"""Create the tables of a new database, and migrate one of release 0.1.0 or of the last development version.

Other revisions between that release and `schema.REVISION` were never released, so no steps lead from them.
"""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from storage.database.bodies import pack_passages, seal_body
from storage.database.manifest_tx import execute_each
from storage.database.schema import (
    REVISION,
    bodies,
    documents,
    entries,
    feedback,
    metadata,
    sequence,
    turn_words,
    turns,
)
from storage.errors import DatabaseUnusable, explain_folder_error
from storage.home.home_folder import make_private_file
from storage.record.audit_log import encode_entries, insert_entries, seal_row
from storage.record.entry_rows import TABLES, refresh_claims
from storage.record.turn_index import index_record
from storage.types import RECORD, EntryKind, LogEntry, Passage, PassageKind

RELEASE_0_1_0 = "0005"  # the revision of its database
_BEFORE_CLAIMS, _BEFORE_RATINGS = "0010", "0011"  # of development versions
_PAGE = 500

# A body and its salt may be erased together only if the newest entry is an erasure that names this entry.
_GUARDS: Mapping[str, tuple[str, ...]] = {
    "sqlite": (
        """CREATE TRIGGER entries_keep_update BEFORE UPDATE ON entries
        WHEN NOT (NEW.seq IS OLD.seq AND NEW.turn_id IS OLD.turn_id AND NEW.kind IS OLD.kind AND NEW.at IS OLD.at
        AND NEW.commitment IS OLD.commitment AND NEW.leaf IS OLD.leaf AND NEW.body = '' AND length(NEW.salt) = 0
        AND EXISTS (SELECT 1 FROM (SELECT seq, CASE WHEN kind = 'erasure' THEN body ELSE '{}' END AS body
        FROM entries ORDER BY seq DESC LIMIT 1) AS newest, json_each(newest.body, '$.erased') AS range
        WHERE newest.seq > OLD.seq AND OLD.seq
        BETWEEN json_extract(range.value, '$[0]') AND json_extract(range.value, '$[1]')))
        BEGIN SELECT RAISE(ABORT, 'the log is insert-only'); END""",
        """CREATE TRIGGER entries_keep_delete BEFORE DELETE ON entries
        BEGIN SELECT RAISE(ABORT, 'the log is insert-only'); END""",
        # INSERT OR REPLACE removes a row without running the trigger above.
        """CREATE TRIGGER entries_keep_replace BEFORE INSERT ON entries
        WHEN EXISTS (SELECT 1 FROM entries WHERE seq = NEW.seq)
        BEGIN SELECT RAISE(ABORT, 'the log is insert-only'); END""",
    ),
    "postgresql": (
        """CREATE FUNCTION entries_keep() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the log is insert-only'; END $$""",
        """CREATE TRIGGER entries_keep BEFORE DELETE OR TRUNCATE ON entries
        FOR EACH STATEMENT EXECUTE FUNCTION entries_keep()""",
        """CREATE FUNCTION entries_keep_row() RETURNS trigger LANGUAGE plpgsql AS
        $$ DECLARE newest record; BEGIN
        SELECT seq, kind, body INTO newest FROM entries ORDER BY seq DESC LIMIT 1;
        IF ROW(NEW.seq, NEW.turn_id, NEW.kind, NEW.at, NEW.commitment, NEW.leaf)
        IS NOT DISTINCT FROM ROW(OLD.seq, OLD.turn_id, OLD.kind, OLD.at, OLD.commitment, OLD.leaf)
        AND NEW.body = '' AND length(NEW.salt) = 0 AND newest.kind = 'erasure' AND newest.seq > OLD.seq
        AND EXISTS (SELECT 1 FROM jsonb_array_elements(newest.body::jsonb -> 'erased') AS range
        WHERE OLD.seq BETWEEN (range ->> 0)::bigint AND (range ->> 1)::bigint)
        THEN RETURN NEW; END IF;
        RAISE EXCEPTION 'the log is insert-only'; END $$""",
        """CREATE TRIGGER entries_keep_update BEFORE UPDATE ON entries
        FOR EACH ROW EXECUTE FUNCTION entries_keep_row()""",
    ),
}
_TERM_INDEXES: Mapping[str, str] = {
    "sqlite": "CREATE VIRTUAL TABLE turn_words USING fts5(terms, columnsize=0)",
    "postgresql": "CREATE INDEX turn_words_by_term ON turn_words USING gin (to_tsvector('simple', terms))",
}
_OLD_GUARDS: Mapping[str, tuple[str, ...]] = {
    "sqlite": tuple(f"DROP TRIGGER entries_keep_{of}" for of in ("update", "delete", "replace")),
    "postgresql": ("DROP TRIGGER entries_keep ON entries", "DROP FUNCTION entries_keep"),
}
_OLD_DOCUMENTS: Mapping[str, tuple[str, ...]] = {
    "sqlite": (),
    # The index of a renamed table keeps its name, and names are unique.
    "postgresql": ("ALTER TABLE documents_before RENAME CONSTRAINT documents_pkey TO documents_before_pkey",),
}
# Without further history, documents get their numbers in the order of their keys.
_NUMBER_DOCUMENTS = """INSERT INTO documents (number, corpus, key, title, url, revision, date, language, fingerprint,
    aliases, disambiguation, passages, retired)
    SELECT row_number() OVER (ORDER BY corpus, key), corpus, key, title, url, revision, date, language, fingerprint,
    aliases, disambiguation, (SELECT count(*) FROM passages
    WHERE passages.corpus = old.corpus AND passages.document = old.key AND listed), 0 FROM documents_before AS old"""
_COUNT_DOCUMENTS = """UPDATE corpora SET
    documents = (SELECT count(*) FROM documents WHERE documents.corpus = corpora.name),
    passages = (SELECT coalesce(sum(documents.passages), 0) FROM documents WHERE documents.corpus = corpora.name)"""
_FILL_LEAF = (
    sa.update(entries)
    .where(entries.c.seq == sa.bindparam("_seq"))
    .values({name: sa.bindparam(f"_{name}") for name in ("salt", "commitment", "leaf")})
)
_OLD_PASSAGES = sa.table(
    "passages", *map(sa.column, ("id", "corpus", "document", "section", "text", "position", "kind", "listed"))
)


def migrate(connection: sa.Connection, revision: str | None, file: Path | None) -> None:
    """Create the tables of a new database, or migrate tables of an older `revision`, within one transaction.

    SQLite's `file` is copied to `<file>.before-<revision>` first. For a database server, `file` is None, and its
    administrators make the backup.

    Raises `DatabaseUnusable` for a newer or never released revision, `HomeUnusable` if the file cannot be copied.
    """
    if revision is None:
        _make_tables(connection)
        _execute(connection, "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        _execute(connection, f"INSERT INTO alembic_version VALUES ('{REVISION}')")  # noqa: S608 - a constant
        connection.execute(sa.insert(sequence), {"id": 1, "value": 0, "purged": 0})
        return
    if (step := _STEPS.get(revision)) is None:
        raise _refuse(revision)
    if file is not None:
        _copy_file(file, revision)
    step(connection)
    _execute(connection, f"UPDATE alembic_version SET version_num = '{REVISION}'")  # noqa: S608 - a constant


def _refuse(revision: str) -> DatabaseUnusable:
    if revision > REVISION:
        hint = f"Upgrade Footnote: this version knows only revision {REVISION}. Nothing was changed."
        return DatabaseUnusable(f"The database was written by a newer Footnote (revision {revision}).", hint=hint)
    hint = (
        "Open it once with the last development version that migrates it (commit 769daaf2), or move the whole folder "
        "away and ingest again. Nothing was changed."
    )
    return DatabaseUnusable(f"The database was written by an unreleased Footnote (revision {revision}).", hint=hint)


def _make_tables(connection: sa.Connection) -> None:
    dialect = connection.dialect.name
    ordinary = [table for table in metadata.sorted_tables if table is not turn_words or dialect != "sqlite"]
    metadata.create_all(connection, tables=ordinary)
    _execute(connection, _TERM_INDEXES[dialect], *_GUARDS[dialect])


def _upgrade_0_1_0(connection: sa.Connection) -> None:
    dialect = connection.dialect.name
    binary = "BYTEA" if dialect == "postgresql" else "BLOB"
    _execute(
        connection,
        *_OLD_GUARDS[dialect],
        *(f"ALTER TABLE entries ADD COLUMN {of} {binary} NOT NULL DEFAULT ''" for of in ("salt", "commitment", "leaf")),
        "ALTER TABLE corpora ADD COLUMN dense TEXT NOT NULL DEFAULT 'eager'",
        *(f"ALTER TABLE corpora ADD COLUMN {of} INTEGER NOT NULL DEFAULT 0" for of in ("documents", "passages")),
        *(f"DROP INDEX documents_by_{of}" for of in ("url", "title")),
        "ALTER TABLE documents RENAME TO documents_before",
        *_OLD_DOCUMENTS[dialect],
    )
    # Entries get their leaves before the triggers that refuse changes are created.
    tree = _add_leaves(connection)
    _make_tables(connection)
    insert_entries(connection, encode_entries(tree, datetime.now(UTC)))
    _pack_documents(connection)
    _execute(connection, "DROP TABLE passages", "DROP TABLE documents_before")
    index_record(connection)


def _add_claims(connection: sa.Connection) -> None:
    metadata.create_all(connection, tables=TABLES)
    refresh_claims(connection, connection.execute(sa.select(turns.c.turn_id).order_by(turns.c.seq)).scalars().all())


def _add_ratings(connection: sa.Connection) -> None:
    _execute(
        connection,
        "ALTER TABLE feedback ADD COLUMN missed BOOLEAN NOT NULL DEFAULT false",
        "ALTER TABLE feedback ADD COLUMN rating INTEGER NOT NULL DEFAULT 0",
    )
    missed = sa.select(entries.c.seq).where(entries.c.kind == "feedback", entries.c.body.contains('"missed":true'))
    connection.execute(sa.update(feedback).where(feedback.c.seq.in_(missed)).values(missed=True))


_STEPS: Mapping[str, Callable[[sa.Connection], None]] = {
    RELEASE_0_1_0: _upgrade_0_1_0,
    _BEFORE_CLAIMS: _add_claims,
    _BEFORE_RATINGS: _add_ratings,
}


def _execute(connection: sa.Connection, *statements: str) -> None:
    for statement in statements:
        connection.exec_driver_sql(statement)


def _add_leaves(connection: sa.Connection) -> list[LogEntry]:
    """Store the leaf of each entry; return the entry that records this, with the ranges of unused entry numbers."""
    last = count = 0
    gaps: list[list[int]] = []
    columns = entries.c.seq, entries.c.turn_id, entries.c.kind, entries.c.at, entries.c.body
    page = sa.select(*columns).order_by(entries.c.seq).limit(_PAGE)
    while rows := connection.execute(page.where(entries.c.seq > last)).mappings().all():
        sealed = [seal_row(row["seq"], dict(row)) for row in rows]
        connection.execute(_FILL_LEAF, [{f"_{name}": value for name, value in row.items()} for row in sealed])
        for row in rows:
            gaps += [[last + 1, row["seq"] - 1]] if row["seq"] > last + 1 else []
            last = row["seq"]
        count += len(rows)
    return [LogEntry(RECORD, EntryKind.TREE_BEGUN, {"entries": count, "gaps": gaps})] if count else []


def _pack_documents(connection: sa.Connection) -> None:
    _execute(connection, _NUMBER_DOCUMENTS, _COUNT_DOCUMENTS)
    last, old = 0, _OLD_PASSAGES.c
    page = sa.select(documents.c.number, documents.c.corpus, documents.c.key, documents.c.title).limit(_PAGE)
    while rows := connection.execute(page.where(documents.c.number > last).order_by(documents.c.number)).all():
        packed = []
        for row in rows:
            listed = old.corpus == row.corpus, old.document == row.key, old.listed
            texts = connection.execute(sa.select(_OLD_PASSAGES).where(*listed).order_by(old.position, old.id))
            body = pack_passages(
                [
                    Passage(text.id, text.corpus, text.document, text.section, text.text, 0, "", PassageKind(text.kind))
                    for text in texts
                ]
            )
            packed.append({"number": row.number, "body": body, "seal": seal_body(row.title, body)})
        execute_each(connection, sa.insert(bodies), packed)
        last = rows[-1].number
    connection.execute(sa.insert(sequence), {"id": 1, "value": last, "purged": 0})


def _copy_file(file: Path, revision: str) -> None:
    part = file.with_name(f"{file.name}.part")
    try:
        make_private_file(part)
        # SQLite's own copy includes commits that are still in the write-ahead log.
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(part)) as target:
            source.backup(target)
        part.replace(file.with_name(f"{file.name}.before-{revision}"))
    except OSError as error:
        raise explain_folder_error(error, file.parent) from error
