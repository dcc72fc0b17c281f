"""Render what a verification of the record found. Pure."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType

from bot.views.sanitize import sanitize_line
from bot.views.text_formats import format_count
from bot.views.text_layout import Text
from storage.record.proof.record_check import RecordCheck
from storage.record.proof.verification import AuditFinding

MOST = 200  # findings that are shown; all are in the JSON document


def render_verification(checked: RecordCheck) -> RenderableType:
    if not checked.entries:
        return Group(Text("Nothing is on record yet."), *_render_each(checked.findings))
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
        *_render_each(checked.findings),
        *([Text("Odd, and no fault where a clock was set:")] if checked.notices else []),
        *_render_each(checked.notices),
    )


def _render_each(found: Sequence[AuditFinding]) -> Iterator[Text]:
    yield from (Text(f"{one.turn_id}: {sanitize_line(one.what)}") for one in found[:MOST])
    if len(found) > MOST:
        yield Text(f"and {len(found) - MOST:,} more: `--json` lists all of them")


def _describe_cover(checked: RecordCheck) -> str:
    if not checked.checkpoints:
        return "No checkpoint was signed yet: `footnote audit checkpoint` signs one."
    signed = f"{format_count(checked.checkpoints, 'checkpoint')} signed; the last good one covers {checked.covered:,}"
    return f"{signed} of {format_count(checked.entries, 'entry', 'entries')}."
