"""The first tables: the manifest of what is indexed, and the insert-only log."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_GUARDS = {
    "sqlite": (
        """CREATE TRIGGER entries_keep_update BEFORE UPDATE ON entries
        BEGIN SELECT RAISE(ABORT, 'the log is insert-only'); END""",
        """CREATE TRIGGER entries_keep_delete BEFORE DELETE ON entries
        BEGIN SELECT RAISE(ABORT, 'the log is insert-only'); END""",
        # INSERT OR REPLACE removes a row without asking the trigger above.
        """CREATE TRIGGER entries_keep_replace BEFORE INSERT ON entries
        WHEN EXISTS (SELECT 1 FROM entries WHERE seq = NEW.seq)
        BEGIN SELECT RAISE(ABORT, 'the log is insert-only'); END""",
    ),
    "postgresql": (
        """CREATE FUNCTION entries_keep() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the log is insert-only'; END $$""",
        """CREATE TRIGGER entries_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
        FOR EACH STATEMENT EXECUTE FUNCTION entries_keep()""",
    ),
}


def upgrade() -> None:
    """Make the tables."""
    _make_manifest()
    _make_log()


def _make_manifest() -> None:
    op.create_table(
        "corpora",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("refreshed_at", sa.DateTime(timezone=True)),
        sa.Column("reference", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.create_table(
        "documents",
        sa.Column("corpus", sa.Text, sa.ForeignKey("corpora.name"), primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("revision", sa.Text, nullable=False),
        sa.Column("date", sa.DateTime(timezone=True)),
        sa.Column("language", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("aliases", sa.Text, nullable=False),
        sa.Column("disambiguation", sa.Boolean, nullable=False),
    )
    op.create_table(
        "passages",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("corpus", sa.Text, sa.ForeignKey("corpora.name"), nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("section", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("listed", sa.Boolean, nullable=False),
    )
    op.create_index("passages_by_listing", "passages", ["corpus", "listed", "id"])
    op.create_index("passages_by_document", "passages", ["corpus", "document"])
    op.create_table(
        "failures",
        sa.Column("corpus", sa.Text, sa.ForeignKey("corpora.name"), primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("reason", sa.Text, nullable=False),
    )


def _make_log() -> None:
    op.create_table(
        "entries",
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("turn_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("entries_by_turn", "entries", ["turn_id", "kind"])
    op.create_index("entries_by_kind", "entries", ["kind", "seq"])
    for statement in _GUARDS[op.get_bind().dialect.name]:
        op.execute(statement)
