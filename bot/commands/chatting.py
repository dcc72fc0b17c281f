"""`footnote chat`: a conversation in the terminal, or through a pipe, line by line."""

import asyncio
import atexit
import secrets
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from rich.text import Text

from bot.chat import HELP, Ways, converse
from bot.commands.asking import Corpora, System, at_terminal, language_of
from bot.commands.frame import AsJson, Frame, command
from bot.console import Output
from bot.printing import documents, terminal
from bot.printing.flowing import Flow
from bot.sanitizing import encodable, one_line
from bot.watching import watching

if TYPE_CHECKING:
    from bot.home import Home
    from bot.turns import Answered
    from pipeline.types import Turn

PROMPT = "› "
T = TypeVar("T")


def chat(context: typer.Context, corpora: Corpora = None, system: System = "", *, as_json: AsJson = False) -> None:
    """Hold a conversation: follow-up questions understand what was said before."""
    with command(context, as_json=as_json) as frame, _opened(frame) as (runner, home):
        answers = converse(_ways(frame, runner, home, tuple(corpora or ()), system))
        if as_json:
            frame.output.give(documents.chatted(answers))


@contextmanager
def _opened(frame: Frame) -> "Iterator[tuple[asyncio.Runner, Home]]":
    """Open the home on a loop that runs only while a question is answered, so that the prompt may block."""
    # Nothing is left to stop once the conversation has ended: Ctrl-C is not heard from then on.
    with ExitStack() as ended, asyncio.Runner() as runner:
        stack = AsyncExitStack()
        home = runner.run(stack.enter_async_context(frame.doors.open_home(frame.settings)))
        try:
            yield runner, home
        finally:
            ended.enter_context(_on_interrupt(lambda: None))
            atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
            runner.run(stack.aclose())


def stoppable(runner: asyncio.Runner, work: Coroutine[Any, Any, T]) -> T:
    """Run work to its end. Ctrl-C cancels it; pressed again, it does not cut short what the work does before it ends.

    Raises:
        KeyboardInterrupt: It was stopped, and has ended.
    """
    loop = runner.get_loop()
    task, pressed = loop.create_task(work), False

    def press() -> None:
        nonlocal pressed
        if not pressed:
            pressed = True
            loop.call_soon_threadsafe(task.cancel)

    async def outcome() -> T:
        return await task

    try:
        with _on_interrupt(press):
            return runner.run(outcome())
    except asyncio.CancelledError:
        if not pressed:
            raise
    # Outside the handler, so that the cancelled work is not chained to it.
    raise KeyboardInterrupt


@contextmanager
def _on_interrupt(press: Callable[[], None]) -> Iterator[None]:
    """Call `press` for each Ctrl-C within, which the loop would else raise in the midst of anything at the second."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: press())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _ways(frame: Frame, runner: asyncio.Runner, home: "Home", corpora: tuple[str, ...], system: str) -> Ways:
    from bot.turns import Asked

    output, zone, thread = frame.output, frame.settings.zone, secrets.token_hex(6)
    last = Flow(output.out)

    def ask(question: str, said: "tuple[Turn, ...]") -> "Answered":
        nonlocal last
        last = Flow(output.out)
        asked = Asked(question, at_terminal(), thread=thread, earlier=said, corpora=corpora, system=system)
        try:
            with watching(output, last.say if _flows(output) else None) as tell:
                return stoppable(runner, home.answer(asked, tell))
        finally:
            last.close()

    def show(question: str, done: "Answered") -> None:
        if output.as_json:
            return
        view = terminal.beneath_view if last.begun else terminal.answer_view
        output.view(view(done, language=language_of(question), zone=zone), Text())

    def show_sources(done: "Answered") -> None:
        if not output.as_json:
            output.view(terminal.sources_view(done.answer.citations, zone=zone), Text())

    return Ways(_reader(output), ask, show, show_sources, output.note)


def _flows(output: Output) -> bool:
    """Return whether sentences are shown as they come: where somebody looks on, not into a pipe."""
    return output.out.is_terminal and not output.as_json


def _reader(output: Output) -> Callable[[], str | None]:
    if not (sys.stdin.isatty() and output.out.is_terminal):
        return partial(_piped, output)
    with suppress(ImportError):
        import readline  # noqa: F401 - gives the prompt its line editing, where there is such a library
    output.note(f"Ask something. {HELP}")
    return _typed


def _typed() -> str | None:
    try:
        return encodable(input(PROMPT))
    except EOFError:
        line = None
    except KeyboardInterrupt:
        line = ""
    sys.stdout.write("\n")
    return line


def _piped(output: Output) -> str | None:
    line = encodable(sys.stdin.readline())
    if line.strip() and not output.as_json:
        output.view(Text(PROMPT + one_line(line), style="bold"))
    return line or None
