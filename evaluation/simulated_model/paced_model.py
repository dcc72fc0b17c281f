"""Make replies from prompts at a set pace, as a simulated model: `footnote evaluate speed serve-model`."""

import asyncio
import math
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from random import Random
from typing import Annotated

import typer

from evaluation import EvaluationError
from evaluation.simulated_model.chat_protocol import ChatRequest, Fault, Reply, answer_error, get_token_limit
from evaluation.simulated_model.model_pace import (
    FaultRates,
    HabitRates,
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
from evaluation.simulated_model.model_server import serve


class PacedModel:
    """The script of a simulated model: replies made from the prompt, at a set pace, with random faults."""

    def __init__(self, simulated: SimulatedModel, clock: Callable[[], float] = time.monotonic) -> None:
        self._simulated, self._clock = simulated, clock
        self._pacer = ReplyPacer(simulated.pace)
        self._prefixes = PrefixCache()
        self._chance = Random(simulated.seed)

    def __call__(self, request: ChatRequest) -> Reply | Fault:
        """Return a reply, or a fault at the set rates."""
        drawn, faults = self._chance.random(), self._simulated.faults
        if drawn < faults.busy:
            return answer_error(429, "Rate limit reached. Please try again in 1s.", retry_after="1")
        if drawn < faults.busy + faults.broken:
            return answer_error(500, "The server had an error while processing your request.")
        prompt = join_messages(request.body["messages"])
        reply = build_reply(request.body, self._simulated)
        size, pieces = count_tokens(prompt), tuple(reply.pieces())
        sent = pieces[: get_token_limit(request.body)]
        cached = min(self._prefixes.read(prompt), size) if self._simulated.pace.cache else 0
        begins = self._pacer.begins(size, cached, self._clock())
        return Reply(
            "".join(sent),
            pieces=sent,
            finish="stop" if sent == pieces and not reply.cut else "length",
            cached=cached,
            prompt_tokens=size,
            tokens=len(sent),
            schedule=chain((begins,), self._pacer.ends(len(sent), begins)),
            cut=len(sent) // 2 if request.streamed and self._chance.random() < faults.cut else None,
        )


@contextmanager
def run_model_server(simulated: SimulatedModel) -> Iterator[str]:
    """Run a server in a separate process, and yield its base URL. It ends with the block or with this process."""
    command = [sys.executable, "-m", "evaluation.simulated_model.paced_model", encode_simulation(simulated)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


async def serve_simulation(
    simulated: SimulatedModel, until: Callable[[], Awaitable[object]], host: str = "127.0.0.1", port: int = 0
) -> None:
    """Serve a simulated model and print its base URL, until `until` returns."""
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
    out: Annotated[float, typer.Option(min=0, help="Tokens per second of one reply; 0: no limit.")] = 60.0,
    prompt: Annotated[
        float, typer.Option("--in", min=0, help="Tokens per second of one prompt; 0: no limit.")
    ] = 4_000.0,
    total_out: Annotated[float, typer.Option(min=0, help="Tokens per second of all replies; 0: no limit.")] = 0.0,
    total_in: Annotated[float, typer.Option(min=0, help="Tokens per second of all prompts; 0: no limit.")] = 0.0,
    concurrency: Annotated[int, typer.Option(min=0, help="Requests answered at once; 0: all.")] = 0,
    cache: Annotated[bool, typer.Option("--cache", help="Cache the prefixes of prompts.")] = False,
    cached_cost: Annotated[
        float, typer.Option(min=0, max=1, help="The time for a cached token, as a share of another token's time.")
    ] = 0.0,
    lengths: Annotated[str, typer.Option(help="Tokens by kind of reply; 5x25: 5 items of 25 tokens.")] = _DEFAULTS,
    spread: Annotated[
        float, typer.Option(min=0, help="Standard deviation of lengths, as a share of their mean.")
    ] = 0.0,
    busy: Annotated[float, typer.Option(min=0, max=1, help="Share of requests refused with 429.")] = 0.0,
    broken: Annotated[float, typer.Option(min=0, max=1, help="Share of requests refused with 500.")] = 0.0,
    cut: Annotated[float, typer.Option(min=0, max=1, help="Share of streams cut off half-way.")] = 0.0,
    loops: Annotated[float, typer.Option(min=0, max=1, help="Share of replies that repeat themselves.")] = 0.0,
    cuts: Annotated[float, typer.Option(min=0, max=1, help="Share of replies that end in the middle.")] = 0.0,
    drift: Annotated[float, typer.Option(min=0, max=1, help="Share of replies in another language.")] = 0.0,
    echoes: Annotated[float, typer.Option(min=0, max=1, help="Share of replies that repeat the prompt.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of lengths, contents, habits and faults.")] = 1,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port to listen at; 0: a free port.")] = 0,
) -> None:
    """Serve a simulated model with OpenAI's chat protocol until Ctrl-C, and print its base URL.

    It answers all prompts of Footnote at the set pace with text from the prompt's passages, so that a deployment can be
    sized before its server exists. It has no knowledge. GET /counts returns the counts of requests and tokens.

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
    bad = HabitRates(loops, cuts, drift, echoes)
    simulated = SimulatedModel(pace, FaultRates(busy, broken, cut), parse_lengths(lengths), bad, spread, seed)
    try:
        asyncio.run(serve_simulation(simulated, asyncio.Event().wait, host, port))
    except KeyboardInterrupt:
        return
    except OSError as error:
        raise EvaluationError(f"Cannot listen at {host}:{port}: {error.strerror}.", hint="Try --port 0.") from None


def parse_lengths(text: str) -> Mapping[str, ReplyLength]:
    """Read reply lengths such as `query=15,split=5x25`. Raises `EvaluationError`."""
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
