"""Measure search over 100,000 passages in three corpora, alone and during an ingest.

The index is filled with vectors hashed from words; questions and the ingest go through the real embedder.
"""

import asyncio
import json
import resource
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Annotated, Any

import numpy as np
import typer

from evaluation.speed.workload import generate_texts, quantile, watch_event_loop
from evaluation.workbench import PageSource, open_home
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.types import Block, Page, Section
from storage.database.engine import Database, open_database
from storage.indexes.dense import DenseIndex
from storage.indexes.embedding import Embedder, Vectors, open_embedder
from storage.indexes.lexical import LexicalIndex
from storage.manifest import Manifest
from storage.passages import IndexThreads, PassageStore

WORDS = 100
QUESTION_WORDS = 7


@dataclass(frozen=True)
class HashedEmbedder:
    """Replaces an embedder if only the load on the index matters: the same name, vectors from hashes of words."""

    name: str
    dimensions: int

    def knows(self, text: str) -> float:
        return float(bool(text))

    def embed(self, texts: Sequence[str], *, polite: bool = False) -> Vectors:
        del polite
        rows = np.stack([self._row(text) for text in texts])
        vectors: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return vectors

    def _row(self, text: str) -> Vectors:
        seeds = [zlib.crc32(word.encode()) for word in text.split()]
        return np.random.default_rng(seeds).normal(size=self.dimensions).astype(np.float32)


def generate_pages(count: int, seed: int, title: Callable[[int], str] = "Page {}".format) -> PageSource:
    """Return a source of pages of one passage each, of seeded words."""

    def pages() -> Iterator[tuple[str, str, Page]]:
        texts = generate_texts(Random(seed), WORDS)
        for number in range(count):
            yield f"{seed}-{number}", f"{number}", Page(title(number), (Section((), (Block(next(texts)),)),))

    return PageSource(count, pages)


def search(
    passages: Annotated[int, typer.Option(help="How many there are, in three corpora.")] = 100_000,
    ingested: Annotated[int, typer.Option(help="How many more are ingested meanwhile.")] = 10_000,
    questions: Annotated[int, typer.Option(help="How many are asked while nothing else runs.")] = 300,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Time searches over two of three corpora, alone and during an ingest in the same process.

    Example: footnote evaluate speed search --passages 20000 --ingested 1000
    """
    with tempfile.TemporaryDirectory() as scratch:
        report = asyncio.run(_measure(Path(scratch), passages, ingested, questions))
    print(json.dumps(report) if as_json else _lines(report))


AT_ONCE = 8


def lazy_search(
    home: Annotated[Path, typer.Argument(help="A home with a lazy corpus in it.", exists=True)],
    corpus: Annotated[str, typer.Option(help="The corpus that is searched.")] = "wikipedia",
    questions: Annotated[int, typer.Option(help="How many new questions.")] = 300,
    seed: Annotated[int, typer.Option(help="Other questions for another number.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Time searches of a lazy corpus: new questions, the same again, and eight new ones at once.

    Example: footnote evaluate speed lazy .footnote --corpus wikipedia
    """
    report = asyncio.run(_measure_lazy(home, corpus, questions, Random(seed)))
    if as_json:
        print(json.dumps(report))
        return
    print(f"{report['passages']:,} passages, {report['kept']:,} vectors kept; memory {report['memory_mb']:,} MB")
    for name in ("cold", "warm", "cold, eight at once"):
        print(f"{name}: p50 {report[name]['p50_ms']} ms, p95 {report[name]['p95_ms']} ms")


async def _measure_lazy(home: Path, corpus: str, count: int, random: Random) -> dict[str, Any]:
    async with open_home(home) as app:
        store = app.passages
        posed = [await _make_question(app.manifest, corpus, random) for _ in range(2 * count)]
        alone, together = posed[:count], posed[count:]
        await store.search(posed[0], [corpus], 10)
        cold, warm = [await _time_each(store, corpus, alone) for _ in range(2)]
        groups = [together[start : start + AT_ONCE] for start in range(0, count, AT_ONCE)]
        at_once = [seconds for group in groups for seconds in await _time_together(store, corpus, group)]
        (info,) = [info for info in await app.manifest.corpora() if info.name == corpus]
        await store.lazy.flush()
        return {
            "passages": info.passages,
            "kept": store.dense.count(corpus),
            "cold": _summary(cold),
            "warm": _summary(warm),
            "cold, eight at once": _summary(at_once),
            "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }


async def _make_question(manifest: Manifest, corpus: str, random: Random) -> str:
    """Ask about some words of a passage of the corpus."""
    head = (await manifest.lag(0, 1)).head
    while True:
        versions = await manifest.listed(corpus, after=random.randrange(head), limit=1)
        passages = [
            passage
            for version in versions
            for passage in version.passages
            if len(passage.text.split()) > QUESTION_WORDS
        ]
        if passages:
            words = random.choice(passages).text.split()
            start = random.randrange(len(words) - QUESTION_WORDS)
            return f"What is known about {' '.join(words[start : start + QUESTION_WORDS])}?"


async def _time_each(store: PassageStore, corpus: str, questions: Sequence[str]) -> list[float]:
    times = []
    for text in questions:
        times.append(await _time_search(store, corpus, text))
        await store.lazy.flush()  # as people ask with pauses
    return times


async def _time_together(store: PassageStore, corpus: str, questions: Sequence[str]) -> list[float]:
    return await asyncio.gather(*(_time_search(store, corpus, text) for text in questions))


async def _time_search(store: PassageStore, corpus: str, text: str) -> float:
    started = time.perf_counter()
    await store.search(text, [corpus], 10)
    return (time.perf_counter() - started) * 1000


def _summary(times: Sequence[float]) -> dict[str, float]:
    return {"p50_ms": round(statistics.median(times), 1), "p95_ms": round(quantile(times, 0.95), 1)}


async def _measure(home: Path, passages: int, ingested: int, questions: int) -> dict[str, Any]:
    real = open_embedder("minilm", {})
    with ExitStack() as stack:
        database = stack.enter_context(open_database("", home=home))
        store = open_store(home, HashedEmbedder(real.name, real.dimensions), database, stack)
        started = time.monotonic()
        for number in range(3):
            await refresh_corpus(generate_pages(passages // 3, number), f"corpus-{number}", store, progress=_ignore)
        filled = time.monotonic() - started
        asking = replace(store, embedder=real, polite=True)
        await _time_searches(asking, 20, Random(1))
        alone = await _time_searches(asking, questions, Random(2))
        started = time.monotonic()
        source = generate_pages(ingested, 9)
        ingest = asyncio.create_task(refresh_corpus(source, "corpus-2", asking, progress=_ignore))
        busy = await _time_searches(asking, questions * 100, Random(3), until=ingest)
        await ingest
        return {
            "passages": passages,
            "filling_passages_per_second": round(passages / filled),
            "alone": alone,
            "ingesting": {**busy, "passages_per_second": round(ingested / (time.monotonic() - started))},
            "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }


def open_store(home: Path, embedder: Embedder, database: Database, stack: ExitStack) -> PassageStore:
    """Open a store over a database; `stack` closes it."""
    threads = IndexThreads.start(stack)
    dense = DenseIndex(home / "chroma", embedder=embedder.name)
    stack.callback(dense.close)
    lexical = LexicalIndex(home / "lexical")
    stack.callback(lexical.close)
    return PassageStore(Manifest(database), dense, lexical, embedder, threads)


async def _time_searches(
    store: PassageStore, count: int, random: Random, *, until: asyncio.Task[Any] | None = None
) -> dict[str, float]:
    """Ask up to `count` questions one after the other, until a task is done."""
    searches: list[float] = []
    texts = generate_texts(random, 9)
    async with watch_event_loop() as lags:
        for _ in range(count):
            if until and until.done():
                break
            started = time.perf_counter()
            await store.search(next(texts), ["corpus-0", "corpus-1"], 10)
            searches.append((time.perf_counter() - started) * 1000)
            await asyncio.sleep(0.02)
    return {
        "searches": len(searches),
        "search_p50_ms": round(statistics.median(searches), 1),
        "search_p95_ms": round(quantile(searches, 0.95), 1),
        "loop_lag_p99_ms": round(quantile(lags, 0.99), 1),
        "loop_lag_max_ms": round(max(lags), 1),
    }


def _lines(report: dict[str, Any]) -> str:
    busy = report["ingesting"]
    lines = [
        f"{report['passages']:,} passages in three corpora, scope of two; memory {report['memory_mb']:,} MB",
        f"filled at {report['filling_passages_per_second']:,} passages/s (vectors by hashing)",
    ]
    for name, times in (("alone", report["alone"]), ("while ingesting", busy)):
        searches = f"search p50 {times['search_p50_ms']} ms, p95 {times['search_p95_ms']} ms"
        lags = f"loop lag p99 {times['loop_lag_p99_ms']} ms, max {times['loop_lag_max_ms']} ms"
        lines.append(f"{name}: {searches} over {times['searches']:,} questions; {lags}")
    return "\n".join([*lines, f"ingested meanwhile at {busy['passages_per_second']:,} passages/s"])


def _ignore(_: object) -> None:
    """Ignore progress."""
