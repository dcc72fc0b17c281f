"""Looks at a server's readiness now and then, and logs what changed: nobody may be asking for `/readyz`."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

log = logging.getLogger(__name__)

EVERY_SECONDS = 30.0


class Reasons(Protocol):
    """What says why things are not ready."""

    async def reasons(self) -> Mapping[str, str]:
        """Return why, by their names."""
        ...


@asynccontextmanager
async def noticed(
    readiness: Reasons, *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> AsyncIterator[None]:
    """Log within the block what is not ready: at once, and whenever that changes."""
    task = asyncio.create_task(_watch(readiness, sleep), name="readiness")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _watch(readiness: Reasons, sleep: Callable[[float], Awaitable[object]]) -> None:
    known: Mapping[str, str] = {}
    while True:
        found = await readiness.reasons()
        for name in found.keys() - known.keys():
            log.warning("not ready: %s", name, extra={"cause": found[name]})
        for name in known.keys() - found.keys():
            log.info("ready again: %s", name)
        known = dict(found)
        await sleep(EVERY_SECONDS)
