"""How fast a Wikipedia dump is read, beside wikiextractor, and what becomes of its text.

Both programs read the same dump, made large by repetition, one after the other on the same cores. wikiextractor is no
dependency: it is run as a program of its own, from an environment of its own, if its path is given.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from evaluation.speed.dump_texts import Fact, extracted, kept, left_over, read_facts, says
from evaluation.speed.made_dumps import MadeDump, write_dump
from evaluation.speed.watching import Run, watched
from ingest.chunking import passages
from ingest.sources.dumps.parallel import cores
from ingest.sources.dumps.wikipedia import WikipediaDump
from ingest.types import Found, Page
from storage.lexical import LexicalIndex
from storage.types import Document, Passage

DEPTH = 10
"""How many passages a search shows."""


def dumps(
    dump: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A dump to repeat.")],
    wikiextractor: Annotated[Path | None, typer.Option(help="The program to compare with.")] = None,
    megabytes: Annotated[int, typer.Option(help="The XML that both read.", min=1)] = 200,
    large: Annotated[int, typer.Option(help="Megabytes of a dump read for its memory; 0 for none.", min=0)] = 0,
    facts: Annotated[Path | None, typer.Option(exists=True, help="A list of facts to look for.")] = None,
    processes: Annotated[int, typer.Option(help="Of each program; 0 is one a core.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compare speed and text of reading a dump with wikiextractor's (without templates).

    Example: footnote evaluate speed dumps enwiki.xml.bz2 --wikiextractor ~/wx/bin/wikiextractor
    """
    number = processes or cores()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        report: dict[str, Any] = {"schema": 1, "dump": dump.name, "processes": number}
        report["speed"] = _speed(dump, scratch, megabytes, number, wikiextractor)
        report["text"] = _text(dump, scratch, wikiextractor, read_facts(facts) if facts else ())
        if large:
            report["large"] = _large(write_dump(dump, scratch / "large.xml", large), number)
    print(json.dumps(report, ensure_ascii=False) if as_json else _lines(report))


def _speed(dump: Path, scratch: Path, megabytes: int, processes: int, program: Path | None) -> dict[str, Any]:
    made = write_dump(dump, scratch / "repeated.xml", megabytes)
    figures = {"footnote": _rates(made, _read(made.path, processes))}
    if program:
        figures["wikiextractor"] = _rates(made, _extract(program, made.path, scratch / "out", processes))
        figures["times_as_fast"] = {
            by: round(figures["footnote"][by] / figures["wikiextractor"][by], 2)
            for by in ("mb_per_second", "mb_per_processor_second")
        }
    made.path.unlink()
    return {"articles": made.articles, "wikitext_mb": round(made.wikitext / 1e6, 1), **figures}


def _read(dump: Path, processes: int) -> Run:
    return watched([sys.executable, "-m", "evaluation.speed.read_dump", str(dump), str(processes)])


def _extract(program: Path, dump: Path, out: Path, processes: int) -> Run:
    return watched([str(program), "--no-templates", "--processes", str(processes), "-o", str(out), str(dump)])


def _rates(made: MadeDump, run: Run) -> dict[str, float]:
    return {
        "seconds": round(run.seconds, 2),
        "processor_seconds": round(run.processor_seconds, 2),
        "mb_per_second": round(made.wikitext / 1e6 / run.seconds, 2),
        "mb_per_processor_second": round(made.wikitext / 1e6 / run.processor_seconds, 2),
        "pages_per_second": round(made.articles / run.seconds, 1),
        "memory_mb": run.memory_mb,
    }


def _text(dump: Path, scratch: Path, program: Path | None, facts: Sequence[Fact]) -> dict[str, Any]:
    found = {item.key: item for item in WikipediaDump(dump).documents() if isinstance(item, Found)}
    pages = {key: item.load() for key, item in found.items()}
    cut = [passage for key, page in pages.items() for passage in passages("wikipedia", key, page)]
    bad = left_over(passage.text for passage in cut)
    report: dict[str, Any] = {
        "pages": len(pages),
        "passages": len(cut),
        "left_over": len(bad),
        "left_over_in": bad[:20],
    }
    if program:
        _extract(program, dump, scratch / "original", 1)
        report["sentences"] = _sentences(extracted(scratch / "original"), pages)
    if facts:
        report["facts"] = _facts(facts, pages, cut, scratch / "lexical")
    return report


def _sentences(theirs: dict[str, str], pages: dict[str, Page]) -> dict[str, Any]:
    figures = asdict(kept(theirs, pages))
    shares = {f"{name}_share": round(figures[name] / figures["sentences"], 4) for name in ("literally", "kept")}
    return {**figures, **shares, "lost": figures["lost"][:20]}


def _facts(facts: Sequence[Fact], pages: dict[str, Page], cut: Sequence[Passage], folder: Path) -> dict[str, Any]:
    """How many facts stand in the passages of their page, and are among the first that a search by words finds."""
    titles = {key: page.title for key, page in pages.items()}
    rows = [Document("wikipedia", key, page.title, language=page.language) for key, page in pages.items()]
    documents = {row.key: row for row in rows}
    texts = {passage.id: (titles[passage.document], passage.text) for passage in cut}
    folder.mkdir()
    index = LexicalIndex(folder)
    index.write([(documents[each.document], each) for each in cut])
    missing: list[Fact] = []
    unfound: list[Fact] = []
    for fact in facts:
        scores = index.search(f"{fact.title} {fact.label}", ["wikipedia"], DEPTH)
        if not any(title == fact.title and says(text, fact) for title, text in texts.values()):
            missing.append(fact)
        if not any(texts[each][0] == fact.title and says(texts[each][1], fact) for each in scores):
            unfound.append(fact)
    index.close()
    return {
        "listed": len(facts),
        "standing": len(facts) - len(missing),
        "found": len(facts) - len(unfound),
        "missing": [asdict(fact) for fact in missing],
        "unfound": [asdict(fact) for fact in unfound],
    }


def _large(made: MadeDump, processes: int) -> dict[str, float]:
    size = made.path.stat().st_size
    run = _read(made.path, processes)
    made.path.unlink()
    return {"xml_mb": round(size / 1e6), "articles": made.articles, **_rates(made, run)}


def _lines(report: dict[str, Any]) -> str:
    """The figures for a person, one of each part a line."""
    speed, text = report["speed"], report["text"]
    lines = [f"{speed['articles']:,} articles, {speed['wikitext_mb']} MB of wikitext, {report['processes']} processes"]
    programs = (name for name in ("footnote", "wikiextractor", "times_as_fast") if name in speed)
    lines += [f"{name}: " + ", ".join(f"{what} {figure}" for what, figure in speed[name].items()) for name in programs]
    lines.append(f"{text['passages']:,} passages, {text['left_over']} with markup or holes: {text['left_over_in']}")
    if "sentences" in text:
        said = text["sentences"]
        lines.append(
            f"of {said['sentences']:,} sentences {said['literally_share']:.2%} stand literally, "
            f"{said['kept_share']:.2%} with what templates say; lost: {said['lost'][:5]}"
        )
    if "facts" in text:
        said = text["facts"]
        lines.append(
            f"of {said['listed']} facts {said['standing']} stand, {said['found']} found; not: {said['unfound']}"
        )
    if "large" in report:
        lines.append("large: " + ", ".join(f"{what} {figure}" for what, figure in report["large"].items()))
    return "\n".join(lines)
