"""Compare reading a Wikipedia dump with wikiextractor: speed, sentences kept, facts of tables found."""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import unescape
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any

import typer

from evaluation import EvaluationError
from ingest.chunking import split_page
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.sources.dumps.worker_pool import count_cores
from ingest.types import ChangedDocument, Page
from storage.indexes.lexical import LexicalIndex, index_version
from storage.language.sentences import sentence_spans
from storage.types import Document, Passage, StoredVersion
from tools.benchmarks.synthetic_dump import SyntheticDump, write_dump

LEFT_OVER = re.compile(r"\{\{|\[\[|\]\]|<ref|\|-|&nbsp;|\( ,|\(\)| \.(?=\s|$)")
"""Markup, and holes where markup was."""

_DOCUMENT = re.compile(r"<doc id=\"(\d+)\"[^>]*>\n[^\n]*\n(.*?)\n</doc>", re.DOTALL)
_PLACEHOLDER = re.compile(r"(?:formula|codice)_\d+")
_WORD = re.compile(r"[^\W_]+")
_ENDED = re.compile(r"[.!?。！？؟]['\"”»’)\]]*$")
_FEWEST_WORDS = 5
_WIDEST = 3
"""How many times as long as the sentence a stretch may be that has all its words: what templates say is more."""


@dataclass(frozen=True)
class KeptSentences:
    """Of another program's sentences: how many there are, stand in ours as they are, or with more words between."""

    sentences: int
    literally: int
    kept: int
    lost: tuple[str, ...]


def read_extracted(folder: Path) -> dict[str, str]:
    """The texts that wikiextractor wrote, by page id."""
    files = sorted(path for path in folder.rglob("wiki_*") if path.is_file())
    found = (match for path in files for match in _DOCUMENT.finditer(path.read_text(encoding="utf-8")))
    return {match[1]: unescape(match[2]) for match in found}


def count_kept(theirs: Mapping[str, str], ours: Mapping[str, Page]) -> KeptSentences:
    """Look for their sentences in our pages, by letters and digits alone.

    They drop templates where we keep what these say, so a sentence is kept, too, if its words stand in ours in their
    order and close together.
    """
    total = literally = 0
    filled: list[str] = []
    lost: list[str] = []
    for key, text in theirs.items():
        words = _words(_whole(ours[key])) if key in ours else []
        glued = "".join(words)
        places: dict[str, list[int]] = {}
        for place, word in enumerate(words):
            places.setdefault(word, []).append(place)
        for sentence in _prose(text):
            sought = _words(_PLACEHOLDER.sub("", sentence))
            total += 1
            if "".join(sought) in glued:
                literally += 1
            else:
                (filled if _stand_together(sought, places) else lost).append(sentence)
    return KeptSentences(total, literally, literally + len(filled), tuple(lost))


def _whole(page: Page) -> str:
    parts: list[str] = []
    above: tuple[str, ...] = ()
    for section in page.sections:
        new = next((level for level, pair in enumerate(zip_longest(section.path, above)) if pair[0] != pair[1]), 0)
        parts += (*section.path[new:], *(block.text for block in section.blocks))
        above = section.path
    return "\n".join(parts)


def _prose(text: str) -> Iterator[str]:
    """Sentences that end as sentences do, of five words at least; no list items."""
    for line in text.split("\n"):
        if line[:1] not in ("*", "#", "-", ""):
            for start, end in sentence_spans(line):
                sentence = line[start:end]
                if _ENDED.search(sentence) and len(sentence.split()) >= _FEWEST_WORDS:
                    yield sentence


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return _WORD.findall("".join(char for char in plain if not unicodedata.combining(char)))


def _stand_together(sought: Sequence[str], places: Mapping[str, Sequence[int]]) -> bool:
    """Whether the words stand in their order within a stretch not much longer than they are."""
    if not sought:
        return True
    return any(_reach(sought, places, start) for start in places.get(sought[0], ()))


def _reach(sought: Sequence[str], places: Mapping[str, Sequence[int]], start: int) -> bool:
    place, limit = start, start + _WIDEST * len(sought) + 20
    for word in sought[1:]:
        later = places.get(word, ())
        following = bisect_right(later, place)
        if following == len(later) or later[following] > limit:
            return False
        place = later[following]
    return True


def find_markup(texts: Iterable[str]) -> list[str]:
    """Around each first piece of markup or hole in a text, some characters."""
    found = ((text, LEFT_OVER.search(text)) for text in texts)
    return [text[max(0, match.start() - 40) : match.end() + 40] for text, match in found if match]


@dataclass(frozen=True)
class TableFact:
    """Something that an infobox or a table of a page says."""

    title: str
    label: str
    value: str


def read_facts(path: Path) -> tuple[TableFact, ...]:
    """Read a list of facts: `{"facts": [{"title", "label", "value"}]}`."""
    listed = json.loads(path.read_text(encoding="utf-8"))["facts"]
    return tuple(TableFact(each["title"], each["label"], each["value"]) for each in listed)


def has_fact(text: str, fact: TableFact) -> bool:
    """Whether a text holds a fact's value, letters and digits compared."""
    return f" {' '.join(_words(fact.value))} " in f" {' '.join(_words(text))} "


_EVERY = 0.1


@dataclass(frozen=True)
class ProgramRun:
    """What a program took, and what it printed. Memory is the sum over its processes, what they share counted twice."""

    seconds: float
    processor_seconds: float
    memory_mb: int
    output: str


def watch_program(command: Sequence[str]) -> ProgramRun:
    """Run a command to its end. Raises `EvaluationError` with its last words if it fails."""
    before = _processor_seconds()
    started = time.perf_counter()
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
    except OSError as error:
        raise EvaluationError(f"{command[0]} cannot be run: {error.strerror}.", hint="Check its path.") from error
    ended = threading.Event()
    peak = [0]
    watcher = threading.Thread(target=_watch_memory, args=(process.pid, ended, peak), name="watch")
    watcher.start()
    output, words = process.communicate()
    seconds = time.perf_counter() - started
    ended.set()
    watcher.join()
    if process.returncode:
        last = words.strip().splitlines()[-1:] or [f"it ended with {process.returncode}"]
        raise EvaluationError(f"{command[0]} failed: {last[0]}")
    return ProgramRun(seconds, _processor_seconds() - before, peak[0] >> 20, output)


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _watch_memory(session: int, ended: threading.Event, peak: list[int]) -> None:
    while not ended.wait(_EVERY):
        peak[0] = max(peak[0], _resident(session))


def _resident(session: int) -> int:
    """Bytes in memory of all processes of a session, by Linux's own account."""
    pages = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            pages += int(fields[21])
    return pages * os.sysconf("SC_PAGE_SIZE")


DEPTH = 10
"""How many passages a search shows."""


def dumps(
    dump: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A dump to make more of.")],
    wikiextractor: Annotated[Path | None, typer.Option(help="The program to compare with.")] = None,
    megabytes: Annotated[int, typer.Option(help="The XML that both read.", min=1)] = 200,
    large: Annotated[int, typer.Option(help="Megabytes of a dump read for its memory; 0 for none.", min=0)] = 0,
    facts: Annotated[Path | None, typer.Option(exists=True, help="A list of facts to look for.")] = None,
    processes: Annotated[int, typer.Option(help="Of each program; 0 is one a core.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compare speed and text of reading a dump with wikiextractor's (without templates).

    Example: python -m tools.benchmarks.dump_reading enwiki.xml.bz2 --wikiextractor ~/wx/bin/wikiextractor
    """
    number = processes or count_cores()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        report: dict[str, Any] = {"schema": 1, "dump": dump.name, "processes": number}
        report["speed"] = _compare_speed(dump, scratch, megabytes, number, wikiextractor)
        report["text"] = _check_text(dump, scratch, wikiextractor, read_facts(facts) if facts else ())
        if large:
            report["large"] = _measure_large(write_dump(dump, scratch / "large.xml", large), number)
    print(json.dumps(report, ensure_ascii=False) if as_json else _lines(report))


def _compare_speed(dump: Path, scratch: Path, megabytes: int, processes: int, program: Path | None) -> dict[str, Any]:
    made = write_dump(dump, scratch / "made.xml", megabytes)
    figures = {"footnote": _rates(made, _read_dump(made.path, processes))}
    if program:
        figures["wikiextractor"] = _rates(made, _extract(program, made.path, scratch / "out", processes))
        figures["times_as_fast"] = {
            by: round(figures["footnote"][by] / figures["wikiextractor"][by], 2)
            for by in ("mb_per_second", "mb_per_processor_second")
        }
    made.path.unlink()
    return {"articles": made.articles, "xml_mb": round(made.bytes / 1e6, 1), **figures}


def _read_dump(dump: Path, processes: int) -> ProgramRun:
    return watch_program([sys.executable, "-m", "tools.benchmarks.dump_reader", str(dump), str(processes)])


def _extract(program: Path, dump: Path, out: Path, processes: int) -> ProgramRun:
    return watch_program([str(program), "--no-templates", "--processes", str(processes), "-o", str(out), str(dump)])


def _rates(made: SyntheticDump, run: ProgramRun) -> dict[str, float]:
    return {
        "seconds": round(run.seconds, 2),
        "processor_seconds": round(run.processor_seconds, 2),
        "mb_per_second": round(made.bytes / 1e6 / run.seconds, 2),
        "mb_per_processor_second": round(made.bytes / 1e6 / run.processor_seconds, 2),
        "pages_per_second": round(made.articles / run.seconds, 1),
        "memory_mb": run.memory_mb,
    }


def _check_text(dump: Path, scratch: Path, program: Path | None, facts: Sequence[TableFact]) -> dict[str, Any]:
    found = {item.key: item for item in WikipediaDump(dump).documents() if isinstance(item, ChangedDocument)}
    pages = {key: item.load() for key, item in found.items()}
    cut = [passage for key, page in pages.items() for passage in split_page("wikipedia", key, page)]
    bad = find_markup(passage.text for passage in cut)
    report: dict[str, Any] = {
        "pages": len(pages),
        "passages": len(cut),
        "left_over": len(bad),
        "left_over_in": bad[:20],
    }
    if program:
        _extract(program, dump, scratch / "original", 1)
        report["sentences"] = _sentences(read_extracted(scratch / "original"), pages)
    if facts:
        report["facts"] = _facts(facts, pages, cut, scratch / "lexical")
    return report


def _sentences(theirs: dict[str, str], pages: dict[str, Page]) -> dict[str, Any]:
    figures = asdict(count_kept(theirs, pages))
    shares = {f"{name}_share": round(figures[name] / figures["sentences"], 4) for name in ("literally", "kept")}
    return {**figures, **shares, "lost": figures["lost"][:20]}


def _facts(facts: Sequence[TableFact], pages: dict[str, Page], cut: Sequence[Passage], folder: Path) -> dict[str, Any]:
    """How many facts stand in the passages of their page, and are among the first that a search by words finds."""
    titles = {key: page.title for key, page in pages.items()}
    rows = [Document("wikipedia", key, page.title, language=page.language) for key, page in pages.items()]
    documents = {row.key: row for row in rows}
    numbers = {key: number for number, key in enumerate(documents, 1)}
    texts = {(numbers[each.document], each.position): (titles[each.document], each.text) for each in cut}
    of = {key: tuple(each for each in cut if each.document == key) for key in documents}
    folder.mkdir()
    index = LexicalIndex(folder)
    versions = [index_version(StoredVersion(numbers[key], documents[key], of[key])) for key in documents]
    index.follow(versions, (), len(versions))
    missing: list[TableFact] = []
    unfound: list[TableFact] = []
    for fact in facts:
        scores, _ = index.search(f"{fact.title} {fact.label}", ["wikipedia"], DEPTH)
        if not any(title == fact.title and has_fact(text, fact) for title, text in texts.values()):
            missing.append(fact)
        if not any(texts[each][0] == fact.title and has_fact(texts[each][1], fact) for each in scores):
            unfound.append(fact)
    index.close()
    return {
        "listed": len(facts),
        "standing": len(facts) - len(missing),
        "found": len(facts) - len(unfound),
        "missing": [asdict(fact) for fact in missing],
        "unfound": [asdict(fact) for fact in unfound],
    }


def _measure_large(made: SyntheticDump, processes: int) -> dict[str, float]:
    size = made.path.stat().st_size
    run = _read_dump(made.path, processes)
    made.path.unlink()
    return {"xml_mb": round(size / 1e6), "articles": made.articles, **_rates(made, run)}


def _lines(report: dict[str, Any]) -> str:
    """The figures for a person, one of each part a line."""
    speed, text = report["speed"], report["text"]
    lines = [f"{speed['articles']:,} articles, {speed['xml_mb']} MB of XML, {report['processes']} processes"]
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


if __name__ == "__main__":
    typer.run(dumps)
