"""Measure how long it takes until a Wikipedia dump can be searched lazily; estimate that for the English one."""

import asyncio
import os
import resource
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.app import App
from evaluation import EvaluationError
from evaluation.reports.printing import AsJson, print_report
from evaluation.workbench import open_home
from ingest.chunking import split_page
from ingest.page_cleanup import load_page
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.sources.dumps.article_batches import ArticleBatch, ReadArticle, list_article, read_article, split_batches
from ingest.sources.dumps.dump_file import detect_compression, read_blocks
from ingest.sources.dumps.page_xml import XmlExport
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.sources.dumps.worker_pool import WorkerPool, count_cores
from ingest.types import EMPTY, ChangedDocument, DocumentSource, Listing, RefreshReport
from storage.types import DenseMode

ENGLISH_ARTICLES = 7_000_000
ENGLISH_BYTES = 24e9  # of the English Wikipedia's dump, packed with bz2
Mark = tuple[int, float]  # a number of passages, and the seconds until then


def wikipedia(
    dump: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="A dump; a larger one gives a better estimate.")
    ],
    eager: Annotated[int, typer.Option(help="Articles to ingest eagerly for comparison.", min=1)] = 200,
    cut: Annotated[int, typer.Option(help="Articles to only parse and cut for comparison.", min=1)] = 10_000,
    home: Annotated[Path | None, typer.Option(help="A folder for the home, which is kept.")] = None,
    as_json: AsJson = False,
) -> None:
    """Time a dump from file to searchable, and estimate the cost of the English Wikipedia on this machine.

    Example: footnote evaluate speed wikipedia simplewiki-latest-pages-articles.xml.bz2
    """
    times = asyncio.run(_measure(dump, eager, cut, home))
    if not times["passages"]:
        raise EvaluationError(f"{dump.name} has no readable article.", hint="`footnote ingest wikipedia` shows why.")
    report = {"schema": 2, "dump": dump.name, "cores": count_cores(), **compute_ratios(times)}
    report["english_wikipedia"] = estimate_english(times, packed=detect_compression(dump) == "bz2")
    print_report(report, _render(report, report["english_wikipedia"]), as_json=as_json)


def compute_ratios(times: Mapping[str, float]) -> dict[str, Any]:
    """Return the figures of `_measure`, rounded, and ratios between them."""
    of_processors = count_cores() * times["passages"] / times["processor_seconds"]
    return {
        **{name: round(figure, 1) for name, figure in times.items()},
        "of_cutting": round(times["rate"] / times["cut_rate"], 3),
        "processor_of_cutting": round(of_processors / times["cut_rate"], 3),
        "of_eager": round(times["rate"] / times["eager_rate"], 1),
        "last_of_first": round(times["last_rate"] / times["first_rate"], 3),
        "night_of_first": round(times["night_seconds"] / times["seconds"], 4),
        "bytes_a_passage": round(times["home_mb"] * 1e6 / times["passages"], 1),
    }


def estimate_english(times: Mapping[str, float], *, packed: bool) -> dict[str, Any]:
    """Estimate the cost of the English Wikipedia, in proportion to packed bytes, or if not `packed`, to articles."""
    factor = ENGLISH_BYTES / (times["dump_mb"] * 1e6) if packed else ENGLISH_ARTICLES / times["articles"]
    return {
        "by": "packed bytes" if packed else "articles",
        "times": round(factor, 1),
        "passages": round(times["passages"] * factor),
        "hours": round(times["seconds"] * factor / 3_600, 1),
        "night_hours": round(times["night_seconds"] * factor / 3_600, 2),
        "home_gb": round(times["home_mb"] * factor / 1e3, 1),
    }


async def _measure(dump: Path, eager: int, cut: int, home: Path | None) -> dict[str, float]:
    """Return the figures of one dump. Rates are in passages per second.

    `cut_rate` is the rate of only parsing and splitting, `eager_rate` that of an eager ingest of some articles.
    `first_rate` and `last_rate` are those of the first and the last tenth. `first_way_seconds` is the time of the first
    pass over the dump, which collects redirects.
    """
    cut_rate = await asyncio.to_thread(measure_cutting, dump, cut)
    async with open_home(home) as app:
        first, _ = await _ingest(_FirstArticles(dump, eager), "eagerly", app, DenseMode.EAGER)
        survey = app.settings.home / "dumps" / "benchmark.survey"
        before = await asyncio.to_thread(_megabytes, app.settings.home)
        with _watch_memory() as peak:
            source = WikipediaDump(dump, survey=survey)
            started, used = time.monotonic(), _processor_seconds()
            await asyncio.to_thread(source.expected)
            first_way = time.monotonic() - started
            report, marks = await _ingest(source, "wikipedia", app, DenseMode.LAZY)
            seconds, used = time.monotonic() - started, _processor_seconds() - used
            night, _ = await _ingest(WikipediaDump(dump, survey=survey), "wikipedia", app, DenseMode.LAZY)
        first_rate, last_rate = compare_tenths(marks)
        return {
            "articles": report.added,
            "passages": report.passages_added,
            "failures": report.failed,
            "dump_mb": await asyncio.to_thread(_megabytes, dump),
            "seconds": seconds,
            "processor_seconds": used,
            "first_way_seconds": first_way,
            "night_seconds": night.seconds,
            "rate": report.passages_added / seconds,
            "first_rate": first_rate,
            "last_rate": last_rate,
            "cut_rate": cut_rate,
            "eager_rate": first.passages_added / first.seconds,
            "home_mb": await asyncio.to_thread(_megabytes, app.settings.home) - before,
            "memory_mb": peak[0] >> 20,
        }


@dataclass(frozen=True)
class _FirstArticles:
    """The first articles of a dump, without the titles that redirect to them."""

    dump: Path
    number: int
    reference = True

    def expected(self) -> int:
        return self.number

    def documents(self, known: Mapping[str, str] = EMPTY, since: str = "") -> Listing:
        del known, since
        articles = (article for batch in _split_dump(self.dump) for article in _list_batch(batch))
        return Listing(islice(articles, self.number))


async def _ingest(source: DocumentSource, corpus: str, app: App, dense: DenseMode) -> tuple[RefreshReport, list[Mark]]:
    started, marks = time.monotonic(), list[Mark]()
    report = await refresh_corpus(
        source,
        corpus,
        app.passages,
        progress=lambda progress: marks.append((progress.passages, time.monotonic() - started)),
        dense=dense,
    )
    return report, marks


def compare_tenths(marks: Sequence[Mark]) -> tuple[float, float]:
    """Return the passages per second in the first and the last tenth; with too few marks, both of the whole."""
    fresh = [mark for at, mark in enumerate(marks) if at == 0 or mark[0] > marks[at - 1][0]]
    if len(fresh) < 2:
        rate = fresh[0][0] / fresh[0][1] if fresh and fresh[0][1] else 0.0
        return rate, rate
    tenth = fresh[-1][0] / 10
    begin = next(mark for mark in fresh[1:] if mark[0] >= tenth or mark is fresh[-1])
    end = next(mark for mark in reversed(fresh[:-1]) if mark[0] <= fresh[-1][0] - tenth or mark is fresh[0])
    return _rate(fresh[0], begin), _rate(end, fresh[-1])


def _rate(before: Mark, after: Mark) -> float:
    return (after[0] - before[0]) / max(after[1] - before[1], 1e-9)


def measure_cutting(dump: Path, articles: int) -> float:
    """Return how many passages per second are parsed, cleaned and split from XML in memory, by one process per core."""
    with WorkerPool(count_cores()) as pool:
        cut = list(pool.map(_cut_batch, _take_articles(_split_dump(dump), articles)))
    seconds = sum(seconds for _, seconds in cut)
    return count_cores() * sum(passages for passages, _ in cut) / seconds if seconds else 0.0


def _split_dump(dump: Path) -> Iterator[ArticleBatch]:
    export = XmlExport(read_blocks(dump))
    return split_batches(export.pages(), export.site)


def _list_batch(batch: ArticleBatch) -> Iterator[ChangedDocument]:
    for page, head in batch.articles:
        if isinstance(read := read_article(page, head, batch.site), ReadArticle):
            yield list_article(read, batch.site)


def _take_articles(batches: Iterator[ArticleBatch], number: int) -> Iterator[ArticleBatch]:
    for batch in batches:
        if number <= 0:
            return
        number -= len(batch.articles)
        yield batch


def _cut_batch(batch: ArticleBatch) -> tuple[int, float]:
    """Return the number of passages in a batch, and the processor seconds for them."""
    started = time.process_time()
    passages = sum(len(split_page("wikipedia", article.key, load_page(article))) for article in _list_batch(batch))
    return passages, time.process_time() - started


def _processor_seconds() -> float:
    """Return the processor seconds of this process and its ended children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


@contextmanager
def _watch_memory() -> Iterator[list[int]]:
    """Yield a list with one number: the peak memory of this process and its children, in bytes.

    Memory that they share counts once.
    """
    peak, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.5):
            peak[0] = max(peak[0], sum(map(_held_bytes, _list_family(os.getpid()))))

    watcher = threading.Thread(target=watch, name="watch")
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()


def _list_family(process: int) -> Iterator[int]:
    yield process
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        for line in _read_lines(children):
            for child in line.split():
                yield from _list_family(int(child))


def _held_bytes(process: int) -> int:
    lines = _read_lines(Path(f"/proc/{process}/smaps_rollup"))
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def _read_lines(file: Path) -> list[str]:
    """Return the lines of a file about a process; none if the process has ended."""
    try:
        return file.read_text(encoding="ascii").splitlines()
    except OSError:
        return []


def _megabytes(path: Path) -> float:
    return sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file()) / 1e6


def _render(report: Mapping[str, Any], english: Mapping[str, Any]) -> str:
    return f"""\
{report["articles"]:,} articles, {report["passages"]:,} passages in {report["seconds"]:,} s on {report["cores"]} \
cores: {report["rate"]:,} passages/s; {report["first_rate"]:,} in the first tenth, {report["last_rate"]:,} in the last \
({report["last_of_first"]:.0%})
parsing and cutting alone: {report["cut_rate"]:,} passages/s, so the whole has {report["of_cutting"]:.0%} of that pace \
({report["processor_of_cutting"]:.0%} by processors, {report["processor_seconds"]:,} s, whatever the load); \
eager: {report["eager_rate"]:,}, so it is {report["of_eager"]:,} times as fast
first pass through the dump, for its redirects: {report["first_way_seconds"]} s of these; the next refresh, unchanged: \
{report["night_seconds"]} s ({report["night_of_first"]:.1%})
memory of all processes {report["memory_mb"]:,} MB; home {report["home_mb"]:,} MB, {report["bytes_a_passage"]:,} bytes \
a passage

The English Wikipedia ({ENGLISH_ARTICLES:,} articles, {ENGLISH_BYTES / 1e9:.0f} GB of bz2) is {english["times"]:,} \
times as much, by {english["by"]}. On this machine it would take {english["hours"]:,} hours and have \
{english["passages"]:,} passages, {english["home_gb"]:,} GB on disk; an unchanged refresh {english["night_hours"]:,} h.
Assumed: each byte, or article, costs as much as in this dump, indexes do not slow down as they grow, and nothing \
else runs on these cores."""
