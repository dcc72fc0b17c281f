"""What a nightly refresh costs, that it changes exactly what has changed, and what who asks meanwhile notices.

A dump is read three times: for the first time, unchanged, and with a share of its articles edited, added, deleted or
renamed. Then questions are asked, alone and while every document of another corpus is switched to its next version.
"""

import asyncio
import json
import os
import resource
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer

from bot.access import Asker
from bot.answering import answer
from bot.app import App, open_app
from bot.settings import Settings
from bot.turns import Asked
from evaluation.speed.changed_dumps import change_dump
from evaluation.speed.lags import share, watched_loop
from evaluation.speed.versions import SECTIONS, Versions, question, search_faults, turn_faults
from ingest.chunking import passages as cut
from ingest.refreshing import RefreshReport, refresh
from ingest.sources.dumps.wikipedia import WikipediaDump
from ingest.types import Found, Source

DUMP, STATIONS = "dump", "stations"
_BETWEEN = 0.02
_A_TURN = 10
"""After so many searches one question is answered whole."""


def refreshing(
    dump: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A dump of some hundred articles.")],
    changed: Annotated[float, typer.Option(help="The share of its articles that changes.")] = 0.01,
    documents: Annotated[int, typer.Option(help="How many switch versions while questions are asked.")] = 300,
    rounds: Annotated[int, typer.Option(help="How often each of them does.")] = 3,
    seed: Annotated[int, typer.Option(help="Chooses what changes and what is asked.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Time refreshes of a dump, and questions asked during refreshes.

    Example: footnote evaluate speed refresh ltgwiki.xml
    """
    with tempfile.TemporaryDirectory() as scratch:
        report = asyncio.run(_measure(Path(scratch), dump, changed, documents, rounds, Random(seed)))
    print(json.dumps(report) if as_json else _lines(report))
    if report["faults"]:
        raise typer.Exit(1)


async def _measure(
    scratch: Path, dump: Path, changed: float, documents: int, rounds: int, random: Random
) -> dict[str, Any]:
    settings = Settings(home=scratch / "home")
    async with open_app(settings) as opened:
        app = replace(opened, passages=replace(opened.passages, polite=True))
        report: dict[str, Any] = {"schema": 1, "load": [round(load, 1) for load in os.getloadavg()]}
        report |= await _nights(app, scratch, dump, changed, random)
        await refresh(Versions(documents, 1), STATIONS, app.passages, progress=lambda _: None)
        alone = await _asked(app, documents, random, 150)
        busy = Asking()
        for version in range(2, rounds + 2):
            going_on = asyncio.create_task(_refreshed(Versions(documents, version), STATIONS, app))
            part = await _asked(app, documents, random, 10**6, until=going_on)
            busy.add(part)
            await going_on
        report["questions"] = {"alone": alone.summary(), "while_refreshing": busy.summary()}
        report["faults"] += [*alone.faults, *busy.faults]
        report["memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        report["load_after"] = [round(load, 1) for load in os.getloadavg()]
        return report


async def _nights(app: App, scratch: Path, dump: Path, changed: float, random: Random) -> dict[str, Any]:
    """Read a dump, read it again, and read it changed."""
    before = _held(dump)
    first = await _refreshed(WikipediaDump(dump), DUMP, app)
    again = await _refreshed(WikipediaDump(dump), DUMP, app)
    later = scratch / "later.xml"
    changes = change_dump(dump, later, changed, random)
    after = _held(later)
    third = await _refreshed(WikipediaDump(later), DUMP, app)
    faults = [*_differences("the first run", first, {}, before), *_differences("the night after", third, before, after)]
    if again.passages_added or again.passages_removed or again.changed or again.added:
        faults.append(f"the second run changed something: {again}")
    faults += await _contents(app, {one.id: one.hash for one in after.values()})
    return {
        "articles": first.added,
        "passages": first.passages_added,
        "first_s": round(first.seconds, 2),
        "unchanged_s": round(again.seconds, 3),
        "times_as_fast": round(first.seconds / again.seconds, 1),
        "changed_articles": changes.count,
        "changed_passages": third.passages_added + third.passages_removed,
        "changed_s": round(third.seconds, 3),
        "changed_of_first": round((third.seconds - again.seconds) / first.seconds, 4),
        "embedded_of_first": round(third.passages_added / first.passages_added, 4),
        "faults": faults,
    }


@dataclass(frozen=True)
class _Held:
    """A passage as the indexes see it. `names` are what the first of a page is also found by."""

    id: str
    hash: str
    names: tuple[str, ...]


def _held(dump: Path) -> dict[str, _Held]:
    """Return all that a dump holds, by passage id, without any store."""
    held: dict[str, _Held] = {}
    for item in WikipediaDump(dump).documents():
        if not isinstance(item, Found):
            continue  # it is told as a failure
        page = item.load()
        for number, one in enumerate(cut(DUMP, item.key, page)):
            held[one.id] = _Held(one.id, one.hash, page.aliases if number == 0 else ())
    return held


def _differences(what: str, report: RefreshReport, before: dict[str, _Held], after: dict[str, _Held]) -> list[str]:
    written = {key for key in after if before.get(key) != after[key]}
    removed = before.keys() - after.keys()
    if (report.passages_added, report.passages_removed) == (len(written), len(removed)):
        return []
    return [f"{what}: {report} instead of {len(written)} passages written and {len(removed)} removed"]


async def _contents(app: App, expected: dict[str, str]) -> list[str]:
    """Say where the manifest or an index holds anything else than it should."""
    listed = {one.id: one.hash for one, _ in await app.manifest.listed(DUMP, limit=10**7)}
    held = {"SQL": listed, "Chroma": app.passages.dense.contents(DUMP), "tantivy": app.passages.lexical.contents()}
    return [f"{name} holds {len(found)} of {len(expected)}" for name, found in held.items() if found != expected]


async def _refreshed(source: Source, corpus: str, app: App) -> RefreshReport:
    return await refresh(source, corpus, app.passages, progress=lambda _: None)


@dataclass
class Asking:
    """Milliseconds of searches, turns and the event loop's lags, and what was wrong."""

    searches: list[float] = field(default_factory=list)
    turns: list[float] = field(default_factory=list)
    lags: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def add(self, other: "Asking") -> None:
        """Take in what was measured besides."""
        for name in ("searches", "turns", "lags", "faults"):
            getattr(self, name).extend(getattr(other, name))

    def summary(self) -> dict[str, float]:
        """Return the figures that are printed."""
        return {
            "searches": len(self.searches),
            "search_p50_ms": round(share(self.searches, 0.5), 1),
            "search_p95_ms": round(share(self.searches, 0.95), 1),
            "search_max_ms": round(max(self.searches), 1),
            "turns": len(self.turns),
            "turn_p95_ms": round(share(self.turns, 0.95), 1),
            "loop_lag_p99_ms": round(share(self.lags, 0.99), 1),
            "loop_lag_max_ms": round(max(self.lags), 1),
            "faults": len(self.faults),
        }


async def _asked(
    app: App, documents: int, random: Random, count: int, *, until: asyncio.Task[Any] | None = None
) -> Asking:
    """Ask one question after the other, as many as `count` or until a task is done."""
    asking = Asking()
    async with watched_loop() as lags:
        for at in range(count):
            if until and until.done():
                break
            number = random.randrange(documents)
            began = time.perf_counter()
            hits = await app.passages.search(question(number), [STATIONS, DUMP], 10 * SECTIONS)
            asking.searches.append((time.perf_counter() - began) * 1000)
            asking.faults += search_faults(number, [hit for hit in hits if hit.passage.corpus == STATIONS])
            if at % _A_TURN == 0:
                await _turn(app, number, asking)
            await asyncio.sleep(_BETWEEN)
        asking.lags.extend(lags)
    return asking


async def _turn(app: App, number: int, asking: Asking) -> None:
    began = time.perf_counter()
    asker = Asker(platform="terminal", kind="terminal")
    done = await answer(app, Asked(question(number), asker, corpora=(STATIONS,)), lambda _: None)
    asking.turns.append((time.perf_counter() - began) * 1000)
    asking.faults += turn_faults(done.answer.citations)
    if done.answer.status.value != "answered":
        asking.faults.append(f"the question for station {number} was {done.answer.status.value}")


def _lines(report: dict[str, Any]) -> str:
    load, after = report["load"], report["load_after"]
    share_of = f"{report['changed_of_first']:.2%} of the first run's time for {report['embedded_of_first']:.2%} of its"
    told = [
        f"{report['articles']:,} articles, {report['passages']:,} passages; memory {report['memory_mb']:,} MB",
        f"load {load} before, {after} after",
        f"first run {report['first_s']} s; again {report['unchanged_s']} s: {report['times_as_fast']} times as fast",
        f"{report['changed_articles']} articles changed: {report['changed_passages']} passages written or removed",
        f"which took {report['changed_s']} s, beyond reading {share_of} passages",
    ]
    for name, one in report["questions"].items():
        searches = f"p50 {one['search_p50_ms']} ms, p95 {one['search_p95_ms']} ms, at most {one['search_max_ms']} ms"
        lags = f"loop lag p99 {one['loop_lag_p99_ms']} ms, at most {one['loop_lag_max_ms']} ms"
        turns = f"turn p95 {one['turn_p95_ms']} ms over {one['turns']:,}"
        told.append(f"{name.replace('_', ' ')}: search {searches} over {one['searches']:,}; {turns}; {lags}")
    return "\n".join(
        [*told, *(f"fault: {fault}" for fault in report["faults"][:20]), f"{len(report['faults'])} faults"]
    )
