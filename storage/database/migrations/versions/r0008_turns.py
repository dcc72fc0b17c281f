"""The tables that the record is found by, filled from it.

They are derived: of the migrations that change them, only the last one fills them, by the code of today.
"""

import sqlalchemy as sa
from alembic import op

from storage.record.turn_index import index_record

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_TEXTS = ["task", "platform", "workspace", "channel", "channel_name", "asker", "asker_name", "question"]
_ENDS = ["status", "system", "model", "outcome"]
_COUNTS = ["sentences", "withheld", "claims", "supported", "refuted", "up", "down", "tokens"]


def upgrade() -> None:
    op.create_table(
        "turns",
        sa.Column("seq", sa.Integer, sa.ForeignKey("entries.seq"), primary_key=True, autoincrement=False),
        sa.Column("turn_id", sa.Text, nullable=False, unique=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in (*_TEXTS, *_ENDS)),
        *(sa.Column(name, sa.Boolean, nullable=False) for name in ("retracted", "erased")),
        *(sa.Column(name, sa.Integer, nullable=False, server_default="0") for name in _COUNTS),
        sa.Column("seconds", sa.Float, nullable=False, server_default="0"),
        sa.Column("cost", sa.Float, nullable=False, server_default="0"),
    )
    op.create_index("turns_by_moment", "turns", ["at"])
    op.create_index("turns_of_channel", "turns", ["channel", "seq"])
    op.create_index("turns_of_asker", "turns", ["asker", "seq"])
    op.create_table(
        "turn_documents",
        sa.Column("corpus", sa.Text, primary_key=True),
        sa.Column("document", sa.Text, primary_key=True),
        sa.Column("cited", sa.Boolean, primary_key=True, autoincrement=False),
        sa.Column("seq", sa.Integer, sa.ForeignKey("turns.seq"), primary_key=True, autoincrement=False),
        sqlite_with_rowid=False,
    )
    op.create_index("documents_of_turn", "turn_documents", ["seq"])
    op.create_table(
        "document_titles",
        sa.Column("corpus", sa.Text, primary_key=True),
        sa.Column("document", sa.Text, primary_key=True),
        sa.Column("title", sa.Text, nullable=False),
    )
    if op.get_bind().dialect.name == "sqlite":
        op.execute("CREATE VIRTUAL TABLE turn_words USING fts5(terms, columnsize=0)")
    else:
        op.execute("CREATE TABLE turn_words (rowid INTEGER PRIMARY KEY, terms TEXT NOT NULL)")
        op.execute("CREATE INDEX turn_words_by_term ON turn_words USING gin (to_tsvector('simple', terms))")
    index_record(op.get_bind())
