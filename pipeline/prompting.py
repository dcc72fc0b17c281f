"""Prompts: the one Jinja environment, and a template with its facts as the messages of a call.

Each call has a template in `prompts/` of three macros: `instruction()`, `turn()` and `reply()`, and worked examples as
data beside it, of which `turn()` and `reply()` make the messages that stand before the turn itself. So an example
cannot look otherwise than a turn, and all that comes before the turn is the same, byte for byte, on every day: servers
find it in their caches. Today's date is in the turn. Nothing here calls a model; `asking.py` does.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache, lru_cache
from pathlib import Path
from random import Random
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.environment import TemplateModule

from pipeline import fencing
from pipeline.examples import Example, examples
from pipeline.model import Message
from pipeline.notes import place
from storage.types import Evidence

FOLDER = Path(__file__).parent / "prompts"
SHOWN_ON = date(2025, 3, 3)
"""The day on which the worked examples are asked: each says so, as a turn says its own."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How a model is spoken to."""

    structured: bool = False
    """Whether it replies in JSON that fits a schema; in strict text otherwise."""
    student: bool = False
    """Whether it was distilled for these very calls: no examples, no reasoning before a verdict."""
    shown: bool = True
    """Whether examples are shown; a small context window may have no room for them."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages of a call, and how long its reply may be."""

    messages: tuple[Message, ...]
    max_tokens: int


def render(template: str, facts: Mapping[str, object], manner: Manner, now: datetime, random: Random) -> Prompt:
    """Return the messages of a call: the instruction, the examples, and last the turn.

    Raises:
        jinja2.UndefinedError: the template needs a fact that is not there.
    """
    module = _module(template, manner, now.date(), fence="", **facts)
    fence = fencing.draw(random, str(_macro(module, "turn")))
    turn = str(_macro(_module(template, manner, now.date(), fence=fence, **facts), "turn")).strip()
    before = prefix(template, manner)
    return Prompt((*before, Message("user", turn)), int(getattr(module, "reply_tokens", 1_024)))


@lru_cache(maxsize=128)
def prefix(template: str, manner: Manner) -> tuple[Message, ...]:
    """Return what stands before the turn: the same for every turn."""
    module = _module(template, manner, SHOWN_ON)
    instruction = Message("system", str(_macro(module, "instruction")).strip())
    if manner.student or not manner.shown:
        return (instruction,)
    file = FOLDER / f"{getattr(module, 'examples', template)}.json"
    found = examples(file, SHOWN_ON, getattr(module, "answered_by", "reply"))
    worked = (_worked(template, manner, one) for one in found)
    return (instruction, *(message for pair in worked for message in pair))


def _worked(template: str, manner: Manner, example: Example) -> tuple[Message, Message]:
    module = _module(template, manner, SHOWN_ON, fence=fencing.EXAMPLE, **example.facts, answer=example.reply)
    reply = json.dumps(example.reply, ensure_ascii=False) if manner.structured else str(_macro(module, "reply")).strip()
    return Message("user", str(_macro(module, "turn")).strip()), Message("assistant", reply)


def _module(template: str, manner: Manner, day: date, **facts: Any) -> TemplateModule:
    known = {"structured": manner.structured, "student": manner.student, "today": spelled(day)}
    return _environment().get_template(f"{template}.j2").make_module({**known, **facts})


def _macro(module: TemplateModule, name: str) -> Any:
    return getattr(module, name)()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - a prompt is no HTML: models read "&lt;" as it stands
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {"line": fencing.line, "source": _source, "numbers": _numbers}
    return environment


def spelled(day: date) -> str:
    """Return a date as it is written in prompts: "Sunday, 1 March 2026"."""
    return f"{day:%A}, {day.day} {day:%B %Y}"


def _source(evidence: Evidence) -> str:
    """Say where a sentence stands: page, section, date."""
    written = evidence.document.date
    return f"{place(evidence.document, evidence.passage)}{f' ({written:%Y-%m-%d})' if written else ''}"


def _numbers(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
