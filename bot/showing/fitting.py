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

_Sized = tuple[Part, int]
"""A part, and how much its runs take."""


def fit(view: View, limits: Limits, zone: tzinfo = UTC) -> tuple[Page, ...]:
    """Return the pages that show a view: one at least, the buttons on the last. Days are those of the time zone."""
    return paged(blocks(view, zone), limits, view.buttons)


def paged(shown: Iterable[Block], limits: Limits, buttons: tuple[Button, ...] = ()) -> tuple[Page, ...]:
    """Return pages that hold all of these blocks in their order."""
    pages: list[list[_Sized]] = [[]]
    for part in (part for block in shown for part in _parts(block, limits)):
        if pages[-1] and not _room([*pages[-1], part], limits):
            pages.append(_taken_along(pages[-1], part, limits))
        pages[-1].append(part)
    rows = tuple(buttons[start : start + limits.row] for start in range(0, len(buttons), limits.row))
    *others, last = (tuple(part for part, _ in page) for page in pages)
    return (*map(Page, others), Page(last, rows))


def size(part: Part, limits: Limits) -> int:
    """Return how much of a message a part takes at most."""
    return limits.gap + sum(map(limits.size, part.runs))


def _room(page: list[_Sized], limits: Limits) -> bool:
    return len(page) <= limits.parts and sum(taken + limits.gap for _, taken in page) <= limits.message


def _taken_along(page: list[_Sized], part: _Sized, limits: Limits) -> list[_Sized]:
    """Take a heading from a page's end to the next page, where what it is the heading of begins."""
    heads = page[-1][0].kind in {Kind.LABEL, Kind.HEADING}
    return [page.pop()] if heads and len(page) > 1 and _room([page[-1], part], limits) else []


def _parts(block: Block, limits: Limits) -> Iterator[_Sized]:
    """Yield the parts of a block: as few as hold it, none cut that fits whole into one."""
    most = min(limits.part, limits.message) - limits.gap
    runs, taken = list[Run](), 0
    for run, needed in (pair for group in block.groups for pair in _in_turn(group, limits, most)):
        if runs and taken + needed > most:
            yield Part(block.kind, tuple(runs), block.state), taken
            runs, taken = [], 0
        if runs or not run.text.isspace():  # what parts two sentences is not needed where a part begins
            runs.append(run)
            taken += limits.size(run)
    if runs:
        yield Part(block.kind, tuple(runs), block.state), taken


def _in_turn(group: Iterable[Run], limits: Limits, most: int) -> Iterator[tuple[Run, int]]:
    """Yield a group's runs, each with how much room is wanted for it: the first wants all of them beside it."""
    runs = [run for run in _linkable(group, limits, most) if run.text]
    whole = sum(map(limits.size, runs))
    if whole > most:
        yield from ((piece, limits.size(piece)) for run in runs for piece in _cut(run, limits, most))
    else:
        yield from ((run, limits.size(run) if place else whole) for place, run in enumerate(runs))


def _linkable(group: Iterable[Run], limits: Limits, most: int) -> Iterator[Run]:
    """Yield the runs; an address that leaves no room for what it is the address of is shown as text behind it."""
    for run in group:
        if run.url and limits.measure(run.url) > most // 2:
            yield replace(run, url="")
            yield Run(f" {run.url}", Style.DETAIL)
        else:
            yield run


def _cut(run: Run, limits: Limits, most: int) -> Iterator[Run]:
    def fits(text: str) -> bool:
        return limits.size(replace(run, text=text)) <= most

    return (replace(run, text=text) for text in pieces(run.text, fits))
