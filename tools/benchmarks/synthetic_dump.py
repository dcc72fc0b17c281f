"""Write large synthetic dumps from the pages of a real one, with new titles, ids, numbers and rare words.

An article is the beginning of a real one with sections of others. Its rare words are drawn by Zipf's law from a
vocabulary that grows with the dump, so the number of terms grows as in a real one. Each stream of pages follows from
its number alone, so several processes can write them.
"""

import bz2
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Annotated

import typer

from ingest.sources.dumps.dump_file import read_blocks
from ingest.sources.dumps.page_xml import XmlExport, parse_head, parse_site
from ingest.sources.dumps.worker_pool import WorkerPool, count_cores

STREAM_PAGES = 100
RARE = 12  # a word with at most so many occurrences in the real dump is replaced
FIRST_WORDS, WORDS_A_STREAM = 30_000, 900
LONGER = 0.55  # the chance that an article has one more section

_TEXT = re.compile(rb"<text[^>]*>(.*?)</text>", re.DOTALL)
_HEADING = re.compile(r"^(?===[^=])", re.MULTILINE)
_SLOT = re.compile(
    r"\{\{[^{}]*\}\}|&lt;[^&]*&gt;|&\w+;|\[?https?:\S+|\[\[[^\[\]|]*:"  # stays as it is
    r"|\[\[(?P<link>[^\[\]|:#]+)(?P<label>\|?)|(?P<number>\b[1-9]\d{1,3}\b)|(?P<word>\b[A-Za-z][a-z]{3,}\b)"
)
_SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]
_Template = tuple[tuple[str, str], ...]  # text, and the kind of slot behind it: link, labelled, number, word, Name, ""


@dataclass(frozen=True)
class SyntheticDump:
    path: Path
    articles: int
    bytes: int  # of its XML, unpacked


def make_word(rank: int) -> str:
    """Return a word that no other rank has."""
    number, letters = rank + len(_SYLLABLES), ""
    while number:
        number, digit = divmod(number, len(_SYLLABLES))
        letters += _SYLLABLES[digit]
    return letters + "nkrm"[rank % 4]


def make_title(page: int) -> str:
    more = (make_word(page % 977).capitalize(), f"of {make_word(page % 53).capitalize()}", "")[page % 3]
    return f"{make_word(page).capitalize()} {more}".strip()


def write_dump(source: Path, target: Path, megabytes: int, processes: int = 0) -> SyntheticDump:
    """Write about so many megabytes of XML as `.xml`, or packed with an index as `-multistream.xml.bz2`."""
    packed = target.suffix == ".bz2"
    pack: Callable[[bytes], bytes] = bz2.compress if packed else bytes
    articles = size = 0
    index: list[str] = []
    with target.open("wb") as file, WorkerPool(processes or count_cores()) as pool:
        file.write(pack(_load_pool(source).header))
        # Streams are requested one by one, because their sizes are unknown before.
        numbers = _take_until(lambda: size >= megabytes * 1_000_000)
        for stream in pool.map(partial(make_stream, source), numbers):
            if size >= megabytes * 1_000_000:
                break
            index += [f"{file.tell()}:{page}:{title}\n" for page, title in stream.pages]
            file.write(pack(stream.content))
            articles, size = articles + stream.articles, size + len(stream.content)
        file.write(pack(b"</mediawiki>\n"))
    if packed:
        name = target.name.replace(".xml.bz2", "-index.txt.bz2")
        target.with_name(name).write_bytes(bz2.compress("".join(index).encode()))
    return SyntheticDump(target, articles, size)


def _take_until(enough: Callable[[], bool]) -> Iterator[int]:
    for number in count():
        if enough():
            return
        yield number


@dataclass(frozen=True)
class _Pool:
    """The parts of a real dump from which articles are composed."""

    header: bytes
    leads: tuple[_Template, ...]
    sections: tuple[_Template, ...]


@dataclass(frozen=True)
class PageStream:
    content: bytes
    articles: int
    pages: tuple[tuple[int, str], ...]


def make_stream(source: Path, number: int) -> PageStream:
    """Make a stream of pages: every even page is an article, most odd ones redirect to an earlier article."""
    pool, content, articles = _load_pool(source), list[str](), 0
    pages = range(number * STREAM_PAGES, (number + 1) * STREAM_PAGES)
    for page in pages:
        random = Random(page)
        if page % 2 and page > 1:
            target = make_title(random.randrange(0, page, 2))
            content.append(_write_page(page, f'\n    <redirect title="{target}" />', f"#REDIRECT [[{target}]]"))
        else:
            content.append(_write_page(page, "", _write_article(pool, random, page)))
            articles += 1
    return PageStream("".join(content).encode(), articles, tuple((page + 1, make_title(page)) for page in pages))


def _write_page(page: int, redirect: str, text: str) -> str:
    return (
        f"  <page>\n    <title>{make_title(page)}</title>\n    <ns>0</ns>\n    <id>{page + 1}</id>{redirect}\n"
        f"    <revision>\n      <id>{10 * page + 1}</id>\n      <timestamp>2015-04-11T10:19:33Z</timestamp>\n"
        f"      <contributor>\n        <username>Author</username>\n        <id>{page % 9973}</id>\n"
        f"      </contributor>\n      <model>wikitext</model>\n      <format>text/x-wiki</format>\n"
        f'      <text xml:space="preserve">{text}</text>\n    </revision>\n  </page>\n'
    )


def _write_article(pool: _Pool, random: Random, page: int) -> str:
    parts = [random.choice(pool.leads)]
    while random.random() < LONGER:
        parts.append(random.choice(pool.sections))
    vocabulary = FIRST_WORDS + WORDS_A_STREAM * (page // STREAM_PAGES)
    targets = (page + STREAM_PAGES) // 2
    written = [f"'''{make_title(page)}''' is a subject of its own.\n"]
    for part in parts:
        for text, kind in part:
            written += [text, _fill_slot(kind, int(vocabulary ** random.random()), 2 * random.randrange(targets))]
        written.append("\n")
    return "".join(written)


def _fill_slot(kind: str, rank: int, target: int) -> str:
    """Return what goes into a slot; log-uniform ranks follow Zipf's law."""
    match kind:
        case "word":
            return make_word(rank)
        case "Name":
            return make_word(rank).capitalize()
        case "number":
            return str(1 + rank % 2025)
        case "link" | "labelled":
            return f"[[{make_title(target)}" + "|" * (kind == "labelled")
    return ""


@lru_cache(maxsize=1)
def _load_pool(source: Path) -> _Pool:
    xml = b"".join(read_blocks(source))
    header = xml[: xml.find(b"<page>")].rstrip(b" ")
    site, texts = parse_site(header), list[str]()
    for page in XmlExport([xml]).pages():
        head, text = parse_head(page.xml, site), _TEXT.search(page.xml)
        if head and text and head.namespace == 0 and head.redirect is None:
            texts.append(text[1].decode(errors="replace"))
    counts = Counter(match["word"] for text in texts for match in _SLOT.finditer(text) if match["word"])
    split = [_HEADING.split(text) for text in texts]
    leads = tuple(_find_slots(lead, counts) for lead, *_ in split)
    sections = tuple(_find_slots(section, counts) for _, *others in split for section in others)
    return _Pool(header, leads, sections or leads)


def _find_slots(text: str, counts: Counter[str]) -> _Template:
    slots: list[tuple[str, str]] = []
    begin = 0
    for match in _SLOT.finditer(text):
        kind = match.lastgroup or ""
        if kind == "label":
            kind = "labelled" if match["label"] else "link"
        elif kind == "word":
            kind = "" if counts[match["word"]] > RARE else "Name" if match["word"][0].isupper() else "word"
        if kind:
            slots.append((text[begin : match.start()], kind))
            begin = match.end()
    return (*slots, (text[begin:], ""))


def make(
    source: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A real dump.")],
    target: Annotated[Path, typer.Argument(help="NAME.xml, or NAME-multistream.xml.bz2 with an index.")],
    megabytes: Annotated[int, typer.Option(help="Of XML.", min=1)] = 2_200,
) -> None:
    """Write a synthetic dump.

    Example: python -m tools.benchmarks.synthetic_dump enwiki.xml.bz2 /tmp/made-multistream.xml.bz2
    """
    started = time.perf_counter()
    made = write_dump(source, target, megabytes)
    seconds = time.perf_counter() - started
    print(f"{made.path}: {made.articles:,} articles, {made.bytes:,} bytes of XML in {seconds:.0f} s")


if __name__ == "__main__":
    typer.run(make)
