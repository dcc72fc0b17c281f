"""What was forgotten keeps its names, and a run tells what its source is doing."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; what was forgotten before is known by its key alone."""
    for name in ("title", "url"):
        op.add_column("forgotten", sa.Column(name, sa.Text, nullable=False, server_default=""))
    op.add_column("runs", sa.Column("doing", sa.Text, nullable=False, server_default=""))
