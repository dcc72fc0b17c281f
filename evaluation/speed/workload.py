"""Generate random texts for benchmarks, time work, watch the event loop's lag, and compute quantiles."""

import asyncio
import math
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import accumulate, product
from pathlib import Path
from random import Random
from threading import Event, Thread, get_ident
from types import FrameType

LAG_INTERVAL = 0.005
LATE_SECONDS = 0.005  # the longest allowed block of the loop
_SAMPLE_INTERVAL = 0.002
_ROOMS = tuple(f"{Path(__file__).parents[2] / room}{os.sep}" for room in ("bot", "ingest", "pipeline", "storage"))


@asynccontextmanager
async def watch_event_loop(holders: Counter[str] | None = None) -> AsyncIterator[list[float]]:
    """Yield a list to which the event loop's lags are added, in milliseconds, until the block ends.

    While the loop is late, a thread samples its stack. `holders` counts these samples by our innermost function.
    """
    lags, beat, ended = list[float](), [time.perf_counter()], Event()
    watch = asyncio.create_task(_record_lags(lags, beat))
    sampler = Thread(target=_find_holders, args=(holders, beat, get_ident(), ended), name="loop-watch", daemon=True)
    if holders is not None:
        sampler.start()
    try:
        yield lags
    finally:
        watch.cancel()
        ended.set()


@contextmanager
def append_milliseconds(times: list[float]) -> Iterator[None]:
    """Append the duration of the block to `times`."""
    started = time.perf_counter()
    yield
    times.append((time.perf_counter() - started) * 1000)


def describe_times(
    name: str, times: Sequence[float], *parts: str, unit: str = "ms", digits: int | None = 1
) -> dict[str, float]:
    """Return parts of a distribution (`p95`, `median`, `max`), rounded, under keys such as `search_p95_ms`."""
    return {f"{name}_{part}_{unit}": round(_take_part(times, part), digits) for part in parts}


def _take_part(times: Sequence[float], part: str) -> float:
    if part == "max":
        return max(times, default=math.nan)
    return median_or_nan(times) if part in {"p50", "median"} else quantile(times, int(part[1:]) / 100)


def quantile(values: Sequence[float], of: float) -> float:
    """Return the value below which the share `of` of all values lies; NaN if there are none."""
    return sorted(values)[min(len(values) - 1, int(of * len(values)))] if values else math.nan


def median_or_nan(values: Sequence[float]) -> float:
    return statistics.median(values) if values else math.nan


async def _record_lags(lags: list[float], beat: list[float]) -> None:
    while True:
        beat[0] = started = time.perf_counter()
        await asyncio.sleep(LAG_INTERVAL)
        lags.append((time.perf_counter() - started - LAG_INTERVAL) * 1000)


def _find_holders(holders: Counter[str], beat: Sequence[float], thread: int, ended: Event) -> None:
    while not ended.wait(_SAMPLE_INTERVAL):
        if time.perf_counter() - beat[0] > LAG_INTERVAL + LATE_SECONDS:
            holders[_name_place(sys._current_frames().get(thread))] += 1  # noqa: SLF001 - the only way to read another thread's stack


def _name_place(frame: FrameType | None) -> str:
    """Return the file and name of the innermost function of this project on a thread's stack."""
    while frame and not frame.f_code.co_filename.startswith(_ROOMS):
        frame = frame.f_back
    if frame is None:
        return "other code, or waiting for the processor"
    file = Path(frame.f_code.co_filename).relative_to(Path(__file__).parents[2])
    return f"{file}: {frame.f_code.co_qualname}"


ORDINARY_WORDS = Path(__file__).with_name("ordinary_words.txt")
BEGINNINGS = "ar bel cor dal fen gar hol ist jor kel lor mar nor os pel quin ros sel tor ul ver wen yar zan"
MIDDLES = "a e i o u an en in on ur al or"
ENDINGS = "berg dale ford gate ham ian ister lund mere more ness nik ovic port sen stad tin ton vale wick"
INVENTED_SHARE = 0.13
SENTENCE_WORDS = (6, 18)
COMMA_SHARE = 0.06


def generate_texts(random: Random, words: int) -> Iterator[str]:
    """Yield texts without end. Each has `words` words, divided into sentences."""
    ordinary = ORDINARY_WORDS.read_text("utf-8").split()
    parts = product(BEGINNINGS.split(), MIDDLES.split(), ENDINGS.split())
    invented = ["".join(three).capitalize() for three in parts]
    weights = [1 / (rank + 8) for rank in range(len(ordinary))]
    rare = sum(weights) * INVENTED_SHARE / (1 - INVENTED_SHARE) / len(invented)
    shares = list(accumulate([*weights, *(rare for _ in invented)]))
    while True:
        yield _punctuate(random, random.choices([*ordinary, *invented], cum_weights=shares, k=words))


def _punctuate(random: Random, words: list[str]) -> str:
    """Join words into sentences with capitals, commas and full stops. The last sentence may be short."""
    start = 0
    while start < len(words):
        end = min(start + random.randint(*SENTENCE_WORDS), len(words))
        words[start] = words[start].capitalize()
        words[start:end] = [f"{word}," if random.random() < COMMA_SHARE else word for word in words[start:end]]
        words[end - 1] = words[end - 1].rstrip(",") + "."
        start = end
    return " ".join(words)
