"""What can go wrong in storage, shaped by what the caller will do.

StorageError                 say it in one line, with what to do
├── HomeLocked               another process owns the home: use it, or stop it
├── HomeUnusable             the home cannot be written: mend the folder or the disk
├── DatabaseUnusable         the database is corrupt, or newer than this code
├── IndexStale               the indexes do not fit the database: reindex
├── EmbeddingUnavailable     the embedder's weights or service cannot be used
├── LeaseLost                another process has taken over what this one did: stop
└── UnknownCorpus            a corpus was named that is not there
"""


class StorageError(Exception):
    """A failure that a person can mend. `str()` is one plain line; `hint` says what to do."""

    kind = "storage"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class HomeLocked(StorageError):
    """Another process owns the home's indexes."""

    kind = "home_locked"


class HomeUnusable(StorageError):
    """The home folder cannot be read or written, or its disk is full."""

    kind = "home_unusable"


class DatabaseUnusable(StorageError):
    """The database is corrupt, or was written by a newer version."""

    kind = "database_unusable"


class IndexStale(StorageError):
    """The indexes are missing, incomplete, or were made by another embedder or version."""

    kind = "index_stale"


class EmbeddingUnavailable(StorageError):
    """The embedding function's weights are missing or wrong, or its service fails."""

    kind = "embedding_unavailable"


class LeaseLost(StorageError):
    """Another process has taken over what only one may do at a time. Nothing of the transaction was written."""

    kind = "lease_lost"


class UnknownCorpus(StorageError):
    """A corpus was named that nothing was ingested into."""

    kind = "unknown_corpus"
