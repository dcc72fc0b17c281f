"""Runs turns one after the other against a simulated server, and keeps what each did and when."""

import math
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bot.access import Asker
from bot.answering import answer
from bot.app import App, open_app
from bot.lazy_model import LazyModel
from bot.settings import LimitSettings, Settings
from bot.settings_of.model import ModelValues
from bot.turns import Asked
from evaluation.errors import EvaluationError
from evaluation.speed.model.running import running
from evaluation.speed.model.settings import Simulated
from evaluation.speed.turn.tracing import Cause, Step, Trace, TracedModel, traced_check, traced_kit, untraced
from ingest.refreshing import refresh
from ingest.types import Source
from pipeline.kit import Kit, System
from pipeline.model import Message, ModelCall, ModelReply, Spent
from pipeline.types import ClaimChecked, Conversation, Drafting, Event, Said, Status

PLAIN_PROMPT, PLAIN_REPLY = 200, 120
"""Tokens of the one plain call that turns are compared with."""
CORPUS = "handbook"
_ASKER = Asker(platform="terminal", kind="terminal")
_WORDS = "word " * 1_000


@dataclass(slots=True)
class Turned:
    """One turn. Times are seconds on `time.perf_counter()`."""

    question: str
    began: float = 0.0
    ended: float = 0.0
    how: str = ""
    """Its status, or why it failed."""
    steps: list[Step] = field(default_factory=list)
    said: list[float] = field(default_factory=list)
    """When each sentence could be seen."""
    first: Cause | None = None
    """What the first of them waited for in its task."""
    last: Cause | None = None
    """What the end of the system waited for in its task."""
    verdicts: list[float] = field(default_factory=list)
    drafting: float = math.inf

    @property
    def calls(self) -> list[Step]:
        """The calls of the model."""
        return [step for step in self.steps if step.kind == "model"]

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.ended - self.began

    @property
    def first_seconds(self) -> float:
        """How long it took until the first sentence; not a number where none was said."""
        return self.said[0] - self.began if self.said else math.nan


@dataclass(frozen=True, slots=True)
class Bench:
    """What turns run on."""

    app: App
    search: float
    """Seconds that a search takes at least."""


@asynccontextmanager
async def bench(simulated: Simulated, search: float, source: Source) -> AsyncIterator[Bench]:
    """Open a home with a source's documents, and a simulated server."""
    with tempfile.TemporaryDirectory() as home, running(simulated) as server:
        settings = Settings(home=Path(home), model=_model(server), limits=LimitSettings(seconds=600))
        async with open_app(settings) as app:
            await refresh(source, CORPUS, app.passages, progress=lambda _: None)
            yield Bench(app, search)


@asynccontextmanager
async def elsewhere(on: Bench, simulated: Simulated, search: float) -> AsyncIterator[Bench]:
    """Open another simulated server beside the same home."""
    with running(simulated) as server:
        async with AsyncExitStack() as stack:
            yield Bench(replace(on.app, llm=LazyModel(_model(server).plain(), stack)), search)


def _model(server: str) -> ModelValues:
    return ModelValues(name="simulated", base_url=server, retries=0)


async def turned(on: Bench, system: str, question: str) -> Turned:
    """Run one turn and return what it did."""
    trace, turn = Trace(), Turned(question)
    app = _traced(on, system, trace, turn)
    untraced()
    turn.began = trace.clock()
    ended = await answer(app, Asked(question, _ASKER, system=system), _noting(turn, trace))
    turn.ended, turn.steps = trace.clock(), trace.steps
    turn.how = ended.failure.kind if ended.failure else str(ended.answer.status)
    return turn


async def plain_call(on: Bench) -> float:
    """Return how many seconds one streamed call takes, of as many tokens as turns are compared with."""
    assert on.app.llm is not None  # noqa: S101 - a bench has a model
    message = Message("user", _WORDS[: PLAIN_PROMPT * 4 - 8])
    began = time.perf_counter()
    async for piece in on.app.llm.stream(ModelCall("generate", (message,), max_tokens=PLAIN_REPLY), Spent()):
        if isinstance(piece, ModelReply) and piece.completion_tokens != PLAIN_REPLY:
            raise EvaluationError(f"The plain call brought {piece.completion_tokens} tokens, not {PLAIN_REPLY}.")
    return time.perf_counter() - began


def _traced(on: Bench, system: str, trace: Trace, turn: Turned) -> App:
    app = on.app
    if system not in app.systems:
        raise EvaluationError(f"There is no system “{system}”.", hint=f"There are: {', '.join(sorted(app.systems))}.")
    assert app.llm is not None  # noqa: S101 - a bench has a model
    return replace(
        app,
        llm=TracedModel(app.llm, trace),
        supports=traced_check(app.supports, trace),
        systems={system: _watched(app.systems[system], trace, turn, on.search)},
    )


def _watched(system: System, trace: Trace, turn: Turned, search: float) -> System:
    async def watched(talk: Conversation, kit: Kit) -> Status:
        try:
            return await system(talk, traced_kit(kit, trace, search))
        finally:
            turn.last = trace.cause()

    return watched


def _noting(turn: Turned, trace: Trace) -> Callable[[Event], None]:
    def told(event: Event) -> None:
        now = trace.clock()
        if isinstance(event, Said):
            turn.first = turn.first if turn.said else trace.cause()
            turn.said.append(now)
        elif isinstance(event, ClaimChecked):
            turn.verdicts.append(now)
        elif isinstance(event, Drafting):
            turn.drafting = min(turn.drafting, now)

    return told
