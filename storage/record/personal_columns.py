"""Which columns of the database hold people's words or names: the registry that erasing follows. Pure.

A test holds it to the schema: a column of text that nobody classified fails it.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class ColumnContent(StrEnum):
    """What a column of text holds."""

    WORDS = "words"  # of people, or made from them: erased with them
    NAMES = "names"  # who somebody is, by id or name: erased with them
    OFFICE = "office"  # who did something by office, such as an admin; kept, as what was done is
    DOCUMENTS = "documents"  # of sources: `footnote forget` removes those
    PLACES = "places"  # channels, conversations, messages, by their platform's ids
    OPERATION = "operation"  # states, kinds, ids of our own, hashes, faults of the machine


def _classify(content: ColumnContent, table: str, names: str) -> dict[str, ColumnContent]:
    return {f"{table}.{name}": content for name in names.split()}


COLUMNS: Mapping[str, ColumnContent] = MappingProxyType(
    {
        **_classify(ColumnContent.WORDS, "entries", "body"),
        **_classify(ColumnContent.OPERATION, "entries", "turn_id kind salt commitment leaf"),
        **_classify(ColumnContent.OPERATION, "checkpoints", "note"),
        **_classify(ColumnContent.WORDS, "questions", "body handle"),
        **_classify(ColumnContent.NAMES, "questions", "asker"),
        **_classify(ColumnContent.PLACES, "questions", "key channel conversation message"),
        **_classify(ColumnContent.OPERATION, "questions", "state outcome turn_id owner"),
        **_classify(ColumnContent.PLACES, "posts", "channel message"),
        **_classify(ColumnContent.NAMES, "spending", "asker"),
        **_classify(ColumnContent.PLACES, "spending", "platform channel"),
        **_classify(ColumnContent.OPERATION, "spending", "turn_id"),
        **_classify(ColumnContent.WORDS, "turns", "question"),
        **_classify(ColumnContent.NAMES, "turns", "asker asker_name"),
        **_classify(ColumnContent.PLACES, "turns", "platform workspace channel channel_name"),
        **_classify(ColumnContent.OPERATION, "turns", "turn_id task status system model outcome"),
        **_classify(ColumnContent.WORDS, "turn_words", "terms"),
        **_classify(ColumnContent.DOCUMENTS, "turn_documents", "corpus document"),
        **_classify(ColumnContent.DOCUMENTS, "document_titles", "corpus document title"),
        **_classify(ColumnContent.WORDS, "examples", "body"),
        **_classify(ColumnContent.OFFICE, "examples", "by"),
        **_classify(ColumnContent.OPERATION, "examples", "turn_id"),
        **_classify(ColumnContent.OFFICE, "overrides", "value"),
        **_classify(ColumnContent.PLACES, "overrides", "channel"),
        **_classify(ColumnContent.OPERATION, "overrides", "key"),
        **_classify(ColumnContent.DOCUMENTS, "corpora", "name mark mark_of edition dense"),
        **_classify(ColumnContent.DOCUMENTS, "documents", "corpus key title url revision language fingerprint aliases"),
        **_classify(ColumnContent.DOCUMENTS, "bodies", "body seal"),
        **_classify(ColumnContent.DOCUMENTS, "pending", "corpus key"),
        **_classify(ColumnContent.DOCUMENTS, "vector_uses", "corpus id document"),
        **_classify(ColumnContent.DOCUMENTS, "failures", "corpus key reason"),
        **_classify(ColumnContent.DOCUMENTS, "forgotten", "corpus key title url"),
        **_classify(ColumnContent.OPERATION, "followers", "name"),
        **_classify(ColumnContent.OPERATION, "pending", "follower"),
        **_classify(ColumnContent.OPERATION, "leases", "name owner"),
        **_classify(ColumnContent.OPERATION, "runs", "corpus state doing fault edition owner"),
        **_classify(ColumnContent.OPERATION, "nights", "owner outcome lines"),
    }
)
