"""Run turns against a simulated server, and trace each step and its cause.

The cause of a step is the last step that ended before it in its own task, or in the task that started that task.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from bot.answering.question_answering import answer
from bot.app import App
from bot.settings.tables.model_values import ModelValues
from bot.settings.tables.settings_tables import LimitSettings
from bot.types import TurnRequest
from evaluation import EvaluationError
from evaluation.simulated_model.model_pace import SimulatedModel, count_tokens, join_messages
from evaluation.simulated_model.paced_model import run_model_server
from evaluation.workbench import TERMINAL, open_corpus
from ingest.types import DocumentSource
from pipeline.kit import Kit, Supports, System
from pipeline.llm.model import LLM, BudgetMeter, ChatMessage, ModelCall, ModelReply, ReplyPiece
from pipeline.llm.model_client import LazyModel
from pipeline.llm.model_settings import SharedBeginning
from pipeline.replies.reply_format import ReplyFormat, ReplySplitter, T
from pipeline.stages.concurrency import close_stream
from pipeline.systems import find_system
from pipeline.types import ClaimChecked, Conversation, DraftStarted, Event, SentencePassed, Status
from storage.types import Hit, SearchQuery

StepKind = Literal["model", "search", "prompt", "check", "think"]
"""A model call; a search; rendering a prompt; the local check of a sentence; other long computing."""


@dataclass(frozen=True, slots=True)
class Cause:
    """The step for which another step waited, and the moment when it ended, or when the awaited piece arrived."""

    step: int
    at: float


@dataclass(slots=True)
class TraceStep:
    """A step of a turn. Times are seconds on the clock of `time.perf_counter()`."""

    id: int
    kind: StepKind
    name: str
    began: float
    cause: Cause | None
    ended: float = 0.0
    pieces: list[float] = field(default_factory=list)
    messages: tuple[ChatMessage, ...] = ()
    schema: Mapping[str, Any] | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0  # those that the server had in its cache
    tokens: int = 0
    found: tuple[Hit, ...] = ()


_last: ContextVar[Cause | None] = ContextVar("last", default=None)
_rendering: ContextVar[TraceStep | None] = ContextVar("rendering", default=None)


class Trace:
    """The steps of one turn, in the order in which they started."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.steps: list[TraceStep] = []

    def begin(self, kind: StepKind, name: str) -> TraceStep:
        step = TraceStep(len(self.steps), kind, name, self.clock(), _last.get())
        self.steps.append(step)
        return step

    def reach(self, step: TraceStep) -> None:
        """Note that a step has ended now, as the cause of the next step in this task."""
        step.ended = self.clock()
        _last.set(Cause(step.id, step.ended))

    @contextmanager
    def step(self, kind: StepKind, name: str) -> Iterator[TraceStep]:
        step = self.begin(kind, name)
        try:
            yield step
        finally:
            self.reach(step)

    def cause(self) -> Cause | None:
        return _last.get()


def reset_trace() -> None:
    """Forget the last step of an earlier turn."""
    _last.set(None)


@dataclass(frozen=True, slots=True)
class TracedModel:
    """An `LLM` that records each call in the trace."""

    llm: LLM
    trace: Trace

    def structured(self, stage: str) -> bool:
        return self.llm.structured(stage)

    def busy(self) -> bool:
        return self.llm.busy()

    async def complete(self, call: ModelCall, spent: BudgetMeter) -> ModelReply:
        self._end_prompt()
        with self.trace.step("model", call.stage) as step:
            step.messages, step.schema = call.messages, call.schema
            reply = await self.llm.complete(call, spent)
            _copy_usage(step, reply)
            return reply

    async def stream(self, call: ModelCall, spent: BudgetMeter) -> AsyncIterator[ReplyPiece | ModelReply]:
        self._end_prompt()
        with self.trace.step("model", call.stage) as step:
            step.messages = call.messages
            call = replace(call, note_lost=_forward_usage(step, call.note_lost))
            async with close_stream(self.llm.stream(call, spent)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, ModelReply):
                        _copy_usage(step, piece)
                    else:
                        self.trace.reach(step)
                        step.pieces.append(step.ended)
                    yield piece

    def _end_prompt(self) -> None:
        if prompt := _rendering.get():
            _rendering.set(None)
            self.trace.reach(prompt)


def _copy_usage(step: TraceStep, reply: ModelReply) -> None:
    step.prompt_tokens, step.cached_tokens = reply.prompt_tokens, reply.cached_tokens
    step.tokens = reply.completion_tokens


def _forward_usage(step: TraceStep, notify: Callable[[ModelReply], None] | None) -> Callable[[ModelReply], None]:
    def note_lost(reply: ModelReply) -> None:
        _copy_usage(step, reply)
        step.prompt_tokens, step.tokens = count_tokens(join_prompt(step)), len(step.pieces)
        if notify:
            notify(reply)

    return note_lost


def join_prompt(step: TraceStep) -> str:
    return join_messages({"role": message.role, "content": message.text} for message in step.messages)


def trace_kit(kit: Kit, trace: Trace, least_search: float) -> Kit:
    """Return a kit whose use is traced. A search takes at least `least_search` seconds, as with a remote index."""

    async def ask(template: str, form: ReplyFormat[T], *, stage: str, **facts: object) -> T:
        _rendering.set(trace.begin("prompt", stage))
        return await kit.ask(template, form, stage=stage, **facts)

    async def stream(template: str, splitter: ReplySplitter[T], *, stage: str, **facts: object) -> AsyncIterator[T]:
        _rendering.set(trace.begin("prompt", stage))
        async with close_stream(kit.stream(template, splitter, stage=stage, **facts)) as values:
            async for value in values:
                yield value

    async def search(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        with trace.step("search", "search") as step:
            _, step.found = await asyncio.gather(asyncio.sleep(least_search), kit.search(query, k))
            return step.found

    async def run_in_thread(work: Callable[..., Any], *arguments: Any) -> Any:
        with trace.step("think", getattr(work, "__name__", "work")):
            return await kit.run_in_thread(work, *arguments)

    return replace(kit, ask=ask, stream=stream, search=search, run_in_thread=run_in_thread)


def trace_check(supports: Supports, trace: Trace) -> Supports:
    """Return the local check, with its calls traced."""

    async def check(sentence: str, evidence: Any, **asked: Any) -> Any:
        with trace.step("check", "check"):
            return await supports(sentence, evidence, **asked)

    return check


PLAIN_PROMPT, PLAIN_REPLY = 200, 120  # tokens of the one plain call that turns are compared with
BENCH_CORPUS = "handbook"
_WORDS = "word " * 1_000


@dataclass(slots=True)
class MeasuredTurn:
    question: str
    began: float = 0.0
    ended: float = 0.0
    how: str = ""
    steps: list[TraceStep] = field(default_factory=list)
    said: list[float] = field(default_factory=list)  # when each sentence could be seen
    first: Cause | None = None  # the cause of the first of them
    last: Cause | None = None  # the cause of the system's end
    verdicts: list[float] = field(default_factory=list)  # the times of the verdicts
    drafting: float = math.inf  # when the first draft started

    @property
    def calls(self) -> list[TraceStep]:
        return [step for step in self.steps if step.kind == "model"]

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    @property
    def first_seconds(self) -> float:
        """The seconds until the first sentence; NaN if there is none."""
        return self.said[0] - self.began if self.said else math.nan


@dataclass(frozen=True, slots=True)
class TurnBench:
    app: App
    search: float


@asynccontextmanager
async def open_bench(simulated: SimulatedModel, search: float, source: DocumentSource) -> AsyncIterator[TurnBench]:
    with run_model_server(simulated) as server:
        model, limits = _model(server), LimitSettings(seconds=600)
        async with open_corpus(source, BENCH_CORPUS, model=model, limits=limits) as app:
            yield TurnBench(app, search)


@asynccontextmanager
async def open_second_server(
    on: TurnBench, simulated: SimulatedModel, search: float, *, shared: SharedBeginning = "never"
) -> AsyncIterator[TurnBench]:
    """Yield the same bench on a second server, which has another pace or another arrangement of prompts."""
    with run_model_server(simulated) as server:
        async with AsyncExitStack() as stack:
            model = _model(server).model_copy(update={"shared_beginning": shared})
            settings = on.app.settings.model_copy(update={"model": model})
            yield TurnBench(replace(on.app, settings_source=settings, llm=LazyModel(model.plain(), stack)), search)


def _model(server: str) -> ModelValues:
    return ModelValues(name="simulated", base_url=server, retries=0)


async def measure_turn(on: TurnBench, system: str, question: str) -> MeasuredTurn:
    """Answer a question, and trace it. The question is the turn's seed, so every run has equal prompts and replies."""
    trace, turn = Trace(), MeasuredTurn(question)
    app = _trace_app(on, system, trace, turn)
    reset_trace()
    turn.began = trace.clock()
    request = TurnRequest(question, TERMINAL, system=system, seed=question)
    ended = await answer(app, request, _note_events(turn, trace))
    turn.ended, turn.steps = trace.clock(), trace.steps
    turn.how = ended.fault.kind if ended.fault else str(ended.answer.status)
    return turn


async def time_plain_call(on: TurnBench) -> float:
    """Return the seconds of one streamed call, with which the seconds of turns are compared."""
    assert on.app.llm is not None  # noqa: S101 - a bench has a model
    message = ChatMessage("user", _WORDS[: PLAIN_PROMPT * 4 - 8])
    began = time.perf_counter()
    async for piece in on.app.llm.stream(ModelCall("generate", (message,), max_tokens=PLAIN_REPLY), BudgetMeter()):
        if isinstance(piece, ModelReply) and piece.completion_tokens != PLAIN_REPLY:
            raise EvaluationError(f"The plain call returned {piece.completion_tokens} tokens, not {PLAIN_REPLY}.")
    return time.perf_counter() - began


def _trace_app(on: TurnBench, system: str, trace: Trace, turn: MeasuredTurn) -> App:
    app = on.app
    entry = find_system(system, app.systems)
    assert app.llm is not None  # noqa: S101 - a bench has a model
    return replace(
        app,
        llm=TracedModel(app.llm, trace),
        supports=trace_check(app.supports, trace),
        systems={system: replace(entry, answer=_watch_system(entry.answer, trace, turn, on.search))},
    )


def _watch_system(system: System, trace: Trace, turn: MeasuredTurn, search: float) -> System:
    async def watched(talk: Conversation, kit: Kit) -> Status:
        try:
            return await system(talk, trace_kit(kit, trace, search))
        finally:
            turn.last = trace.cause()

    return watched


def _note_events(turn: MeasuredTurn, trace: Trace) -> Callable[[Event], None]:
    def note(event: Event) -> None:
        now = trace.clock()
        if isinstance(event, SentencePassed):
            turn.first = turn.first if turn.said else trace.cause()
            turn.said.append(now)
        elif isinstance(event, ClaimChecked):
            turn.verdicts.append(now)
        elif isinstance(event, DraftStarted):
            turn.drafting = min(turn.drafting, now)

    return note
