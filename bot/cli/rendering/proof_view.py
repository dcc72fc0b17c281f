"""Show the findings of a verification of the record: as text for a terminal, and as a JSON document. Pure."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType

from bot.cli.terminal_output import Document, build_document, build_error, pick
from bot.views.sanitize import sanitize_line
from bot.views.text_formats import format_count
from bot.views.text_layout import Text
from storage.record.proof.record_check import RecordCheck
from storage.record.proof.verification import AuditFinding

MOST_SHOWN = 200  # findings; the JSON document has all


def render_verification(checked: RecordCheck) -> RenderableType:
    if not checked.entries:
        return Group(Text("The record is empty."), *_render_each(checked.findings))
    kinds = (
        (checked.entries, "entry", "entries"),
        (checked.answers, "answer", "answers"),
        (checked.sentences, "sentence", "sentences"),
        (checked.citations, "source", "sources"),
    )
    counts = f"Checked: {', '.join(format_count(*kind) for kind in kinds)}."
    erased = f" The words of {format_count(checked.erased, 'entry', 'entries')} were erased, as the record states."
    return Group(
        Text(counts + (erased if checked.erased else "")),
        Text(_describe_cover(checked)),
        *([] if checked.findings else [Text("Every sentence cites a source, and every quote is in its passage.")]),
        *_render_each(checked.findings),
        *([Text("Unusual, but not a fault if a clock was set:")] if checked.notices else []),
        *_render_each(checked.notices),
        *(
            [Text("Recorded changes to what the record proves. You should know each of them:")]
            if checked.events
            else []
        ),
        *_render_each(checked.events),
    )


def _render_each(findings: Sequence[AuditFinding]) -> Iterator[Text]:
    yield from (Text(f"{finding.turn_id}: {sanitize_line(finding.what)}") for finding in findings[:MOST_SHOWN])
    if len(findings) > MOST_SHOWN:
        yield Text(f"and {len(findings) - MOST_SHOWN:,} more: `--json` lists all of them")


def _describe_cover(checked: RecordCheck) -> str:
    if not checked.checkpoints:
        return "No checkpoint was signed yet: `footnote audit checkpoint` signs one."
    signed = f"{format_count(checked.checkpoints, 'checkpoint')} signed; the last good one covers {checked.covered:,}"
    return f"{signed} of {format_count(checked.entries, 'entry', 'entries')}."


def build_verification_document(checked: RecordCheck) -> Document:
    done = build_document(
        **pick(checked, "entries answers sentences citations erased checkpoints covered"),
        root=checked.root.hex(),
        findings=[{"answer_id": finding.turn_id, "what": finding.what} for finding in checked.findings],
        notices=[{"answer_id": notice.turn_id, "what": notice.what} for notice in checked.notices],
        events=[{"answer_id": event.turn_id, "what": event.what} for event in checked.events],
    )
    return done | {"error": build_record_error(checked)} if checked.findings else done


def build_record_error(checked: RecordCheck) -> Document:
    message = f"The record has {format_count(len(checked.findings), 'fault')}."
    return build_error(
        "record_broken", message, "`footnote audit show ID` shows an answer; docs/audit.md says what to do."
    )
