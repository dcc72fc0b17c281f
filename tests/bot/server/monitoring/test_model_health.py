"""Tests that a failing model is reported until it answers, and a working one gets no extra calls."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from bot.desk.supervisor import run_beside
from bot.server.monitoring.model_health import PROBE_SECONDS, WatchedModel
from pipeline.errors import ModelRefused, ModelUnavailable
from pipeline.llm.model import Budget, BudgetMeter, ChatMessage, ModelCall, ModelReply, ReplyPiece

CALL = ModelCall("draft", (ChatMessage("user", "Write."),))
DOWN = ModelUnavailable("the server is away", hint="start it")


class Llm:
    """A model that raises the given errors, then answers; it records the calls."""

    def __init__(self, *ends: Exception | None) -> None:
        self.ends, self.asked = list(ends), list[str]()
        self.changed = asyncio.Event()

    def structured(self, stage: str) -> bool:
        return bool(stage)

    def busy(self) -> bool:
        return False

    async def complete(self, call: ModelCall, spent: BudgetMeter) -> ModelReply:
        del spent
        self.asked.append(call.messages[0].text)
        self.changed.set()
        if self.ends and (error := self.ends.pop(0)):
            raise error
        return ModelReply("Yes.", "gold")

    async def stream(self, call: ModelCall, spent: BudgetMeter) -> AsyncIterator[ReplyPiece | ModelReply]:
        yield await self.complete(call, spent)

    async def until(self, fits: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not fits():  # noqa: ASYNC110 - there is no event to wait for
                await asyncio.sleep(0)


async def ask(model: WatchedModel, *, streamed: bool) -> None:
    if streamed:
        async for _ in model.stream(CALL, BudgetMeter(Budget())):
            pass
    else:
        await model.complete(CALL, BudgetMeter(Budget()))


@pytest.mark.parametrize("streamed", [False, True])
async def test_failed_call_is_followed_by_probes_until_one_succeeds(*, streamed: bool) -> None:
    llm, waits = Llm(None, DOWN, DOWN, DOWN), list[float]()
    model = WatchedModel(llm)
    let_go = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await let_go.wait()

    async with run_beside(model.watch(sleep), name="watch"):
        assert model.fault == "Its first check is not finished yet."
        await llm.until(lambda: not model.fault)
        with pytest.raises(ModelUnavailable):
            await ask(model, streamed=streamed)
        await llm.until(lambda: bool(model.fault))
        assert model.fault == "the server is away — start it"
        let_go.set()
        await llm.until(lambda: not model.fault)

    assert llm.asked == ["Say yes.", "Write.", "Say yes.", "Say yes.", "Say yes."]
    assert waits == [PROBE_SECONDS] * 2


@pytest.mark.parametrize("end", [None, ModelRefused("no")])
async def test_answered_call_clears_the_fault(end: Exception | None) -> None:
    llm = Llm(DOWN, end)
    model, waiting = WatchedModel(llm), asyncio.Event()

    async def sleep(_: float) -> None:
        await waiting.wait()

    async with run_beside(model.watch(sleep), name="watch"):
        await llm.until(lambda: "away" in model.fault)
        try:
            await ask(model, streamed=False)
        except ModelRefused:
            assert end
        assert not model.fault

    assert llm.asked == ["Say yes.", "Write."]
