"""The table of how useful the vectors are that lazy corpora keep."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "vector_uses",
        *(sa.Column(name, sa.Text, primary_key=True) for name in ("corpus", "id")),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("worth", sa.Float, nullable=False),
    )
    op.create_index("vector_uses_by_worth", "vector_uses", ["worth", "id"])
    op.create_index("vector_uses_by_document", "vector_uses", ["corpus", "document"])
