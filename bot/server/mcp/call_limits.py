"""Apply `[limits]` and `[desk]` to programs: each token has a person's budget and a channel's concurrency."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from secrets import token_hex

from bot.access import Asker
from bot.answering.question_answering import record_unanswered
from bot.desk.supervisor import Clock
from bot.desk.turn_policy import check_call_budget
from bot.server.service import LocalService
from bot.types import Failure, TaskKind, TurnRequest, TurnResult
from bot.views.catalog import render_notices
from pipeline.types import Answer, Event, Status, Usage
from storage.language.detection import detect_language
from storage.types import CorpusInfo, Hit

MAX_CALLS = 32  # of one token, running or waiting
Report = Callable[[Event], None]


class TooManyCalls(Exception):
    kind = "too_many_calls"
    hint = "Wait until some have ended."

    def __init__(self) -> None:
        super().__init__(f"This token has {MAX_CALLS} calls in progress.")


@dataclass
class _Calls:
    room: asyncio.Semaphore
    known: int = 0  # calls that wait or run
    turns: int = 0  # turns that are being answered


@dataclass(frozen=True)
class CallLimits:
    """Lends a running server's service to calls. A token's calls wait for each other, like a channel's questions."""

    home: LocalService
    clock: Clock = field(default_factory=Clock)
    _tokens: dict[str, _Calls] = field(default_factory=dict)

    @asynccontextmanager
    async def lend(self, asker: Asker) -> AsyncIterator["BudgetedService"]:
        """Yield the service for a call, after waiting while too many calls of the asker's token are running.

        Raises `TooManyCalls` if too many of them are running or waiting.
        """
        room = asyncio.Semaphore(self.home.app.settings.desk.per_channel)
        calls = self._tokens.setdefault(asker.user_id, _Calls(room))
        if calls.known >= MAX_CALLS:
            raise TooManyCalls
        calls.known += 1
        try:
            async with calls.room:
                yield BudgetedService(self.home, self.clock, calls)
        finally:
            calls.known -= 1
            if not calls.known:
                del self._tokens[asker.user_id]


@dataclass(frozen=True, slots=True)
class BudgetedService:
    """The server's service, which refuses or only quotes if a budget is spent."""

    home: LocalService
    clock: Clock
    calls: _Calls

    async def answer(self, request: TurnRequest, report: Report) -> TurnResult:
        return await self._take(request, "ask", self.home.answer, report)

    async def check(self, request: TurnRequest, report: Report) -> TurnResult:
        return await self._take(request, "check", self.home.check, report)

    async def search(self, query: str, corpora: Sequence[str], count: int) -> tuple[Hit, ...]:
        return await self.home.search(query, corpora, count)

    async def corpora(self) -> tuple[CorpusInfo, ...]:
        return await self.home.corpora()

    async def _take(
        self,
        request: TurnRequest,
        task: TaskKind,
        run: Callable[[TurnRequest, Report], Awaitable[TurnResult]],
        report: Report,
    ) -> TurnResult:
        app, now, language = self.home.app.snapshot(), self.clock.now(), detect_language(request.text[:2_000])
        self.calls.turns += 1
        try:
            in_progress = self.calls.turns
            budget = await check_call_budget(
                app, request.asker.user_id, in_progress=in_progress, now=now, language=language
            )
            request = replace(request, id=token_hex(6), system=budget.system, because=budget.because)
            if budget.refusal:
                failure = Failure("over_budget", budget.refusal, f"The limit is set by [limits] {budget.because}.")
                await record_unanswered(app, request, task, Status.REFUSED, failure)
                return TurnResult(request.id, Answer(Status.REFUSED), failure.message, "", None, Usage(), 0.0, failure)
            done = await run(request, report)
        finally:
            self.calls.turns -= 1
        notices = filter(None, (budget.notice, *render_notices(done, language)))
        return replace(done, text="\n\n".join((*notices, done.text)))
