"""Build the JSON documents and the exported rows of what is found in the record. Pure; docs/audit.md describes them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bot.cli.terminal_output import SCHEMA, Document, build_document
from bot.views.text_formats import format_timestamp
from storage.types import EntryKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bot.cli.rendering.record_view import ListedTurns, UnansweredGroup
    from storage.record.record_search import Figures, TurnSummary
    from storage.types import LogEntry

CSV_COLUMNS = (
    "answer_id", "seq", "at", "platform", "workspace", "channel", "channel_name", "asker", "asker_name", "task",
    "question", "status", "text", "documents", "sentences", "withheld", "claims", "supported", "refuted", "outcome",
    "retracted", "up", "down", "comments", "system", "model", "seconds", "tokens", "cost", "erased",
)  # fmt: skip
_FORMULA_MARKS = ("=", "+", "-", "@", "\t", "\r")
Json = dict[str, Any]


def build_summary(turn: TurnSummary) -> Document:
    facts = asdict(turn)
    return {"answer_id": facts.pop("turn_id"), **facts, "at": format_timestamp(turn.at)}


def build_turns_document(listed: ListedTurns) -> Document:
    return build_document(
        turns=[build_summary(turn) for turn in listed.turns],
        total=listed.total,
        next=listed.turns[-1].seq if listed.more else None,
    )


def build_figures_document(rows: Sequence[Figures], total: Figures) -> Document:
    return build_document(steps=[_build_figures(row) for row in rows], all=_build_figures(total))


def _build_figures(row: Figures) -> Document:
    return asdict(row) | {"begin": format_timestamp(row.begin), "end": format_timestamp(row.end)}


def build_unanswered_document(groups: Iterable[UnansweredGroup], left: int) -> Document:
    return build_document(
        groups=[
            {
                "question": one.group.members[0].question,
                "times": len(one.group.members),
                "people": one.people,
                "last": format_timestamp(one.group.members[0].at),
                "corpora": list(one.corpora),
                "turns": [{"answer_id": turn.turn_id, "question": turn.question} for turn in one.group.members],
            }
            for one in groups
        ],
        left_out=left,
    )


def build_feedback_document(listed: Iterable[tuple[TurnSummary, LogEntry]]) -> Document:
    return build_document(
        feedback=[
            {"at": format_timestamp(entry.at), "seq": entry.seq, **entry.body, "turn": build_summary(turn)}
            for turn, entry in listed
        ]
    )


def build_exported_turn(turn: TurnSummary, entries: Sequence[LogEntry]) -> Json:
    """Build what is exported of a turn: its summary, what was said on what, and what followed."""
    opened, closed = (_find_body(entries, kind) for kind in (EntryKind.TURN_OPENED, EntryKind.TURN_CLOSED))
    said = {name: closed.get(name, []) for name in ("sentences", "citations", "withheld")}
    return {
        "schema": SCHEMA,
        **build_summary(turn),
        "language": opened.get("language", ""),
        "corpora": opened.get("corpora", {}),
        "text": closed.get("text", ""),
        **said,
        "claims": [_build_claim(one) for one in closed.get("claims", [])],
        "counts": {name: getattr(turn, name) for name in ("sentences", "withheld", "claims", "supported", "refuted")},
        "failure": closed.get("failure"),
        **{
            kind.value: [{"at": format_timestamp(entry.at), **entry.body} for entry in entries if entry.kind is kind]
            for kind in (EntryKind.DELIVERED, EntryKind.EDITED, EntryKind.FEEDBACK, EntryKind.RECHECK)
        },
    }


def _build_claim(checked: Mapping[str, Any]) -> Json:
    told = {name: checked.get(name) for name in ("verdict", "reasoning", "evidence")}
    return {**(checked.get("claim") or {}), **told}


def _find_body(entries: Iterable[LogEntry], kind: EntryKind) -> Mapping[str, Any]:
    return next((entry.body for entry in entries if entry.kind is kind), {})


def encode_line(exported: Json) -> str:
    """Encode an exported turn as a line of JSON, in ASCII: no line separator of Unicode's ends it early."""
    return json.dumps(exported)


def build_csv_row(exported: Json) -> list[str]:
    """Return an exported turn as cells that no spreadsheet takes for formulas."""
    cited = dict.fromkeys(f"{one.get('corpus')}: {one.get('title')}" for one in exported["citations"])
    comments = [str(one["comment"]) for one in exported["feedback"] if one.get("comment")]
    flat = {**exported, **exported["counts"], "documents": "; ".join(cited), "comments": "; ".join(comments)}
    return [_disarm(flat.get(name)) for name in CSV_COLUMNS]


def _disarm(value: object) -> str:
    if not isinstance(value, str):
        return "" if value is None else json.dumps(value)
    text = value.replace("\0", "").encode("utf-8", "replace").decode()
    return f"'{text}" if text.startswith(_FORMULA_MARKS) else text
