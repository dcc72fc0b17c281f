"""Measure a Wikipedia dump from file to searchable, and estimate the whole English one."""

import asyncio
import json
import resource
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from evaluation import EvaluationError
from evaluation.workbench import open_home, refresh_quietly
from ingest.sources.dumps.dump_file import detect_compression
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.sources.dumps.worker_pool import count_cores

ENGLISH_ARTICLES = 7_000_000
ENGLISH_BYTES = 24e9  # of the English Wikipedia's dump, packed with bz2
_DAY = 86_400
_NUMBER_BYTES = 4


@dataclass(frozen=True)
class DumpTimes:
    """The cost of a dump from file to searchable; `first_way_seconds` pass before its first article."""

    articles: int
    passages: int
    failures: int
    dump_mb: float
    seconds: float
    processor_seconds: float
    first_way_seconds: float
    home_mb: float
    memory_mb: int
    dimensions: int


@dataclass(frozen=True)
class EnglishEstimate:
    """The same for the English Wikipedia: `times` as much work, counted `by` packed bytes or articles."""

    by: str
    times: float
    passages: int
    days: float
    home_gb: float
    vectors_gb: float


def wikipedia(
    dump: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A dump; the larger, the truer.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Time a dump from file to searchable, and calculate what the English Wikipedia would take on this machine.

    Example: footnote evaluate speed wikipedia simplewiki-latest-pages-articles.xml.bz2
    """
    taken = asyncio.run(_measure(dump))
    if not taken.passages:
        raise EvaluationError(f"Nothing in {dump.name} could be read.", hint="`footnote ingest wikipedia` says why.")
    follows = estimate_english(taken, packed=detect_compression(dump) == "bz2")
    report = {"schema": 1, "dump": dump.name, "cores": count_cores(), **compute_rates(taken)}
    report["english_wikipedia"] = asdict(follows)
    print(json.dumps(report) if as_json else _lines(report, follows))


def compute_rates(taken: DumpTimes) -> dict[str, Any]:
    return {
        **{what: round(figure, 1) for what, figure in asdict(taken).items()},
        "pages_per_second": round(taken.articles / taken.seconds, 2),
        "passages_per_second": round(taken.passages / taken.seconds, 1),
    }


def estimate_english(taken: DumpTimes, *, packed: bool) -> EnglishEstimate:
    """Calculate what the English Wikipedia would take, as if every packed byte (else every article) cost the same."""
    times = ENGLISH_BYTES / (taken.dump_mb * 1e6) if packed else ENGLISH_ARTICLES / taken.articles
    passages = round(taken.passages * times)
    return EnglishEstimate(
        by="packed bytes" if packed else "articles",
        times=round(times, 1),
        passages=passages,
        days=round(taken.seconds * times / _DAY, 1),
        home_gb=round(taken.home_mb * times / 1e3, 1),
        vectors_gb=round(passages * taken.dimensions * _NUMBER_BYTES / 1e9, 1),
    )


async def _measure(dump: Path) -> DumpTimes:
    source = WikipediaDump(dump)
    async with open_home() as app:
        started, before = time.monotonic(), time.process_time()
        await asyncio.to_thread(source.expected)
        first_way = time.monotonic() - started
        report = await refresh_quietly(source, "wikipedia", app)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return DumpTimes(
            articles=report.added,
            passages=report.passages_added,
            failures=report.failed,
            dump_mb=await asyncio.to_thread(_megabytes, dump),
            seconds=time.monotonic() - started,
            processor_seconds=time.process_time() - before + used.ru_utime + used.ru_stime,
            first_way_seconds=first_way,
            home_mb=await asyncio.to_thread(_megabytes, app.settings.home),
            memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            dimensions=app.passages.embedder.dimensions,
        )


def _megabytes(path: Path) -> float:
    return sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file()) / 1e6


def _lines(report: dict[str, Any], follows: EnglishEstimate) -> str:
    return f"""\
{report["articles"]:,} articles, {report["passages"]:,} passages in {report["seconds"]:,} s on {report["cores"]} cores \
({report["processor_seconds"]:,} s of processors): \
{report["pages_per_second"]} pages/s, {report["passages_per_second"]} passages/s
first way through the dump, for its redirects: {report["first_way_seconds"]} s of these; \
memory {report["memory_mb"]:,} MB, home {report["home_mb"]:,} MB

The English Wikipedia ({ENGLISH_ARTICLES:,} articles, {ENGLISH_BYTES / 1e9:.0f} GB of bz2) is {follows.times:,} times \
as much, counted by {follows.by}. On this machine it would take {follows.days:,} days and make {follows.passages:,} \
passages, {follows.home_gb:,} GB on disk; their vectors alone take {follows.vectors_gb:,} GB, which the embedded \
index holds in memory.
Assumed: each byte, or article, costs as much as in this dump, indexes slow nothing down as they grow, and nothing \
else runs on these cores."""
