"""Answers that an admin approved as worked examples."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "examples",
        sa.Column("turn_id", sa.Text, primary_key=True),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("pinned", sa.Boolean, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
