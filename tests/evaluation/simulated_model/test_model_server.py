"""The simulated server on the wire: strict, at its pace by a clock of our own, failing as often as told."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from evaluation.simulated_model.model_pace import (
    FaultRates,
    PrefixCache,
    RateMeter,
    ReplyLength,
    ReplyPacer,
    ServerPace,
    SimulatedModel,
    decode_simulation,
    encode_simulation,
)
from evaluation.simulated_model.model_server import ModelServer, PacedModel
from pipeline.errors import ModelUnavailable, ReplyBroken
from pipeline.llm.model import BudgetMeter, ChatMessage, ModelCall, ModelReply, ReplyPiece
from pipeline.llm.model_client import open_model
from pipeline.llm.model_settings import ModelSettings

CALL = ModelCall("draft", (ChatMessage("user", "x" * 792),))
"""A prompt of 200 tokens."""
PLAIN = SimulatedModel(ServerPace(first_token=0.4, out=60, prompt=4_000), lengths={"generate": ReplyLength(120)})


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.held = asyncio.Event()
        self.held.set()

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        await self.held.wait()
        self.slept.append(seconds)
        self.now += seconds


@asynccontextmanager
async def serving(simulated: SimulatedModel) -> AsyncIterator[tuple[ModelServer, Clock, str]]:
    clock = Clock()
    script = PacedModel(simulated, clock)
    server = ModelServer(script, places=simulated.pace.concurrency, clock=clock, sleep=clock.sleep)
    listening = await asyncio.get_running_loop().create_server(server.connect, "127.0.0.1", 0)
    try:
        yield server, clock, f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    finally:
        listening.close()


async def parts(url: str, call: ModelCall = CALL, *, streamed: bool = True) -> list[ReplyPiece | ModelReply]:
    async with open_model(ModelSettings(name="simulated", base_url=url, retries=0)) as model:
        return (
            [part async for part in model.stream(call, BudgetMeter())]
            if streamed
            else [await model.complete(call, BudgetMeter())]
        )


async def posted(url: str, body: bytes, path: str = "/v1/chat/completions", method: str = "POST") -> tuple[int, Any]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.removesuffix("/v1").rpartition(":")[2]))
    writer.write(f"{method} {path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
    found = json.loads(await reader.readexactly(length))
    writer.close()
    await writer.wait_closed()
    return int(head.split()[1]), found


@pytest.mark.parametrize("streamed", [True, False])
async def test_call_takes_the_time_of_its_pace(streamed: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """0.4 s, 200 tokens at 4,000 a second, 120 at 60: 2.45 s; a streamed one in as many pieces."""
    async with serving(PLAIN) as (server, clock, url):
        *pieces, reply = await parts(url, streamed=streamed)

    assert clock.now == pytest.approx(2.45)
    assert (reply.prompt_tokens, reply.completion_tokens) == (200, 120)
    assert len(pieces) == (120 if streamed else 0)
    assert len(clock.slept) == 121
    assert server.counts.tokens == 120
    assert (server.counts.requests, server.counts.busy, server.counts.busiest) == (1, 0, 1)


async def test_reply_is_cut_at_max_tokens() -> None:
    async with serving(PLAIN) as (_, clock, url):
        reply = (await parts(url, replace(CALL, max_tokens=30)))[-1]

    assert (reply.finish, reply.completion_tokens) == ("length", 30)
    assert clock.now == pytest.approx(0.95)


async def test_known_prefix_is_read_from_the_cache() -> None:
    pace = replace(PLAIN.pace, cache=True, cached_cost=0.25, out=float("inf"))
    async with serving(replace(PLAIN, pace=pace)) as (server, clock, url):
        assert [(await parts(url))[-1].cached_tokens for _ in range(2)] == [0, 192]

    assert clock.now == pytest.approx(0.4 + 200 / 4_000 + 0.4 + (8 + 192 / 4) / 4_000)
    assert server.counts.cached_tokens == 192


@pytest.mark.parametrize(("places", "begun"), [(1, 1), (2, 2), (0, 2)])
async def test_waiting_requests_are_not_started(places: int, begun: int) -> None:
    async with serving(replace(PLAIN, pace=replace(PLAIN.pace, concurrency=places))) as (server, clock, url):
        clock.held.clear()
        calls = asyncio.gather(parts(url), parts(url))
        async with asyncio.timeout(60):
            while server.counts.requests < 2:  # noqa: ASYNC110 - the server tells nobody who arrives
                await asyncio.sleep(0.001)
        assert server.counts.prompt_tokens == begun * 200
        clock.held.set()
        await calls

    assert server.counts.prompt_tokens == 400


MESSAGES = [{"role": "user", "content": "Hello"}]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"messages": MESSAGES}, "Missing required parameter: 'model'."),
        ({"model": "m", "messages": []}, "Missing required parameter: 'messages'."),
        ({"model": "m", "messages": [{"role": "user"}]}, "Invalid value for 'messages[0]'."),
        ([], "could not parse"),
    ],
)
async def test_invalid_requests_are_refused(body: Any, said: str) -> None:
    """With 400 and a reason, counted apart."""
    async with serving(PLAIN) as (server, _, url):
        status, found = await posted(url, json.dumps(body).encode())

    assert status == 400
    assert said in found["error"]["message"]
    assert (server.counts.requests, server.counts.refused) == (0, 1)


async def test_counts_models_and_unknown_paths_are_answered() -> None:
    async with serving(PLAIN) as (_, __, url):
        assert (await posted(url, b"", "/counts", "GET"))[1]["requests"] == 0
        assert (await posted(url, b"", "/v1/models", "GET"))[1]["data"][0]["id"] == "simulated"
        assert (await posted(url, b"", "/nothing", "GET"))[0] == 404
        assert (await posted(url, b"{}", "/v1/embeddings"))[0] == 404
        assert (await posted(url, b"{", "/v1/chat/completions"))[0] == 400


@pytest.mark.parametrize(
    ("faults", "error", "said"),
    [
        (FaultRates(busy=1), ModelUnavailable, "Rate limit"),
        (FaultRates(broken=1), ModelUnavailable, "had an error"),
        (FaultRates(cut=1), ReplyBroken, "broke"),
    ],
)
async def test_server_fails_as_configured(faults: FaultRates, error: type[Exception], said: str) -> None:
    async with serving(replace(PLAIN, faults=faults)) as (server, _, url):
        with pytest.raises(error, match=said):
            await parts(url)

    assert server.counts.tokens == (60 if faults.cut else 0)


async def test_faults_follow_their_rate_and_seed() -> None:
    seen = []
    for _ in range(2):
        async with serving(replace(PLAIN, faults=FaultRates(busy=1 / 3))) as (__, ___, url):
            body = json.dumps({"model": "m", "messages": MESSAGES, "max_tokens": 1}).encode()
            seen.append([(await posted(url, body))[0] for ____ in range(90)])

    assert seen[0] == seen[1]
    assert 20 < seen[0].count(429) < 40


def test_replies_share_the_total_rate() -> None:
    pacer = ReplyPacer(ServerPace(first_token=0, out=100, prompt=1_000, total_out=10))
    first, second = pacer.ends(10, 0.0), pacer.ends(10, 0.0)
    dues = [due for pair in zip(first, second, strict=True) for due in pair]

    assert dues == pytest.approx([place / 10 for place in range(1, 21)])
    assert list(ReplyPacer(ServerPace(out=100, total_out=10)).ends(10, 0.0))[-1] == pytest.approx(1.0)


def test_prompts_share_the_total_rate() -> None:
    pacer = ReplyPacer(ServerPace(first_token=0.5, prompt=1_000, total_prompt=1_000))

    assert pacer.begins(1_000, 0, 0.0) == pytest.approx(1.5)
    assert pacer.begins(1_000, 0, 0.0) == pytest.approx(2.5)
    assert RateMeter(float("inf")).take(5, 3.0) == 3.0


def test_cache_forgets_the_least_recent_prefix() -> None:
    """In whole blocks of 16 tokens of four characters, known by all that stands before them."""
    prefixes = PrefixCache(most=4)
    one, other = "a" * 128, "b" * 128

    assert [prefixes.read(text) for text in (one, one[:100], one[:64] + other, "c" + one)] == [0, 16, 16, 0]
    assert prefixes.read(one) == 0


def test_simulation_settings_survive_encoding() -> None:
    simulated = SimulatedModel(
        ServerPace(out=float("inf"), cache=True), FaultRates(cut=0.1), {"draft": ReplyLength(3, 2)}, 0.2, 7
    )

    assert decode_simulation(encode_simulation(simulated)) == simulated
