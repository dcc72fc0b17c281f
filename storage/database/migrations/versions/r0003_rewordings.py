"""When questions were asked again in other words, so that limits count that too."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table; of what was reworded before nobody knows."""
    op.create_table(
        "rewordings",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("ticket", sa.Integer, sa.ForeignKey("questions.ticket"), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("rewordings_by_moment", "rewordings", ["at"])
    op.create_index("rewordings_of_question", "rewordings", ["ticket"])
