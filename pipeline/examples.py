"""Worked examples for prompts: data beside each template, read into the same values that a real turn brings. Pure.

A text may have dates that follow the day: `{year}`, `{year-1}`, `{date}`, `{date-40}` (so many days ago). Passages are
written as title, section, text and how many days old they are; their sentences are found as those of real ones are.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from pipeline.findings import Finding, sentences_of
from pipeline.parsing.feedback import FEEDBACK
from pipeline.types import Conversation, Turn
from storage.types import Document, Evidence, Hit, Passage

_DATED = re.compile(r"\{(year|date)(?:([+-]\d+))?\}")


@dataclass(frozen=True, slots=True)
class Example:
    """The facts of a call, and what a good reply to it holds, as JSON would say it."""

    facts: Mapping[str, Any]
    reply: Any


def examples(file: Path, day: date, answered_by: str = "reply") -> tuple[Example, ...]:
    """Return the examples in a file as of a day, in their order; none if there is no such file.

    `answered_by` is the field that holds the reply: examples of two calls can share a file.
    """
    if not file.exists():
        return ()
    return tuple(_example(_as_of(day, raw), day, answered_by) for raw in json.loads(file.read_text(encoding="utf-8")))


def _as_of(day: date, value: Any) -> Any:
    """Return JSON with the dates in it filled in."""
    if isinstance(value, str):
        return _DATED.sub(lambda match: _date(match[1], int(match[2] or 0), day), value)
    if isinstance(value, list):
        return [_as_of(day, one) for one in value]
    return {name: _as_of(day, one) for name, one in value.items()} if isinstance(value, dict) else value


def _date(unit: str, shift: int, day: date) -> str:
    if unit == "year":
        return str(day.year + shift)
    moved = day + timedelta(days=shift)
    return f"{moved.day} {moved:%B %Y}"


def _example(raw: Mapping[str, Any], day: date, answered_by: str) -> Example:
    facts = {name: _READERS[name](value, day) if name in _READERS else value for name, value in raw.items()}
    return Example({name: value for name, value in facts.items() if name != answered_by}, raw[answered_by])


def _talk(raw: list[list[str]], _: date) -> Conversation:
    return Conversation(tuple(Turn("user" if speaker == "user" else "bot", text) for speaker, text in raw))


def _sentences(raw: list[Mapping[str, Any]], day: date) -> tuple[Evidence, ...]:
    return sentences_of(_hit(place, passage, day) for place, passage in enumerate(raw))


def _findings(raw: list[Mapping[str, Any]], day: date) -> tuple[Finding, ...]:
    return tuple(Finding(one["text"], _sentences([one], day)) for one in raw)


def _hit(place: int, raw: Mapping[str, Any], day: date) -> Hit:
    age = raw.get("days_old")
    written = None if age is None else datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(days=age)
    document = Document("example", str(place), raw["title"], date=written, language=raw.get("language", "en"))
    passage = Passage(f"example-{place}", "example", str(place), raw.get("section", ""), raw["text"], 0, "")
    return Hit(passage, document, 0.0)


_READERS: Mapping[str, Callable[[Any, date], object]] = {
    "talk": _talk,
    "sentences": _sentences,
    "findings": _findings,
    "feedback": lambda raw, _: FEEDBACK.from_json(raw),
}
