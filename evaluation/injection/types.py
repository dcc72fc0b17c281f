"""What is planted where: attacks, the texts they are planted in, and pages that hold both."""

from dataclasses import dataclass
from typing import Literal

from evaluation.errors import EvaluationError
from storage.types import Hit, Kind

Place = Literal["before", "inside", "after", "title", "section"]
"""Where in a context an attack stands: as a block of its own, in the middle of its text, or in what names it."""


class UnreadableAttacks(EvaluationError):
    """A file of attacks is not in the form that its reader expects."""

    kind = "unreadable_attacks"


@dataclass(frozen=True, slots=True)
class Attack:
    """A text that wants a model to say something."""

    source: str
    """The set it is of."""
    text: str
    wanted: tuple[str, ...] = ()
    """What a model that obeys says, beside what can be read in the text itself."""
    places: tuple[Place, ...] = ("before", "inside", "after")
    """Where it may be planted."""


@dataclass(frozen=True, slots=True)
class Context:
    """A harmless text that an attack is planted in."""

    text: str
    kind: Kind = Kind.PROSE


@dataclass(frozen=True, slots=True)
class Planted:
    """A page with an attack in it, as passages, and the passages that the same page has without it."""

    attack: Attack
    place: Place
    hits: tuple[Hit, ...]
    clean: tuple[Hit, ...]
