"""Serve the simulated model: connections, pace, faults, counts; in this process or in one of its own."""

import asyncio
import json
import math
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Annotated, Any

import typer

from evaluation import EvaluationError
from evaluation.simulated_model import chat_protocol
from evaluation.simulated_model.chat_protocol import ChatRefusal, CompletedReply
from evaluation.simulated_model.model_pace import (
    REPLY_LENGTHS,
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
from evaluation.simulated_model.model_replies import build_reply

_CONTENT_LENGTH = re.compile(rb"^content-length: *(\d+)", re.IGNORECASE | re.MULTILINE)
_MODELS = [{"id": "simulated", "object": "model"}]


@dataclass(frozen=True, slots=True)
class ServerCounts:
    """What a server has counted so far."""

    requests: int = 0
    busy: int = 0
    """Requests being answered now."""
    busiest: int = 0
    left: int = 0
    """Requests whose client left before the answer."""
    refused: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    tokens: int = 0
    """Sent, of all replies."""


class ModelServer:
    """The server within this process: `serve` is what takes a connection."""

    def __init__(
        self,
        simulated: SimulatedModel,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Take what is simulated, and what tells seconds and waits for them."""
        self.counts = ServerCounts()
        self._simulated = simulated
        self._clock = clock
        self._sleep = sleep
        self._pacer = ReplyPacer(simulated.pace)
        self._prefixes = PrefixCache()
        self._chance = Random(simulated.seed)
        places = simulated.pace.concurrency
        self._places = asyncio.Semaphore(places) if places else None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, one after the other."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = _CONTENT_LENGTH.search(head)
                body = await reader.readexactly(int(length[1]) if length else 0)
                if not await self._respond(head.split(b" ", 2), body, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return  # nobody waits for a connection's task, and what cancels it is the server's end
        finally:
            writer.close()

    async def _respond(self, head: list[bytes], body: bytes, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection can be used again."""
        method, path = head[0], head[1].split(b"?")[0]
        if method == b"GET":
            found = {b"/counts": asdict(self.counts), b"/v1/models": {"object": "list", "data": _MODELS}}.get(path)
            writer.write(
                chat_protocol.encode_response(200, found)
                if found
                else chat_protocol.encode_refusal(ChatRefusal(404, "Not Found"))
            )
        elif not path.endswith(b"/chat/completions"):
            writer.write(chat_protocol.encode_refusal(ChatRefusal(404, "Not Found")))
        else:
            asked = chat_protocol.parse_request(body)
            refused = asked if isinstance(asked, ChatRefusal) else self._fault()
            if refused or isinstance(asked, ChatRefusal):
                self._count(refused=1)
                writer.write(chat_protocol.encode_refusal(refused or ChatRefusal(500, "")))
            else:
                return await self._counted(asked, writer)
        await writer.drain()
        return True

    def _fault(self) -> ChatRefusal | None:
        drawn, faults = self._chance.random(), self._simulated.faults
        if drawn < faults.busy:
            return ChatRefusal(429, "Rate limit reached. Please try again in 1s.")
        if drawn < faults.busy + faults.broken:
            return ChatRefusal(500, "The server had an error while processing your request.")
        return None

    async def _counted(self, asked: Mapping[str, Any], writer: asyncio.StreamWriter) -> bool:
        self._count(requests=1, busy=1)
        self.counts = replace(self.counts, busiest=max(self.counts.busiest, self.counts.busy))
        try:
            async with AsyncExitStack() as stack:
                if self._places:
                    await stack.enter_async_context(self._places)
                return await self._answer(asked, writer)
        except ConnectionError:
            self._count(left=1)
            raise
        finally:
            self._count(busy=-1)

    async def _answer(self, asked: Mapping[str, Any], writer: asyncio.StreamWriter) -> bool:
        prompt = join_messages(asked["messages"])
        size, reply = count_tokens(prompt), build_reply(asked, self._simulated)
        cached = min(self._prefixes.read(prompt), size) if self._simulated.pace.cache else 0
        pieces = tuple(reply.pieces())
        whole = len(pieces) <= chat_protocol.token_limit(asked)
        pieces = pieces[: chat_protocol.token_limit(asked)]
        finish = "stop" if whole else "length"
        written = CompletedReply(asked["model"], "".join(pieces), size, cached, len(pieces), finish)
        self._count(prompt_tokens=size, cached_tokens=cached)
        begins = self._pacer.begins(size, cached, self._clock())
        await self._until(begins)
        sent = self._pacer.ends(len(pieces), begins)
        if asked.get("stream"):
            return await self._stream(asked, pieces, sent, written, writer)
        await self._write(sent)
        writer.write(chat_protocol.encode_completion(written))
        await writer.drain()
        return True

    async def _write(self, sent: Iterator[float]) -> None:
        """Wait for all tokens of a reply that is sent whole: one by one where replies share a rate, else at once."""
        steps = sent if math.isfinite(self._simulated.pace.total_out) else [tuple(sent)]
        for step in steps:
            dues = step if isinstance(step, tuple) else (step,)
            await self._until(dues[-1])
            self._count(tokens=len(dues))

    async def _stream(
        self,
        asked: Mapping[str, Any],
        pieces: tuple[str, ...],
        sent: Iterator[float],
        written: CompletedReply,
        writer: asyncio.StreamWriter,
    ) -> bool:
        cut = len(pieces) // 2 if self._chance.random() < self._simulated.faults.cut else len(pieces)
        writer.write(chat_protocol.STREAM_HEAD)
        for place, (piece, due) in enumerate(zip(pieces, sent, strict=True)):
            if place >= cut:
                return False
            await self._until(due)
            writer.write(chat_protocol.encode_event(written.model, piece, first=not place))
            await writer.drain()
            self._count(tokens=1)
        wanted = bool((asked.get("stream_options") or {}).get("include_usage"))
        writer.write(chat_protocol.encode_ending(written, usage=wanted))
        await writer.drain()
        return True

    async def _until(self, due: float) -> None:
        left = due - self._clock()
        if left > 0:
            await self._sleep(left)

    def _count(self, **more: int) -> None:
        self.counts = replace(self.counts, **{name: getattr(self.counts, name) + by for name, by in more.items()})


_BACKLOG = 1_000
"""Connections that may wait to be taken."""
_READ_LIMIT = 1 << 22
"""Bytes of a request's head that are read at once."""


@contextmanager
def run_model_server(simulated: SimulatedModel) -> Iterator[str]:
    """Run a server, and give its base URL; it ends with the context, and with this process."""
    command = [sys.executable, "-m", "evaluation.simulated_model.model_server", encode_simulation(simulated)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def fetch_counts(url: str) -> ServerCounts:
    """Ask a running server what it has counted. Blocks."""
    with urllib.request.urlopen(f"{url.removesuffix('/v1')}/counts") as reply:  # noqa: S310 - our own server's
        return ServerCounts(**json.load(reply))


async def start_model_server(
    simulated: SimulatedModel, host: str = "127.0.0.1", port: int = 0
) -> tuple[asyncio.Server, str]:
    """Begin to serve in this process; return the server and its base URL. Raises `OSError` where the port is taken."""
    server = await asyncio.start_server(ModelServer(simulated).serve, host, port, limit=_READ_LIMIT, backlog=_BACKLOG)
    return server, f"http://{host}:{server.sockets[0].getsockname()[1]}/v1"


async def serve_until_input_ends(simulated: SimulatedModel) -> None:
    """Serve, print the base URL, and end when the input of this process does."""
    server, url = await start_model_server(simulated)
    print(url, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


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
    concurrency: Annotated[int, typer.Option(min=0, help="Requests worked on at once; 0: all.")] = 0,
    cache: Annotated[bool, typer.Option("--cache", help="Read prompts from a cache as far as they are known.")] = False,
    cached_cost: Annotated[
        float, typer.Option(min=0, max=1, help="What a cached token takes, of another's time.")
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
    """Serve a simulated model that speaks OpenAI's chat protocol, until Ctrl-C; its base URL is printed.

    It answers all that Footnote asks, at the pace that is set, from the passages in the prompt: so a deployment can be
    sized before its server is there. It knows nothing. GET /counts tells requests and tokens so far.

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
    simulated = SimulatedModel(
        pace, FaultRates(busy, broken, cut), {**REPLY_LENGTHS, **parse_lengths(lengths)}, spread, seed
    )
    try:
        asyncio.run(_serve(simulated, host, port))
    except KeyboardInterrupt:
        return
    except OSError as error:
        raise EvaluationError(f"{host}:{port} cannot be listened on: {error.strerror}.", hint="Try --port 0.") from None


def parse_lengths(text: str) -> Mapping[str, ReplyLength]:
    """Return lengths that are written as `query=15,split=5x25`.

    Raises:
        EvaluationError: a part of it is none, or of no kind that there is.
    """
    found = {}
    for part in filter(None, text.replace(" ", "").split(",")):
        length = _LENGTH.fullmatch(part)
        if not length or length[1] not in REPLY_LENGTHS or not int(length[3]):
            known = ", ".join(REPLY_LENGTHS)
            raise EvaluationError(f"“{part}” is no length of a reply.", hint=f"Write query=15; there are: {known}.")
        found[length[1]] = ReplyLength(int(length[3]), int(length[2] or 1))
    return found


async def _serve(simulated: SimulatedModel, host: str, port: int) -> None:
    server, url = await start_model_server(simulated, host, port)
    print(url, flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve_until_input_ends(decode_simulation(sys.argv[1])))
