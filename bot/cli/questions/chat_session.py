"""Run `footnote chat`: a conversation in the terminal, or through a pipe, line by line.

The loop takes its input, its answers and its output as arguments, so that it can be tested alone.
"""

import asyncio
import atexit
import secrets
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import typer

from bot.cli.command_context import CommandContext, JsonOption, open_command
from bot.cli.questions.question_commands import (
    CorpusOption,
    EffortOption,
    SystemOption,
    detect_question_language,
    identify_terminal_user,
)
from bot.cli.rendering import answer_view
from bot.cli.rendering.turn_progress import watch_turn
from bot.cli.terminal_output import Output
from bot.types import MAX_EARLIER_TURNS, TurnRequest, TurnResult
from bot.views.error_messages import ReportableError, explain_error, explain_failure
from bot.views.sanitize import replace_unencodable, sanitize_line
from bot.views.text_layout import Text
from pipeline.kit import Effort
from pipeline.types import Event, Turn

GOODBYES = {"/quit", "quit", "exit", ":q"}
GREETING = "Ask something; /help shows more."
CHAT_HELP = (
    "/sources shows the last answer's sources in full, /new starts a new conversation, /quit or Ctrl-D ends it. "
    "You can also ask “What do you know?”."
)
PROMPT = "› "
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ChatPorts:
    """The functions with which a conversation reads, answers and prints."""

    read: Callable[[], str | None]  # the next line; None at the end of the input
    ask: Callable[[str, tuple[Turn, ...]], TurnResult]
    """Answers a question in the context of earlier turns. Ctrl-C raises `KeyboardInterrupt` out of it."""
    show: Callable[[str, TurnResult], None]
    show_sources: Callable[[TurnResult], None]
    note: Callable[[str], None]


def run_chat(ports: ChatPorts) -> tuple[TurnResult, ...]:
    """Hold a conversation until the input ends, and return its answers."""
    history: tuple[Turn, ...] = ()
    answers: list[TurnResult] = []
    while (line := ports.read()) is not None and (text := line.strip()).lower() not in GOODBYES:
        if text == "/new":
            history = ()
            ports.note("This is a new conversation.")
        elif text == "/sources":
            _show_sources(ports, answers)
        elif text.startswith("/"):
            ports.note(CHAT_HELP)
        elif text and (done := _answer_line(ports, text, history)):
            answers.append(done)
            history = extend_history(history, text, done)
            ports.show(text, done)
    return tuple(answers)


def extend_history(history: tuple[Turn, ...], question: str, done: TurnResult) -> tuple[Turn, ...]:
    """Append a question and its answer, and return the last `MAX_EARLIER_TURNS` turns.

    With an answer, the documents that it cites are stored, and those of the earlier answers that it used.
    """
    documents = tuple(sorted(done.cited_documents | done.remembered))
    answer = Turn("bot", done.text, titles=done.cited_titles, documents=documents, query=done.query)
    return (*history, Turn("user", question), answer)[-MAX_EARLIER_TURNS:]


def _answer_line(ports: ChatPorts, text: str, history: tuple[Turn, ...]) -> TurnResult | None:
    """Answer a question; if it is stopped or fails, print why and return None."""
    try:
        done = ports.ask(text, history)
    except KeyboardInterrupt:
        ports.note("Stopped.")
        return None
    except Exception as error:
        if not isinstance(error, ReportableError):
            raise
        ports.note(explain_error(error).line())
        return None
    if done.failure:
        ports.note(explain_failure(done.failure).line())
        return None
    for fault in filter(None, (done.quoted_because, done.web_fault)):
        ports.note(explain_failure(fault).line())
    return done


def _show_sources(ports: ChatPorts, answers: list[TurnResult]) -> None:
    if answers and answers[-1].answer.citations:
        ports.show_sources(answers[-1])
    else:
        ports.note("The last answer has no sources.")


def chat(
    context: typer.Context,
    corpora: CorpusOption = None,
    system: SystemOption = "",
    effort: EffortOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    with open_command(context, as_json=as_json) as ctx, _open_runner() as runner:
        answers = run_chat(_build_ports(ctx, runner, tuple(corpora or ()), system, effort))
        if as_json:
            ctx.output.give(answer_view.build_chat_document(answers))


@contextmanager
def _open_runner() -> Iterator[asyncio.Runner]:
    """Open an event loop that runs only while a question is answered, so that the prompt may block."""
    # After the conversation nothing is left to stop: Ctrl-C is ignored from then on.
    with ExitStack() as ended, asyncio.Runner() as runner:
        try:
            yield runner
        finally:
            ended.enter_context(_on_interrupt(lambda: None))
            atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def _answer(
    ctx: CommandContext, runner: asyncio.Runner, request: TurnRequest, observe: Callable[[Event], None]
) -> TurnResult:
    """Answer one question. The home is open only during the answer, so that other commands can use it at the prompt."""
    stack = AsyncExitStack()
    try:
        service = run_interruptible(runner, stack.enter_async_context(ctx.services.open_home(ctx.settings)))
        return run_interruptible(runner, service.answer(request, observe))
    finally:
        with _on_interrupt(lambda: None):
            runner.run(stack.aclose())


def run_interruptible(runner: asyncio.Runner, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end. Ctrl-C cancels it, and raises `KeyboardInterrupt` once its cleanup is done."""
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
    # Raised outside the handler, so that the cancellation is not chained to it.
    raise KeyboardInterrupt


@contextmanager
def _on_interrupt(press: Callable[[], None]) -> Iterator[None]:
    """Call `press` on each Ctrl-C. At the second one, asyncio's own handler raises `KeyboardInterrupt` at any point."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: press())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _build_ports(
    ctx: CommandContext, runner: asyncio.Runner, corpora: tuple[str, ...], system: str, effort: Effort | None
) -> ChatPorts:
    output, zone, thread = ctx.output, ctx.settings.zone, secrets.token_hex(6)
    last = answer_view.StreamedAnswer(output.out)

    def ask(question: str, history: tuple[Turn, ...]) -> TurnResult:
        nonlocal last
        last = answer_view.StreamedAnswer(output.out)
        request = TurnRequest(
            question,
            identify_terminal_user(),
            thread=thread,
            earlier=history,
            corpora=corpora,
            system=system,
            effort=effort,
        )
        try:
            with watch_turn(output, last.say if _is_streaming(output) else None) as observe:
                return _answer(ctx, runner, request, observe)
        finally:
            last.close()

    def show(question: str, done: TurnResult) -> None:
        if not output.as_json:
            language = detect_question_language(question)
            output.view(answer_view.render_answer(done, language=language, zone=zone, streamed=last.started), Text())

    def show_sources(done: TurnResult) -> None:
        if not output.as_json:
            output.view(answer_view.render_sources(done.answer.citations, zone=zone), Text())

    return ChatPorts(_choose_reader(output), ask, show, show_sources, output.note)


def _is_streaming(output: Output) -> bool:
    """Return whether sentences are shown as they arrive: in a terminal, not into a pipe."""
    return output.out.is_terminal and not output.as_json


def _choose_reader(output: Output) -> Callable[[], str | None]:
    if not (sys.stdin.isatty() and output.out.is_terminal):
        return partial(_read_piped, output)
    with suppress(ImportError):
        import readline  # noqa: F401 - gives the prompt its line editing, on systems that have the library
    output.note(GREETING)
    return _read_typed


def _read_typed() -> str | None:
    try:
        return replace_unencodable(input(PROMPT))
    except EOFError:
        line = None
    except KeyboardInterrupt:
        line = ""
    sys.stdout.write("\n")
    return line


def _read_piped(output: Output) -> str | None:
    line = replace_unencodable(sys.stdin.readline())
    if line.strip() and not output.as_json:
        output.view(Text(PROMPT + sanitize_line(line), style="bold"))
    return line or None
