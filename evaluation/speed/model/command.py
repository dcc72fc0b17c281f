"""`footnote evaluate speed serve-model`: a simulated server for whoever wants one."""

import asyncio
import math
import re
from collections.abc import Mapping
from typing import Annotated

import typer

from evaluation.errors import EvaluationError
from evaluation.speed.model.running import listen
from evaluation.speed.model.settings import LENGTHS, Faults, Length, Pace, Simulated

_LENGTH = re.compile(r"(\w+)=(?:(\d+)x)?(\d+)")
_DEFAULTS = ",".join(
    f"{kind}={f'{length.items}x' if length.items > 1 else ''}{length.tokens}" for kind, length in LENGTHS.items()
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
    pace = Pace(
        first_token=first_token,
        out=out or math.inf,
        prompt=prompt or math.inf,
        total_out=total_out or math.inf,
        total_prompt=total_in or math.inf,
        concurrency=concurrency,
        cache=cache,
        cached_cost=cached_cost,
    )
    simulated = Simulated(pace, Faults(busy, broken, cut), {**LENGTHS, **lengths_in(lengths)}, spread, seed)
    try:
        asyncio.run(_serve(simulated, host, port))
    except KeyboardInterrupt:
        return
    except OSError as error:
        raise EvaluationError(f"{host}:{port} cannot be listened on: {error.strerror}.", hint="Try --port 0.") from None


def lengths_in(text: str) -> Mapping[str, Length]:
    """Return lengths that are written as `query=15,split=5x25`.

    Raises:
        EvaluationError: a part of it is none, or of no kind that there is.
    """
    found = {}
    for part in filter(None, text.replace(" ", "").split(",")):
        length = _LENGTH.fullmatch(part)
        if not length or length[1] not in LENGTHS or not int(length[3]):
            known = ", ".join(LENGTHS)
            raise EvaluationError(f"“{part}” is no length of a reply.", hint=f"Write query=15; there are: {known}.")
        found[length[1]] = Length(int(length[3]), int(length[2] or 1))
    return found


async def _serve(simulated: Simulated, host: str, port: int) -> None:
    server, url = await listen(simulated, host, port)
    print(url, flush=True)
    async with server:
        await server.serve_forever()
