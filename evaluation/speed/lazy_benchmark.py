"""Measure the searches of a lazy corpus: new questions, the same again, and eight at once."""

import asyncio
import resource
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer

from evaluation.reports.printing import AsJson, print_report
from evaluation.speed.workload import append_milliseconds, median_or_nan, quantile
from evaluation.workbench import open_home
from storage.manifest import Manifest
from storage.passages import PassageStore

QUESTION_WORDS = 7
AT_ONCE = 8


def lazy_search(
    home: Annotated[Path, typer.Argument(help="A home with a lazy corpus in it.", exists=True)],
    corpus: Annotated[str, typer.Option(help="The corpus that is searched.")] = "wikipedia",
    questions: Annotated[int, typer.Option(help="How many new questions.")] = 300,
    seed: Annotated[int, typer.Option(help="Other questions for another number.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Time searches of a lazy corpus: new questions, the same again, and eight new ones at once.

    Example: footnote evaluate speed lazy .footnote --corpus wikipedia
    """
    report = asyncio.run(_measure_lazy(home, corpus, questions, Random(seed)))
    heading = f"{report['passages']:,} passages, {report['kept']:,} vectors kept; memory {report['memory_mb']:,} MB"
    lines = (
        f"{name}: p50 {report[name]['p50_ms']} ms, p95 {report[name]['p95_ms']} ms"
        for name in ("cold", "warm", "cold, eight at once")
    )
    print_report(report, "\n".join((heading, *lines)), as_json=as_json)


async def _measure_lazy(home: Path, corpus: str, count: int, random: Random) -> dict[str, Any]:
    async with open_home(home) as app:
        store = app.passages
        posed = [await _make_question(app.manifest, corpus, random) for _ in range(2 * count)]
        alone, together = posed[:count], posed[count:]
        await store.search(posed[0], [corpus], 10)
        cold, warm, at_once = list[float](), list[float](), list[float]()
        for times in (cold, warm):
            for text in alone:
                await _time_search(store, corpus, text, times)
                await store.flush()  # as between the questions of people
        for start in range(0, count, AT_ONCE):
            group = together[start : start + AT_ONCE]
            await asyncio.gather(*(_time_search(store, corpus, text, at_once) for text in group))
        (info,) = [info for info in await app.manifest.corpora() if info.name == corpus]
        await store.flush()
        return {
            "passages": info.passages,
            "kept": store.dense.count(corpus),
            "cold": _summarise(cold),
            "warm": _summarise(warm),
            "cold, eight at once": _summarise(at_once),
            "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }


async def _make_question(manifest: Manifest, corpus: str, random: Random) -> str:
    """Return a question about some words of a random passage of the corpus."""
    head = (await manifest.lag(0, 1)).head
    while True:
        versions = await manifest.listed(corpus, after=random.randrange(head), limit=1)
        texts = [passage.text.split() for version in versions for passage in version.passages]
        if long := [words for words in texts if len(words) > QUESTION_WORDS]:
            words = random.choice(long)
            start = random.randrange(len(words) - QUESTION_WORDS)
            return f"What is known about {' '.join(words[start : start + QUESTION_WORDS])}?"


async def _time_search(store: PassageStore, corpus: str, text: str, times: list[float]) -> None:
    with append_milliseconds(times):
        await store.search(text, [corpus], 10)


def _summarise(times: Sequence[float]) -> dict[str, float]:
    return {"p50_ms": round(median_or_nan(times), 1), "p95_ms": round(quantile(times, 0.95), 1)}
