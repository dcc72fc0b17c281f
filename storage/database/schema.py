"""The tables of the database. `storage.database.migrations` converts older databases to these tables."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    false,
    text,
)

REVISION = "0012"
"""The revision of these tables, stored in the table `alembic_version`, which release 0.1.0 wrote with Alembic."""


class Moment(TypeDecorator[datetime]):
    """A column type for moments: they must have a time zone when stored, and are returned in UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Convert the moment to UTC. Raises `ValueError` if it has no time zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Return the moment in UTC. SQLite stores UTC, but returns values without a zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata = MetaData()

# A literal, not a bound value: otherwise SQLite cannot use the index over retired versions.
RETIRED = text("retired > 0")
# In SQLite, only an INTEGER key is the row's own number, which needs no extra index.
CHANGE_NUMBER = BigInteger().with_variant(Integer, "sqlite")


def _table(name: str, *parts: Column[Any] | Index, **options: Any) -> Table:
    return Table(name, metadata, *parts, **options)


def _keys(*names: str) -> Iterator[Column[str]]:
    return (Column(name, Text, primary_key=True) for name in names)


def _numbers(*names: str) -> Iterator[Column[int]]:
    return (Column(name, Integer, primary_key=True, autoincrement=False) for name in names)


def _texts(*names: str, default: str | None = None) -> Iterator[Column[str]]:
    return (Column(name, Text, nullable=False, server_default=default) for name in names)


def _moments(*names: str) -> Iterator[Column[datetime]]:
    return (Column(name, Moment, nullable=False) for name in names)


def _counts(*names: str) -> Iterator[Column[int]]:
    return (Column(name, Integer, nullable=False, server_default="0") for name in names)


corpora = _table(
    "corpora",
    *_keys("name"),
    Column("refreshed_at", Moment),
    Column("reference", Boolean, nullable=False, server_default=false()),
    *_texts("mark", "mark_of", "edition", default=""),
    # Incremented by every change of the corpus's documents, so that a search notices concurrent changes.
    *_counts("generation"),
    Column("dense", Text, nullable=False, server_default="eager"),
    *_counts("documents", "passages"),  # stored because counting takes seconds for a whole Wikipedia
)

# One row: the number of the last change of a document, and up to which number retired versions are purged. Commits
# lock it, so that numbers are in the order of commits.
sequence = _table(
    "sequence",
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("value", BigInteger, nullable=False),
    Column("purged", BigInteger, nullable=False),
)

# A row for each version of a document. Retired ones stay until every index has followed the change.
documents = _table(
    "documents",
    Column("number", CHANGE_NUMBER, primary_key=True, autoincrement=False),
    Column("corpus", Text, ForeignKey("corpora.name"), nullable=False),
    *_texts("key", "title", "url", "revision"),
    Column("date", Moment),
    *_texts("language", "fingerprint", "aliases"),
    Column("disambiguation", Boolean, nullable=False),
    Column("passages", Integer, nullable=False),
    # The number of the change that replaced or removed it; 0 for the current version.
    Column("retired", BigInteger, nullable=False, server_default="0"),
    Index("documents_by_key", "corpus", "key", "retired", unique=True),
    Index("documents_by_url", "url"),
    Index("documents_by_title", "title"),
    Index("documents_by_retirement", "retired", sqlite_where=RETIRED, postgresql_where=RETIRED),
)

# The passages of each version in order, packed by `storage.database.bodies`.
bodies = _table(
    "bodies",
    Column("number", CHANGE_NUMBER, ForeignKey("documents.number"), primary_key=True, autoincrement=False),
    Column("body", LargeBinary, nullable=False),
    *_texts("seal"),
)

# Documents whose vectors a home is changing. If it dies, another home finishes them.
pending = _table("pending", *_keys("corpus", "key", "follower"))

# Up to which change the lexical index of each home has followed, and when it last reported that.
followers = _table("followers", *_keys("name"), Column("followed", BigInteger, nullable=False), *_moments("seen"))

# The vectors that lazy corpora keep, and how useful each is; see `storage.search.lazy_vectors`.
vector_uses = _table(
    "vector_uses",
    *_keys("corpus", "id"),
    *_texts("document"),
    Column("worth", Float, nullable=False),
    Index("vector_uses_by_worth", "worth", "id"),
    Index("vector_uses_by_document", "corpus", "document"),
)

failures = _table(
    "failures", Column("corpus", Text, ForeignKey("corpora.name"), primary_key=True), *_keys("key"), *_texts("reason")
)

# Triggers refuse every removal of a row, and every change except the erasure of a body; see the migrations.
entries = _table(
    "entries",
    Column("seq", Integer, primary_key=True),
    *_texts("turn_id", "kind"),
    *_moments("at"),
    *_texts("body"),
    # The entry's leaf in the record's tree; see `storage.record.proof.merkle_tree`.
    *(Column(name, LargeBinary, nullable=False, server_default="") for name in ("salt", "commitment", "leaf")),
    Index("entries_by_turn", "turn_id", "kind"),
    Index("entries_by_kind", "kind", "seq"),
    sqlite_autoincrement=True,
)

# The signed heads of the record's tree; see `storage.record.proof.checkpoints`.
checkpoints = _table("checkpoints", Column("size", Integer, primary_key=True, autoincrement=False), *_texts("note"))

# Accepted questions. They stay when they are done, so that none is accepted twice.
questions = _table(
    "questions",
    Column("ticket", Integer, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    *_texts("channel", "conversation", "asker", "message", "body", "handle", "state", "outcome"),
    *_moments("taken_at"),
    *_texts("turn_id"),
    Column("sending", Boolean, nullable=False),
    *_texts("owner"),
    Column("lease_until", Moment),
    Index("questions_by_state", "state", "ticket"),
    Index("questions_by_conversation", "conversation", "ticket"),
    Index("questions_by_channel", "channel", "ticket"),
    Index("questions_by_message", "channel", "message"),
    Index("questions_by_moment", "taken_at"),
    Index("questions_of_channel", "channel", "taken_at"),
    Index("questions_of_asker", "asker", "taken_at"),
)

# The messages that show the answer to a question, in order.
posts = _table(
    "posts",
    Column("ticket", Integer, ForeignKey("questions.ticket"), primary_key=True),
    Column("position", Integer, primary_key=True),
    *_texts("channel", "message"),
    Index("posts_by_message", "channel", "message"),
)

# When a question was reworded after its answer had started: it counts as asked once more.
rewordings = _table(
    "rewordings",
    Column("id", Integer, primary_key=True),
    Column("ticket", Integer, ForeignKey("questions.ticket"), nullable=False),
    *_moments("at"),
    Index("rewordings_by_moment", "at"),
    Index("rewordings_of_question", "ticket"),
)

# What turns cost, counted from the log: a row for each entry that closes a turn.
spending = _table(
    "spending",
    Column("seq", Integer, ForeignKey("entries.seq"), primary_key=True, autoincrement=False),
    *_texts("turn_id"),
    *_moments("at"),
    *_texts("platform", "channel", "asker"),
    Column("tokens", Integer, nullable=False),
    Column("cost", Float, nullable=False),
    Index("spending_by_moment", "at"),
    Index("spending_of_channel", "channel", "at"),
    Index("spending_of_asker", "asker", "at"),
)

# The index of the record: a row for each turn, derived from its entries in the transaction that adds them.
turns = _table(
    "turns",
    Column("seq", Integer, ForeignKey("entries.seq"), primary_key=True, autoincrement=False),
    Column("turn_id", Text, nullable=False, unique=True),
    *_moments("at"),
    *_texts("task", "platform", "workspace", "channel", "channel_name", "asker", "asker_name", "question"),
    *_texts("status", "system", "model", "outcome"),
    Column("retracted", Boolean, nullable=False),
    Column("erased", Boolean, nullable=False),
    *_counts("sentences", "withheld", "claims", "supported", "refuted", "up", "down", "tokens"),
    Column("seconds", Float, nullable=False, server_default="0"),
    Column("cost", Float, nullable=False, server_default="0"),
    Index("turns_by_moment", "at"),
    Index("turns_of_channel", "channel", "seq"),
    Index("turns_of_asker", "asker", "seq"),
)

# The documents that an answer cites, or the nearest ones if nothing was answered.
turn_documents = _table(
    "turn_documents",
    *_keys("corpus", "document"),
    Column("cited", Boolean, primary_key=True, autoincrement=False),
    Column("seq", Integer, ForeignKey("turns.seq"), primary_key=True, autoincrement=False),
    Index("documents_of_turn", "seq"),
    sqlite_with_rowid=False,
)

# The last titles of those documents.
document_titles = _table("document_titles", *_keys("corpus", "document"), *_texts("title"))

# For people's own queries, documented in `docs/audit.md`: the claims of a turn, other sentences that were shown, and
# withheld ones. `turn` is the `seq` of the turn's row.
claims = _table(
    "claims",
    *_numbers("turn", "number"),
    *_texts("text", "origin", "verdict", "reason"),
    Column("said", Boolean, nullable=False),
    Index("claims_by_verdict", "verdict", "turn"),
    sqlite_with_rowid=False,
)

# The passages behind the verdict on a claim, in order. `revision` and `quote` are empty if the answer does not cite it.
claim_passages = _table(
    "claim_passages",
    *_numbers("turn", "claim", "position"),
    *_texts("passage", "corpus", "document", "revision", "quote"),
    sqlite_with_rowid=False,
)

# Ratings, comments and other acts of people on answers. `missed` is a reason of "down"; `rating` is from 1 to 5, or 0.
feedback = _table(
    "feedback",
    *_numbers("seq"),
    Column("turn", Integer, nullable=False),
    *_moments("at"),
    *_texts("what", "person", "comment"),
    Column("missed", Boolean, nullable=False),
    Column("rating", Integer, nullable=False),
    Index("feedback_of_turn", "turn"),
)

# The terms of questions and answers, by the turn's number. In SQLite this is an FTS5 table with its own index.
turn_words = _table("turn_words", Column("rowid", Integer, primary_key=True, autoincrement=False), *_texts("terms"))

# Channel settings made by admins' commands; the log has who made them and when.
overrides = _table("overrides", *_keys("channel", "key"), *_texts("value"))

# Answers that admins approved as worked examples; the log has who approved and dropped them.
examples = _table(
    "examples",
    *_keys("turn_id"),
    *_texts("by"),
    *_moments("at"),
    Column("pinned", Boolean, nullable=False),
    *_texts("body"),
)

# Documents that were forgotten, with their names; no refresh brings them back.
forgotten = _table("forgotten", *_keys("corpus", "key"), *_texts("title", "url", default=""))

leases = _table("leases", *_keys("name"), *_texts("owner"), *_moments("until"))

# Without a foreign key, as a run may fail before its corpus is known.
runs = _table(
    "runs",
    Column("id", Integer, primary_key=True),
    *_texts("corpus"),
    *_moments("begun", "seen"),
    Column("ended", Moment),
    *_texts("state"),
    *_counts("added", "changed", "unchanged", "removed", "failed", "held_back"),
    *_counts("passages_added", "passages_removed", "done"),
    Column("total", Integer),
    *_counts("passages"),
    *_texts("doing", "fault", "edition", default=""),
    *_texts("owner"),
    Column("night", Moment),
    Index("runs_by_corpus", "corpus", "id"),
)

nights = _table(
    "nights",
    Column("due", Moment, primary_key=True),
    *_moments("begun"),
    Column("ended", Moment),
    *_texts("owner", "outcome", "lines"),
)
