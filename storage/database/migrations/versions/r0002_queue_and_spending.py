"""The queue of questions, what turns cost, and what admins set for channels; spending is filled from the log."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_PAGE = 500


def upgrade() -> None:
    """Make the tables, and count what the turns on record took."""
    _make_queue()
    _make_spending()
    op.create_table(
        "overrides",
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    _count(op.get_bind())


def _make_queue() -> None:
    op.create_table(
        "questions",
        sa.Column("ticket", sa.Integer, primary_key=True),
        sa.Column("key", sa.Text, nullable=False, unique=True),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("conversation", sa.Text, nullable=False),
        sa.Column("asker", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("handle", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("turn_id", sa.Text, nullable=False),
        sa.Column("sending", sa.Boolean, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True)),
    )
    op.create_index("questions_by_state", "questions", ["state", "ticket"])
    op.create_index("questions_by_conversation", "questions", ["conversation", "ticket"])
    op.create_index("questions_by_channel", "questions", ["channel", "ticket"])
    op.create_index("questions_by_message", "questions", ["channel", "message"])
    op.create_index("questions_by_moment", "questions", ["taken_at"])
    op.create_index("questions_of_channel", "questions", ["channel", "taken_at"])
    op.create_index("questions_of_asker", "questions", ["asker", "taken_at"])
    op.create_table(
        "posts",
        sa.Column("ticket", sa.Integer, sa.ForeignKey("questions.ticket"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
    )
    op.create_index("posts_by_message", "posts", ["channel", "message"])


def _make_spending() -> None:
    op.create_table(
        "spending",
        sa.Column("seq", sa.Integer, sa.ForeignKey("entries.seq"), primary_key=True, autoincrement=False),
        sa.Column("turn_id", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("platform", sa.Text, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("asker", sa.Text, nullable=False),
        sa.Column("tokens", sa.Integer, nullable=False),
        sa.Column("cost", sa.Float, nullable=False),
    )
    op.create_index("spending_by_moment", "spending", ["at"])
    op.create_index("spending_of_channel", "spending", ["channel", "at"])
    op.create_index("spending_of_asker", "spending", ["asker", "at"])


# What follows is what `storage.spending` did when this was released: a migration must not change with the code.
def _count(connection: sa.Connection) -> None:
    last = 0
    while rows := connection.execute(_CLOSED, {"last": last, "page": _PAGE}).all():
        connection.execute(_ADD, [_spent(*row) for row in rows])
        last = rows[-1].seq


_CLOSED = sa.text(
    """SELECT closed.seq, closed.turn_id, closed.at, closed.body,
    (SELECT opened.body FROM entries AS opened WHERE opened.turn_id = closed.turn_id
     AND opened.kind = 'turn_opened' ORDER BY opened.seq LIMIT 1) AS opened
    FROM entries AS closed WHERE closed.kind = 'turn_closed' AND closed.seq > :last ORDER BY closed.seq LIMIT :page"""
)
_ADD = sa.text(
    """INSERT INTO spending (seq, turn_id, at, platform, channel, asker, tokens, cost)
    VALUES (:seq, :turn_id, :at, :platform, :channel, :asker, :tokens, :cost)"""
)


def _spent(seq: int, turn_id: str, at: Any, closed: str, opened: str | None) -> dict[str, Any]:
    asker: dict[str, Any] = json.loads(opened or "{}").get("asker") or {}
    usage: dict[str, Any] = json.loads(closed).get("usage") or {}
    place = f"{asker.get('platform', '')}:{asker.get('workspace', '')}"
    return {
        "seq": seq,
        "turn_id": turn_id,
        "at": at,
        "platform": asker.get("platform", ""),
        "channel": f"{place}/{asker['channel']}" if asker.get("channel") else "",
        "asker": f"{place}/{asker['user']}" if asker.get("user") else "",
        "tokens": (usage.get("prompt_tokens") or 0) + (usage.get("completion_tokens") or 0),
        "cost": usage.get("cost") or 0.0,
    }
