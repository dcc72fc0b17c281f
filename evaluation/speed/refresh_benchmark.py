"""Measure a nightly refresh: its cost, whether it writes exactly the changes, and its effect on concurrent questions.

A dump is ingested, refreshed unchanged, and refreshed with some articles changed. In another corpus, each passage names
its version. Questions are asked of this corpus before and during refreshes that change all documents to the next
version.
"""

import asyncio
import os
import re
import resource
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer

from bot.answering.question_answering import answer
from bot.app import App
from bot.settings.tables.settings_tables import Settings
from bot.types import TurnRequest
from bot.wiring import open_app
from evaluation import EvaluationError
from evaluation.reports.printing import AsJson, fail_unless, print_report
from evaluation.speed.workload import append_milliseconds, describe_times, generate_texts, watch_event_loop
from evaluation.workbench import TERMINAL, PageSource, refresh_quietly
from ingest.chunking import split_page as cut
from ingest.sources.dumps.dump_file import read_blocks
from ingest.sources.dumps.page_xml import XmlExport, parse_head, parse_site
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.types import Block, ChangedDocument, Page, RefreshReport, Section
from storage.types import Citation, Hit

SECTIONS = 3
STATION_WORDS = 60
_VERSION = re.compile(r"version (\d+)")


def build_versions(count: int, version: int) -> PageSource:
    """Return `count` documents in one version. Each of their passages is different in another version."""
    return PageSource(
        count, lambda: ((f"{number}", f"{version}", build_station_page(number, version)) for number in range(count))
    )


def build_station_page(number: int, version: int) -> Page:
    """Return a document whose sections name the document and its version."""
    texts = generate_texts(Random(number), STATION_WORDS)
    statement = (
        f"The tariff of station {station_name(number)} is {version * 1000 + number} florins in version {version}."
    )
    sections = tuple(Section((f"Part {part}",), (Block(f"{statement} {next(texts)}"),)) for part in range(SECTIONS))
    return Page(f"Station {station_name(number)}", sections, revision=f"{version}")


def station_name(number: int) -> str:
    """Return a made-up word that no other document has."""
    return "".join(chr(ord("a") + int(digit)) * 2 for digit in f"{number:04}").capitalize() + "ium"


def station_question(number: int) -> str:
    return f"What is the tariff of station {station_name(number)}?"


def find_search_faults(number: int, hits: Sequence[Hit]) -> Iterator[str]:
    stated = ((hit.document.key, hit.passage.text, hit.document.revision) for hit in hits)
    yield from (f"station {key} in versions {sorted(versions)}" for key, versions in _mixed_versions(stated))
    count = sum(hit.document.key == f"{number}" for hit in hits)
    if count != SECTIONS:
        yield f"{count} of {SECTIONS} passages of station {number}"


def find_turn_faults(citations: Iterable[Citation]) -> Iterator[str]:
    stated = ((citation.document, citation.passage_text, citation.revision) for citation in citations)
    yield from (f"station {key} cited in versions {sorted(versions)}" for key, versions in _mixed_versions(stated))


def _mixed_versions(stated: Iterable[tuple[str, str, str]]) -> Iterator[tuple[str, set[str]]]:
    """Yield the documents of which several versions were found. `stated` has key, text and revision of each hit."""
    by_document: dict[str, set[str]] = {}
    for key, text, revision in stated:
        by_document.setdefault(key, set()).update(_VERSION.findall(text), [revision])
    yield from ((key, versions) for key, versions in by_document.items() if len(versions) > 1)


_TITLE = re.compile(rb"(<title>)([^<]*)(</title>)")
_PAGE_ID = re.compile(rb"<id>(\d+)</id>")
_REVISION = re.compile(rb"(<revision>\s*<id>)(\d+)(</id>)")
_TEXT_END = re.compile(rb"</text>")
_NEW_IDS = 900_000_000
_CHANGE_KINDS = ("edited", "added", "deleted", "renamed")


def change_dump(source: Path, target: Path, share: float, random: Random) -> int:
    """Write `source` to `target`, uncompressed, with a share of its articles changed; return their number.

    A quarter of the changes are edits, and a quarter each additions, deletions and renamings.
    """
    xml = b"".join(read_blocks(source))
    header = xml[: xml.find(b"<page>")]
    about = parse_site(header)
    pages = [page.xml for page in XmlExport([xml]).pages()]
    heads = [parse_head(page, about) for page in pages]
    articles = [at for at, head in enumerate(heads) if head and head.namespace == 0 and head.redirect is None]
    per_kind = max(1, round(len(articles) * share / len(_CHANGE_KINDS)))
    if per_kind * len(_CHANGE_KINDS) > len(articles):
        raise EvaluationError(f"{source} holds {len(articles)} articles, too few to change {per_kind} in each way.")
    chosen = random.sample(articles, per_kind * len(_CHANGE_KINDS))
    kind_of = {at: _CHANGE_KINDS[number // per_kind] for number, at in enumerate(chosen)}
    with target.open("wb") as file:
        file.write(header)
        for at, page in enumerate(pages):
            file.write(_change_page(page, kind_of.get(at, ""), _NEW_IDS + at) + b"\n")
        file.write(b"</mediawiki>\n")
    return len(chosen)


def _change_page(page: bytes, kind: str, number: int) -> bytes:
    """Return a page with one change of this `kind`; unchanged if `kind` is empty."""
    revised = _REVISION.sub(rb"\g<1>%d\g<3>" % number, page, count=1)
    if kind == "edited":
        return _TEXT_END.sub(b"\n\nA sentence that was written last night, by hand %d.</text>" % number, revised, 1)
    if kind == "deleted":
        return b""
    if kind == "renamed":
        return _TITLE.sub(rb"\1\2 (renamed)\3", revised, count=1)
    if kind == "added":
        copied = _PAGE_ID.sub(b"<id>%d</id>" % number, _TITLE.sub(rb"\1\2 (added)\3", revised, count=1), count=1)
        return page + b"\n" + copied
    return page


DUMP, STATIONS = "dump", "stations"
_PAUSE = 0.02
_SEARCHES_A_TURN = 10  # every tenth search is followed by a whole turn


def measure_refresh(
    dump: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A dump of some hundred articles.")],
    changed: Annotated[float, typer.Option(help="The share of its articles that changes.")] = 0.01,
    documents: Annotated[int, typer.Option(help="Number of documents that change during questions.")] = 300,
    rounds: Annotated[int, typer.Option(help="How often each document changes.")] = 3,
    seed: Annotated[int, typer.Option(help="The seed of changes and questions.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Time refreshes of a dump, and questions during refreshes.

    Example: footnote evaluate speed refresh ltgwiki.xml
    """
    with tempfile.TemporaryDirectory() as scratch:
        report = asyncio.run(_measure(Path(scratch), dump, changed, documents, rounds, Random(seed)))
    print_report(report, _render(report), as_json=as_json)
    fail_unless([not report["faults"]])


async def _measure(
    scratch: Path, dump: Path, changed: float, documents: int, rounds: int, random: Random
) -> dict[str, Any]:
    async with open_app(Settings(home=scratch / "home")) as opened:
        app = replace(opened, passages=replace(opened.passages, polite=True))
        report: dict[str, Any] = {"load": [round(load, 1) for load in os.getloadavg()]}
        report |= await _refresh_nightly(app, scratch, dump, changed, random)
        await refresh_quietly(build_versions(documents, 1), STATIONS, app)
        alone = await _ask_questions(app, documents, random, 150)
        busy = QuestionTimes()
        for version in range(2, rounds + 2):
            refresh = asyncio.create_task(refresh_quietly(build_versions(documents, version), STATIONS, app))
            busy.add(await _ask_questions(app, documents, random, 10**6, until=refresh))
            await refresh
        report["questions"] = {"alone": alone.summary(), "while_refreshing": busy.summary()}
        report["faults"] += [*alone.faults, *busy.faults]
        report["memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        report["load_after"] = [round(load, 1) for load in os.getloadavg()]
        return report


async def _refresh_nightly(app: App, scratch: Path, dump: Path, changed: float, random: Random) -> dict[str, Any]:
    """Ingest a dump, refresh it unchanged, then changed. Return the figures, and the faults that were found."""
    before = _expected_passages(dump)
    first = await refresh_quietly(WikipediaDump(dump), DUMP, app)
    again = await refresh_quietly(WikipediaDump(dump), DUMP, app)
    later = scratch / "later.xml"
    changed_articles = change_dump(dump, later, changed, random)
    after = _expected_passages(later)
    third = await refresh_quietly(WikipediaDump(later), DUMP, app)
    faults = [
        *_compare_report("the first run", first, {}, before),
        *_compare_report("the night after", third, before, after),
    ]
    if again.passages_added or again.passages_removed or again.changed or again.added:
        faults.append(f"the second run changed something: {again}")
    faults += await _compare_indexes(app, {key: stamp for key, (stamp, _) in after.items()})
    return {
        "articles": first.added,
        "passages": first.passages_added,
        "first_s": round(first.seconds, 2),
        "unchanged_s": round(again.seconds, 3),
        "times_as_fast": round(first.seconds / again.seconds, 1),
        "changed_articles": changed_articles,
        "changed_passages": third.passages_added + third.passages_removed,
        "changed_s": round(third.seconds, 3),
        "changed_of_first": round((third.seconds - again.seconds) / first.seconds, 4),
        "embedded_of_first": round(third.passages_added / first.passages_added, 4),
        "faults": faults,
    }


_Expected = dict[str, tuple[str, tuple[str, ...]]]
"""By the id of each passage: its hash, and the page's aliases if it is the first of its page."""


def _expected_passages(dump: Path) -> _Expected:
    """Return the passages that a dump should give, computed without a store."""
    expected: _Expected = {}
    for item in WikipediaDump(dump).documents():
        if isinstance(item, ChangedDocument):  # others count as failures
            page = item.load()
            for number, passage in enumerate(cut(DUMP, item.key, page)):
                expected[passage.id] = (passage.hash, page.aliases if number == 0 else ())
    return expected


def _compare_report(what: str, report: RefreshReport, before: _Expected, after: _Expected) -> list[str]:
    written = {key for key in after if before.get(key) != after[key]}
    removed = before.keys() - after.keys()
    if (report.passages_added, report.passages_removed) == (len(written), len(removed)):
        return []
    return [f"{what}: {report} instead of {len(written)} passages written and {len(removed)} removed"]


async def _compare_indexes(app: App, expected: dict[str, str]) -> list[str]:
    """Return a line for the manifest and for each index that does not have exactly the expected passages."""
    pages = await app.manifest.listed(DUMP, limit=10**7)
    listed = {passage.id: passage.hash for page in pages for passage in page.passages}
    contents = {"SQL": listed, "Chroma": app.passages.dense.contents(DUMP), "tantivy": await app.passages.words_held()}
    return [
        f"{name} holds {len(passages)} of {len(expected)}"
        for name, passages in contents.items()
        if passages != expected
    ]


@dataclass
class QuestionTimes:
    searches: list[float] = field(default_factory=list)
    turns: list[float] = field(default_factory=list)
    lags: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def add(self, other: "QuestionTimes") -> None:
        for name in ("searches", "turns", "lags", "faults"):
            getattr(self, name).extend(getattr(other, name))

    def summary(self) -> dict[str, float]:
        return {
            "searches": len(self.searches),
            **describe_times("search", self.searches, "p50", "p95", "max"),
            "turns": len(self.turns),
            **describe_times("turn", self.turns, "p95"),
            **describe_times("loop_lag", self.lags, "p99", "max"),
            "faults": len(self.faults),
        }


async def _ask_questions(
    app: App, documents: int, random: Random, count: int, *, until: asyncio.Task[Any] | None = None
) -> QuestionTimes:
    """Ask up to `count` questions, one after the other. If `until` is set, stop when that task is done."""
    asking = QuestionTimes()
    async with watch_event_loop() as lags:
        for at in range(count):
            if until and until.done():
                break
            number = random.randrange(documents)
            with append_milliseconds(asking.searches):
                hits = await app.passages.search(station_question(number), [STATIONS, DUMP], 10 * SECTIONS)
            asking.faults += find_search_faults(number, [hit for hit in hits if hit.passage.corpus == STATIONS])
            if at % _SEARCHES_A_TURN == 0:
                await _ask_whole_turn(app, number, asking)
            await asyncio.sleep(_PAUSE)
        asking.lags.extend(lags)
    return asking


async def _ask_whole_turn(app: App, number: int, asking: QuestionTimes) -> None:
    request = TurnRequest(station_question(number), TERMINAL, corpora=(STATIONS,))
    with append_milliseconds(asking.turns):
        done = await answer(app, request, lambda _: None)
    asking.faults += find_turn_faults(done.answer.citations)
    if done.answer.status.value != "answered":
        asking.faults.append(f"the question for station {number} was {done.answer.status.value}")


def _render(report: dict[str, Any]) -> str:
    load, after = report["load"], report["load_after"]
    share_of = f"{report['changed_of_first']:.2%} of the first run's time for {report['embedded_of_first']:.2%} of its"
    lines = [
        f"{report['articles']:,} articles, {report['passages']:,} passages; memory {report['memory_mb']:,} MB",
        f"load {load} before, {after} after",
        f"first run {report['first_s']} s; again {report['unchanged_s']} s: {report['times_as_fast']} times as fast",
        f"{report['changed_articles']} articles changed: {report['changed_passages']} passages written or removed",
        f"which took {report['changed_s']} s, beyond reading {share_of} passages",
    ]
    for name, figures in report["questions"].items():
        low, high, most = (figures[f"search_{name}_ms"] for name in ("p50", "p95", "max"))
        searches = f"p50 {low} ms, p95 {high} ms, at most {most} ms"
        lags = f"loop lag p99 {figures['loop_lag_p99_ms']} ms, at most {figures['loop_lag_max_ms']} ms"
        turns = f"turn p95 {figures['turn_p95_ms']} ms over {figures['turns']:,}"
        lines.append(f"{name.replace('_', ' ')}: search {searches} over {figures['searches']:,}; {turns}; {lags}")
    return "\n".join(
        [*lines, *(f"fault: {fault}" for fault in report["faults"][:20]), f"{len(report['faults'])} faults"]
    )
