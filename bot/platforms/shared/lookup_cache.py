"""Cache what a platform says of channels and people."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from bot.desk.platform_port import PlatformError, PlatformUnavailable

T = TypeVar("T")

log = logging.getLogger(__name__)

FRESH_SECONDS = 3_600.0  # so long an answer counts where no event says otherwise
PEOPLE_SECONDS = 300.0  # so long one of a person does, whose guest account, groups and roles no event tells of
LOOK_SECONDS = 1.5  # so long somebody waits for it. Platforms want to hear within 3 s that a question was taken
PATIENT_SECONDS = 20.0  # so long a question waits for it that was taken already
MOST = 50_000  # how many answers of a kind are remembered


@dataclass
class LookupCache(Generic[T]):
    """Answers by what they are of. Who asks for one that is being looked up waits for the same."""

    look: Callable[[str], Awaitable[T]]
    clock: Callable[[], float]
    fresh: float = FRESH_SECONDS  # so many seconds an answer counts
    _answers: dict[str, tuple[float, T]] = field(default_factory=dict)
    _pending: dict[str, asyncio.Task[T]] = field(default_factory=dict)

    async def of(self, name: str, seconds: float = LOOK_SECONDS) -> T:
        """Return the answer. Raises `PlatformError` where there is none, `TimeoutError` where it takes too long."""
        if (answer := self.known(name)) is not None:
            return answer
        if (task := self._pending.get(name)) is None:
            task = self._pending[name] = asyncio.create_task(self._look_up(name))
            task.add_done_callback(_ignore_result)
        async with asyncio.timeout(seconds):
            return await asyncio.shield(task)

    def known(self, name: str) -> T | None:
        """Return the answer without asking for it; None where that would have to be done."""
        until, answer = self._answers.get(name, (0.0, None))
        return answer if until > self.clock() else None

    def note(self, name: str, answer: T) -> None:
        if len(self._answers) >= MOST:
            self._answers.pop(next(iter(self._answers)))
        self._answers[name] = (self.clock() + self.fresh, answer)

    def forget(self, name: str) -> None:
        """Forget what is no longer so, also what is just being looked up."""
        self._answers.pop(name, None)
        self._pending.pop(name, None)

    async def close(self) -> None:
        tasks = list(self._pending.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look_up(self, name: str) -> T:
        mine = asyncio.current_task()
        try:
            answer = await self.look(name)
            if self._pending.get(name) is mine:
                self.note(name, answer)
            return answer
        finally:
            if self._pending.get(name) is mine:
                del self._pending[name]


def _ignore_result(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled():
        task.exception()


async def lookup_or_default(look: Callable[[], Awaitable[T]], what: str, *, otherwise: T) -> T:
    """Return what a platform says; `otherwise` where it does not say so in time."""
    try:
        return await look()
    except (PlatformError, TimeoutError) as error:
        log.warning("cannot look up %s", what, extra={"cause": str(error)})
        return otherwise


async def lookup_or_raise(look: Callable[[], Awaitable[T]], platform: str, what: str, *, otherwise: T) -> T:
    """Return what a platform says; `otherwise` where it refuses. Raises `PlatformUnavailable` where it may later."""
    try:
        return await look()
    except TimeoutError as error:
        raise PlatformUnavailable(f"{platform} did not answer in time: {what}.") from error
    except PlatformUnavailable:
        raise
    except PlatformError as error:
        log.warning("cannot look up %s", what, extra={"cause": str(error)})
        return otherwise
