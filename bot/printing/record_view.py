"""How the record looks in a terminal: turns listed, one turn in full, what a check found. Pure, as `terminal` is.

Bodies are JSON as `answering` wrote it; what an older version left out is not shown.
"""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.text import Text

from bot.printing.aftermath_view import KINDS, aftermath_lines
from bot.printing.facts_view import fact_lines
from bot.printing.outcome_view import claim_lines, usage_line, withheld_lines
from bot.printing.step_view import step_lines
from bot.printing.tables import counted, moment, table
from bot.printing.terminal import WIDTH, sources_view
from bot.record import status_of
from bot.sanitizing import one_line, safe
from storage.types import Citation, EntryKind, LogEntry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo

    from bot.record import Listed, Verified


def turns_view(turns: Sequence[Listed], zone: tzinfo) -> RenderableType:
    """Show turns, a line each."""
    if not turns:
        return Text("Nothing has been asked yet. `footnote ask QUESTION` asks.")
    rows = table("When", "Answer", "Status", "Question")
    for opened, closed in turns:
        question = one_line(str(opened.body.get("question", "")))
        rows.add_row(moment(opened.at, zone), opened.turn_id, status_of(closed), question[:WIDTH])
    return rows


def turn_view(entries: Sequence[LogEntry], zone: tzinfo, *, full: bool = False) -> RenderableType:
    """Show all that is recorded of one turn, or of a channel, in order.

    Replies of a model stand there in `full`, or their beginning.
    """
    lines = [line for entry in entries for line in _entry_lines(entry, zone, full=full)]
    return Constrain(Group(*lines), WIDTH)


def verified_view(checked: Verified) -> RenderableType:
    """Show what was checked, and each finding."""
    if not checked.answers:
        return Text("Nothing has been answered yet.")
    kinds = ((checked.answers, "answer"), (checked.sentences, "sentence"), (checked.citations, "source"))
    counts = f"Checked: {', '.join(counted(number, noun) for number, noun in kinds)}."
    if not checked.findings:
        return Group(Text(counts), Text("Every sentence cites a source, and every quote stands in its passage."))
    return Group(Text(counts), *(Text(f"{finding.turn_id}: {one_line(finding.what)}") for finding in checked.findings))


def _entry_lines(entry: LogEntry, zone: tzinfo, *, full: bool) -> list[RenderableType]:
    heading = Text.assemble((entry.kind.value.replace("_", " "), "bold"), (f" · {moment(entry.at, zone)}", "dim"))
    if entry.kind is EntryKind.STEP:
        return step_lines(entry.body, full=full)
    if entry.kind is EntryKind.TURN_CLOSED:
        return [Text(), heading, *_closed_lines(entry.body, zone)]
    if entry.kind in KINDS:
        return [Text(), heading, *aftermath_lines(entry)]
    return [heading, *fact_lines(entry.body), Text()]


def _closed_lines(body: Mapping[str, Any], zone: tzinfo) -> list[RenderableType]:
    shown = ("status", "system", "model", "seconds", "failure")
    facts = {name: body[name] for name in shown if body.get(name)}
    usage = usage_line(body.get("usage") or {})
    citations = [_citation(citation) for citation in body.get("citations", ())]
    text = [Text(), Text(safe(str(body["text"])))] if body.get("text") else []
    sources = [Text(), sources_view(citations, zone=zone)] if citations else []
    asked = fact_lines({"usage": usage} if usage else {})
    return [*fact_lines(facts), *asked, *claim_lines(body), *withheld_lines(body), *text, *sources]


def _citation(body: Mapping[str, Any]) -> Citation:
    facts = {field.name: body.get(field.name, "") for field in fields(Citation)}
    return Citation(**facts | {"date": datetime.fromisoformat(facts["date"]) if facts["date"] else None})
