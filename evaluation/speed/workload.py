"""Generate seeded texts for benchmarks, watch the event loop's lag, and take quantiles."""

import asyncio
import math
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import accumulate, product
from pathlib import Path
from random import Random
from threading import Event, Thread, get_ident
from types import FrameType

LAG_INTERVAL = 0.005
LATE_SECONDS = 0.005  # the longest allowed block of the loop
_LOOK_INTERVAL = 0.002
_ROOMS = tuple(f"{Path(__file__).parents[2] / room}{os.sep}" for room in ("bot", "ingest", "pipeline", "storage"))


@asynccontextmanager
async def watch_event_loop(holders: Counter[str] | None = None) -> AsyncIterator[list[float]]:
    """Yield a list that collects the event loop's lags, in milliseconds, until the context ends.

    `holders` counts the places in our code where the loop's thread was in each sample while it was late.
    """
    lags: list[float] = []
    beat, ended = [time.perf_counter()], Event()
    watch = asyncio.create_task(_record_lags(lags, beat))
    look = Thread(target=_find_holders, args=(holders, beat, get_ident(), ended), name="loop-watch", daemon=True)
    if holders is not None:
        look.start()
    try:
        yield lags
    finally:
        watch.cancel()
        ended.set()


def quantile(values: Sequence[float], of: float) -> float:
    """Return the value below which this share of all values lies; NaN without values."""
    return sorted(values)[min(len(values) - 1, int(of * len(values)))] if values else math.nan


def render_holds(holds: Mapping[str, bool]) -> list[str]:
    """Return a line for each limit: whether it holds."""
    return [f"{name}: {'holds' if held else 'DOES NOT HOLD'}" for name, held in holds.items()]


def median_or_nan(values: Sequence[float]) -> float:
    return statistics.median(values) if values else math.nan


async def _record_lags(lags: list[float], beat: list[float]) -> None:
    while True:
        beat[0] = started = time.perf_counter()
        await asyncio.sleep(LAG_INTERVAL)
        lags.append((time.perf_counter() - started - LAG_INTERVAL) * 1000)


def _find_holders(holders: Counter[str], beat: Sequence[float], thread: int, ended: Event) -> None:
    while not ended.wait(_LOOK_INTERVAL):
        if time.perf_counter() - beat[0] > LAG_INTERVAL + LATE_SECONDS:
            holders[_name_place(sys._current_frames().get(thread))] += 1  # noqa: SLF001 - the one way to another's frames


def _name_place(frame: FrameType | None) -> str:
    """Return the innermost function of this project on a thread's stack."""
    while frame and not frame.f_code.co_filename.startswith(_ROOMS):
        frame = frame.f_back
    if frame is None:
        return "elsewhere, or waiting for the processor"
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
    """Yield texts of `words` words each, in sentences, without end."""
    ordinary = ORDINARY_WORDS.read_text("utf-8").split()
    parts = product(BEGINNINGS.split(), MIDDLES.split(), ENDINGS.split())
    invented = ["".join(three).capitalize() for three in parts]
    weights = [1 / (rank + 8) for rank in range(len(ordinary))]
    rare = sum(weights) * INVENTED_SHARE / (1 - INVENTED_SHARE) / len(invented)
    shares = list(accumulate([*weights, *(rare for _ in invented)]))
    while True:
        yield _punctuate(random, random.choices([*ordinary, *invented], cum_weights=shares, k=words))


def _punctuate(random: Random, words: list[str]) -> str:
    """Return words with capitals and full stops; the last sentence may be short."""
    start = 0
    while start < len(words):
        end = min(start + random.randint(*SENTENCE_WORDS), len(words))
        words[start] = words[start].capitalize()
        words[start:end] = [f"{word}," if random.random() < COMMA_SHARE else word for word in words[start:end]]
        words[end - 1] = words[end - 1].rstrip(",") + "."
        start = end
    return " ".join(words)
