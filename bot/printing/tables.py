"""How lists of things look in a terminal: what an ingest did, and what other tables are made of. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bot.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime, tzinfo

    from rich.console import JustifyMethod

    from ingest.refreshing import RefreshReport


def reports_view(reports: Sequence[RefreshReport]) -> RenderableType:
    """Show what was ingested, what could not be read and why, and how much was left out; nothing if nothing was."""
    if not reports:
        return Group()
    rows = table(
        "Corpus", "Added", "Changed", "Unchanged", "Removed", "Failed", "Passages", "Seconds", numbers=range(1, 8)
    )
    for report in reports:
        documents = (report.added, report.changed, report.unchanged, report.removed, report.failed)
        passages = f"+{report.passages_added:,} −{report.passages_removed:,}"
        rows.add_row(report.corpus, *(f"{count:,}" for count in documents), passages, f"{report.seconds:,.1f}")
    failures = [
        (f"{report.corpus}: {document}" if len(reports) > 1 else document, reason)
        for report in reports
        for document, reason in report.failures
    ]
    told = [Text(f"{report.corpus}: {one_line(report.fault)}") for report in reports if report.fault]
    told += left_out({report.corpus: report.forgotten for report in reports})
    return Group(rows, *(_failures(failures) if failures else ()), *((Text(), *told) if told else ()))


def left_out(forgotten: Mapping[str, int]) -> list[Text]:
    """Return the line that says of which corpora how many documents were forgotten; none where none was."""
    some = ", ".join(f"{count:,} of {corpus}" for corpus, count in forgotten.items() if count)
    return (
        [Text(f"Forgotten on purpose, and left out: {some}. `footnote corpora --forgotten` lists them.")]
        if some
        else []
    )


def counted(number: int, noun: str, plural: str = "") -> str:
    """Write a number with its noun: `1 fault`, `2 faults`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or f'{noun}s'}"


def moment(at: datetime | None, zone: tzinfo) -> str:
    """Return a moment to the minute in a time zone; empty for none."""
    return at.astimezone(zone).strftime("%Y-%m-%d %H:%M") if at else ""


def table(*headings: str, numbers: Iterable[int] = ()) -> Table:
    """Return an empty table; `numbers` are the places of the columns that hold some."""
    rows = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    right, last = set(numbers), len(headings) - 1
    for place, heading in enumerate(headings):
        justify: JustifyMethod = "right" if place in right else "left"
        rows.add_column(heading, justify=justify, overflow="fold", no_wrap=place in right or 0 < place < last)
    return rows


def _failures(failures: Iterable[tuple[str, str]]) -> list[RenderableType]:
    lines = [
        Text.assemble("  ", (one_line(document), "bold"), f": {one_line(reason)}") for document, reason in failures
    ]
    return [Text(), Text("Could not be read:"), *lines]
