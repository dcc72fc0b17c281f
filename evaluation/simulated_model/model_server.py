"""Serve a scripted or a simulated model over HTTP: connections, pace, faults, counts.

`ModelServer` replies by a script; `PacedModel` is the script that makes replies from prompts at a set pace. `serve`
runs a server in this process, `run_model_server` in a process of its own. It reads bare connections, because it also
resets them and cuts replies.
"""

import asyncio
import json
import math
import re
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from random import Random
from typing import Annotated, Any

import typer

from evaluation import EvaluationError
from evaluation.simulated_model.chat_protocol import (
    SIMULATED,
    ChatRequest,
    Ending,
    Fault,
    Reply,
    ServerProfile,
    answer_error,
    answer_with,
    encode_reply,
    get_token_limit,
)
from evaluation.simulated_model.model_pace import (
    FaultRates,
    PrefixCache,
    ReplyLength,
    ReplyPacer,
    ServerPace,
    SimulatedModel,
    count_tokens,
    decode_simulation,
    encode_simulation,
    join_messages,
)
from evaluation.simulated_model.model_replies import REPLY_LENGTHS, build_reply

Script = Callable[[ChatRequest], Reply | Fault]
"""Returns the answer to a request that the rules of the protocol allow."""
_CHAT = (re.compile("/v1/chat/completions"), re.compile(r"/openai/deployments/[^/]+/chat/completions\?api-version=.+"))
_BACKLOG = 1_000


@dataclass(slots=True)
class ServerCounts:
    """A server's counts since its start."""

    requests: int = 0
    open: int = 0
    busy: int = 0
    busiest: int = 0
    left: int = 0  # requests whose client disconnected before the whole answer
    refused: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    tokens: int = 0


class ModelServer:
    """A server in this process; `connect` makes the protocol of a connection.

    Args:
        script: Returns each answer.
        profile: The kind of server, with the rules that requests must follow.
        places: How many requests are answered at once; 0 for all.
        clock, sleep: The time, which tests replace.
        remember: Whether to keep the requests, for tests.
    """

    def __init__(
        self,
        script: Script,
        profile: ServerProfile = SIMULATED,
        *,
        places: int = 0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        remember: bool = False,
    ) -> None:
        self.script, self.profile, self.url = script, profile, ""
        self.counts = ServerCounts()
        self.changed = asyncio.Event()  # set whenever a count changes
        self.requests: list[ChatRequest] = []
        self.rejected: list[str] = []  # why the rules refused requests
        self.connections: list[_Connection] = []
        self._places = asyncio.Semaphore(places) if places else nullcontext()
        self._clock, self._sleep, self._remember = clock, sleep, remember

    async def until(self, holds: Callable[["ModelServer"], bool]) -> None:
        """Wait until a condition holds, for a minute at most."""
        async with asyncio.timeout(60):
            while not holds(self):
                self.changed.clear()
                await self.changed.wait()

    def connect(self) -> asyncio.Protocol:
        self.connections.append(_Connection(self))
        return self.connections[-1]

    def respond(
        self, path: str, headers: Mapping[str, str], raw: bytes, out: asyncio.Transport
    ) -> "asyncio.Future[None]":
        """Answer one request; it is counted at once."""
        request = self._check(path, headers, raw)
        if isinstance(request, Fault):
            return asyncio.ensure_future(self._fail(request, out))
        self.counts.requests += 1
        self.counts.busy += 1
        self.counts.busiest = max(self.counts.busiest, self.counts.busy)
        self.changed.set()
        return asyncio.ensure_future(self._answer(request, out))

    async def _answer(self, request: ChatRequest, out: asyncio.Transport) -> None:
        try:
            async with self._places:
                if self._remember:
                    self.requests.append(request)
                    self.changed.set()
                answer = self.script(request)
                if isinstance(answer, Fault):
                    self.counts.refused += 1
                    await self._fail(answer, out)
                else:
                    self.counts.prompt_tokens += answer.prompt_tokens
                    self.counts.cached_tokens += answer.cached
                    self.changed.set()
                    await self._reply(request, answer, out)
        except Exception:
            out.abort()  # otherwise the client would wait for ever
            raise
        finally:
            self.counts.busy -= 1
            self.changed.set()

    def _check(self, path: str, headers: Mapping[str, str], raw: bytes) -> Fault | ChatRequest:
        if path == "/counts":
            return answer_with(200, asdict(self.counts))
        if path.endswith("/models"):
            names = [{"id": name, "object": "model"} for name in self.profile.models]
            return answer_with(200, {"object": "list", "data": names})
        if not _CHAT[self.profile.azure].fullmatch(path):
            return answer_with(404, {"detail": "Not Found"})
        body = None
        with suppress(ValueError):
            body = json.loads(raw)
        if wrong := self.profile.rules(self.profile, path, headers, body):
            self.counts.refused += 1
            self.rejected.append(wrong.message)
            return answer_with(wrong.status, self.profile.body(wrong))
        return ChatRequest(path, headers, body or {}, self.profile)

    async def _reply(self, request: ChatRequest, reply: Reply, out: asyncio.Transport) -> None:
        parts = encode_reply(request, reply)
        if reply.schedule:
            await self._reply_on_schedule(request, parts, reply, out)
            return
        if reply.seconds:
            await self._sleep(reply.seconds)
        if not reply.piece_seconds:
            out.write(b"".join(parts))
            return
        for part in parts:
            await self._sleep(reply.piece_seconds)
            out.write(part)

    async def _reply_on_schedule(
        self, request: ChatRequest, parts: tuple[bytes, ...], reply: Reply, out: asyncio.Transport
    ) -> None:
        streamed, schedule = request.streamed, reply.schedule or iter(())
        await self._wait_until(next(schedule))
        pieces = parts[2 : 2 + len(reply.parts)] if streamed else ()
        out.write(b"".join(parts[:2] if streamed else ()))
        for place, due in enumerate(schedule):
            if streamed and place == reply.cut:
                out.close()
                return
            await self._wait_until(due)
            if streamed:
                out.write(pieces[place])
            self.counts.tokens += 1
        out.write(b"".join(parts[2 + len(pieces) :] if streamed else parts))

    async def _wait_until(self, due: float) -> None:
        left = due - self._clock()
        if left > 0:
            await self._sleep(left)

    async def _fail(self, fault: Fault, out: asyncio.Transport) -> None:
        for part in fault.parts:
            if isinstance(part, bytes):
                out.write(part)
            elif isinstance(part, float):
                await self._sleep(part)
            elif part is Ending.HANG:
                await asyncio.Event().wait()
            elif part is Ending.RESET:
                linger = struct.pack("ii", 1, 0)
                out.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                out.abort()
            else:
                out.close()


class _Connection(asyncio.Protocol):
    def __init__(self, server: ModelServer) -> None:
        self.transport: Any = None
        self._server = server
        self._received = bytearray()
        self._task: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._server.counts.open += 1
        self._server.changed.set()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, rest = bytes(self._received).partition(b"\r\n\r\n")
        if not found:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        if len(rest) >= length:
            self._received = bytearray(rest[length:])
            self._task = self._server.respond(first.split(" ")[1], headers, rest[:length], self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._server.counts.open -= 1
        self._server.connections.remove(self)
        if self._task and not self._task.done():
            self._server.counts.left += 1
            self._task.cancel()
        self._server.changed.set()


class PacedModel:
    """The script of a simulated model: replies made from the prompt, at a pace, with faults by chance."""

    def __init__(self, simulated: SimulatedModel, clock: Callable[[], float] = time.monotonic) -> None:
        self._simulated, self._clock = simulated, clock
        self._pacer = ReplyPacer(simulated.pace)
        self._prefixes = PrefixCache()
        self._chance = Random(simulated.seed)

    def __call__(self, request: ChatRequest) -> Reply | Fault:
        """Answer, or fail at the set rates."""
        drawn, faults = self._chance.random(), self._simulated.faults
        if drawn < faults.busy:
            return answer_error(429, "Rate limit reached. Please try again in 1s.", retry_after="1")
        if drawn < faults.busy + faults.broken:
            return answer_error(500, "The server had an error while processing your request.")
        prompt = join_messages(request.body["messages"])
        size, every = count_tokens(prompt), tuple(build_reply(request.body, self._simulated).pieces())
        pieces = every[: get_token_limit(request.body)]
        cached = min(self._prefixes.read(prompt), size) if self._simulated.pace.cache else 0
        begins = self._pacer.begins(size, cached, self._clock())
        return Reply(
            "".join(pieces),
            pieces=pieces,
            finish="stop" if pieces == every else "length",
            cached=cached,
            prompt_tokens=size,
            tokens=len(pieces),
            schedule=chain((begins,), self._pacer.ends(len(pieces), begins)),
            cut=len(pieces) // 2 if request.streamed and self._chance.random() < faults.cut else None,
        )


@asynccontextmanager
async def serve(
    script: Script,
    profile: ServerProfile = SIMULATED,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    places: int = 0,
    remember: bool = True,
) -> AsyncIterator[ModelServer]:
    """Serve in this process until the context ends; `url` is the base URL. Raises `OSError` if the port is taken."""
    server = ModelServer(script, profile, places=places, remember=remember)
    listening = await asyncio.get_running_loop().create_server(server.connect, host, port, backlog=_BACKLOG)
    server.url = f"http://{host}:{listening.sockets[0].getsockname()[1]}" + ("" if profile.azure else "/v1")
    try:
        yield server
    finally:
        listening.close()
        for connection in list(server.connections):
            connection.transport.abort()
        await listening.wait_closed()


@contextmanager
def run_model_server(simulated: SimulatedModel) -> Iterator[str]:
    """Run a server in a process of its own, which ends with the context or this process; gives its base URL."""
    command = [sys.executable, "-m", "evaluation.simulated_model.model_server", encode_simulation(simulated)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def fetch_counts(url: str) -> ServerCounts:
    """Return the counts of a running server. Blocks."""
    with urllib.request.urlopen(f"{url.removesuffix('/v1')}/counts") as reply:  # noqa: S310 - our own server's
        return ServerCounts(**json.load(reply))


async def serve_simulation(
    simulated: SimulatedModel, until: Callable[[], Awaitable[object]], host: str = "127.0.0.1", port: int = 0
) -> None:
    """Serve a simulated model and print its base URL, until something has happened."""
    places = simulated.pace.concurrency
    async with serve(PacedModel(simulated), host=host, port=port, places=places, remember=False) as server:
        print(server.url, flush=True)
        await until()


_LENGTH = re.compile(r"(\w+)=(?:(\d+)x)?(\d+)")
_DEFAULTS = ",".join(
    f"{kind}={f'{length.items}x' if length.items > 1 else ''}{length.tokens}" for kind, length in REPLY_LENGTHS.items()
)


def serve_model(
    first_token: Annotated[float, typer.Option(min=0, help="Seconds to a reply's first token.")] = 0.4,
    out: Annotated[float, typer.Option(min=0, help="Tokens a second of one reply; 0: at once.")] = 60.0,
    prompt: Annotated[float, typer.Option("--in", min=0, help="Tokens a second of one prompt; 0: at once.")] = 4_000.0,
    total_out: Annotated[float, typer.Option(min=0, help="Of all replies together; 0: no limit.")] = 0.0,
    total_in: Annotated[float, typer.Option(min=0, help="Of all prompts together; 0: no limit.")] = 0.0,
    concurrency: Annotated[int, typer.Option(min=0, help="Requests answered at once; 0: all.")] = 0,
    cache: Annotated[bool, typer.Option("--cache", help="Cache the prefixes of prompts.")] = False,
    cached_cost: Annotated[
        float, typer.Option(min=0, max=1, help="The time for a cached token, as a share of another's.")
    ] = 0.0,
    lengths: Annotated[str, typer.Option(help="Tokens by kind of reply, 5x25: five of them.")] = _DEFAULTS,
    spread: Annotated[float, typer.Option(min=0, help="Standard deviation of lengths, of their mean.")] = 0.0,
    busy: Annotated[float, typer.Option(min=0, max=1, help="Share of requests refused with 429.")] = 0.0,
    broken: Annotated[float, typer.Option(min=0, max=1, help="Share of requests refused with 500.")] = 0.0,
    cut: Annotated[float, typer.Option(min=0, max=1, help="Share of streams cut off half-way.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Of lengths, contents and faults.")] = 1,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0: a free one.")] = 0,
) -> None:
    """Serve a simulated model with OpenAI's chat protocol until Ctrl-C, and print its base URL.

    It answers all prompts of Footnote at the set pace, from the passages in the prompt, so that a deployment can be
    sized before its server exists. It has no knowledge. GET /counts returns the requests and tokens so far.

    Example: footnote evaluate speed serve-model --first-token 0.4 --out 60 --in 4000 --total-out 2000
    then: OPENAI_BASE_URL=http://127.0.0.1:8123/v1 OPENAI_MODEL=simulated footnote ask "Who opens the office?"
    """
    pace = ServerPace(
        first_token=first_token,
        out=out or math.inf,
        prompt=prompt or math.inf,
        total_out=total_out or math.inf,
        total_prompt=total_in or math.inf,
        concurrency=concurrency,
        cache=cache,
        cached_cost=cached_cost,
    )
    simulated = SimulatedModel(pace, FaultRates(busy, broken, cut), parse_lengths(lengths), spread, seed)
    try:
        asyncio.run(serve_simulation(simulated, asyncio.Event().wait, host, port))
    except KeyboardInterrupt:
        return
    except OSError as error:
        raise EvaluationError(f"{host}:{port} cannot be listened on: {error.strerror}.", hint="Try --port 0.") from None


def parse_lengths(text: str) -> Mapping[str, ReplyLength]:
    """Return lengths that are written as `query=15,split=5x25`. Raises `EvaluationError`."""
    lengths = {}
    for part in filter(None, text.replace(" ", "").split(",")):
        length = _LENGTH.fullmatch(part)
        if not length or length[1] not in REPLY_LENGTHS or not int(length[3]):
            known = ", ".join(REPLY_LENGTHS)
            raise EvaluationError(f"“{part}” is not a reply length.", hint=f"Write query=15; the kinds are {known}.")
        lengths[length[1]] = ReplyLength(int(length[3]), int(length[2] or 1))
    return lengths


if __name__ == "__main__":
    asyncio.run(serve_simulation(decode_simulation(sys.argv[1]), partial(asyncio.to_thread, sys.stdin.read)))
