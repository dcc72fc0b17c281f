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

from bot.record import status_of
from bot.sanitizing import one_line, safe
from bot.tables import counted, moment, table
from bot.terminal import WIDTH, sources_view
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


def turn_view(entries: Sequence[LogEntry], zone: tzinfo) -> RenderableType:
    """Show all that is recorded of one turn, in order."""
    lines = [line for entry in entries for line in _entry_lines(entry, zone)]
    return Constrain(Group(*lines), WIDTH)


def verified_view(checked: Verified) -> RenderableType:
    """Show what was checked, and each finding."""
    if not checked.answers:
        return Text("Nothing has been answered yet.")
    kinds = ((checked.answers, "answer"), (checked.sentences, "sentence"), (checked.citations, "source"))
    counts = f"Checked: {', '.join(counted(number, noun) for number, noun in kinds)}."
    if not checked.findings:
        return Group(Text(counts), Text("Every sentence stands in the passage that it cites."))
    return Group(Text(counts), *(Text(f"{finding.turn_id}: {one_line(finding.what)}") for finding in checked.findings))


def _entry_lines(entry: LogEntry, zone: tzinfo) -> list[RenderableType]:
    heading = Text.assemble((entry.kind.value.replace("_", " "), "bold"), (f" · {moment(entry.at, zone)}", "dim"))
    if entry.kind is EntryKind.STEP:
        return [_step_line(entry.body)]
    if entry.kind is EntryKind.TURN_CLOSED:
        return [Text(), heading, *_closed_lines(entry.body, zone)]
    return [heading, *_fact_lines(entry.body)]


def _step_line(body: Mapping[str, Any]) -> Text:
    outcome = f"error: {body['error']}" if "error" in body else counted(len(body.get("hits", ())), "hit")
    said = f"{body.get('stage', '')} “{body.get('query', '')}”: {outcome}, {body.get('milliseconds', 0):.0f} ms"
    return Text(one_line(said))


def _closed_lines(body: Mapping[str, Any], zone: tzinfo) -> list[RenderableType]:
    shown = ("status", "system", "model", "seconds", "withheld", "failure")
    facts = _fact_lines({name: body[name] for name in shown if body.get(name)})
    citations = [_citation(citation) for citation in body.get("citations", ())]
    return [*facts, Text(), Text(safe(str(body.get("text", "")))), Text(), sources_view(citations, zone=zone)]


def _citation(body: Mapping[str, Any]) -> Citation:
    facts = {field.name: body.get(field.name, "") for field in fields(Citation)}
    return Citation(**facts | {"date": datetime.fromisoformat(facts["date"]) if facts["date"] else None})


def _fact_lines(body: Mapping[str, Any]) -> list[RenderableType]:
    return [
        Text(f"  {name}: {one_line(_plain(value))}") for name, value in body.items() if value not in (None, "", [], {})
    ]


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(inner)}" for name, inner in value.items() if inner not in (None, ""))
    return ", ".join(map(_plain, value)) if isinstance(value, list) else str(value)
