"""Render what a verification of the record found. Pure."""

from rich.console import Group, RenderableType
from rich.text import Text

from bot.cli.terminal_output import format_count
from bot.views.sanitize import sanitize_line
from storage.record.proof.record_check import RecordCheck

MOST = 200  # findings that are shown; all are in the JSON document


def render_verification(checked: RecordCheck) -> RenderableType:
    if not checked.entries:
        return Text("Nothing is on record yet.")
    kinds = (
        (checked.entries, "entry", "entries"),
        (checked.answers, "answer", "answers"),
        (checked.sentences, "sentence", "sentences"),
        (checked.citations, "source", "sources"),
    )
    counts = f"Checked: {', '.join(format_count(*kind) for kind in kinds)}."
    erased = f" The words of {format_count(checked.erased, 'entry', 'entries')} were erased, on record."
    return Group(
        Text(counts + (erased if checked.erased else "")),
        Text(_describe_cover(checked)),
        *([] if checked.findings else [Text("Every sentence cites a source, and every quote stands in its passage.")]),
        *(Text(f"{one.turn_id}: {sanitize_line(one.what)}") for one in checked.findings[:MOST]),
        *([Text(f"and {len(checked.findings) - MOST:,} more")] if len(checked.findings) > MOST else []),
    )


def _describe_cover(checked: RecordCheck) -> str:
    if not checked.checkpoints:
        return "No checkpoint was signed yet: `footnote audit checkpoint` signs one."
    signed = f"{format_count(checked.checkpoints, 'checkpoint')} signed; the last good one covers {checked.covered:,}"
    return f"{signed} of {format_count(checked.entries, 'entry', 'entries')}."
