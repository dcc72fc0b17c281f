"""The call limit of a turn, concurrent calls, and cancellation."""

import asyncio
import time
from contextlib import aclosing, suppress
from dataclasses import replace
from random import Random

import pytest

from evaluation.simulated_model.chat_protocol import HANG, Ending, Fault, Reply, answer_error, encode_reply
from evaluation.simulated_model.model_server import Script
from pipeline.errors import BudgetExceeded, ModelUnavailable, PipelineError
from pipeline.gate import Recorder
from pipeline.llm.model import Budget, BudgetMeter, ChatMessage, ModelCall, ModelReply
from pipeline.prompts.prompter import Prompter
from pipeline.replies.stage_replies import DraftSplitter, query_format
from tests.fake_model_server import in_turn
from tests.pipeline.llm.model_calls import CALL, open_test_model
from tests.pipeline.world import NOW, Shelf, question

GOOD = Reply("In the Alps.")


async def test_call_beyond_the_turns_call_budget_is_refused() -> None:
    async with open_test_model(lambda _: GOOD) as ask:
        ask.spent = BudgetMeter(Budget(calls=2))
        await ask.complete()
        await ask.stream()
        with pytest.raises(BudgetExceeded, match="its 2 calls"):
            await ask.complete()
    assert (len(ask.server.requests), ask.spent.calls) == (2, 2)


async def test_call_beyond_the_token_budget_is_not_sent() -> None:
    async with open_test_model(lambda _: GOOD) as ask:
        ask.spent = BudgetMeter(Budget(tokens=1_100))
        await ask.complete()
        assert ask.spent.tokens == 16
        ask.spent.tokens = 100
        with pytest.raises(BudgetExceeded, match="100 of its 1100 tokens"):
            await ask.complete()
    assert (len(ask.server.requests), ask.spent.calls, ask.spent.tokens) == (1, 1, 100)


async def test_concurrent_calls_cannot_overdraw_the_token_budget() -> None:
    async with open_test_model(lambda _: Reply(seconds=0.02)) as ask:
        ask.spent = BudgetMeter(Budget(tokens=3_500))
        results = await asyncio.gather(*(ask.complete() for _ in range(6)), return_exceptions=True)
    assert sum(isinstance(result, BudgetExceeded) for result in results) == 3
    assert len(ask.server.requests) == 3


async def test_turn_past_its_deadline_makes_no_call() -> None:
    async with open_test_model(lambda _: GOOD) as ask:
        ask.spent.deadline = time.monotonic() - 1
        with pytest.raises(BudgetExceeded, match="60 seconds"):
            await ask.complete()
    assert (ask.server.requests, ask.spent.calls) == ([], 0)


async def test_refused_calls_cost_no_tokens_and_broken_replies_do() -> None:
    async with open_test_model(lambda _: answer_error(500, "Broken."), retries=1) as ask:
        with pytest.raises(ModelUnavailable):
            await ask.complete()
        assert ask.spent.tokens == 0
    async with open_test_model(
        lambda _: Fault((b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", Ending.CLOSE)), retries=1
    ) as ask:
        with pytest.raises(ModelUnavailable):
            await ask.complete()
        assert 2 * 12 <= ask.spent.tokens <= 2 * 40


async def test_calls_are_limited_to_max_concurrency_and_served_in_order() -> None:
    async with open_test_model(lambda _: Reply(seconds=0.005), max_concurrency=3) as ask:
        calls = [ModelCall("draft", (ChatMessage("user", f"Question {number}"),)) for number in range(12)]
        await asyncio.gather(*(ask.complete(call) for call in calls))
    assert ask.server.counts.busiest == 3
    assert [request.text for request in ask.server.requests] == [call.messages[0].text for call in calls]


async def test_retry_wait_frees_the_slot() -> None:
    async with open_test_model(in_turn(answer_error(429, "Slow down."), GOOD), max_concurrency=1) as ask:
        first, second = await asyncio.gather(ask.complete(), ask.complete())
    assert (first.attempts, second.attempts) == (2, 1)


async def test_waiting_for_a_slot_ends_at_the_deadline() -> None:
    async with open_test_model(lambda _: HANG, max_concurrency=1, timeout_seconds=30) as ask:
        holding = asyncio.create_task(ask.complete())
        await ask.server.until(lambda server: len(server.requests) == 1)
        with pytest.raises(BudgetExceeded):
            await ask.model.complete(CALL, BudgetMeter(deadline=time.monotonic() + 0.05))
        holding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await holding
    assert len(ask.server.requests) == 1


@pytest.mark.parametrize("streamed", [False, True])
async def test_cancelling_a_call_closes_its_connection_at_once(*, streamed: bool) -> None:
    async with open_test_model(lambda _: HANG, max_concurrency=1) as ask:
        task = asyncio.create_task(ask.stream() if streamed else ask.complete())
        await ask.server.until(lambda server: len(server.requests) == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await ask.server.until(lambda server: server.counts.left == 1 and server.counts.open == 0)
        ask.server.script = lambda _: GOOD
        assert (await ask.complete()).text == "In the Alps."


async def test_closing_a_stream_closes_its_connection_at_once() -> None:
    def endless(request) -> Fault:
        return Fault((*encode_reply(request, GOOD)[:4], Ending.HANG))

    async with open_test_model(endless, max_concurrency=1) as ask:
        cut: list[ModelReply] = []
        parts = ask.model.stream(replace(CALL, note_lost=cut.append), ask.spent)
        assert (await anext(parts)).text == "In "
        await parts.aclose()
        await ask.server.until(lambda server: server.counts.left == 1 and server.counts.open == 0)
        assert 0 < ask.spent.tokens < 100
        assert [(reply.text, reply.estimated) for reply in cut] == [("In ", True)]
        assert cut[0].prompt_tokens + cut[0].completion_tokens == ask.spent.tokens
        ask.server.script = lambda _: GOOD
        assert (await ask.complete()).text == "In the Alps."


CUT = Fault((b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", Ending.CLOSE))


def begun(ending: Ending) -> Script:
    """Return a script that sends the beginning of a reply."""
    return lambda request: Fault((*encode_reply(request, GOOD)[:4], ending))


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("answers", "ended"),
    [
        ((CUT, GOOD), ""),
        ((CUT,), ""),
        ((answer_error(500, "No."), CUT), ""),
        (begun(Ending.CLOSE), ""),
        *((answers, ended) for answers in (begun(Ending.HANG), (HANG,)) for ended in ("stopped", "late")),
    ],
)
async def test_tokens_of_failed_attempts_count_towards_the_turns_budget(
    answers: Script | tuple[Reply | Fault, ...], ended: str, *, streamed: bool
) -> None:
    recorder = Recorder(Shelf([]).search, report=lambda _: None)
    async with open_test_model(in_turn(*answers) if isinstance(answers, tuple) else answers, retries=1) as ask:
        ask.spent.deadline = time.monotonic() + 0.1 if ended == "late" else None
        prompter = Prompter(ask.model, ask.spent, note=recorder.note, now=NOW, random=Random(1))
        facts = {"talk": question("Where is Lake Constance?"), "reading": "", "stage": "draft"}

        async def call() -> None:
            if streamed:
                _ = [piece async for piece in prompter.stream("query", DraftSplitter(1), **facts)]
            else:
                await prompter.ask("query", replace(query_format(), schema=None), **facts)

        calling = asyncio.create_task(call())
        if ended == "stopped":
            await ask.server.until(lambda server: len(server.requests) == 1)
            calling.cancel()
        with suppress(PipelineError, asyncio.CancelledError):
            await calling
        assert ask.spent.tokens > 0 or not ask.server.requests
    used = recorder.usage

    assert used.prompt_tokens + used.completion_tokens == ask.spent.tokens


async def test_stream_closed_at_held_back_text_counts_its_tokens() -> None:
    lost: list[ModelReply] = []
    async with open_test_model(lambda _: Reply("Is it <")) as ask:
        async with aclosing(ask.model.stream(replace(CALL, note_lost=lost.append), ask.spent)) as parts:
            while (await anext(parts)).text != "<":
                pass
        spent = ask.spent.tokens
    assert [reply.prompt_tokens + reply.completion_tokens for reply in lost] == [spent]


async def test_cancelling_between_tries_ends_the_call() -> None:
    async with open_test_model(lambda _: answer_error(500, "Broken.")) as ask:
        asleep = asyncio.Event()

        async def sleep(_: float) -> None:
            asleep.set()
            await asyncio.Event().wait()

        ask.model._sleep = sleep
        task = asyncio.create_task(ask.complete())
        await asleep.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(ask.server.requests) == 1


async def test_slow_reader_does_not_count_as_server_silence() -> None:
    async with open_test_model(lambda _: GOOD, idle_seconds=0.1, timeout_seconds=30) as ask:
        pieces = []
        async for part in ask.model.stream(CALL, ask.spent):
            pieces.append(part.text)
            await asyncio.sleep(0.12)
    assert pieces[-1] == "In the Alps."
