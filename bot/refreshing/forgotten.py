"""What is told of a document that was forgotten."""

from dataclasses import dataclass

from storage.refresh_types import Listed


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A document that was forgotten."""

    document: Listed
    passages: int
    """How many passages of it could be found until then."""
