"""Many turns asked at once: what came of them, and how much of the model server's rate they used."""

import asyncio
import gc
import math
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.access import Asker
from bot.answering import answer
from bot.app import App
from bot.turns import Asked
from evaluation.speed.lags import middle, share, watched_loop
from evaluation.speed.model.running import counted

MOST_ENDED = 0.9
"""Share of turns after whose end a wave is no longer at its height: the others leave places empty."""
_ASKER = Asker(platform="terminal", kind="terminal")


@dataclass(frozen=True, slots=True)
class Ended:
    """What is kept of a turn: its answer would count as memory that grew."""

    how: str
    """Its status, or why it failed."""
    seconds: float
    calls: int
    failed: bool


@dataclass(frozen=True, slots=True)
class Sample:
    """How many tokens a server had sent at a moment, and how many turns had ended."""

    at: float
    tokens: int
    ended: int


@dataclass(frozen=True, slots=True)
class Wave:
    """What came of turns that were asked at once."""

    turns: Sequence[Ended]
    seconds: float
    lags: Sequence[float]
    memory_mb: float
    requests: int
    busiest: int
    samples: Sequence[Sample]
    rate: float
    """Tokens a second that the server sends at most."""

    def summary(self) -> dict[str, Any]:
        """Return the figures that are printed; milliseconds and seconds are rounded."""
        took = [one.seconds for one in self.turns]
        calls = [one.calls for one in self.turns]
        return {
            "turns": len(self.turns),
            "ended": dict(Counter(one.how for one in self.turns)),
            "seconds": round(self.seconds, 1),
            "turn_median_s": round(middle(took), 2),
            "turn_p95_s": round(share(took, 0.95), 2),
            "calls": sum(calls),
            "calls_of_a_turn_at_most": max(calls),
            "requests": self.requests,
            "at_once_at_most": self.busiest,
            "tokens": self.samples[-1].tokens - self.samples[0].tokens,
            "rate_used": _share_of(used(self.samples), self.rate),
            "rate_used_at_its_height": _share_of(used(height(self.samples, len(self.turns))), self.rate),
            "loop_lag_median_ms": round(middle(self.lags), 1),
            "loop_lag_p99_ms": round(share(self.lags, 0.99), 1),
            "loop_lag_max_ms": round(max(self.lags, default=0.0), 1),
            "memory_mb": round(self.memory_mb, 1),
        }


def used(samples: Sequence[Sample]) -> float:
    """Return how many tokens a second came between the first sample and the last; not a number of fewer than two."""
    seconds = samples[-1].at - samples[0].at if samples else 0.0
    return (samples[-1].tokens - samples[0].tokens) / seconds if seconds else math.nan


def height(samples: Sequence[Sample], turns: int) -> Sequence[Sample]:
    """Return the samples from the first token until most turns had ended."""
    begun = next((place for place, one in enumerate(samples) if one.tokens > samples[0].tokens), 1)
    most = [one for one in samples[max(0, begun - 1) :] if one.ended <= turns * MOST_ENDED]
    return most if len(most) > 1 else samples


async def wave(app: App, texts: Sequence[str], count: int, *, system: str, server: str, rate: float) -> Wave:
    """Ask so many questions at once, each of the texts in turn."""
    before, started = await asyncio.to_thread(counted, server), time.monotonic()
    asked = [Asked(texts[place % len(texts)], _ASKER, system=system) for place in range(count)]
    ended, samples = list[Ended](), list[Sample]()
    sampling = asyncio.create_task(_sample(server, ended, samples))
    async with watched_loop() as lags:
        await asyncio.gather(*(_ended(app, one, ended) for one in asked))
    seconds = time.monotonic() - started
    sampling.cancel()
    after = await asyncio.to_thread(counted, server)
    samples.insert(0, Sample(started, before.tokens, 0))
    samples.append(Sample(started + seconds, after.tokens, count))
    gc.collect()
    requests = after.requests - before.requests
    return Wave(ended, seconds, lags, _memory_mb(), requests, after.busiest, samples, rate)


async def _sample(server: str, ended: Sequence[Ended], samples: list[Sample]) -> None:
    while True:
        await asyncio.sleep(_EVERY)
        found = await asyncio.to_thread(counted, server)
        samples.append(Sample(time.monotonic(), found.tokens, len(ended)))


_EVERY = 0.5
"""Seconds between samples."""


async def _ended(app: App, asked: Asked, ended: list[Ended]) -> None:
    done = await answer(app, asked, lambda _: None)
    how = done.failure.kind if done.failure else str(done.answer.status)
    ended.append(Ended(how, done.seconds, done.usage.llm_calls, failed=bool(done.failure)))


def _memory_mb() -> float:
    """Return how much of this process is in memory, by Linux's own account."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def _share_of(rate: float, most: float) -> float | None:
    """Return a share, or nothing where there is no limit or no rate."""
    return None if math.isinf(most) or math.isnan(rate) else round(rate / most, 3)
