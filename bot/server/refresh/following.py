"""Follow what other servers of the same database changed, so that each finds it within a minute."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.desk.supervisor import run_beside
from storage.errors import StorageError
from storage.passages import PassageStore

log = logging.getLogger(__name__)

LOOK_SECONDS = 15.0


@asynccontextmanager
async def keep_following(passages: PassageStore, *, pulse: float = LOOK_SECONDS) -> AsyncIterator[None]:
    """Look for changes within the block, and let the others know that this server is there."""

    async def watch() -> None:
        while True:
            await asyncio.sleep(pulse)
            try:
                await passages.tidy()
            except StorageError as error:
                log.warning("what other servers changed could not be followed", extra={"cause": str(error)})
            except Exception:
                log.exception("what other servers changed could not be followed")

    async with run_beside(watch(), name="following"):
        yield
