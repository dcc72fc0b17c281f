"""Give a command its settings, its output and the services that it works with.

Services import what they open only when it is opened: `footnote --help` loads no index and no model.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeAlias

import typer

from bot.cli.terminal_output import Output, open_output, report_errors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from bot.server.refresh.run_history import RefreshHistory
    from bot.server.service import BotService
    from bot.settings.settings_tables import Settings
    from bot.wiring import App, Records
    from pipeline.llm.model_settings import ModelSettings
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
    from bot.wiring import open_app

    return open_app(settings, rebuilding=rebuilding)


@asynccontextmanager
async def _open_home(settings: Settings) -> AsyncIterator[BotService]:
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


async def _there(settings: Settings, stack: AsyncExitStack, *, last: bool) -> BotService | None:
    """Return the home; None where a server owns it that does not answer yet, unless this is the last try."""
    from bot.server.control.control_socket import connect_service

    # A server is asked first: it answers within milliseconds, and only where there is none is anything heavy loaded.
    if remote := await stack.enter_async_context(connect_service(settings.home)):
        return remote
    from bot.server.service import LocalService
    from bot.wiring import open_app
    from storage.errors import HomeLocked
    from storage.home_folder import read_lock_command

    try:
        return LocalService(await stack.enter_async_context(open_app(settings)))
    except HomeLocked:
        if last or read_lock_command(settings.home) not in _SERVING:
            raise
    return None


def _open_records(settings: Settings) -> AbstractAsyncContextManager[Records]:
    from bot.wiring import open_records

    return open_records(settings)


def _open_history(settings: Settings) -> AbstractAsyncContextManager[RefreshHistory]:
    from bot.server.refresh.run_history import open_history

    return open_history(settings)


def _open_model(settings: ModelSettings) -> AbstractAsyncContextManager[LLM]:
    from pipeline.llm.model_client import open_model

    return open_model(settings)


async def _serve(settings: Settings) -> None:
    from bot.platforms import known
    from bot.server.lifecycle import serve

    await serve(settings, known())


@dataclass(frozen=True, slots=True)
class Services:
    """What commands do the work with."""

    open_home: Callable[[Settings], AbstractAsyncContextManager[BotService]] = _open_home
    """For all that can be done beside a server as well."""
    open_app: OpenApp = _open_app
    open_records: Callable[[Settings], AbstractAsyncContextManager[Records]] = _open_records
    open_history: Callable[[Settings], AbstractAsyncContextManager[RefreshHistory]] = _open_history
    open_model: Callable[[ModelSettings], AbstractAsyncContextManager[LLM]] = _open_model
    serve: Callable[[Settings], Coroutine[Any, Any, None]] = _serve


JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


@dataclass(frozen=True, slots=True)
class CliState:
    """What was said before the command's name, and what commands do their work with."""

    doors: Services = field(default_factory=Services)
    config: Path | None = None
    debug: bool = False


@dataclass(frozen=True, slots=True)
class CommandContext:
    """What a command gets."""

    output: Output
    settings: Settings
    doors: Services


@contextmanager
def open_command(context: typer.Context, *, as_json: bool) -> Iterator[CommandContext]:
    """Read the settings and run a command within, its failures told plainly."""
    from bot.settings.settings_reader import load_settings

    invocation = find_cli_state(context)
    with open_bare_command(context, as_json=as_json) as output:
        yield CommandContext(output, load_settings(invocation.config), invocation.doors)


@contextmanager
def open_bare_command(context: typer.Context, *, as_json: bool) -> Iterator[Output]:
    """Run a command that needs no settings within: what goes wrong is told in one plain line and an exit status."""
    output = open_output(as_json=as_json, debug=find_cli_state(context).debug)
    with report_errors(output):
        yield output


def find_cli_state(context: typer.Context) -> CliState:
    """Return what was said before the command's name."""
    return context.find_object(CliState) or CliState()


def format_examples(*lines: str) -> str:
    """Return the end of a command's help: what to type."""
    heading = "Example:" if len(lines) == 1 else "Examples:"
    return "\n\n".join((heading, *lines))
