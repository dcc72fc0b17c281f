"""What a step waited for is known across tasks; and a whole turn, traced against a simulated server without a pace."""

import asyncio
import math
from collections.abc import AsyncIterator
from itertools import count

import pytest

from evaluation.simulated_model.model_pace import ServerPace, SimulatedModel
from evaluation.speed.turn_figures import critical_path
from evaluation.speed.turn_trace import (
    PLAIN_REPLY,
    Cause,
    Trace,
    TracedModel,
    measure_turn,
    open_bench,
    open_second_server,
    reset_trace,
    time_plain_call,
)
from pipeline.llm.model import BudgetMeter, ChatMessage, ModelCall, ModelReply, ReplyPiece
from tests.evaluation.speed.two_pages import PAGES
from tests.fakes import PageSource

CALL = ModelCall("draft", (ChatMessage("user", "Say it."),))
AT_ONCE = SimulatedModel(ServerPace(first_token=0, out=math.inf, prompt=math.inf))


class Model:
    """Says two words."""

    def structured(self, stage: str) -> bool:
        return not stage

    def busy(self) -> bool:
        return True

    async def complete(self, call: ModelCall, spent: BudgetMeter) -> ModelReply:
        del call, spent
        return ModelReply("one two", "any", prompt_tokens=7, completion_tokens=2)

    async def stream(self, call: ModelCall, spent: BudgetMeter) -> AsyncIterator[ReplyPiece | ModelReply]:
        for word in ("one ", "two"):
            yield ReplyPiece(word)
        yield await self.complete(call, spent)


@pytest.fixture
def trace() -> Trace:
    reset_trace()
    ticks = count()
    return Trace(clock=lambda: float(next(ticks)))


async def test_tasks_inherit_the_cause_of_their_parent(trace: Trace) -> None:
    model, tasks = TracedModel(Model(), trace), list[asyncio.Task[ModelReply]]()

    async for piece in model.stream(CALL, BudgetMeter()):
        if isinstance(piece, ReplyPiece):
            tasks.append(asyncio.create_task(model.complete(CALL, BudgetMeter())))
    await asyncio.gather(*tasks)
    with trace.step("check", "check"):
        pass

    stream, first, second, check = trace.steps
    assert (first.cause, second.cause) == (Cause(0, stream.pieces[0]), Cause(0, stream.pieces[1]))
    assert check.cause == Cause(0, stream.ended)
    assert (stream.prompt_tokens, stream.tokens, len(stream.pieces)) == (7, 2, 2)
    assert (first.name, first.messages, first.tokens) == ("draft", CALL.messages, 2)
    assert (model.structured("draft"), model.busy()) == (False, True)


async def test_turn_is_traced_to_its_end() -> None:
    async with open_bench(AT_ONCE, 0.0, PageSource(PAGES)) as on, open_second_server(on, AT_ONCE, 0.0) as other:
        done = [await measure_turn(where, "wikichat-fast", "When was the lighthouse built?") for where in (on, other)]
        assert await time_plain_call(on) > 0

    for turn in done:
        way = critical_path(turn.steps, turn.last, turn.began, turn.ended)
        assert turn.how == "answered"
        assert turn.said
        assert turn.verdicts
        assert turn.drafting < turn.said[0]
        assert max(turn.verdicts) < turn.ended
        assert {"summarise", "generate", "verify", "draft"} <= {call.name for call in turn.calls}
        assert {step.kind for step in turn.steps} >= {"model", "search", "prompt", "check"}
        assert sum(leg.seconds for leg in way) == pytest.approx(turn.seconds)
        # A sentence that is quoted in any case is not put to the model, nor is a claim that the check alone settles.
        last = [leg.step.name for leg in way if leg.step and leg.step.kind == "model"][-1]
        assert last in {"generate", "draft", "verify"}
    assert PLAIN_REPLY == 120
