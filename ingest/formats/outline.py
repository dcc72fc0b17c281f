"""Headings and blocks in order -> a title and sections. Pure, and the same for every format."""

from collections.abc import Iterable, Iterator, Sequence

from ingest.formats import lists
from ingest.formats.reading import Heading, Item
from ingest.types import Block, Section
from storage.types import Kind

_INTRODUCES = (":", "\uff1a")


def title_of(items: Sequence[Item]) -> str:
    """The first heading of level 1; or, where there is none, a heading that opens the document alone at its level."""
    headings = [item for item in items if isinstance(item, Heading)]
    for heading in headings:
        if heading.level == 1:
            return heading.text
    opens = bool(items) and isinstance(items[0], Heading) and not headings[0].text[:1].isdigit()
    if opens and all(heading.level > headings[0].level for heading in headings[1:]):
        return headings[0].text
    return ""


def sections(items: Iterable[Item], title: str) -> tuple[Section, ...]:
    """Group blocks under the path of headings above them; a heading that says the title is left out of the path."""
    made: list[tuple[tuple[str, ...], list[Block]]] = []
    for path, block in _placed(list(items), title):
        if made and made[-1][0] == path:
            made[-1][1].append(block)
        else:
            made.append((path, [block]))
    return tuple(Section(path, tuple(_introduced(blocks))) for path, blocks in made)


def _placed(items: Sequence[Item], title: str) -> Iterator[tuple[tuple[str, ...], Block]]:
    above: list[Heading] = []
    titled = False
    for at, item in enumerate(items):
        if isinstance(item, Block):
            yield _path(above), item
            continue
        while above and above[-1].level >= item.level:
            above.pop()
        if not titled and _same(item.text, title):
            titled = True
        elif _is_empty(item, items[at + 1 : at + 2]):
            # Nothing stands under it, so what it says is a text of its own.
            yield _path(above), Block(item.text)
        else:
            above.append(item)


def _is_empty(heading: Heading, following: Sequence[Item]) -> bool:
    return not following or (isinstance(following[0], Heading) and following[0].level <= heading.level)


def _path(above: Sequence[Heading]) -> tuple[str, ...]:
    return tuple(heading.text for heading in above)


def _same(one: str, other: str) -> bool:
    return " ".join(one.split()).casefold() == " ".join(other.split()).casefold()


def _introduced(blocks: Sequence[Block]) -> Iterator[Block]:
    """Join a paragraph that ends in a colon with the list that it introduces."""
    waiting: Block | None = None
    for block in blocks:
        if waiting and block.kind is Kind.PROSE and lists.begins(block.text):
            block = Block(f"{waiting.text}\n{block.text}")  # noqa: PLW2901 - the pair goes on as one
        elif waiting:
            yield waiting
        waiting = block if block.kind is Kind.PROSE and block.text.endswith(_INTRODUCES) else None
        if not waiting:
            yield block
    if waiting:
        yield waiting
