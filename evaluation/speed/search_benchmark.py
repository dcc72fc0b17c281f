"""Measure search: over 100,000 passages in three corpora, alone and during an ingest; and over a lazy corpus.

The three corpora are filled with vectors hashed from words; questions and the ingest go through the real embedder.
"""

import asyncio
import resource
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Annotated, Any

import numpy as np
import typer

from evaluation.reports.printing import AsJson, print_report
from evaluation.speed.workload import (
    append_milliseconds,
    describe_times,
    generate_texts,
    median_or_nan,
    quantile,
    watch_event_loop,
)
from evaluation.workbench import PageSource, open_home
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.types import Block, Page, Section
from storage.database.engine import open_database
from storage.database.worker_threads import IndexThreads
from storage.indexes.dense import DenseIndex
from storage.indexes.embedding import Vectors, open_embedder
from storage.indexes.lexical import LexicalIndex
from storage.manifest import Manifest
from storage.passages import PassageStore

WORDS = 100
QUESTION_WORDS = 9
QUOTED_WORDS = 7  # words of a passage in each question to a lazy corpus
AT_ONCE = 8
PAUSE_SECONDS = 0.02


@dataclass(frozen=True)
class HashedEmbedder:
    """Makes vectors from hashes of words, so that an index is filled fast. It has the name of the real embedder."""

    name: str
    dimensions: int

    def knows(self, text: str) -> float:
        return float(bool(text))

    def embed(self, texts: Sequence[str], *, polite: bool = False) -> Vectors:
        del polite
        rows = np.stack([self._embed_one(text) for text in texts])
        vectors: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return vectors

    def _embed_one(self, text: str) -> Vectors:
        seeds = [zlib.crc32(word.encode()) for word in text.split()]
        return np.random.default_rng(seeds).normal(size=self.dimensions).astype(np.float32)


def search(
    passages: Annotated[int, typer.Option(help="Number of passages, in three corpora.")] = 100_000,
    ingested: Annotated[int, typer.Option(help="Number of passages ingested during the second measurement.")] = 10_000,
    questions: Annotated[int, typer.Option(help="Number of questions asked while nothing else runs.")] = 300,
    as_json: AsJson = False,
) -> None:
    """Time searches over two of three corpora, alone and during an ingest in the same process.

    Example: footnote evaluate speed search --passages 20000 --ingested 1000
    """
    with tempfile.TemporaryDirectory() as scratch:
        report = asyncio.run(_measure(Path(scratch), passages, ingested, questions))
    print_report(report, _render(report), as_json=as_json)


async def _measure(home: Path, passages: int, ingested: int, questions: int) -> dict[str, Any]:
    real = open_embedder("minilm", {})
    with ExitStack() as stack:
        database = stack.enter_context(open_database("", home=home))
        threads = IndexThreads.start(stack)
        dense, lexical = DenseIndex(home / "chroma", embedder=real.name), LexicalIndex(home / "lexical")
        stack.callback(dense.close)
        stack.callback(lexical.close)
        hashed = HashedEmbedder(real.name, real.dimensions)
        store = PassageStore(Manifest(database), dense, lexical, hashed, threads)
        started = time.monotonic()
        for number in range(3):
            await refresh_corpus(_generate_pages(passages // 3, number), f"corpus-{number}", store, progress=_ignore)
        filled = time.monotonic() - started
        store = replace(store, embedder=real, polite=True)
        await _time_searches(store, 20, Random(1))
        alone = await _time_searches(store, questions, Random(2))
        started = time.monotonic()
        ingest = asyncio.create_task(refresh_corpus(_generate_pages(ingested, 9), "corpus-2", store, progress=_ignore))
        busy = await _time_searches(store, questions * 100, Random(3), until=ingest)
        await ingest
        return {
            "passages": passages,
            "filling_passages_per_second": round(passages / filled),
            "alone": alone,
            "ingesting": {**busy, "passages_per_second": round(ingested / (time.monotonic() - started))},
            "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }


def _generate_pages(count: int, seed: int) -> PageSource:
    """Return a source of pages, each with one passage of random words; the seed decides which."""

    def pages() -> Iterator[tuple[str, str, Page]]:
        texts = generate_texts(Random(seed), WORDS)
        for number in range(count):
            yield f"{seed}-{number}", f"{number}", Page(f"Page {number}", (Section((), (Block(next(texts)),)),))

    return PageSource(count, pages)


async def _time_searches(
    store: PassageStore, count: int, random: Random, *, until: asyncio.Task[Any] | None = None
) -> dict[str, float]:
    """Ask up to `count` questions, one after the other. If `until` is set, stop when that task is done."""
    times, texts = list[float](), generate_texts(random, QUESTION_WORDS)
    async with watch_event_loop() as lags:
        for _ in range(count):
            if until and until.done():
                break
            with append_milliseconds(times):
                await store.search(next(texts), ["corpus-0", "corpus-1"], 10)
            await asyncio.sleep(PAUSE_SECONDS)
    return {
        "searches": len(times),
        **describe_times("search", times, "p50", "p95"),
        **describe_times("loop_lag", lags, "p99", "max"),
    }


def _render(report: dict[str, Any]) -> str:
    lines = [
        f"{report['passages']:,} passages in three corpora, scope of two; memory {report['memory_mb']:,} MB",
        f"filled at {report['filling_passages_per_second']:,} passages/s (vectors by hashing)",
    ]
    for name, times in (("alone", report["alone"]), ("while ingesting", report["ingesting"])):
        searches = f"search p50 {times['search_p50_ms']} ms, p95 {times['search_p95_ms']} ms"
        lags = f"loop lag p99 {times['loop_lag_p99_ms']} ms, max {times['loop_lag_max_ms']} ms"
        lines.append(f"{name}: {searches} over {times['searches']:,} questions; {lags}")
    return "\n".join([*lines, f"ingested meanwhile at {report['ingesting']['passages_per_second']:,} passages/s"])


def _ignore(_: object) -> None:
    """Ignore progress."""


def lazy_search(
    home: Annotated[Path, typer.Argument(help="A home with a lazy corpus in it.", exists=True)],
    corpus: Annotated[str, typer.Option(help="The corpus that is searched.")] = "wikipedia",
    questions: Annotated[int, typer.Option(help="How many new questions.")] = 300,
    seed: Annotated[int, typer.Option(help="The seed: another number gives other questions.")] = 1,
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
    """Return a question made of some words of a random passage of the corpus."""
    head = (await manifest.lag(0, 1)).head
    while True:
        versions = await manifest.listed(corpus, after=random.randrange(head), limit=1)
        texts = [passage.text.split() for version in versions for passage in version.passages]
        if long := [words for words in texts if len(words) > QUOTED_WORDS]:
            words = random.choice(long)
            start = random.randrange(len(words) - QUOTED_WORDS)
            return f"What is known about {' '.join(words[start : start + QUOTED_WORDS])}?"


async def _time_search(store: PassageStore, corpus: str, text: str, times: list[float]) -> None:
    with append_milliseconds(times):
        await store.search(text, [corpus], 10)


def _summarise(times: Sequence[float]) -> dict[str, float]:
    return {"p50_ms": round(median_or_nan(times), 1), "p95_ms": round(quantile(times, 0.95), 1)}
