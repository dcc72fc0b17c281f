"""Every entry gets a leaf in the record's tree; a body may be erased, its leaf not; checkpoints of the tree."""

import hashlib
import json
import secrets
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_PAGE = 500

# A body and its salt may be erased together, where the newest entry is the erasure that names this entry's number.
_GUARDS = {
    "sqlite": (
        """CREATE TRIGGER entries_keep_update BEFORE UPDATE ON entries
        WHEN NOT (NEW.seq IS OLD.seq AND NEW.turn_id IS OLD.turn_id AND NEW.kind IS OLD.kind AND NEW.at IS OLD.at
        AND NEW.commitment IS OLD.commitment AND NEW.leaf IS OLD.leaf AND NEW.body = '' AND length(NEW.salt) = 0
        AND EXISTS (SELECT 1 FROM (SELECT seq, CASE WHEN kind = 'erasure' THEN body ELSE '{}' END AS body
        FROM entries ORDER BY seq DESC LIMIT 1) AS newest, json_each(newest.body, '$.erased') AS range
        WHERE newest.seq > OLD.seq AND OLD.seq
        BETWEEN json_extract(range.value, '$[0]') AND json_extract(range.value, '$[1]')))
        BEGIN SELECT RAISE(ABORT, 'the log is insert-only'); END""",
    ),
    "postgresql": (
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
        """CREATE TRIGGER entries_keep BEFORE DELETE OR TRUNCATE ON entries
        FOR EACH STATEMENT EXECUTE FUNCTION entries_keep()""",
    ),
}
_OLD_GUARDS = {
    "sqlite": "DROP TRIGGER entries_keep_update",
    "postgresql": "DROP TRIGGER entries_keep ON entries",
}


def upgrade() -> None:
    """Make the columns and tables, and the leaves of the entries that are there."""
    bound = op.get_bind()
    op.execute(_OLD_GUARDS[bound.dialect.name])
    for name in ("salt", "commitment", "leaf"):
        op.add_column("entries", sa.Column(name, sa.LargeBinary, nullable=False, server_default=""))
    op.create_table(
        "checkpoints",
        sa.Column("size", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("note", sa.Text, nullable=False),
    )
    _plant(bound)
    for statement in _GUARDS[bound.dialect.name]:
        op.execute(statement)


# What follows is what the record's code did when this was released: a migration must not change with the code.
_ENTRIES = sa.table(
    "entries",
    sa.column("seq", sa.Integer),
    sa.column("turn_id", sa.Text),
    sa.column("kind", sa.Text),
    sa.column("at", sa.DateTime(timezone=True)),
    sa.column("body", sa.Text),
    sa.column("salt", sa.LargeBinary),
    sa.column("commitment", sa.LargeBinary),
    sa.column("leaf", sa.LargeBinary),
)


def _plant(connection: sa.Connection) -> None:
    """Give every entry its leaf, and record that they got it now, and which numbers were never given."""
    last, count, gaps = 0, 0, list[list[int]]()
    page = sa.select(_ENTRIES).order_by(_ENTRIES.c.seq).limit(_PAGE)
    while rows := connection.execute(page.where(_ENTRIES.c.seq > last)).all():
        filled = [_seal(row.seq, row.turn_id, row.kind, row.at, row.body) for row in rows]
        changes = [{f"{name}_": value for name, value in one.items()} for one in filled]
        connection.execute(_FILL, changes)
        for row in rows:
            gaps += [[last + 1, row.seq - 1]] if row.seq > last + 1 else []
            last = row.seq
        count += len(rows)
    if count:
        body = json.dumps({"entries": count, "gaps": gaps}, separators=(",", ":"))
        about: dict[str, Any] = {"turn_id": "record", "kind": "tree_begun", "at": datetime.now(UTC), "body": body}
        connection.execute(sa.insert(_ENTRIES), about | _seal(last + 1, *about.values()))


_FILL = (
    sa.update(_ENTRIES)
    .where(_ENTRIES.c.seq == sa.bindparam("seq_"))
    .values({name: sa.bindparam(f"{name}_") for name in ("salt", "commitment", "leaf")})
)


def _seal(seq: int, turn_id: str, kind: str, at: datetime, body: str) -> dict[str, Any]:
    salt = secrets.token_bytes(16)
    commitment = hashlib.sha256(salt + body.encode()).digest()
    moment = at.astimezone(UTC) if at.tzinfo else at
    written = f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
    parts = json.dumps([1, seq, turn_id, kind, written, commitment.hex()], ensure_ascii=False, separators=(",", ":"))
    leaf = hashlib.sha256(b"\x00" + parts.encode()).digest()
    return {"seq": seq, "salt": salt, "commitment": commitment, "leaf": leaf}
