"""A view as pages that a platform takes: whatever is long is cut, and nothing is lost or changes places; pure.

A sentence stays with its footnote marks, and a source with its title and address, wherever there is room for them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, tzinfo

from bot.showing.blocks import Block, blocks
from bot.showing.cutting import pieces
from bot.showing.parts import Kind, Limits, Page, Part, Run, Style
from bot.showing.view import Button, View

_WHOLE = (Style.MARK, Style.PERSON)


def fit(view: View, limits: Limits, zone: tzinfo = UTC) -> tuple[Page, ...]:
    """Return the pages that show a view: one at least, the buttons on the last. Days are those of the time zone."""
    return paged(blocks(view, zone), limits, view.buttons)


def paged(shown: Iterable[Block], limits: Limits, buttons: tuple[Button, ...] = ()) -> tuple[Page, ...]:
    """Return pages that hold all of these blocks in their order."""
    pages: list[list[Part]] = [[]]
    for part in (part for block in shown for part in _parts(block, limits)):
        if pages[-1] and not _room(pages[-1], part, limits):
            pages.append(_taken_along(pages[-1], part, limits))
        pages[-1].append(part)
    rows = tuple(buttons[start : start + limits.row] for start in range(0, len(buttons), limits.row))
    return (*(Page(tuple(page)) for page in pages[:-1]), Page(tuple(pages[-1]), rows))


def size(part: Part, limits: Limits) -> int:
    """Return how much of a message a part takes at most."""
    return limits.gap + sum(map(limits.size, part.runs))


def _room(page: list[Part], part: Part, limits: Limits) -> bool:
    taken = sum(size(other, limits) for other in page)
    return len(page) < limits.parts and taken + size(part, limits) <= limits.message


def _taken_along(page: list[Part], part: Part, limits: Limits) -> list[Part]:
    """Take a heading from a page's end to the next page, where what it is the heading of begins."""
    last = page[-1]
    if last.kind in {Kind.LABEL, Kind.HEADING} and len(page) > 1 and _room([last], part, limits):
        return [page.pop()]
    return []


def _parts(block: Block, limits: Limits) -> Iterator[Part]:
    """Yield the parts of a block: as few as hold it, none cut that fits whole into one."""
    most = min(limits.part, limits.message) - limits.gap
    runs, taken = list[Run](), 0
    for group in block.groups:
        whole = [run for run in _linkable(group, limits, most) if run.text]
        needed = sum(map(limits.size, whole))
        if runs and taken + needed > most:
            yield Part(block.kind, tuple(runs), block.state)
            runs, taken = [], 0
        for run in whole if needed <= most else _cut(whole, limits, most):
            if runs and taken + limits.size(run) > most:
                yield Part(block.kind, tuple(runs), block.state)
                runs, taken = [], 0
            if runs or not run.text.isspace():  # what parts two sentences is not needed where a part begins
                runs.append(run)
                taken += limits.size(run)
    if runs:
        yield Part(block.kind, tuple(runs), block.state)


def _linkable(group: Iterable[Run], limits: Limits, most: int) -> Iterator[Run]:
    """Yield the runs; an address that leaves no room for what it is the address of is shown as text behind it."""
    for run in group:
        if run.url and limits.measure(run.url) > most // 2:
            yield replace(run, url="")
            yield Run(f" {run.url}", Style.DETAIL)
        else:
            yield run


def _cut(runs: Iterable[Run], limits: Limits, most: int) -> Iterator[Run]:
    for run in runs:
        if run.style in _WHOLE:
            yield run
        else:
            yield from _cut_one(run, limits, most)


def _cut_one(run: Run, limits: Limits, most: int) -> Iterator[Run]:
    def fits(text: str) -> bool:
        return limits.size(replace(run, text=text)) <= most

    return (replace(run, text=text) for text in pieces(run.text, fits))
