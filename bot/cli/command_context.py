"""Give a command its settings, its output and the services that it uses.

A service is imported when it is opened: `footnote --help` loads neither settings nor an index, and a question that a
running server answers loads no index either.
"""

from __future__ import annotations

import asyncio
import pkgutil
import time
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeAlias, TypeVar

import typer

from bot.cli.terminal_output import CommandError, Output, open_output, report_errors
from bot.server.control.control_socket import connect_service
from bot.views.error_messages import Fault
from storage.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
    from contextlib import AbstractAsyncContextManager

    from bot.app import App, Records
    from bot.cli.setup.prompter import Terminal
    from bot.server.refresh.run_history import RefreshHistory
    from bot.server.service import BotService
    from bot.settings.live.live_settings import LiveSettings
    from bot.settings.tables.settings_tables import Settings
    from pipeline.llm.model import LLM
    from pipeline.llm.model_settings import ModelSettings

T = TypeVar("T")
Opened = TypeVar("Opened")

SERVER_SECONDS = 10.0
"""How long to wait for a server that has locked the home but does not listen yet."""
_AGAIN_SECONDS = 0.1
_SERVING = frozenset({"serve", ""})
"""Commands that start a server. The empty one is a process that took the lock but has not recorded its command yet."""
_BRIEF = frozenset({"ask", "chat", "check", "mcp", "search"})  # they hold the home only while they answer


class OpenOutput(Protocol):
    def __call__(self, *, as_json: bool, debug: bool) -> Output: ...


class OpenApp(Protocol):
    def __call__(self, settings: Settings, *, rebuilding: bool = False) -> AbstractAsyncContextManager[App]: ...


def _import_on_call(path: str) -> Any:
    """Return a function that imports the function at `package.module:name`, and calls it."""

    def call(*values: Any, **options: Any) -> Any:
        return pkgutil.resolve_name(path)(*values, **options)

    return call


_open_app = _import_on_call("bot.wiring:open_app")
_open_records = _import_on_call("bot.wiring:open_records")
_open_history = _import_on_call("bot.server.refresh.run_history:open_history")
_open_model = _import_on_call("pipeline.llm.model_client:open_model")
_open_terminal = _import_on_call("bot.cli.setup.prompter:ConsoleTerminal")


@asynccontextmanager
async def _open_home(settings: Settings) -> AsyncIterator[BotService]:
    """Connect to the server that has the home open, or else open the home in this process.

    Waits for a server that is starting or stopping, and for another command that is answering a question. Raises
    `HomeLocked` if another process holds the home and is not a server that responds.
    """
    async with AsyncExitStack() as stack:
        started = time.monotonic()
        # Another process can only be polled.
        while not (home := await _try_home(settings, stack, time.monotonic() - started)):  # noqa: ASYNC110
            await asyncio.sleep(_AGAIN_SECONDS)
        yield home


async def _try_home(settings: Settings, stack: AsyncExitStack, waited: float) -> BotService | None:
    """Return the home's service; None if another process holds it and may release it.

    `waited` is how many seconds the caller has waited so far.
    """
    # A server is tried first: it answers within milliseconds, and heavy modules are loaded only if there is none.
    if remote := await stack.enter_async_context(connect_service(settings.home)):
        return remote
    from bot.answering.question_answering import close_abandoned
    from bot.server.service import LocalService
    from bot.wiring import open_app
    from storage.errors import HomeLocked
    from storage.home.home_folder import read_lock_command

    try:
        app = await stack.enter_async_context(open_app(settings))
    except HomeLocked:
        if waited >= measure_patience(read_lock_command(settings.home), settings):
            raise
        return None
    await close_abandoned(app, utc_now())
    return LocalService(app)


def measure_patience(owner: str, settings: Settings) -> float:
    """Return how many seconds to wait for the command that holds the home."""
    command = owner.rpartition(" ")[2]
    if command in _BRIEF:
        return SERVER_SECONDS + settings.limits.seconds
    return SERVER_SECONDS if command in _SERVING else 0.0


async def _serve(live: LiveSettings, read: Callable[[], Settings]) -> None:
    from bot.platforms.shared.platform_connection import open_platform
    from bot.server.lifecycle import serve
    from bot.settings.platform_registry import load_platforms

    openers = {name: partial(open_platform, entry) for name, entry in load_platforms().items()}
    await serve(live, openers, read)


@dataclass(frozen=True, slots=True)
class Services:
    """The functions with which commands open a home, a model or a server; tests replace some of them."""

    open_home: Callable[[Settings], AbstractAsyncContextManager[BotService]] = _open_home
    """For commands that also work next to a running server."""
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
        """Open a resource, do the work with it, and close it."""

        async def run() -> T:
            async with opening as opened:
                return await work(opened)

        return asyncio.run(run())

    def confirm(self, question: str, *, confirmed: bool) -> None:
        """Ask the user to confirm, unless `confirmed`. Raises `CommandError` for a no, or without a terminal."""
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
        """Do the work with the service of the home: a running server, or this process."""
        return self.call(self.services.open_home(self.settings), work)

    def call_records(self, work: Callable[[Records], Awaitable[T]]) -> T:
        """Do the work with the records of the home, also while a server runs."""
        return self.call(self.services.open_records(self.settings), work)


@contextmanager
def open_command(context: typer.Context, *, as_json: bool) -> Iterator[CommandContext]:
    """Read the settings, run a command within the block, and report its errors."""
    from bot.settings.settings_reader import load_settings

    state = find_cli_state(context)
    with open_bare_command(context, as_json=as_json) as output:
        yield CommandContext(output, load_settings(state.config), state.services)


@contextmanager
def open_bare_command(context: typer.Context, *, as_json: bool) -> Iterator[Output]:
    """Run a command that needs no settings within the block, and report its errors."""
    state = find_cli_state(context)
    output = state.open_output(as_json=as_json, debug=state.debug)
    with report_errors(output):
        yield output


def find_cli_state(context: typer.Context) -> CliState:
    return context.find_object(CliState) or CliState()


def parse_path(typed: str) -> Path:
    """Parse a path of the command line. An empty one is an error: probably a script's variable is not set."""
    if not typed:
        raise typer.BadParameter("It is empty: name a path, or . for this folder.")
    return Path(typed)


def format_examples(*lines: str) -> str:
    """Format examples for the end of a command's help."""
    heading = "Example:" if len(lines) == 1 else "Examples:"
    return "\n\n".join((heading, *lines))
