"""A fake of queue, desk and intake in one, for the tests of archives and catch-up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.types import IntakeStatus, Question


@dataclass
class FakeIntake:
    """Takes every question that catch-up finds and knows which was taken last."""

    made: Callable[[Any], Question | None]
    """Makes a question from a platform's message."""
    last: Any = None
    """The row that was taken last."""
    taken: list[Question] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)
    """Raised instead of making questions."""
    rows: Sequence[Any] = ()
    """The questions that may have an answer."""
    edited: list[str] = field(default_factory=list)
    deleted: list[Any] = field(default_factory=list)

    @property
    def directory(self) -> "FakeIntake":
        return self

    def learn(self, _: Any) -> None:
        """Learn nothing."""

    async def newest(self, _: str) -> Any:
        return self.last

    async def standing(self, *_: Any, **__: Any) -> Any:
        return self.rows

    async def edit(self, event: Any) -> None:
        self.edited.append(event.now.key)

    async def delete(self, event: Any) -> None:
        self.deleted.append(event)

    async def question(self, written: Any) -> Question | None:
        if self.faults:
            raise self.faults.pop()
        return self.made(written)

    async def take(self, asked: Question, *, missed: bool = False) -> IntakeStatus:
        assert missed
        if any(question.key == asked.key for question in self.taken):
            return IntakeStatus.KNOWN
        self.taken.append(asked)
        return IntakeStatus.NEW

    @property
    def messages(self) -> list[str]:
        return sorted(question.message for question in self.taken)
