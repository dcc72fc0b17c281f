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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Annotated, Any

import numpy as np
import typer

from evaluation.speed.workload import generate_texts, quantile, watch_event_loop
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.types import Block, ChangedDocument, Listing, Page, Section
from storage.database.engine import Database, open_database
from storage.indexes.candidate_search import IndexThreads
from storage.indexes.dense import DenseIndex
from storage.indexes.embedding import Embedder, Vectors, open_embedder
from storage.indexes.lexical import LexicalIndex
from storage.manifest import Manifest
from storage.passages import PassageStore

WORDS = 100


@dataclass(frozen=True)
class HashedEmbedder:
    """Stands in for an embedder where only the load on the index matters: same stamp, vectors from words' hashes."""

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


@dataclass(frozen=True)
class GeneratedSource:
    """Pages of one passage each, of seeded words."""

    count: int
    seed: int

    @property
    def reference(self) -> bool:
        return False

    def expected(self) -> int | None:
        return self.count

    def documents(self, known: Mapping[str, str], since: str = "") -> Listing:
        del known, since
        return Listing(self._pages())

    def _pages(self) -> Iterator[ChangedDocument]:
        texts = generate_texts(Random(self.seed), WORDS)
        for number in range(self.count):
            page = Page(f"Page {number}", (Section((), (Block(next(texts)),)),))
            yield ChangedDocument(f"{self.seed}-{number}", f"{number}", 1, partial(_same, page))


@dataclass(frozen=True)
class SearchTimes:
    searches: tuple[float, ...]
    lags: tuple[float, ...]

    def summary(self) -> dict[str, float]:
        return {
            "searches": len(self.searches),
            "search_p50_ms": round(statistics.median(self.searches), 1),
            "search_p95_ms": round(quantile(self.searches, 0.95), 1),
            "loop_lag_p99_ms": round(quantile(self.lags, 0.99), 1),
            "loop_lag_max_ms": round(max(self.lags), 1),
        }


def search(
    passages: Annotated[int, typer.Option(help="How many there are, in three corpora.")] = 100_000,
    ingested: Annotated[int, typer.Option(help="How many more are ingested meanwhile.")] = 10_000,
    questions: Annotated[int, typer.Option(help="How many are asked with nothing else going on.")] = 300,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Time searches over two of three corpora, alone and during an ingest in the same process.

    Example: footnote evaluate speed search --passages 20000 --ingested 1000
    """
    with tempfile.TemporaryDirectory() as scratch:
        report = asyncio.run(_measure(Path(scratch), passages, ingested, questions))
    print(json.dumps(report) if as_json else _lines(report))


async def _measure(home: Path, passages: int, ingested: int, questions: int) -> dict[str, Any]:
    real = open_embedder("minilm", {})
    with ExitStack() as stack:
        database = stack.enter_context(open_database("", home=home))
        store = open_store(home, HashedEmbedder(real.name, real.dimensions), database, stack)
        started = time.monotonic()
        for number in range(3):
            await refresh_corpus(
                GeneratedSource(passages // 3, number), f"corpus-{number}", store, progress=lambda _: None
            )
        filled = time.monotonic() - started
        asking = replace(store, embedder=real, polite=True)
        await _time_searches(asking, 20, Random(1))
        alone = await _time_searches(asking, questions, Random(2))
        started = time.monotonic()
        source = GeneratedSource(ingested, 9)
        ingest = asyncio.create_task(refresh_corpus(source, "corpus-2", asking, progress=lambda _: None))
        busy = await _time_searches(asking, questions * 100, Random(3), until=ingest)
        await ingest
        return {
            "passages": passages,
            "filling_passages_per_second": round(passages / filled),
            "alone": alone.summary(),
            "ingesting": {**busy.summary(), "passages_per_second": round(ingested / (time.monotonic() - started))},
            "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }


def open_store(home: Path, embedder: Embedder, database: Database, stack: ExitStack) -> PassageStore:
    """Open a store over a database; `stack` closes it."""
    threads = IndexThreads.started(stack)
    dense = DenseIndex(home / "chroma", embedder=embedder.name)
    stack.callback(dense.close)
    lexical = LexicalIndex(home / "lexical")
    stack.callback(lexical.close)
    return PassageStore(Manifest(database), dense, lexical, embedder, threads)


async def _time_searches(
    store: PassageStore, count: int, random: Random, *, until: asyncio.Task[Any] | None = None
) -> SearchTimes:
    """Ask one question after the other, as many as `count` or until a task is done."""
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
    return SearchTimes(tuple(searches), tuple(lags))


def _lines(report: dict[str, Any]) -> str:
    alone, busy = report["alone"], report["ingesting"]
    return "\n".join(
        (
            f"{report['passages']:,} passages in three corpora, scope of two; memory {report['memory_mb']:,} MB",
            f"filled at {report['filling_passages_per_second']:,} passages/s (vectors by hashing)",
            *(
                f"{name}: search p50 {times['search_p50_ms']} ms, p95 {times['search_p95_ms']} ms over "
                f"{times['searches']:,} questions; loop lag p99 {times['loop_lag_p99_ms']} ms, "
                f"max {times['loop_lag_max_ms']} ms"
                for name, times in (("alone", alone), ("while ingesting", busy))
            ),
            f"ingested meanwhile at {busy['passages_per_second']:,} passages/s",
        )
    )


def _same(page: Page) -> Page:
    return page
