"""What is known of refreshes: marks of sources, runs, nights, leases, and what was forgotten on purpose."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_COUNTS = (
    "added",
    "changed",
    "unchanged",
    "removed",
    "failed",
    "held_back",
    "passages_added",
    "passages_removed",
    "done",
)


def upgrade() -> None:
    """Make the tables; of earlier refreshes nobody knows, so that each source is listed whole once more."""
    for name in ("mark", "mark_of", "edition"):
        op.add_column("corpora", sa.Column(name, sa.Text, nullable=False, server_default=""))
    op.add_column("corpora", sa.Column("generation", sa.Integer, nullable=False, server_default="0"))
    op.create_index("documents_by_url", "documents", ["url"])
    op.create_index("documents_by_title", "documents", ["title"])
    op.create_table(
        "forgotten",
        sa.Column("corpus", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
    )
    _make_runs()
    op.create_table(
        "nights",
        sa.Column("due", sa.DateTime(timezone=True), primary_key=True),
        sa.Column("begun", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended", sa.DateTime(timezone=True)),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("lines", sa.Text, nullable=False),
    )


def _make_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("corpus", sa.Text, nullable=False),
        sa.Column("begun", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended", sa.DateTime(timezone=True)),
        sa.Column("state", sa.Text, nullable=False),
        *(sa.Column(name, sa.Integer, nullable=False, server_default="0") for name in _COUNTS),
        sa.Column("total", sa.Integer),
        sa.Column("passages", sa.Integer, nullable=False, server_default="0"),
        sa.Column("fault", sa.Text, nullable=False, server_default=""),
        sa.Column("edition", sa.Text, nullable=False, server_default=""),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("night", sa.DateTime(timezone=True)),
    )
    op.create_index("runs_by_corpus", "runs", ["corpus", "id"])
