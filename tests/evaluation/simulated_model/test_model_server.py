"""The simulated server over HTTP: strict parsing, its pace with a fake clock, and configured failures."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from evaluation.simulated_model.model_pace import (
    FaultRates,
    HabitRates,
    PrefixCache,
    RateMeter,
    ReplyLength,
    ReplyPacer,
    ServerPace,
    SimulatedModel,
    decode_simulation,
    encode_simulation,
)
from evaluation.simulated_model.model_server import ModelServer
from evaluation.simulated_model.paced_model import PacedModel
from pipeline.errors import ModelUnavailable, ReplyBroken
from pipeline.llm.model import BudgetMeter, ChatMessage, ModelCall, ModelReply, ReplyPiece
from pipeline.llm.model_client import open_model
from pipeline.llm.model_settings import ModelSettings

CALL = ModelCall("draft", (ChatMessage("user", "x" * 792),))  # a prompt of 200 tokens
PLAIN = SimulatedModel(ServerPace(first_token=0.4, out=60, prompt=4_000), lengths={"generate": ReplyLength(120)})
MESSAGES = [{"role": "user", "content": "Hello"}]


class Clock:
    """Time that passes only in `sleep`."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sleeping = asyncio.Event()
        self.sleeping.set()

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        await self.sleeping.wait()
        self.now += seconds


@asynccontextmanager
async def serving(simulated: SimulatedModel) -> AsyncIterator[tuple[ModelServer, Clock, str]]:
    clock = Clock()
    server = ModelServer(
        PacedModel(simulated, clock), places=simulated.pace.concurrency, clock=clock, sleep=clock.sleep
    )
    listening = await asyncio.get_running_loop().create_server(server.connect, "127.0.0.1", 0)
    try:
        yield server, clock, f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    finally:
        listening.close()


async def ask(url: str, call: ModelCall = CALL, *, streamed: bool = True) -> list[ReplyPiece | ModelReply]:
    async with open_model(ModelSettings(name="simulated", base_url=url, retries=0)) as model:
        if not streamed:
            return [await model.complete(call, BudgetMeter())]
        return [part async for part in model.stream(call, BudgetMeter())]


async def post(url: str, body: Any, path: str = "/v1/chat/completions", method: str = "POST") -> tuple[int, Any]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.removesuffix("/v1").rpartition(":")[2]))
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    writer.write(f"{method} {path} HTTP/1.1\r\nContent-Length: {len(raw)}\r\n\r\n".encode() + raw)
    head = await reader.readuntil(b"\r\n\r\n")
    document = json.loads(await reader.readexactly(int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])))
    writer.close()
    await writer.wait_closed()
    return int(head.split()[1]), document


@pytest.mark.parametrize("streamed", [True, False])
async def test_call_takes_the_time_of_its_pace(streamed: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """0.4 s, then 200 tokens at 4,000 per second and 120 at 60 per second: 2.45 s."""
    async with serving(PLAIN) as (server, clock, url):
        *pieces, reply = await ask(url, streamed=streamed)

    assert clock.now == pytest.approx(2.45)
    assert (reply.prompt_tokens, reply.completion_tokens) == (200, 120)
    assert len(pieces) == (120 if streamed else 0)
    assert (server.counts.requests, server.counts.busiest, server.counts.tokens) == (1, 1, 120)


async def test_reply_is_cut_at_max_tokens() -> None:
    async with serving(PLAIN) as (_, clock, url):
        reply = (await ask(url, replace(CALL, max_tokens=30)))[-1]

    assert (reply.finish, reply.completion_tokens) == ("length", 30)
    assert clock.now == pytest.approx(0.95)


async def test_known_prefix_is_read_from_the_cache() -> None:
    pace = replace(PLAIN.pace, cache=True, cached_cost=0.25, out=float("inf"))
    async with serving(replace(PLAIN, pace=pace)) as (server, clock, url):
        assert [(await ask(url))[-1].cached_tokens for _ in range(2)] == [0, 192]

    assert clock.now == pytest.approx(0.4 + 200 / 4_000 + 0.4 + (8 + 192 / 4) / 4_000)
    assert server.counts.cached_tokens == 192
    prefixes, text, other = PrefixCache(most=4), "a" * 128, "b" * 128
    assert [prefixes.read(read) for read in (text, text[:100], text[:64] + other, "c" + text)] == [0, 16, 16, 0]
    assert prefixes.read(text) == 0  # the least recent blocks were dropped


@pytest.mark.parametrize(("places", "started"), [(1, 1), (0, 2)])
async def test_waiting_requests_are_not_started(places: int, started: int) -> None:
    async with serving(replace(PLAIN, pace=replace(PLAIN.pace, concurrency=places))) as (server, clock, url):
        clock.sleeping.clear()
        calls = asyncio.gather(ask(url), ask(url))
        await server.until(lambda it: it.counts.requests == 2 and it.counts.prompt_tokens >= started * 200)
        await asyncio.sleep(0)
        assert server.counts.prompt_tokens == started * 200
        clock.sleeping.set()
        await calls

    assert server.counts.prompt_tokens == 400


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"messages": MESSAGES}, "Missing required parameter: 'model'."),
        ({"model": "m", "messages": []}, "Missing required parameter: 'messages'."),
        ({"model": "m", "messages": [{"role": "user"}]}, "Invalid value for 'messages[0]'."),
        ([], "could not parse"),
        (b"{", "could not parse"),
    ],
)
async def test_invalid_requests_are_refused(body: Any, message: str) -> None:
    async with serving(PLAIN) as (server, _, url):
        status, document = await post(url, body)

    assert status == 400
    assert message in document["error"]["message"]
    assert (server.counts.requests, server.counts.refused) == (0, 1)


async def test_server_returns_counts_and_models_and_404_for_unknown_paths() -> None:
    async with serving(PLAIN) as (_, __, url):
        assert (await post(url, b"", "/counts", "GET"))[1]["requests"] == 0
        assert (await post(url, b"", "/v1/models", "GET"))[1]["data"][0]["id"] == "simulated"
        assert (await post(url, b"", "/nothing", "GET"))[0] == 404
        assert (await post(url, {}, "/v1/embeddings"))[0] == 404


@pytest.mark.parametrize(
    ("faults", "error", "message"),
    [
        (FaultRates(busy=1), ModelUnavailable, "Rate limit"),
        (FaultRates(broken=1), ModelUnavailable, "had an error"),
        (FaultRates(cut=1), ReplyBroken, "broke"),
    ],
)
async def test_server_fails_as_configured(faults: FaultRates, error: type[Exception], message: str) -> None:
    async with serving(replace(PLAIN, faults=faults)) as (server, _, url):
        with pytest.raises(error, match=message):
            await ask(url)

    assert server.counts.tokens == (60 if faults.cut else 0)


async def test_simulated_faults_follow_their_configured_rate_and_seed() -> None:
    seen, body = [], {"model": "m", "messages": MESSAGES, "max_tokens": 1}
    for _ in range(2):
        async with serving(replace(PLAIN, faults=FaultRates(busy=1 / 3))) as (__, ___, url):
            seen.append([(await post(url, body))[0] for ____ in range(90)])

    assert seen[0] == seen[1]
    assert 20 < seen[0].count(429) < 40


def test_concurrent_replies_share_the_servers_total_rates() -> None:
    pacer = ReplyPacer(ServerPace(first_token=0, out=100, prompt=1_000, total_out=10))
    dues = [due for pair in zip(pacer.ends(10, 0.0), pacer.ends(10, 0.0), strict=True) for due in pair]
    prompts = ReplyPacer(ServerPace(first_token=0.5, prompt=1_000, total_prompt=1_000))

    assert dues == pytest.approx([place / 10 for place in range(1, 21)])
    assert list(ReplyPacer(ServerPace(out=100, total_out=10)).ends(10, 0.0))[-1] == pytest.approx(1.0)
    assert [prompts.begins(1_000, 0, 0.0) for _ in range(2)] == pytest.approx([1.5, 2.5])
    assert RateMeter(float("inf")).take(5, 3.0) == 3.0


def test_simulation_settings_survive_encoding() -> None:
    pace = ServerPace(out=float("inf"), cache=True)
    simulated = SimulatedModel(pace, FaultRates(cut=0.1), {"draft": ReplyLength(3, 2)}, HabitRates(loop=0.5), 0.2, 7)

    assert decode_simulation(encode_simulation(simulated)) == simulated
