"""Measure many concurrent turns against a simulated model server: time, limits, memory, and use of its token rate."""

import asyncio
import gc
import math
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.answering.question_answering import answer
from bot.app import App
from bot.server.service import load_ahead
from bot.settings.tables.model_values import ModelValues
from bot.settings.tables.settings_tables import LimitSettings
from bot.types import TurnRequest
from evaluation.answers.question_sets import Exam, read_exam
from evaluation.reports.printing import AsJson, fail_unless, print_report, render_holds, render_table
from evaluation.simulated_model.model_pace import ServerPace, SimulatedModel
from evaluation.simulated_model.model_server import fetch_counts
from evaluation.simulated_model.paced_model import run_model_server
from evaluation.speed.workload import describe_times, watch_event_loop
from evaluation.workbench import EXAMPLE_QUESTIONS, TERMINAL, open_corpus

MOST_ENDED = 0.9  # once this share of turns has ended, the others cannot use the whole rate
LEAST_USED = 0.9  # share of the server's rate to be used while most turns run
MOST_HOLDERS = 20  # code locations listed by `--watch`
_SAMPLE_INTERVAL = 0.5


@dataclass(frozen=True)
class TurnLoad:
    turns: int = 100
    waves: int = 3
    system: str = "wikichat"
    first_token: float = 0.4
    out: float = 60.0
    prompt: float = 4_000.0
    rate: float = 1_000.0  # tokens a second that the server sends at most, of all replies together
    concurrency: int = 64
    calls: int = 6  # budget of a turn in the last wave, lower than a turn needs

    @property
    def pace(self) -> ServerPace:
        return ServerPace(self.first_token, self.out, self.prompt, total_out=self.rate)


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """The figures of a finished turn. Its answer is not kept: it would look like growth of memory."""

    how: str
    seconds: float
    calls: int
    failed: bool


@dataclass(frozen=True, slots=True)
class TokenSample:
    """How many tokens a server has sent up to a moment, and how many turns have ended."""

    at: float
    tokens: int
    ended: int


@dataclass(frozen=True, slots=True)
class TurnWave:
    turns: Sequence[EndedTurn]
    seconds: float
    lags: Sequence[float]
    memory_mb: float
    requests: int
    busiest: int
    samples: Sequence[TokenSample]
    rate: float
    processor: float  # seconds of this process, without the model's

    def summary(self) -> dict[str, Any]:
        """Return the figures to print, rounded."""
        calls = [turn.calls for turn in self.turns]
        return {
            "turns": len(self.turns),
            "ended": dict(Counter(turn.how for turn in self.turns)),
            "seconds": round(self.seconds, 1),
            **describe_times("turn", [turn.seconds for turn in self.turns], "median", "p95", unit="s", digits=2),
            "calls": sum(calls),
            "calls_of_a_turn_at_most": max(calls),
            "requests": self.requests,
            "at_once_at_most": self.busiest,
            "tokens": self.samples[-1].tokens - self.samples[0].tokens,
            "rate_used": _rate_share(token_rate(self.samples), self.rate),
            "rate_used_at_its_height": _rate_share(
                token_rate(samples_at_peak(self.samples, len(self.turns))), self.rate
            ),
            "processor_ms_a_turn": round(self.processor * 1000 / len(self.turns)),
            **describe_times("loop_lag", self.lags, "median", "p99", "max"),
            "memory_mb": round(self.memory_mb, 1),
        }


def token_rate(samples: Sequence[TokenSample]) -> float:
    """Return the tokens per second from the first sample to the last; NaN if there are fewer than two samples."""
    seconds = samples[-1].at - samples[0].at if samples else 0.0
    return (samples[-1].tokens - samples[0].tokens) / seconds if seconds else math.nan


def samples_at_peak(samples: Sequence[TokenSample], turns: int) -> Sequence[TokenSample]:
    """Return the samples from the first token until most turns have ended."""
    begun = next((place for place, sample in enumerate(samples) if sample.tokens > samples[0].tokens), 1)
    most = [sample for sample in samples[max(0, begun - 1) :] if sample.ended <= turns * MOST_ENDED]
    return most if len(most) > 1 else samples


async def run_wave(
    app: App, texts: Sequence[str], load: TurnLoad, server: str, holders: Counter[str] | None = None
) -> TurnWave:
    """Ask all questions of a wave at once."""
    before, started = await asyncio.to_thread(fetch_counts, server), time.monotonic()
    questions = [TurnRequest(texts[place % len(texts)], TERMINAL, system=load.system) for place in range(load.turns)]
    ended, samples = list[EndedTurn](), list[TokenSample]()
    sampling = asyncio.create_task(_sample_tokens(server, ended, samples))
    processor = time.process_time()
    async with watch_event_loop(holders) as lags:
        await asyncio.gather(*(_run_one_turn(app, question, ended) for question in questions))
    seconds, processor = time.monotonic() - started, time.process_time() - processor
    sampling.cancel()
    after = await asyncio.to_thread(fetch_counts, server)
    samples.insert(0, TokenSample(started, before.tokens, 0))
    samples.append(TokenSample(started + seconds, after.tokens, load.turns))
    gc.collect()
    requests = after.requests - before.requests
    return TurnWave(ended, seconds, lags, _memory_mb(), requests, after.busiest, samples, load.rate, processor)


async def _sample_tokens(server: str, ended: Sequence[EndedTurn], samples: list[TokenSample]) -> None:
    while True:
        await asyncio.sleep(_SAMPLE_INTERVAL)
        counts = await asyncio.to_thread(fetch_counts, server)
        samples.append(TokenSample(time.monotonic(), counts.tokens, len(ended)))


async def _run_one_turn(app: App, asked: TurnRequest, ended: list[EndedTurn]) -> None:
    done = await answer(app, asked, lambda _: None)
    how = done.fault.kind if done.fault else str(done.answer.status)
    ended.append(EndedTurn(how, done.seconds, done.usage.llm_calls, failed=bool(done.fault)))


def _memory_mb() -> float:
    """Return the memory of this process that is in use, in MB, as Linux counts it."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def _rate_share(rate: float, most: float) -> float | None:
    """Return a rate as a share of its limit; None if there is no limit or no rate."""
    return None if math.isinf(most) or math.isnan(rate) else round(rate / most, 3)


def turns(
    system: Annotated[str, typer.Option(help="Which system is asked.")] = TurnLoad.system,
    at_once: Annotated[int, typer.Option("--turns", min=1, help="Number of questions asked at once.")] = TurnLoad.turns,
    waves: Annotated[int, typer.Option(min=2, help="Number of waves.")] = TurnLoad.waves,
    first_token: Annotated[float, typer.Option(min=0, help="Seconds to a reply's first token.")] = TurnLoad.first_token,
    out: Annotated[float, typer.Option(min=1, help="Tokens a second of one reply.")] = TurnLoad.out,
    prompt: Annotated[float, typer.Option("--in", min=1, help="Tokens a second of one prompt.")] = TurnLoad.prompt,
    rate: Annotated[float, typer.Option(min=0, help="Tokens a second of all replies; 0: no limit.")] = TurnLoad.rate,
    concurrency: Annotated[int, typer.Option(min=1, help="Model calls at once.")] = TurnLoad.concurrency,
    calls: Annotated[int, typer.Option(min=1, help="Calls that a turn may make in the last wave.")] = TurnLoad.calls,
    watch: Annotated[bool, typer.Option("--watch", help="Name functions that block the event loop over 5 ms.")] = False,
    as_json: AsJson = False,
) -> None:
    """Ask many questions at once, in waves, with a simulated model, and then again with a smaller budget.

    Prints the time of turns, their share of the server's token rate, the lag of the event loop, calls at once, and
    memory after each wave; the first wave opens everything. The exit status is 1 if a limit does not hold.

    Example: footnote evaluate speed turns --system wikichat --turns 50 --waves 3 --rate 500
    """
    load = TurnLoad(at_once, waves, system, first_token, out, prompt, rate or math.inf, concurrency, calls)
    before = os.getloadavg()[0]
    report = asyncio.run(measure_load(read_exam(EXAMPLE_QUESTIONS), load, watch=watch))
    report["load_of_machine"] = [round(before, 1), round(os.getloadavg()[0], 1)]
    print_report(report, _render(report), as_json=as_json)
    fail_unless(report["holds"].values())


async def measure_load(exam: Exam, load: TurnLoad, *, watch: bool = False) -> dict[str, Any]:
    texts = [posed.text for posed in exam.questions]
    holders = Counter[str]() if watch else None
    with run_model_server(SimulatedModel(load.pace)) as server:
        model, limits = _model(server, load.concurrency), LimitSettings(seconds=3_600)
        async with open_corpus(exam.source, exam.corpus, model=model, limits=limits) as app:
            await load_ahead(app)
            ran = [await run_wave(app, texts, load, server, holders) for _ in range(load.waves)]
            less = limits.model_copy(update={"calls": load.calls})
            tight = replace(app, settings_source=app.settings.model_copy(update={"limits": less}))
            short = await run_wave(tight, texts, load, server)
    return {
        "load": asdict(load) | {"rate": None if math.isinf(load.rate) else load.rate},
        "waves": [wave.summary() for wave in ran],
        "short": short.summary(),
        "growth_kb_a_turn": _memory_growth(ran, load),
        "holds": _check_limits(ran, short, load),
        **({"loop_held_by": dict(holders.most_common(MOST_HOLDERS))} if holders is not None else {}),
    }


def _check_limits(waves: Sequence[TurnWave], short: TurnWave, load: TurnLoad) -> dict[str, bool]:
    """Return whether each limit held, by the numbers of requests that the server counted itself."""
    used = [wave.summary()["rate_used_at_its_height"] for wave in waves]
    holds = {
        "concurrency": max(wave.busiest for wave in (*waves, short)) <= load.concurrency,
        "budget": max(turn.calls for turn in short.turns) <= load.calls
        and short.requests <= load.calls * load.turns,
        "count": all(sum(turn.calls for turn in wave.turns) == wave.requests for wave in waves),
        "no failure": not any(turn.failed for wave in waves for turn in wave.turns),
    }  # fmt: skip
    return holds if math.isinf(load.rate) else {**holds, "rate": all(share and share >= LEAST_USED for share in used)}


def _memory_growth(waves: Sequence[TurnWave], load: TurnLoad) -> float:
    """Return the growth of memory in kilobytes per turn, over the later half of the waves, when caches are full."""
    middle_wave = len(waves) // 2 - 1
    grown = waves[-1].memory_mb - waves[middle_wave].memory_mb
    return round(grown * 1024 / (load.turns * (len(waves) - 1 - middle_wave)), 2)


def _model(server: str, concurrency: int) -> ModelValues:
    """Return the settings of a model whose timeouts are longer than all turns."""
    patience: dict[str, Any] = dict.fromkeys(("timeout_seconds", "first_token_seconds", "idle_seconds"), 3_600)
    return ModelValues(
        name="simulated", base_url=server, structured="text", max_concurrency=concurrency, retries=0, **patience
    )


def _render(report: dict[str, Any]) -> str:
    waves = [*((str(place), figures) for place, figures in enumerate(report["waves"], 1)), ("short", report["short"])]
    columns = [name for name in report["short"] if name != "ended"]
    rows = [
        (name, *map(figures.get, columns), ", ".join(f"{count} {how}" for how, count in figures["ended"].items()))
        for name, figures in waves
    ]
    lines = [
        "{system}: {turns} turns at once; {first_token} s to a first token, {out:g} tokens/s of a reply, {prompt:g} of "
        "a prompt, {rate} of all replies; {concurrency} calls at once at most, and {calls} of a turn in the short "
        "wave".format(**report["load"]),
        "",
        render_table(["wave", *(name.replace("_", " ") for name in columns), "ended"], rows),
        "",
        *(f"{count} samples of a late loop: {place}" for place, count in report.get("loop_held_by", {}).items()),
        "load of this machine: {} before, {} after".format(*report["load_of_machine"]),
        f"memory grew by {report['growth_kb_a_turn']} KB a turn in the later half of the waves",
        "; ".join(render_holds(report["holds"])),
    ]
    return "\n".join(lines)
