"""The result of a reader: headings and blocks in order. Also finds the title, and groups the blocks into sections."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from ingest.types import Block, Section
from storage.language.lazy_pattern import lazy_compile
from storage.types import PassageKind


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading between blocks. Level 1 is the highest."""

    level: int
    text: str


ContentItem = Heading | Block


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A parsed document. Fields that its format does not state are empty."""

    items: tuple[ContentItem, ...]
    title: str = ""  # a title given on purpose, preferred to headings
    fallback_title: str = ""
    """A title from metadata, which are often wrong or stale: used only without a first heading."""
    untitled: bool = False  # whether its first heading is not a title
    date: datetime | None = None
    dated: bool = False
    """Whether it states a date, understood or not: then the date of its file is not used."""
    revision: str = ""
    language: str = ""


_INTRODUCES = (":", "\uff1a")


def find_title(items: Sequence[ContentItem]) -> str:
    """Return the first heading of level 1, or else the first heading if it is higher than all others, or else ""."""
    headings = [item for item in items if isinstance(item, Heading)]
    for heading in headings:
        if heading.level == 1:
            return heading.text
    opens = bool(items) and isinstance(items[0], Heading) and not headings[0].text[:1].isdigit()
    if opens and all(heading.level > headings[0].level for heading in headings[1:]):
        return headings[0].text
    return ""


def group_sections(items: Iterable[ContentItem], title: str) -> tuple[Section, ...]:
    """Group blocks into sections under the headings above them. A heading that repeats the title is skipped."""
    groups: list[tuple[tuple[str, ...], list[Block]]] = []
    for path, block in _group_by_heading(list(items), title):
        if groups and groups[-1][0] == path:
            groups[-1][1].append(block)
        else:
            groups.append((path, [block]))
    return tuple(Section(path, tuple(_join_introductions(blocks))) for path, blocks in groups)


def _group_by_heading(items: Sequence[ContentItem], title: str) -> Iterator[tuple[tuple[str, ...], Block]]:
    above: list[Heading] = []
    titled = False
    for at, item in enumerate(items):
        if isinstance(item, Block):
            yield _path(above), item
            continue
        while above and above[-1].level >= item.level:
            above.pop()
        if not titled and _is_same_text(item.text, title):
            titled = True
        elif at + 1 == len(items) or (isinstance(after := items[at + 1], Heading) and after.level <= item.level):
            # Nothing follows below it, so it is text.
            yield _path(above), Block(item.text)
        else:
            above.append(item)


def _path(above: Sequence[Heading]) -> tuple[str, ...]:
    return tuple(heading.text for heading in above)


def _is_same_text(text: str, other: str) -> bool:
    return " ".join(text.split()).casefold() == " ".join(other.split()).casefold()


def _join_introductions(blocks: Sequence[Block]) -> Iterator[Block]:
    """Join a paragraph that ends with a colon with the list after it."""
    waiting: Block | None = None
    for block in blocks:
        if waiting and block.kind is PassageKind.PROSE and is_list_item(block.text):
            block = Block(f"{waiting.text}\n{block.text}")  # noqa: PLW2901 - the joined pair
        elif waiting:
            yield waiting
        waiting = block if block.kind is PassageKind.PROSE and block.text.endswith(_INTRODUCES) else None
        if not waiting:
            yield block
    if waiting:
        yield waiting


LIST_MARK = lazy_compile(r"^\s*(?:[-•*]|\d{1,3}[.)])\s+")


def is_list_item(text: str) -> bool:
    return bool(LIST_MARK.match(text))


def strip_list_mark(line: str) -> str:
    return LIST_MARK.sub("", line, count=1)
