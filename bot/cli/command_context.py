"""Give a command its settings, its output and the services that it works with.

Services import what they open only when it is opened: `footnote --help` loads no index and no model.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeAlias, TypeVar

import typer

from bot.cli.terminal_output import CommandError, Output, open_output, report_errors
from bot.views.error_messages import Fault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
    from contextlib import AbstractAsyncContextManager

    from bot.app import App, Records
    from bot.cli.setup.setup_terminal import Terminal
    from bot.server.refresh.run_history import RefreshHistory
    from bot.server.service import BotService
    from bot.settings.live.live_settings import LiveSettings
    from bot.settings.tables.settings_tables import Settings
    from pipeline.llm.model import LLM
    from pipeline.llm.model_settings import ModelSettings

T = TypeVar("T")
Opened = TypeVar("Opened")

SERVER_SECONDS = 10.0
"""How long a server that owns the home may take to answer: it takes the lock moments before it listens."""
_AGAIN_SECONDS = 0.1
_SERVING = frozenset({"serve", ""})
"""Commands of a server that owns the home; the empty one is of an owner that has just taken it."""
_BRIEF = frozenset({"ask", "chat", "check", "mcp", "search"})  # that own the home while a question is answered


class OpenOutput(Protocol):
    def __call__(self, *, as_json: bool, debug: bool) -> Output: ...


class OpenApp(Protocol):
    def __call__(self, settings: Settings, *, rebuilding: bool = False) -> AbstractAsyncContextManager[App]: ...


def _open_app(settings: Settings, *, rebuilding: bool = False) -> AbstractAsyncContextManager[App]:
    from bot.wiring import open_app

    return open_app(settings, rebuilding=rebuilding)


@asynccontextmanager
async def _open_home(settings: Settings) -> AsyncIterator[BotService]:
    """Connect to the server that has the home open, or else open it here.

    A server that is just starting or stopping is waited for, but not for long, and another's question for as long as an
    answer may take.

    Raises:
        HomeLocked: Another process owns it, and is no server that answers.
    """
    async with AsyncExitStack() as stack:
        begun = time.monotonic()
        # Another process cannot be waited for but by looking again.
        while not (home := await _there(settings, stack, time.monotonic() - begun)):  # noqa: ASYNC110
            await asyncio.sleep(_AGAIN_SECONDS)
        yield home


async def _there(settings: Settings, stack: AsyncExitStack, waited: float) -> BotService | None:
    """Return the service; None where the home is owned by somebody who is worth more seconds than have been waited."""
    from bot.server.control.control_socket import connect_service

    # A server is asked first: it answers within milliseconds, and only where there is none is anything heavy loaded.
    if remote := await stack.enter_async_context(connect_service(settings.home)):
        return remote
    from bot.answering.question_answering import close_abandoned
    from bot.server.service import LocalService
    from bot.wiring import open_app
    from ingest.refresh.night_schedule import system_clock
    from storage.errors import HomeLocked
    from storage.home.home_folder import read_lock_command

    try:
        app = await stack.enter_async_context(open_app(settings))
    except HomeLocked:
        if waited >= measure_patience(read_lock_command(settings.home), settings):
            raise
        return None
    await close_abandoned(app, system_clock())
    return LocalService(app)


def measure_patience(owner: str, settings: Settings) -> float:
    """Return for how many seconds the command that owns the home is waited for."""
    command = owner.rpartition(" ")[2]
    if command in _BRIEF:
        return SERVER_SECONDS + settings.limits.seconds
    return SERVER_SECONDS if command in _SERVING else 0.0


def _open_records(settings: Settings) -> AbstractAsyncContextManager[Records]:
    from bot.wiring import open_records

    return open_records(settings)


def _open_history(settings: Settings) -> AbstractAsyncContextManager[RefreshHistory]:
    from bot.server.refresh.run_history import open_history

    return open_history(settings)


def _open_model(settings: ModelSettings) -> AbstractAsyncContextManager[LLM]:
    from pipeline.llm.model_client import open_model

    return open_model(settings)


async def _serve(live: LiveSettings, read: Callable[[], Settings]) -> None:
    from bot.platforms.shared.platform_connection import open_platform
    from bot.server.lifecycle import serve
    from bot.settings.platform_registry import load_platforms

    openers = {name: partial(open_platform, entry) for name, entry in load_platforms().items()}
    await serve(live, openers, read)


def _open_terminal(output: Output) -> Terminal:
    from bot.cli.setup.setup_terminal import ConsoleTerminal

    return ConsoleTerminal(output)


@dataclass(frozen=True, slots=True)
class Services:
    """What commands work with; tests replace single functions."""

    open_home: Callable[[Settings], AbstractAsyncContextManager[BotService]] = _open_home
    """For all that works beside a running server as well."""
    open_app: OpenApp = _open_app
    open_records: Callable[[Settings], AbstractAsyncContextManager[Records]] = _open_records
    open_history: Callable[[Settings], AbstractAsyncContextManager[RefreshHistory]] = _open_history
    open_model: Callable[[ModelSettings], AbstractAsyncContextManager[LLM]] = _open_model
    serve: Callable[[LiveSettings, Callable[[], Settings]], Coroutine[Any, Any, None]] = _serve
    open_terminal: Callable[[Output], Terminal] = _open_terminal


JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


@dataclass(frozen=True, slots=True)
class CliState:
    """The global options, and the services."""

    services: Services = field(default_factory=Services)
    open_output: OpenOutput = open_output
    config: Path | None = None
    debug: bool = False


@dataclass(frozen=True, slots=True)
class CommandContext:
    output: Output
    settings: Settings
    services: Services

    def call(self, opening: AbstractAsyncContextManager[Opened], work: Callable[[Opened], Awaitable[T]]) -> T:
        """Open something, work with it, and close it."""

        async def run() -> T:
            async with opening as opened:
                return await work(opened)

        return asyncio.run(run())

    def confirm(self, question: str, *, confirmed: bool) -> None:
        """Ask, unless it is confirmed. Raises `CommandError` at a no, and where nobody can answer."""
        if confirmed:
            return
        self.output.note(question)
        try:
            typer.confirm("Go on?", abort=True, err=True)
        except typer.Abort as error:
            raise CommandError(
                Fault("unconfirmed", "Nothing was changed.", "`--yes` does it without asking.")
            ) from error

    def call_service(self, work: Callable[[BotService], Awaitable[T]]) -> T:
        """Work with the service of the home."""
        return self.call(self.services.open_home(self.settings), work)

    def call_records(self, work: Callable[[Records], Awaitable[T]]) -> T:
        """Work with the records of the home, which a running server does not keep from others."""
        return self.call(self.services.open_records(self.settings), work)


@contextmanager
def open_command(context: typer.Context, *, as_json: bool) -> Iterator[CommandContext]:
    """Read the settings and run a command, its errors reported."""
    from bot.settings.settings_reader import load_settings

    state = find_cli_state(context)
    with open_bare_command(context, as_json=as_json) as output:
        yield CommandContext(output, load_settings(state.config), state.services)


@contextmanager
def open_bare_command(context: typer.Context, *, as_json: bool) -> Iterator[Output]:
    """Run a command that needs no settings, its errors reported."""
    state = find_cli_state(context)
    output = state.open_output(as_json=as_json, debug=state.debug)
    with report_errors(output):
        yield output


def find_cli_state(context: typer.Context) -> CliState:
    return context.find_object(CliState) or CliState()


def parse_path(said: str) -> Path:
    """Take a path from the command line, where an empty one is a variable that is not set rather than this folder."""
    if not said:
        raise typer.BadParameter("It is empty: name a path, or . for this folder.")
    return Path(said)


def format_examples(*lines: str) -> str:
    """Format the epilog of a command's help."""
    heading = "Example:" if len(lines) == 1 else "Examples:"
    return "\n\n".join((heading, *lines))
