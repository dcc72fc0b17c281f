"""Takes every question that catching up finds, and says when one was taken last: queue, desk and taking in one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.types import IntakeStatus, Question


@dataclass
class FakeIntake:
    """The queue, desk and intake for the tests of archives and catch-up."""

    made: Callable[[Any], Question | None]
    """Makes a question of a platform's message."""
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
        if any(one.key == asked.key for one in self.taken):
            return IntakeStatus.KNOWN
        self.taken.append(asked)
        return IntakeStatus.NEW

    @property
    def messages(self) -> list[str]:
        return sorted(one.message for one in self.taken)
