"""Show turns of the record, figures, unanswered questions and feedback: as text, JSON documents and exported rows.

Pure; docs/audit.md describes the documents.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, tzinfo
from typing import Any

from rich.console import Group, RenderableType

from bot.cli.rendering.answer_view import WIDTH
from bot.cli.terminal_output import SCHEMA, Document, build_document
from bot.views.sanitize import sanitize_line
from bot.views.text_formats import build_table, format_count, format_moment, format_timestamp
from bot.views.text_layout import Text, indent
from storage.record.comparisons import LEFT, RATED
from storage.record.question_groups import QuestionGroup
from storage.record.record_search import Figures, TurnSummary
from storage.types import EntryKind, LogEntry

MAX_WORDINGS = 4
NOTHING_ASKED = "Nothing has been asked yet. `footnote ask QUESTION` asks."
NOTHING_FOUND = "No recorded answer matches."
ERASED = "(erased)"
FEEDBACK_WORDS = {
    "up": "helpful",
    "down": "not helpful",
    "missed": "not what was asked",
    "ask": "a person was asked",
    "share": "shared",
    "example": "example",
    "answer": "pinned answer",
    LEFT: "left the comparison",
}


@dataclass(frozen=True, slots=True)
class ListedTurns:
    turns: Sequence[TurnSummary]
    total: int  # how many there are on all pages
    filtered: bool  # whether there was a filter
    more: bool  # whether there is another page


@dataclass(frozen=True, slots=True)
class UnansweredGroup:
    """Similar unanswered questions, and the corpora of the pages nearest to them."""

    group: QuestionGroup[TurnSummary]
    corpora: tuple[str, ...]

    @property
    def people(self) -> int:
        return len({turn.asker for turn in self.group.members if turn.asker})


def render_turns(listed: ListedTurns, zone: tzinfo) -> RenderableType:
    if not listed.turns:
        return Text(NOTHING_FOUND if listed.filtered else NOTHING_ASKED)
    shown = f"{len(listed.turns):,} of {format_count(listed.total, 'turn')}"
    more = f"; older ones: --before {listed.turns[-1].seq}" if listed.more else ""
    return Group(*(_render_turn(turn, zone) for turn in listed.turns), Text(f"{shown}{more}", style="dim"))


def _render_turn(turn: TurnSummary, zone: tzinfo) -> RenderableType:
    """Render a turn: a line of facts about it, and its question beneath."""
    who, where = name_person(turn), name_place(turn)
    return _render_item(turn.turn_id, turn.at, zone, [describe_status(turn), who, where], shorten_question(turn))


def _render_item(name: str, at: datetime | None, zone: tzinfo, facts: Sequence[str], *lines: str) -> RenderableType:
    when = f"{format_moment(at, zone)} {at.astimezone(zone):%Z}" if at else ""
    about = "".join(f" · {fact}" for fact in (when, *facts) if fact)
    beneath = (indent(Text(line), 4) for line in lines)
    return Group(Text.assemble((name, "bold"), (about, "dim")), *beneath)


def describe_status(turn: TurnSummary) -> str:
    """Return how a turn ended, whether it was retracted, and its ratings."""
    rated = [f"+{turn.up}"] * bool(turn.up) + [f"-{turn.down}"] * bool(turn.down)
    return " ".join([turn.status, *(["retracted"] if turn.retracted else ()), *rated])


def name_person(turn: TurnSummary) -> str:
    return _name(turn.asker, turn.asker_name)


def name_place(turn: TurnSummary) -> str:
    return _name(turn.channel, f"#{turn.channel_name}" if turn.channel_name else "") or turn.platform


def _name(identity: str, name: str) -> str:
    return sanitize_line(f"{name} ({identity})" if name and identity else name or identity)


def shorten_question(turn: TurnSummary) -> str:
    return ERASED if turn.erased else sanitize_line(turn.question)[:WIDTH]


def render_figures(rows: Sequence[Figures], total: Figures, zone: tzinfo) -> RenderableType:
    if not total.turns:
        return Text(NOTHING_FOUND)
    names = ("asked", "answered", "abstained", "support", "+/-", "secs", "tokens", "cost")
    table = build_table("From", *names, numbers=range(1, len(names) + 1))
    for row in rows:
        table.add_row(row.begin.astimezone(zone).strftime("%Y-%m-%d"), *_list_figures(row))
    return Group(table, Text(), *(Text(line) for line in _sum_up(total)))


def _list_figures(row: Figures) -> list[str]:
    counts = [f"{number:,}" for number in (row.turns, row.answered, row.abstained)]
    rated = f"{row.up}/{row.down}" if row.up or row.down else ""
    seconds = f"{row.seconds:.1f}" if row.answered else ""
    return [*counts, _share(row), rated, seconds, f"{row.tokens / 1000:,.0f}k", f"{row.cost:.2f}" if row.cost else ""]


def _share(row: Figures) -> str:
    return f"{row.supported / row.claims:.0%}" if row.claims else ""


def _sum_up(total: Figures) -> Iterator[str]:
    others = f"{total.failed:,} failed or refused, {total.retracted:,} retracted"
    people = format_count(total.askers, "person", "people")
    yield f"{total.turns:,} asked by {people}: {total.answered:,} answered, {total.abstained:,} abstained, {others}"
    if total.claims:
        yield f"{total.supported:,} of {total.claims:,} claims supported ({_share(total)})"
    if total.up or total.down:
        yield f"{total.up:,} found helpful, {total.down:,} not helpful"
    if total.answered:
        yield f"half were answered within {total.seconds:.1f} s, 95% within {total.slow_seconds:.1f} s"
    yield f"{total.tokens:,} tokens" + (f", cost {total.cost:.4g}" if total.cost else "")


def render_unanswered(groups: Sequence[UnansweredGroup], left: int, zone: tzinfo) -> RenderableType:
    if not groups:
        return Text("Every question was answered.")
    more = [Text(f"{format_count(left, 'rarer question')} left out; -n shows more", style="dim")] * bool(left)
    return Group(*(_render_group(group, zone) for group in groups), *more)


def _render_group(row: UnansweredGroup, zone: tzinfo) -> RenderableType:
    first, *others = row.group.members
    wordings = dict.fromkeys(shorten_question(turn) for turn in (first, *others))
    people = format_count(row.people, "person", "people") if row.people else ""
    nearest = f"nearest: {', '.join(row.corpora)}" if row.corpora else ""
    last = f"last {format_moment(first.at, zone)} ({first.turn_id})"
    times = format_count(len(row.group.members), "time")
    return _render_item(times, None, zone, [people, last, nearest], *list(wordings)[:MAX_WORDINGS])


def render_feedback(listed: Sequence[tuple[TurnSummary, LogEntry]], zone: tzinfo) -> RenderableType:
    if not listed:
        return Text("There is no feedback yet.")
    return Group(*(_render_act(turn, entry, zone) for turn, entry in listed))


def _render_act(turn: TurnSummary, entry: LogEntry, zone: tzinfo) -> RenderableType:
    what, by, comment = (read_fact(entry.body, name) for name in ("what", "by", "comment"))
    what, quoted = "missed" if entry.body.get("missed") else what, [f"“{comment}”"] * bool(comment)
    what = f"rated {entry.body.get('rating')} of 5" if what == RATED else what
    return _render_item(
        turn.turn_id, entry.at, zone, [FEEDBACK_WORDS.get(what, what), by], shorten_question(turn), *quoted
    )


def read_fact(body: Mapping[str, object], name: str) -> str:
    value = body.get(name)
    return sanitize_line(value) if isinstance(value, str) else ""


CSV_COLUMNS = (
    "answer_id", "seq", "at", "platform", "workspace", "channel", "channel_name", "asker", "asker_name", "task",
    "question", "status", "text", "documents", "sentences", "withheld", "claims", "supported", "refuted", "outcome",
    "retracted", "up", "down", "comments", "system", "model", "seconds", "tokens", "cost", "erased",
)  # fmt: skip
_FORMULA_MARKS = ("=", "+", "-", "@", "\t", "\r")


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
                "question": row.group.members[0].question,
                "times": len(row.group.members),
                "people": row.people,
                "last": format_timestamp(row.group.members[0].at),
                "corpora": list(row.corpora),
                "turns": [{"answer_id": turn.turn_id, "question": turn.question} for turn in row.group.members],
            }
            for row in groups
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


def build_exported_turn(turn: TurnSummary, entries: Sequence[LogEntry]) -> Document:
    """Build the export of a turn: its summary, its sentences and sources, and what users did with the answer."""
    opened, closed = (_find_body(entries, kind) for kind in (EntryKind.TURN_OPENED, EntryKind.TURN_CLOSED))
    answered = {name: closed.get(name, []) for name in ("sentences", "citations", "withheld")}
    return {
        "schema": SCHEMA,
        **build_summary(turn),
        "language": opened.get("language", ""),
        "corpora": opened.get("corpora", {}),
        "text": closed.get("text", ""),
        **answered,
        "claims": [_build_claim(claim) for claim in closed.get("claims", [])],
        "counts": {name: getattr(turn, name) for name in ("sentences", "withheld", "claims", "supported", "refuted")},
        "failure": closed.get("failure"),
        **{
            kind.value: [{"at": format_timestamp(entry.at), **entry.body} for entry in entries if entry.kind is kind]
            for kind in (EntryKind.DELIVERED, EntryKind.EDITED, EntryKind.FEEDBACK, EntryKind.RECHECK)
        },
    }


def _build_claim(checked: Mapping[str, Any]) -> Document:
    verdict = {name: checked.get(name) for name in ("verdict", "reasoning", "evidence")}
    return {**(checked.get("claim") or {}), **verdict}


def _find_body(entries: Iterable[LogEntry], kind: EntryKind) -> Mapping[str, Any]:
    return next((entry.body for entry in entries if entry.kind is kind), {})


def encode_line(exported: Document) -> str:
    """Encode an exported turn as a line of JSON, in ASCII, so that no Unicode line separator ends it early."""
    return json.dumps(exported)


def build_csv_row(exported: Document) -> list[str]:
    """Return an exported turn as cells that no spreadsheet executes as formulas."""
    cited = dict.fromkeys(f"{citation.get('corpus')}: {citation.get('title')}" for citation in exported["citations"])
    comments = [str(entry["comment"]) for entry in exported["feedback"] if entry.get("comment")]
    flat = {**exported, **exported["counts"], "documents": "; ".join(cited), "comments": "; ".join(comments)}
    return [_disarm(flat.get(name)) for name in CSV_COLUMNS]


def _disarm(value: object) -> str:
    if not isinstance(value, str):
        return "" if value is None else json.dumps(value)
    text = value.replace("\0", "").encode("utf-8", "replace").decode()
    return f"'{text}" if text.startswith(_FORMULA_MARKS) else text
