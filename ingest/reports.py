"""What is told of a refresh: while it goes on, when it has ended, and when it is not done at all."""

from dataclasses import dataclass


class RefreshRefused(Exception):
    """The refresh would do harm, or has nothing to do it with. `str()` is one line; `hint` says what to do."""

    kind = "refresh_refused"

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """What a refresh added, changed, removed and could not read: documents, then passages."""

    corpus: str
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    passages_added: int = 0
    passages_removed: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0
    held_back: int = 0
    """Documents that the source lists no more, and that were too many to be removed unasked."""
    fault: str = ""
    """What a person should know of it, with what to do, in one line; empty where nothing is amiss."""
    edition: str = ""
    """What people call the state of the source that was read."""
    forgotten: int = 0
    """Documents that were forgotten on purpose, and were left out."""

    @property
    def failed(self) -> int:
        """How many documents could not be read."""
        return len(self.failures)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a refresh has come. `total` is None where the source cannot know before it has been read."""

    done: int
    total: int | None
    passages: int
    seconds: float
    doing: str = ""
    """What the source does that takes a while, in a few words: "downloads enwiki-….bz2, 3.1 of 21.0 GB"."""
