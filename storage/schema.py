"""The tables, as the code knows them. How an older database gets them is told in `storage.migrations`."""

from datetime import UTC, datetime

from sqlalchemy import (
    Boolean,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    false,
)

REVISION = "0001"
"""The migration that makes exactly these tables; kept here so that opening a database need not load Alembic."""


class Moment(TypeDecorator[datetime]):
    """A moment in time: a zone is required going in, and it comes out in UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Turn to UTC. Raises `ValueError` without a time zone: such a value is nobody's moment."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Give SQLite's answer, which has no zone, the one that it was stored in."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata = MetaData()

corpora = Table(
    "corpora",
    metadata,
    Column("name", Text, primary_key=True),
    Column("refreshed_at", Moment),
    Column("reference", Boolean, nullable=False, server_default=false()),
)

documents = Table(
    "documents",
    metadata,
    Column("corpus", Text, ForeignKey("corpora.name"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("title", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("revision", Text, nullable=False),
    Column("date", Moment),
    Column("language", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("aliases", Text, nullable=False),
    Column("disambiguation", Boolean, nullable=False),
)

# A passage is written before its document is (see `storage.manifest`), so it refers to it without a foreign key.
passages = Table(
    "passages",
    metadata,
    Column("id", Text, primary_key=True),
    Column("corpus", Text, ForeignKey("corpora.name"), nullable=False),
    Column("document", Text, nullable=False),
    Column("section", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("hash", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("listed", Boolean, nullable=False),
    Index("passages_by_listing", "corpus", "listed", "id"),
    Index("passages_by_document", "corpus", "document"),
)

failures = Table(
    "failures",
    metadata,
    Column("corpus", Text, ForeignKey("corpora.name"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("reason", Text, nullable=False),
)

# Triggers refuse every change of a row and every removal; they stand in the migration.
entries = Table(
    "entries",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("turn_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("at", Moment, nullable=False),
    Column("body", Text, nullable=False),
    Index("entries_by_turn", "turn_id", "kind"),
    Index("entries_by_kind", "kind", "seq"),
    sqlite_autoincrement=True,
)
