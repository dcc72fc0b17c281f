"""Lists of HTML -> blocks of lines, one an item: "- item", "2. item", nested items indented by two spaces."""

import re
from collections.abc import Sequence

from ingest.formats.elements import Element
from ingest.formats.reading import Heading, Item
from ingest.types import Block
from storage.types import Kind

_MARK = re.compile(r"^\s*(?:[-•*]|\d{1,3}[.)])\s+")
_TASK = re.compile(r"\[([ xX])\]\s+")


def begins(text: str) -> bool:
    """Whether a text begins with the mark of a list item."""
    return bool(_MARK.match(text))


def unmarked(line: str) -> str:
    """A line without the mark of a list item."""
    return _MARK.sub("", line, count=1)


def items(element: Element, children: Sequence[tuple[Element, list[Item]]]) -> list[Item]:
    """The items of a list as lines of one block; code and tables in an item stand between the parts of the list.

    `children` are the elements of the list, each with what was read in it.
    """
    made: list[Item] = []
    lines: list[str] = []
    number = int(start) if (start := element.get("start", "1")).isdigit() else 1
    for child, inside in children:
        if any(isinstance(item, Heading) for item in inside):
            # A list of whole articles is no list to a reader.
            made += [Block("\n".join(lines)), *inside] if lines else inside
            lines = []
            continue
        mark = f"{number}. " if element.tag == "ol" else "- "
        number += child.tag == "li"
        for item in inside:
            if isinstance(item, Block) and item.kind is not Kind.PROSE:
                made += [Block("\n".join(lines)), item] if lines else [item]
                lines = []
            else:
                lines += _marked(item.text, mark if child.tag == "li" else "")
                mark = "  "
    return [*made, Block("\n".join(lines))] if lines else made


def _marked(text: str, mark: str) -> list[str]:
    task = _TASK.match(text)
    if task:
        text = ("✓ " if task[1] in "xX" else "") + text[task.end() :]
    first, *rest = text.split("\n")
    return [mark + first, *("  " + line for line in rest)]


def defined(term: str, inside: Sequence[Item]) -> list[Item]:
    """A term and what was read in its definition: "term: definition"."""
    if not term:
        return list(inside)
    if inside and isinstance(inside[0], Block) and inside[0].kind is Kind.PROSE:
        return [Block(f"{term}: {inside[0].text}"), *inside[1:]]
    return [Block(term), *inside]
