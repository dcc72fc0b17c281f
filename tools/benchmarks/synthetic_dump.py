"""Write large synthetic Wikipedia dumps from the pages of a real dump.

An article is the lead of a real article, with sections of others. Its rare words, names, numbers and links are replaced
by invented words. The vocabulary has a Zipf distribution and grows with the dump, so that the number of terms grows as
in a real dump. A stream of pages depends only on its number, so a changed dump differs only in the changed streams.
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
REDIRECT_SHARE = 0.5
RARE = 12  # words that occur at most this often in the real dump are replaced
FIRST_WORDS, WORDS_A_STREAM = 30_000, 900
LONGER = 0.55  # the probability of each further section of an article

_TEXT = re.compile(rb"<text[^>]*>(.*?)</text>", re.DOTALL)
_HEADING = re.compile(r"^(?===[^=])", re.MULTILINE)
_SLOT = re.compile(
    r"\{\{[^{}]*\}\}|&lt;[^&]*&gt;|&\w+;|\[?https?:\S+|\[\[[^\[\]|]*:"  # not replaced
    r"|\[\[(?P<link>[^\[\]|:#]+)(?P<label>\|?)|(?P<number>\b[1-9]\d{1,3}\b)|(?P<word>\b[A-Za-z][a-z]{3,}\b)"
)
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"
_SYLLABLES = [first + second for first in _CONSONANTS for second in _VOWELS]


@dataclass(frozen=True)
class SyntheticDump:
    """A dump that was written, with its counts."""

    path: Path
    articles: int
    bytes: int  # of its uncompressed XML
    streams: int
    changed: int = 0  # pages that were edited, added or removed


@dataclass(frozen=True)
class DumpPlan:
    """The parameters that the streams of a dump depend on."""

    source: Path
    packed: bool
    changed: float = 0.0  # the share of changed pages
    in_streams: float = 0.0  # the share of streams that have changed pages


_Template = tuple[tuple[str, str], ...]
"""Texts, each with the kind of the slot after it: `link`, `labelled`, `number`, `word`, `Name`, or empty."""


def make_word(rank: int) -> str:
    """Return the word of this rank in the vocabulary. Each rank has another word."""
    number, letters = rank + len(_SYLLABLES), ""
    while number:
        number, digit = divmod(number, len(_SYLLABLES))
        letters += _SYLLABLES[digit]
    return letters + "nkrm"[rank % 4]


def make_title(page: int) -> str:
    """Return the title of the page with this number."""
    more = (make_word(page % 977).capitalize(), f"of {make_word(page % 53).capitalize()}", "")[page % 3]
    return f"{make_word(page).capitalize()} {more}".strip()


def write_dump(
    source: Path,
    target: Path,
    megabytes: int,
    *,
    changed: float = 0.0,
    in_streams: float = 0.0,
    processes: int = 0,
) -> SyntheticDump:
    """Write a dump of about `megabytes` of XML. A name that ends with `-multistream.xml.bz2` also gets an index.

    `changed` is the share of pages that differ from those of an unchanged dump. `in_streams` is the share of streams
    that have such pages; 0 means all streams.
    """
    packed = target.suffix == ".bz2"
    multistream = packed and "-multistream" in target.name
    plan = DumpPlan(source, multistream, changed, in_streams or 1.0)
    head = _load_pool(source).header
    articles = size = streams = altered = 0
    single = None if multistream or not packed else bz2.BZ2Compressor()
    index = target.with_name(target.name.replace(".xml.bz2", "-index.txt.bz2")) if multistream else None
    lines: list[str] = []
    with target.open("wb") as file, WorkerPool(processes or count_cores()) as pool:

        def put(content: bytes) -> None:
            file.write(single.compress(content) if single else content)

        put(bz2.compress(head) if multistream else head)
        # The size of a stream is known only once it is made.
        work = _take_until(lambda: size >= megabytes * 1_000_000)
        for made in pool.map(partial(make_stream, plan), work):
            if size >= megabytes * 1_000_000:
                break
            lines += [f"{file.tell()}:{page}:{title}\n" for page, title in made.pages]
            put(made.content)
            articles, size, streams = articles + made.articles, size + made.size, streams + 1
            altered += made.changed
        put(bz2.compress(b"</mediawiki>\n") if multistream else b"</mediawiki>\n")
        if single:
            file.write(single.flush())
    if index:
        index.write_bytes(bz2.compress("".join(lines).encode()))
    return SyntheticDump(target, articles, size, streams, altered)


def _take_until(enough: Callable[[], bool]) -> Iterator[int]:
    for number in count():
        if enough():
            return
        yield number


@dataclass(frozen=True)
class _Pool:
    header: bytes
    leads: tuple[_Template, ...]
    sections: tuple[_Template, ...]


@dataclass(frozen=True)
class MadeStream:
    content: bytes
    size: int
    articles: int
    changed: int
    pages: tuple[tuple[int, str], ...]


def make_stream(plan: DumpPlan, number: int) -> MadeStream:
    """Make the stream of pages with this number."""
    pool = _load_pool(plan.source)
    chance = Random(f"changes {number}")
    share = plan.changed / plan.in_streams if plan.changed and chance.random() < plan.in_streams else 0.0
    made: list[str] = []
    listed: list[tuple[int, str]] = []
    articles = changed = 0
    first = number * STREAM_PAGES
    for page in range(first, first + STREAM_PAGES):
        edited = chance.random() < share
        changed += edited
        kind = chance.random()
        if edited and kind < 0.1:  # a tenth of the changed pages is removed, and a tenth is new
            continue
        random = Random(page)
        revision = 10 * page + 1 + edited
        if page % 2 and page > 1 and random.random() < 2 * REDIRECT_SHARE:
            to = random.randrange(0, page, 2)
            made.append(_write_page(2 * page + 2, make_title(page), revision, to))
        else:
            text = _write_article(pool, Random(f"{page} edited") if edited else random, number, page)
            made.append(_write_page(2 * page + 2, make_title(page), revision, None, text))
            articles += 1
        listed.append((2 * page + 2, make_title(page)))
        if edited and kind > 0.9:
            made.append(_write_page(2 * page + 3, f"{make_title(page)} (new)", revision, None, "A '''new''' article."))
            listed.append((2 * page + 3, f"{make_title(page)} (new)"))
            articles += 1
    content = "".join(made).encode()
    return MadeStream(bz2.compress(content) if plan.packed else content, len(content), articles, changed, tuple(listed))


def _write_page(number: int, title: str, revision: int, target: int | None, text: str = "") -> str:
    moved = "" if target is None else f'\n    <redirect title="{make_title(target)}" />'
    text = text if target is None else f"#REDIRECT [[{make_title(target)}]]"
    saved = f"20{revision % 25:02}-0{revision % 9 + 1}-11T10:19:33Z"
    return (
        f"  <page>\n    <title>{title}</title>\n    <ns>0</ns>\n    <id>{number}</id>{moved}\n    <revision>\n"
        f"      <id>{revision}</id>\n      <timestamp>{saved}</timestamp>\n"
        f"      <contributor>\n        <username>Somebody</username>\n        <id>{revision % 9973}</id>\n"
        f"      </contributor>\n      <model>wikitext</model>\n      <format>text/x-wiki</format>\n"
        f'      <text xml:space="preserve">{text}</text>\n    </revision>\n  </page>\n'
    )


def _write_article(pool: _Pool, random: Random, stream: int, page: int) -> str:
    parts = [random.choice(pool.leads)]
    while random.random() < LONGER:
        parts.append(random.choice(pool.sections))
    vocabulary = FIRST_WORDS + WORDS_A_STREAM * stream
    pages = (page + STREAM_PAGES) // 2
    title = make_title(page)
    written = [f"'''{title}''' is a subject of its own.\n"]
    draw = random.random
    for part in parts:
        for text, kind in part:
            written.append(text)
            if kind:
                # Log-uniform ranks are Zipf's law.
                rank = int(vocabulary ** draw())
                if kind in {"word", "Name"}:
                    written.append(make_word(rank) if kind == "word" else make_word(rank).capitalize())
                elif kind == "number":
                    written.append(str(1 + rank % 2025))
                else:
                    written.append(f"[[{make_title(2 * int(draw() * pages))}{'|' if kind == 'labelled' else ''}")
        written.append("\n")
    return "".join(written)


@lru_cache(maxsize=1)
def _load_pool(source: Path) -> _Pool:
    xml = b"".join(read_blocks(source))
    header = xml[: xml.find(b"<page>")].rstrip(b" ")
    site = parse_site(header)
    texts = []
    for page in XmlExport([xml]).pages():
        head, found = parse_head(page.xml, site), _TEXT.search(page.xml)
        if head and found and head.namespace == 0 and head.redirect is None:
            texts.append(found[1].decode(errors="replace"))
    counted = Counter(match["word"] for text in texts for match in _SLOT.finditer(text) if match["word"])
    leads: list[_Template] = []
    sections: list[_Template] = []
    for text in texts:
        lead, *others = _HEADING.split(text)
        leads.append(_find_slots(lead, counted))
        sections += [_find_slots(other, counted) for other in others]
    return _Pool(header, tuple(leads), tuple(sections) or tuple(leads))


def _find_slots(text: str, counted: Counter[str]) -> _Template:
    found: list[tuple[str, str]] = []
    begin = 0
    for match in _SLOT.finditer(text):
        kind = match.lastgroup or ""
        if kind == "label":
            kind = "labelled" if match["label"] else "link"
        elif kind == "word":
            kind = "" if counted[match["word"]] > RARE else "Name" if match["word"][0].isupper() else "word"
        if kind:
            found.append((text[begin : match.start()], kind))
            begin = match.end()
    return (*found, (text[begin:], ""))


def make(
    source: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A real dump.")],
    target: Annotated[Path, typer.Argument(help="NAME.xml, NAME.xml.bz2 or NAME-multistream.xml.bz2, with an index.")],
    megabytes: Annotated[int, typer.Option(help="Size of the XML in megabytes.", min=1)] = 2_200,
    changed: Annotated[float, typer.Option(help="The share of pages that differ.", min=0, max=1)] = 0.0,
    in_streams: Annotated[float, typer.Option(help="The share of streams that have such pages.", min=0, max=1)] = 0.0,
) -> None:
    """Write a synthetic dump.

    Example: python -m tools.benchmarks.synthetic_dump enwiki.xml.bz2 /tmp/made-multistream.xml.bz2
    """
    started = time.perf_counter()
    made = write_dump(source, target, megabytes, changed=changed, in_streams=in_streams)
    print(
        f"{made.path}: {made.articles:,} articles, {made.bytes:,} bytes of XML, {made.streams:,} streams, "
        f"{made.changed:,} pages changed, in {time.perf_counter() - started:.0f} s"
    )


if __name__ == "__main__":
    typer.run(make)
