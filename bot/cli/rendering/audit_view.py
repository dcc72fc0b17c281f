"""Render the entries of one turn (as a story) or of one channel, as text for a terminal and as JSON. Pure.

Entries of older versions may lack fields, which are then not shown. Unconfirmed claims are shown with their verdict.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, tzinfo
from textwrap import shorten
from types import MappingProxyType
from typing import Any

from rich.console import Group, RenderableType

from bot.cli.rendering.answer_view import render_sources
from bot.cli.rendering.record_view import FEEDBACK_WORDS
from bot.cli.terminal_output import Document, build_document, pick
from bot.views.sanitize import sanitize_line, sanitize_text
from bot.views.text_formats import format_count, format_moment
from bot.views.text_layout import Hanging, ReadableWidth, Text, indent
from bot.views.turn_story import (
    StoryClaim,
    StoryPassage,
    StoryStep,
    describe_change,
    name_person,
    name_place,
    read_claims,
    read_sentences,
    read_step,
)
from storage.types import Citation, EntryKind, LogEntry

EMPTY_VALUES: tuple[Any, ...] = (None, "", [], {})


def render_facts(body: Mapping[Any, Any]) -> list[Hanging]:
    return [render_line(f"{name}: {format_value(value)}") for name, value in body.items() if value not in EMPTY_VALUES]


def render_line(text: str, *, depth: int = 1, style: str = "") -> Hanging:
    """Render a text as one paragraph, indented by `depth` steps of two columns."""
    return indent(Text(sanitize_line(text), style=style), 2 * depth)


def render_block(text: str) -> Hanging:
    return indent(Text(sanitize_text(text)), 4)


def format_value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {format_value(inner)}" for name, inner in value.items() if inner not in EMPTY_VALUES)
    if isinstance(value, list):
        return ", ".join(map(format_value, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


SHOWN_HITS = 5  # passages of a search that are shown without --full
SHORT_TEXT = 200  # characters of a text that are shown without --full
_IDENTIFYING_FACTS = ("claim", "query", "draft")  # facts that identify a call among others of its stage
_SHOWN_APART = frozenset(
    {"stage", "template", "model", "milliseconds", "prompt_tokens", "completion_tokens", "facts", "reply", "error"}
)


def _step_heading(step: StoryStep) -> RenderableType:
    """Render a step's name and cost: `verify · small-model · 438 ms · 812 + 31 tokens`."""
    named = f"{step.stage} ({step.template})" if step.template not in {"", step.stage} else step.stage
    tokens = f"{step.prompt_tokens:,} + {step.completion_tokens:,} tokens" if step.prompt_tokens is not None else ""
    attempts = format_count(step.attempts, "attempt") if step.attempts != 1 else ""
    cost = (step.model, f"{step.milliseconds:,.0f} ms", tokens, attempts, "stopped early" if step.stopped else "")
    parts = "".join(f" · {sanitize_line(part)}" for part in cost if part)
    return Text.assemble((sanitize_line(named), "bold"), (parts, "dim"))


class _PassageTexts:
    """Renders passages. In one story, the text of each is shown only once, and is shortened unless `full`."""

    def __init__(self, passages: Mapping[str, StoryPassage], *, full: bool) -> None:
        self.passages = passages
        self._full = full
        self._shown: set[str] = set()

    def render(self, passage: StoryPassage, before: str, depth: int) -> Iterator[Hanging]:
        path = " › ".join(filter(None, (passage.title or passage.document, passage.section)))
        address = passage.url or ": ".join(filter(None, (passage.corpus, passage.document)))
        named = [path, f"({address})" if address else "", passage.id if self._full or not path else ""]
        yield render_line(" ".join(filter(None, (before, *named))), depth=depth)
        if passage.id in self._shown:
            return
        self._shown.add(passage.id)
        if not passage.text:
            yield render_line("its text is no longer stored", depth=depth + 1, style="dim")
        elif self._full:
            yield indent(Text(sanitize_text(passage.text)), 2 * (depth + 1))
        else:
            words = shorten(sanitize_line(passage.text), SHORT_TEXT, placeholder=" …")
            yield render_line(words, depth=depth + 1, style="dim")


def _search_lines(step: StoryStep, texts: _PassageTexts, *, full: bool) -> Iterator[Hanging]:
    when = f" ({step.time})" if step.time else ""
    result = f"error: {step.error}" if step.error else format_count(len(step.found), "passage")
    yield render_line(f"“{step.query}”{when}: {result}")
    shown = step.found if full else step.found[:SHOWN_HITS]
    for passage in shown:
        yield from texts.render(passage, f"{passage.score or 0.0:.2f}", 2)
    if hidden := len(step.found) - len(shown):
        yield render_line(f"and {format_count(hidden, 'passage')} more: --full", depth=2, style="dim")


def _call_lines(step: StoryStep, body: Mapping[str, Any], *, full: bool) -> Iterator[Hanging]:
    if full:
        yield from render_facts(step.facts)
        yield from render_facts({name: value for name, value in body.items() if name not in _SHOWN_APART})
        if step.reply:
            yield from (render_line("reply:"), render_block(step.reply))
    else:
        for name, text in {**{name: step.facts.get(name) for name in _IDENTIFYING_FACTS}, "reply": step.reply}.items():
            if text:
                yield render_line(f"{name}: {shorten(sanitize_line(str(text)), SHORT_TEXT, placeholder=' …')}")
    if step.error:
        yield render_line(f"error: {step.error}")


def format_usage(usage: Mapping[str, Any]) -> str:
    """Format the usage of a model: `7 calls in 4 rounds, 3,940 + 67 tokens, cost 0.0041`; empty for none."""
    if not usage.get("llm_calls"):
        return ""
    calls = f"{format_count(usage['llm_calls'], 'call')} in {format_count(usage.get('llm_rounds', 0), 'round')}"
    cached = f" ({usage['cached_tokens']:,} cached)" if usage.get("cached_tokens") else ""
    tokens = f"{usage.get('prompt_tokens', 0):,}{cached} + {usage.get('completion_tokens', 0):,} tokens"
    cost = usage.get("cost")
    return f"{calls}, {tokens}" + (f", cost {cost:.6g}" if cost is not None else "")


def render_claims(claims: Sequence[StoryClaim]) -> Iterator[RenderableType]:
    """Render only the claims of a turn."""
    return _claim_lines(claims, _PassageTexts({}, full=False))


def _claim_lines(claims: Sequence[StoryClaim], texts: _PassageTexts) -> Iterator[RenderableType]:
    """Render each claim with its verdict, origin and reasoning, and its evidence."""
    if claims:
        yield from (Text(), Text("claims", style="bold"))
    for claim in claims:
        verdict = f"{claim.verdict} ({claim.origin})"
        yield indent(Text.assemble((sanitize_line(verdict), "bold"), f" {sanitize_line(claim.text)}"))
        if claim.reasoning:
            yield render_line(claim.reasoning, depth=2, style="dim")
        for passage in claim.evidence:
            yield from texts.render(passage, "by", 2)


def _withheld_lines(body: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Render each withheld sentence with its reason, and the sentences shown before a turn failed or was stopped."""
    for name, heading in (("withheld", "withheld"), ("spoken", "shown before it stopped")):
        if sentences := read_sentences(body, name):
            yield from (Text(), Text(heading, style="bold"))
        for sentence in sentences:
            yield render_line(sentence.text)
            if sentence.reason:
                yield render_line(sentence.reason, depth=2, style="dim")


def _delivered_lines(body: Mapping[str, Any]) -> list[RenderableType]:
    shown = ("outcome", "platform", "workspace", "channel", "thread", "messages", "only_asker", "text", "ticket")
    channel = f"{body.get('platform', '')}:{body.get('workspace', '')}/{body['channel']}" if body.get("channel") else ""
    thread = f"thread {body['thread']}" if body.get("thread") else ""
    facts = {
        "outcome": body.get("outcome"),
        "where": ", ".join(part for part in (channel, thread) if part),
        "messages": body.get("messages"),
        "shown to": "the asker alone" if body.get("only_asker") else "",
        **_other_facts(body, *shown),
    }
    text = [render_line("text as delivered:"), render_block(str(body["text"]))] if body.get("text") else []
    return [*render_facts(facts), *text]


def _edited_lines(body: Mapping[str, Any]) -> list[RenderableType]:
    acts = ("retracted", "stopped", "withheld")
    return _act_lines(", ".join(what for what in acts if body.get(what)), body, *acts)


def _feedback_lines(body: Mapping[str, Any]) -> list[RenderableType]:
    what = str(body.get("what", ""))
    return _act_lines(FEEDBACK_WORDS.get(what, what), body, "what")


def _recheck_lines(body: Mapping[str, Any]) -> list[RenderableType]:
    changes = [
        render_line(line, depth=2 if place else 1, style="dim" if place else "")
        for lost in body.get("lost", ())
        for place, line in enumerate(describe_change(lost))
    ]
    return [*changes, *render_facts(_other_facts(body, "lost"))]


def _setting_lines(body: Mapping[str, Any]) -> list[RenderableType]:
    change = f"{body.get('key', '')}: {_format_setting(body.get('was'))} → {_format_setting(body.get('now'))}"
    return _act_lines(change, body, "key", "was", "now")


def _other_facts(body: Mapping[str, Any], *shown: str) -> dict[str, Any]:
    return {name.replace("_", " "): value for name, value in body.items() if name not in shown}


def _act_lines(what: str, body: Mapping[str, Any], *shown: str) -> list[RenderableType]:
    """Render a person's action, and the other facts recorded with it."""
    by = f"by {body['by']}" if body.get("by") else ""
    action = ", ".join(part for part in (what, by) if part)
    return [*([render_line(action)] if action else []), *render_facts(_other_facts(body, "by", *shown))]


def _format_setting(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value == [] else "not set" if value in EMPTY_VALUES else format_value(value)


_FOLLOWUP_VIEWS: Mapping[EntryKind, Callable[[Mapping[str, Any]], list[RenderableType]]] = {
    EntryKind.DELIVERED: _delivered_lines,
    EntryKind.EDITED: _edited_lines,
    EntryKind.FEEDBACK: _feedback_lines,
    EntryKind.RECHECK: _recheck_lines,
    EntryKind.SETTING: _setting_lines,
}


def render_turn(
    entries: Sequence[LogEntry],
    zone: tzinfo,
    passages: Mapping[str, StoryPassage] = MappingProxyType({}),
    *,
    full: bool = False,
) -> RenderableType:
    """Render the story of a turn, from the question to its feedback; for a channel, render the changes of its settings.

    Replies of the model and texts of passages are shortened unless `full`.
    """
    texts = _PassageTexts(passages, full=full)
    return ReadableWidth(Group(*(line for entry in entries for line in _entry_lines(entry, zone, texts, full=full))))


def _entry_lines(entry: LogEntry, zone: tzinfo, texts: _PassageTexts, *, full: bool) -> list[RenderableType]:
    try:
        lines = _render_entry(entry, zone, texts, full=full)
    except (TypeError, ValueError, LookupError, AttributeError):  # the body has an unknown format
        lines = [_entry_heading(entry, zone), *render_facts(entry.body), Text()]
        return [*lines, _damage_line("its body is not as any version wrote it"), Text()]
    return [*lines, _damage_line(entry.damaged), Text()] if entry.damaged else lines


def _damage_line(what: str) -> Hanging:
    return render_line(f"damaged: {what}; `footnote audit verify` checks the record")


def _entry_heading(entry: LogEntry, zone: tzinfo) -> RenderableType:
    when = f" · {format_moment(entry.at, zone)} {entry.at.astimezone(zone):%Z}" if entry.at else ""
    return Text.assemble((entry.kind.value.replace("_", " "), "bold"), (when, "dim"))


def _render_entry(entry: LogEntry, zone: tzinfo, texts: _PassageTexts, *, full: bool) -> list[RenderableType]:
    body = entry.body
    if entry.kind is EntryKind.STEP and not entry.erased:
        step = read_step(body, texts.passages)
        lines = _search_lines(step, texts, full=full) if step.is_search else _call_lines(step, body, full=full)
        return [_step_heading(step), *lines]
    heading = _entry_heading(entry, zone)
    if entry.erased:
        return [heading, render_line("erased: its text was removed from the record")]
    if entry.kind is EntryKind.TURN_OPENED:
        return [heading, *_opened_lines(body, zone, full=full), Text()]
    if entry.kind is EntryKind.TURN_CLOSED:
        return [Text(), heading, *_closed_lines(body, zone, texts)]
    if entry.kind in _FOLLOWUP_VIEWS:
        return [Text(), heading, *_FOLLOWUP_VIEWS[entry.kind](body)]
    return [heading, *render_facts(body), Text()]


_RAN = ("task", "system", "effort", "lowered", "tone", "model", "because")
_SHOWN_OF_OPENING = ("question", "asker", "thread", "corpora", "earlier")


def _opened_lines(body: Mapping[str, Any], zone: tzinfo, *, full: bool) -> list[RenderableType]:
    corpora = body.get("corpora") or {}
    facts: dict[str, Any] = {
        "asked by": name_person(body),
        "in": name_place(body),
        "thread": body.get("thread"),
        "earlier messages": body.get("earlier"),
        "could read": [_describe_corpus(name, refreshed, zone) for name, refreshed in dict(corpora).items()],
    }
    rest = _other_facts(body, *_SHOWN_OF_OPENING)
    shown = rest if full else {name: rest[name] for name in _RAN if name in rest}
    return [render_block(f"“{body.get('question', '')}”"), *render_facts(facts), *render_facts(shown)]


def _describe_corpus(name: str, refreshed: Any, zone: tzinfo) -> str:
    try:
        return f"{name} (as of {format_moment(datetime.fromisoformat(refreshed), zone)})"
    except (TypeError, ValueError):
        return name


def _closed_lines(body: Mapping[str, Any], zone: tzinfo, texts: _PassageTexts) -> list[RenderableType]:
    shown = ("status", "system", "model", "seconds", "failure")
    facts = {name: body[name] for name in shown if body.get(name)}
    usage = format_usage(body.get("usage") or {})
    facts |= {"usage": usage} if usage else {}
    citations = [_parse_citation(citation) for citation in body.get("citations", ())]
    text = [Text(), Text(sanitize_text(str(body["text"])))] if body.get("text") else []
    sources = [Text(), render_sources(citations, zone=zone)] if citations else []
    claims = _claim_lines(read_claims(body, texts.passages), texts)
    return [*render_facts(facts), *claims, *_withheld_lines(body), *text, *sources]


def _parse_citation(body: Mapping[str, Any]) -> Citation:
    facts = {field.name: body.get(field.name, "") for field in fields(Citation)}
    return Citation(**facts | {"date": datetime.fromisoformat(facts["date"]) if facts["date"] else None})


def build_turn_document(entries: Iterable[LogEntry], passages: Iterable[StoryPassage] = ()) -> Document:
    """Build the document of `audit show`: a turn's entries with its passages, or a channel's entries."""
    listed = list(entries)
    named = "channel" if listed[0].kind is EntryKind.SETTING else "answer_id"
    return build_document(
        **{named: listed[0].turn_id},
        entries=[pick(entry, "seq at kind erased damaged") | {"body": entry.body} for entry in listed],
        passages=[pick(passage, "id corpus document title section text url") for passage in passages],
    )
