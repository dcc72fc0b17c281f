"""A row for each version of a document, its passages packed in one body, in place of a row a passage.

The order of the versions is that of their keys, as nobody knows in which they came.
"""

import sqlalchemy as sa
from alembic import op

from storage.database.bodies import pack_passages, seal_body
from storage.types import Passage, PassageKind

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_BATCH = 500
_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_TEXTS = ("key", "title", "url", "revision")
_MORE = ("language", "fingerprint", "aliases")


def upgrade() -> None:
    op.rename_table("documents", "documents_before")
    if op.get_bind().dialect.name == "postgresql":  # whose index keeps its name, and names are unique
        op.execute("ALTER TABLE documents_before RENAME CONSTRAINT documents_pkey TO documents_before_pkey")
    for name in ("documents_by_url", "documents_by_title"):
        op.drop_index(name, "documents_before")
    _make_tables()
    _convert(op.get_bind())
    op.drop_table("passages")
    op.drop_table("documents_before")
    for name, columns in (("documents_by_url", ["url"]), ("documents_by_title", ["title"])):
        op.create_index(name, "documents", columns)
    retired = sa.text("retired > 0")
    op.create_index("documents_by_retirement", "documents", ["retired"], sqlite_where=retired, postgresql_where=retired)


def _make_tables() -> None:
    op.add_column("corpora", sa.Column("dense", sa.Text, nullable=False, server_default="eager"))
    for name in ("documents", "passages"):
        op.add_column("corpora", sa.Column(name, sa.Integer, nullable=False, server_default="0"))
    op.create_table(
        "sequence",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("value", sa.BigInteger, nullable=False),
        sa.Column("purged", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "documents",
        sa.Column("number", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("corpus", sa.Text, sa.ForeignKey("corpora.name"), nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in _TEXTS),
        sa.Column("date", sa.DateTime(timezone=True)),
        *(sa.Column(name, sa.Text, nullable=False) for name in _MORE),
        sa.Column("disambiguation", sa.Boolean, nullable=False),
        sa.Column("passages", sa.Integer, nullable=False),
        sa.Column("retired", sa.BigInteger, nullable=False, server_default="0"),
    )
    op.create_index("documents_by_key", "documents", ["corpus", "key", "retired"], unique=True)
    op.create_table(
        "bodies",
        sa.Column("number", _NUMBER, sa.ForeignKey("documents.number"), primary_key=True, autoincrement=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("seal", sa.Text, nullable=False),
    )
    op.create_table(
        "pending",
        *(sa.Column(name, sa.Text, primary_key=True) for name in ("corpus", "key", "follower")),
    )
    op.create_table(
        "followers",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("followed", sa.BigInteger, nullable=False),
        sa.Column("seen", sa.DateTime(timezone=True), nullable=False),
    )


def _convert(connection: sa.Connection) -> None:
    before = sa.Table("documents_before", sa.MetaData(), autoload_with=connection)
    passages = sa.Table("passages", sa.MetaData(), autoload_with=connection)
    documents = sa.Table("documents", sa.MetaData(), autoload_with=connection)
    bodies = sa.Table("bodies", sa.MetaData(), autoload_with=connection)
    number, last = 0, ("", "")
    following = sa.tuple_(before.c.corpus, before.c.key)
    ordered = sa.select(before).order_by(before.c.corpus, before.c.key).limit(_BATCH)
    while rows := connection.execute(ordered.where(following > sa.tuple_(*map(sa.literal, last)))).mappings().all():
        made, packed = [], []
        for row in rows:
            number += 1
            of = passages.c.corpus == row["corpus"], passages.c.document == row["key"], passages.c.listed
            found = connection.execute(sa.select(passages).where(*of).order_by(passages.c.position, passages.c.id))
            texts = [
                Passage(one.id, one.corpus, one.document, one.section, one.text, 0, "", PassageKind(one.kind))
                for one in found
            ]
            body = pack_passages(texts)
            made.append({**row, "number": number, "passages": len(texts), "retired": 0})
            packed.append({"number": number, "body": body, "seal": seal_body(row["title"], body)})
        connection.execute(sa.insert(documents), made)
        connection.execute(sa.insert(bodies), packed)
        last = rows[-1]["corpus"], rows[-1]["key"]
    connection.execute(sa.text("INSERT INTO sequence (id, value, purged) VALUES (1, :value, 0)"), {"value": number})
    for name in ("documents", "passages"):
        what = "count(*)" if name == "documents" else "coalesce(sum(passages), 0)"
        counted = f"(SELECT {what} FROM documents WHERE documents.corpus = corpora.name)"  # noqa: S608 - our own names
        connection.execute(sa.text(f"UPDATE corpora SET {name} = {counted}"))  # noqa: S608 - our own names
