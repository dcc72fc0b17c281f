"""Make a database as release 0.1.0 did (revision 0005), in SQLite or PostgreSQL, with some contents."""

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)  # the time of all that is stored
_AT = {"sqlite": "'2026-03-01 12:00:00.000000'", "postgresql": "'2026-03-01 12:00:00Z'"}
_TYPES = {
    "sqlite": {
        "SERIAL": "INTEGER NOT NULL PRIMARY KEY",
        "SEQUENCE": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT",
        "MOMENT": "DATETIME",
    },
    "postgresql": {"SERIAL": "SERIAL PRIMARY KEY", "SEQUENCE": "SERIAL PRIMARY KEY", "MOMENT": "TIMESTAMPTZ"},
}
_COUNTS = ("added", "changed", "unchanged", "removed", "failed", "held_back", "passages_added", "passages_removed")
_COLUMNS = {
    "corpora": "name TEXT! PRIMARY KEY, refreshed_at MOMENT, reference BOOLEAN NOT NULL DEFAULT FALSE, mark TEXT*, "
    "mark_of TEXT*, edition TEXT*, generation INTEGER NOT NULL DEFAULT 0",
    "documents": "corpus TEXT! REFERENCES corpora (name), key TEXT!, title TEXT!, url TEXT!, revision TEXT!, "
    "date MOMENT, language TEXT!, fingerprint TEXT!, aliases TEXT!, disambiguation BOOLEAN!, PRIMARY KEY (corpus, key)",
    "passages": "id TEXT! PRIMARY KEY, corpus TEXT! REFERENCES corpora (name), document TEXT!, section TEXT!, "
    "text TEXT!, position INTEGER!, hash TEXT!, kind TEXT!, listed BOOLEAN!",
    "failures": "corpus TEXT! REFERENCES corpora (name), key TEXT!, reason TEXT!, PRIMARY KEY (corpus, key)",
    "entries": "seq SEQUENCE, turn_id TEXT!, kind TEXT!, at MOMENT!, body TEXT!",
    "questions": "ticket SERIAL, key TEXT! UNIQUE, channel TEXT!, conversation TEXT!, asker TEXT!, message TEXT!, "
    "body TEXT!, handle TEXT!, state TEXT!, outcome TEXT!, taken_at MOMENT!, turn_id TEXT!, sending BOOLEAN!, "
    "owner TEXT!, lease_until MOMENT",
    "posts": "ticket INTEGER! REFERENCES questions (ticket), position INTEGER!, channel TEXT!, message TEXT!, "
    "PRIMARY KEY (ticket, position)",
    "spending": "seq INTEGER! PRIMARY KEY REFERENCES entries (seq), turn_id TEXT!, at MOMENT!, platform TEXT!, "
    "channel TEXT!, asker TEXT!, tokens INTEGER!, cost FLOAT!",
    "overrides": "channel TEXT!, key TEXT!, value TEXT!, PRIMARY KEY (channel, key)",
    "rewordings": "id SERIAL, ticket INTEGER! REFERENCES questions (ticket), at MOMENT!",
    "forgotten": "corpus TEXT!, key TEXT!, title TEXT*, url TEXT*, PRIMARY KEY (corpus, key)",
    "leases": "name TEXT! PRIMARY KEY, owner TEXT!, until MOMENT!",
    "runs": "id SERIAL, corpus TEXT!, begun MOMENT!, seen MOMENT!, ended MOMENT, state TEXT!, "
    + ", ".join(f"{name} INTEGER NOT NULL DEFAULT 0" for name in (*_COUNTS, "done"))
    + ", total INTEGER, passages INTEGER NOT NULL DEFAULT 0, fault TEXT*, edition TEXT*, owner TEXT!, night MOMENT, "
    "doing TEXT*",
    "nights": "due MOMENT! PRIMARY KEY, begun MOMENT!, ended MOMENT, owner TEXT!, outcome TEXT!, lines TEXT!",
    "alembic_version": "version_num VARCHAR(32)! PRIMARY KEY",
}
_INDEXES = (
    "passages_by_listing ON passages (corpus, listed, id)",
    "passages_by_document ON passages (corpus, document)",
    "entries_by_turn ON entries (turn_id, kind)",
    "entries_by_kind ON entries (kind, seq)",
    *(f"questions_by_{name} ON questions ({name}, ticket)" for name in ("state", "conversation", "channel")),
    "questions_by_message ON questions (channel, message)",
    "questions_by_moment ON questions (taken_at)",
    *(f"questions_of_{name} ON questions ({name}, taken_at)" for name in ("channel", "asker")),
    "posts_by_message ON posts (channel, message)",
    "spending_by_moment ON spending (at)",
    *(f"spending_of_{name} ON spending ({name}, at)" for name in ("channel", "asker")),
    "rewordings_by_moment ON rewordings (at)",
    "rewordings_of_question ON rewordings (ticket)",
    *(f"documents_by_{name} ON documents ({name})" for name in ("url", "title")),
    "runs_by_corpus ON runs (corpus, id)",
)
_REFUSE = "BEGIN SELECT RAISE(ABORT, 'the log is insert-only'); END"
_TRIGGERS = {
    "sqlite": (
        f"CREATE TRIGGER entries_keep_update BEFORE UPDATE ON entries {_REFUSE}",
        f"CREATE TRIGGER entries_keep_delete BEFORE DELETE ON entries {_REFUSE}",
        f"""CREATE TRIGGER entries_keep_replace BEFORE INSERT ON entries
        WHEN EXISTS (SELECT 1 FROM entries WHERE seq = NEW.seq) {_REFUSE}""",
    ),
    "postgresql": (
        """CREATE FUNCTION entries_keep() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the log is insert-only'; END $$""",
        """CREATE TRIGGER entries_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
        FOR EACH STATEMENT EXECUTE FUNCTION entries_keep()""",
    ),
}
_ROWS = (
    "corpora VALUES ('c', {at}, TRUE, 'mark', 'digest', 'edition', 3)",
    "documents VALUES ('c', 'k', 'Title', 'https://x.example/k', '7', {at}, 'en', 'print', 'Other\nNames', FALSE)",
    "documents VALUES ('c', 'none', 'Empty', '', '', NULL, '', 'blank', '', FALSE)",
    "passages VALUES ('id2', 'c', 'k', 'S', 'Second text.', 1, 'hash', 'table', TRUE)",
    "passages VALUES ('id1', 'c', 'k', '', 'A text.', 0, 'hash', 'prose', TRUE)",
    "passages VALUES ('id0', 'c', 'k', '', 'Removed text.', 0, 'hash', 'prose', FALSE)",
    "failures VALUES ('c', 'bad.pdf', 'is encrypted')",
    "forgotten VALUES ('c', 'gone', 'Gone', 'https://x.example/gone')",
    "overrides VALUES ('slack:T1/C1', 'effort', '\"quick\"')",
    "questions VALUES (1, 'q', 'slack:C', 'v', 'slack:U', '', '{{}}', '', 'waiting', '', {at}, '', FALSE, '', NULL)",
    "alembic_version VALUES ('0005')",
)


def list_statements(dialect: str) -> Iterator[str]:
    """Yield the statements that create the tables and fill all except the record."""
    spelled = {**_TYPES[dialect], "!": " NOT NULL", "*": " NOT NULL DEFAULT ''"}
    for name, columns in _COLUMNS.items():
        words = re.sub(r"SERIAL|SEQUENCE|MOMENT|[!*]", lambda match: spelled[match[0]], columns)
        yield f"CREATE TABLE {name} ({words})"
    yield from (f"CREATE INDEX {index}" for index in _INDEXES)
    yield from _TRIGGERS[dialect]
    yield from (f"INSERT INTO {row.format(at=_AT[dialect])}" for row in _ROWS)


def list_entries(turns: int) -> list[tuple[str, str, str]]:
    """Return (turn, kind, body) of the entries of turns; every second turn used a model and had a cost."""
    entries: list[tuple[str, str, str]] = []
    for number in range(turns):
        asker = {"platform": "slack", "kind": "channel", "workspace": "T1", "channel": "C1", "user": f"U{number % 3}"}
        usage: dict[str, Any] = {"llm_calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "cost": None}
        paid = {"llm_calls": 2, "prompt_tokens": 10, "completion_tokens": 1, "cost": 0.5}
        for kind, body in (
            ("turn_opened", {"asker": asker, "question": "Größe?"}),
            ("step", {"stage": "search"}),
            ("turn_closed", {"usage": paid if number % 2 else usage}),
        ):
            entries.append((f"t{number}", kind, json.dumps(body)))
    return entries


def make_old_home(home: Path, entries: Iterable[tuple[str, str, str]] = (), *, first: int = 1) -> Path:
    """Make the SQLite file of a home of 0.1.0 with these entries; return it."""
    home.mkdir(exist_ok=True)
    insert = f"INSERT INTO entries VALUES (?, ?, ?, {_AT['sqlite']}, ?)"
    file = home / "footnote.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in list_statements("sqlite"):
            connection.execute(statement)
        connection.executemany(insert, [(seq, *entry) for seq, entry in enumerate(entries, first)])
    return file
