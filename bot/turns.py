"""What every channel hands to `answering` and gets from it: a question and who asks it; the answer, or why not."""

from dataclasses import dataclass

from bot.access import Asker
from pipeline.types import Answer, Turn, Usage


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, who asks it, and what came before it."""

    text: str
    asker: Asker
    thread: str = ""
    earlier: tuple[Turn, ...] = ()
    corpora: tuple[str, ...] = ()
    """Which corpora to look in; empty for all that the asker may read."""
    system: str = ""
    id: str = ""
    """The turn's id in the record; empty for a new one."""
    message: str = ""
    """The platform's id of the message that asks."""
    ticket: int = 0
    """The question's number at the desk; 0 for one that never stood there."""
    within: tuple[str, ...] | None = None
    """What a channel narrows its scope to; None for all. Unlike `corpora`, what cannot be read is passed over."""
    because: str = ""
    """Why this system answers and not the usual one, such as a budget that is spent; for the record."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a turn failed or was refused: a kind for programs, a line for people, and what to do."""

    kind: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer as it is delivered, and what it took."""

    answer_id: str
    answer: Answer
    text: str
    """With footnote marks where it was answered; one of our own templates otherwise."""
    system: str
    model: str | None
    usage: Usage
    seconds: float
    failure: Failure | None = None
