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
    """Give a list that fills with the event loop's lags, in milliseconds, until the context ends.

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
    """Return the innermost function of ours that a thread is in."""
    while frame and not frame.f_code.co_filename.startswith(_ROOMS):
        frame = frame.f_back
    if frame is None:
        return "elsewhere, or waiting for the processor"
    file = Path(frame.f_code.co_filename).relative_to(Path(__file__).parents[2])
    return f"{file}: {frame.f_code.co_qualname}"


ORDINARY = """
the of and to in a is that for it was on are as with be by this have from or had not but what were they which can all
their there we one you if when will more would who so no out up about time them some other into could then these only
new over such man first any may people after water very work must also before made well because through most where much
between many year down house off day here should part against world while few old again place small great three found
still city state long same use without however another number last under never right case point during next hand school
home set later country kind group water room side order line service river area church power development early open
children possible far general public young given land body family form night light human large better life best body
become important church second problem company system question course war town water market result bring turn report
member office street table level line local effect history age study book field week month value river moment reason
paper record road wall north south east west winter summer morning bridge station harbour valley forest island mountain
garden window engine letter answer rule price law tax court army king queen prince minister party vote union trade ship
train plane horse dog bird fish tree stone iron gold silver glass wood cloth bread milk salt sugar coffee wine song
music dance theatre film picture colour red green blue white black doctor nurse teacher student pupil farmer worker
artist writer player judge captain guest visitor customer manager budget invoice contract holiday salary meeting agenda
project release server database password backup laptop printer travel hotel ticket expense policy approval deadline
"""
BEGINNINGS = "ar bel cor dal fen gar hol ist jor kel lor mar nor os pel quin ros sel tor ul ver wen yar zan"
MIDDLES = "a e i o u an en in on ur al or"
ENDINGS = "berg dale ford gate ham ian ister lund mere more ness nik ovic port sen stad tin ton vale wick"
INVENTED_SHARE = 0.13
SENTENCE_WORDS = (6, 18)
COMMA_SHARE = 0.06


def generate_texts(random: Random, words: int) -> Iterator[str]:
    """Yield texts of `words` words each, in sentences, without end."""
    ordinary = ORDINARY.split()
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
