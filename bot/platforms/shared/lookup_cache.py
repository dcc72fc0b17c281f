"""Cache look-ups of channels and people."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from bot.desk.platform_port import PlatformError, PlatformUnavailable
from bot.desk.supervisor import compute_backoff

log = logging.getLogger(__name__)

T = TypeVar("T")

FRESH_SECONDS = 3_600.0  # validity of an answer, unless an event changes it
PEOPLE_SECONDS = 300.0  # validity for users: no event reports that a guest, group or role changed
LOOK_SECONDS = 1.5  # limit of a look-up before a question is acknowledged, which platforms expect within 3 s
PATIENT_SECONDS = 20.0  # the same for an accepted question
MOST = 50_000  # answers that a cache holds
_TRIES = 5  # attempts of a look-up while the platform is unreachable


@dataclass
class LookupCache(Generic[T]):
    """Caches the answers of the function `look`, by name. Concurrent requests for a name share one look-up."""

    look: Callable[[str], Awaitable[T]]
    clock: Callable[[], float]
    fresh: float = FRESH_SECONDS  # seconds that an answer is valid
    _answers: dict[str, tuple[float, T]] = field(default_factory=dict)
    _pending: dict[str, asyncio.Task[T]] = field(default_factory=dict)

    async def of(self, name: str, seconds: float = LOOK_SECONDS) -> T:
        """Return the answer for a name, cached or looked up. Raises `PlatformError`, `TimeoutError`."""
        if (answer := self.known(name)) is not None:
            return answer
        if (task := self._pending.get(name)) is None:
            task = self._pending[name] = asyncio.create_task(self._look_up(name))
            task.add_done_callback(_ignore_result)
        async with asyncio.timeout(seconds):
            return await asyncio.shield(task)

    def known(self, name: str) -> T | None:
        """Return a cached answer; None if it has to be looked up."""
        until, answer = self._answers.get(name, (0.0, None))
        return answer if until > self.clock() else None

    def note(self, name: str, answer: T) -> None:
        if len(self._answers) >= MOST:
            self._answers.pop(next(iter(self._answers)))
        self._answers[name] = (self.clock() + self.fresh, answer)

    def forget(self, name: str) -> None:
        """Forget the answer for a name, even if its look-up is in progress."""
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
    """Return the answer of a look-up; `otherwise` if it fails or takes too long."""
    try:
        return await look()
    except (PlatformError, TimeoutError) as error:
        log.warning("cannot look up %s", what, extra={"cause": str(error)})
        return otherwise


async def lookup_or_raise(look: Callable[[], Awaitable[T]], platform: str, what: str, *, otherwise: T) -> T:
    """Return the answer of a look-up; `otherwise` if it is refused.

    Raises `PlatformUnavailable` if a retry may succeed.
    """
    try:
        return await look()
    except TimeoutError as error:
        raise PlatformUnavailable(f"{platform} did not answer in time: {what}.") from error
    except PlatformUnavailable:
        raise
    except PlatformError as error:
        log.warning("cannot look up %s", what, extra={"cause": str(error)})
        return otherwise


async def lookup_retrying(
    look: Callable[[], Awaitable[T]], what: str, sleep: Callable[[float], Awaitable[object]]
) -> T | None:
    """Return the answer of a look-up, retrying while the platform is unreachable; None if it stays so, or refuses."""
    for attempt in range(_TRIES):
        try:
            return await look()
        except (PlatformError, TimeoutError) as error:
            log.warning("cannot look up %s", what, extra={"cause": str(error)})
            if attempt + 1 == _TRIES or not isinstance(error, PlatformUnavailable | TimeoutError):
                break
            await sleep(compute_backoff(attempt))
    return None
