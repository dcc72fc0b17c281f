"""The ways from the command line into the rest of the house, as functions that tests replace by their own.

Each imports what it opens only when it is walked through: `footnote --help` loads no index and no model.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from contextlib import AbstractAsyncContextManager

    from bot.app import App, Records
    from bot.home import Home
    from bot.refreshing.history import History
    from bot.settings import Settings
    from pipeline.llm.settings import ModelSettings
    from pipeline.model import LLM


SERVER_SECONDS = 10.0
"""How long a server that owns the home may take until it answers: it takes the lock some moments before."""
_AGAIN_SECONDS = 0.1
_SERVING = frozenset({"footnote serve", "bot serve", ""})
"""Who owns the home then; nothing is known of who has only just taken it."""


class OpenApp(Protocol):
    """Opens the home as its owner."""

    def __call__(self, settings: Settings, *, rebuilding: bool = False) -> AbstractAsyncContextManager[App]:
        """Open it."""
        ...


def _open_app(settings: Settings, *, rebuilding: bool = False) -> AbstractAsyncContextManager[App]:
    from bot.app import open_app

    return open_app(settings, rebuilding=rebuilding)


@asynccontextmanager
async def _open_home(settings: Settings) -> AsyncIterator[Home]:
    """Reach the home through the server that has it open, or else open it.

    A server that is just starting or stopping is waited for, but not for long.

    Raises:
        HomeLocked: Another process owns it, and is no server that answers.
    """
    async with AsyncExitStack() as stack:
        end = time.monotonic() + SERVER_SECONDS
        # Another process cannot be waited for but by looking again.
        while not (home := await _there(settings, stack, last=time.monotonic() >= end)):  # noqa: ASYNC110
            await asyncio.sleep(_AGAIN_SECONDS)
        yield home


async def _there(settings: Settings, stack: AsyncExitStack, *, last: bool) -> Home | None:
    """Return the home; None where a server owns it that does not answer yet, unless this is the last try."""
    from bot.control.reaching import reached

    # A server is asked first: it answers within milliseconds, and only where there is none is anything heavy loaded.
    if remote := await stack.enter_async_context(reached(settings.home)):
        return remote
    from bot.app import open_app
    from bot.local_home import LocalHome
    from storage.errors import HomeLocked
    from storage.lock import held_by

    try:
        return LocalHome(await stack.enter_async_context(open_app(settings)))
    except HomeLocked:
        if last or held_by(settings.home) not in _SERVING:
            raise
    return None


def _open_records(settings: Settings) -> AbstractAsyncContextManager[Records]:
    from bot.app import open_records

    return open_records(settings)


def _open_history(settings: Settings) -> AbstractAsyncContextManager[History]:
    from bot.refreshing.history import open_history

    return open_history(settings)


def _open_model(settings: ModelSettings) -> AbstractAsyncContextManager[LLM]:
    from pipeline.llm.opening import open_model

    return open_model(settings)


async def _serve(settings: Settings) -> None:
    from bot.platforms import known
    from bot.serving import serve

    await serve(settings, known())


@dataclass(frozen=True, slots=True)
class Doors:
    """What commands do the work with."""

    open_home: Callable[[Settings], AbstractAsyncContextManager[Home]] = _open_home
    """For all that can be done beside a server as well."""
    open_app: OpenApp = _open_app
    open_records: Callable[[Settings], AbstractAsyncContextManager[Records]] = _open_records
    open_history: Callable[[Settings], AbstractAsyncContextManager[History]] = _open_history
    open_model: Callable[[ModelSettings], AbstractAsyncContextManager[LLM]] = _open_model
    serve: Callable[[Settings], Coroutine[Any, Any, None]] = _serve
