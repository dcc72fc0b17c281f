"""Render a prompt template with its facts into the messages of a call.

Each call has a template in this folder of three macros: `instruction()`, `turn()` and `reply()`, and worked examples as
data beside it, of which `turn()` and `reply()` make the messages that stand before the turn itself. So an example
cannot look otherwise than a turn, and all that comes before the turn is the same, byte for byte, on every day: servers
find it in their caches. Today's date is in the turn. Quoted material stands between delimiters that nothing inside it
can contain. Nothing here calls a model; `prompter.py` does.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path
from random import Random
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.environment import TemplateModule

from pipeline.model import ChatMessage
from pipeline.replies.footnotes import describe_place
from pipeline.replies.stage_replies import FEEDBACK
from pipeline.stages.passage_retrieval import SourcedFinding, collect_sentences
from pipeline.types import Conversation, Turn
from storage.language.lazy_pattern import lazy_compile
from storage.types import Document, Evidence, Hit, Passage

DELIMITER_LETTERS = "bcdfghjkmnpqrstvwxz"
"""No vowels, so that no fence is a word of a language."""
DELIMITER_LENGTH = 12
EXAMPLE_DELIMITER = "example"
"""The fence of worked examples, which are the same on every call; no turn ever has it."""
_CONTROL_TOKENS = lazy_compile(
    r"<(?=[|｜])|(?<=[|｜])>|<(?=/?(?:s|bos|eos|pad|unk|think|start_of_turn|end_of_turn|start_of_image|tool_call)>)"
    r"|<(?=<SYS>)|<(?=</SYS>)|\[(?=/?(?:INST|TOOL_CALLS|AVAILABLE_TOOLS|SYSTEM_PROMPT)\])",
    re.IGNORECASE,
)


def draw_delimiter(random: Random, text: str) -> str:
    """Draw a random word that is not in the text, in whatever case."""
    folded = text.casefold()
    while (fence := "".join(random.choices(DELIMITER_LETTERS, k=DELIMITER_LENGTH))) in folded:
        pass
    return fence


def flatten_line(text: str) -> str:
    """Return a text on one line, without the control tokens of chat templates.

    On one line, no part of it can look like another line of the message: a turn, a numbered sentence, a fence.
    """
    return _CONTROL_TOKENS.sub(lambda mark: f"{mark[0]} " if mark[0] != ">" else " >", " ".join(text.split()))


_DATED = lazy_compile(r"\{(year|date)(?:([+-]\d+))?\}")


@dataclass(frozen=True, slots=True)
class WorkedExample:
    """The facts of a call, and what a good reply to it holds, as JSON."""

    facts: Mapping[str, Any]
    reply: Any


def load_examples(file: Path, day: date, answered_by: str = "reply") -> tuple[WorkedExample, ...]:
    """Return the examples in a file as of a day, in their order; none if there is no such file.

    `answered_by` is the field that holds the reply: examples of two calls can share a file.
    """
    if not file.exists():
        return ()
    return tuple(
        _parse_example(_fill_dates(day, raw), day, answered_by) for raw in json.loads(file.read_text(encoding="utf-8"))
    )


def _fill_dates(day: date, value: Any) -> Any:
    if isinstance(value, str):
        return _DATED.sub(lambda match: _fill_date(match[1], int(match[2] or 0), day), value)
    if isinstance(value, list):
        return [_fill_dates(day, one) for one in value]
    return {name: _fill_dates(day, one) for name, one in value.items()} if isinstance(value, dict) else value


def _fill_date(unit: str, shift: int, day: date) -> str:
    if unit == "year":
        return str(day.year + shift)
    moved = day + timedelta(days=shift)
    return f"{moved.day} {moved:%B %Y}"


def _parse_example(raw: Mapping[str, Any], day: date, answered_by: str) -> WorkedExample:
    facts = {name: _PARSERS[name](value, day) if name in _PARSERS else value for name, value in raw.items()}
    return WorkedExample({name: value for name, value in facts.items() if name != answered_by}, raw[answered_by])


def _parse_talk(raw: list[list[str]], _: date) -> Conversation:
    return Conversation(tuple(Turn("user" if speaker == "user" else "bot", text) for speaker, text in raw))


def _parse_sentences(raw: list[Mapping[str, Any]], day: date) -> tuple[Evidence, ...]:
    return collect_sentences(_parse_hit(place, passage, day) for place, passage in enumerate(raw))


def _parse_findings(raw: list[Mapping[str, Any]], day: date) -> tuple[SourcedFinding, ...]:
    return tuple(SourcedFinding(one["text"], _parse_sentences([one], day)) for one in raw)


def _parse_hit(place: int, raw: Mapping[str, Any], day: date) -> Hit:
    age = raw.get("days_old")
    written = None if age is None else datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(days=age)
    document = Document("example", str(place), raw["title"], date=written, language=raw.get("language", "en"))
    passage = Passage(f"example-{place}", "example", str(place), raw.get("section", ""), raw["text"], 0, "")
    return Hit(passage, document, 0.0)


_PARSERS: Mapping[str, Callable[[Any, date], object]] = {
    "talk": _parse_talk,
    "sentences": _parse_sentences,
    "findings": _parse_findings,
    "feedback": lambda raw, _: FEEDBACK.from_json(raw),
}

TEMPLATE_FOLDER = Path(__file__).parent
EXAMPLE_DAY = date(2025, 3, 3)
"""The day on which the worked examples are asked: each says so, as a turn says its own."""


@dataclass(frozen=True, slots=True)
class PromptMode:
    structured: bool = False
    """Whether it replies in JSON that fits a schema; in strict text otherwise."""
    student: bool = False
    """Whether it was distilled for these very calls: no examples, no reasoning before a verdict."""
    shown: bool = True
    """Whether examples are shown; a small context window may have no room for them."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages of a call, and how long its reply may be."""

    messages: tuple[ChatMessage, ...]
    max_tokens: int


def render_prompt(
    template: str, facts: Mapping[str, object], manner: PromptMode, now: datetime, random: Random
) -> Prompt:
    """Render the messages of a call: instruction, examples, and last the turn.

    Raises:
        jinja2.UndefinedError: the template needs a fact that is not there.
    """
    module = _load_macros(template, manner, now.date(), fence="", **facts)
    fence = draw_delimiter(random, str(_render_macro(module, "turn")))
    turn = str(_render_macro(_load_macros(template, manner, now.date(), fence=fence, **facts), "turn")).strip()
    before = render_prefix(template, manner)
    return Prompt((*before, ChatMessage("user", turn)), int(getattr(module, "reply_tokens", 1_024)))


@lru_cache(maxsize=128)
def render_prefix(template: str, manner: PromptMode) -> tuple[ChatMessage, ...]:
    """Render what stands before the turn: the same for every turn."""
    module = _load_macros(template, manner, EXAMPLE_DAY)
    instruction = ChatMessage("system", str(_render_macro(module, "instruction")).strip())
    if manner.student or not manner.shown:
        return (instruction,)
    file = TEMPLATE_FOLDER / f"{getattr(module, 'examples', template)}.json"
    found = load_examples(file, EXAMPLE_DAY, getattr(module, "answered_by", "reply"))
    worked = (_render_example(template, manner, one) for one in found)
    return (instruction, *(message for pair in worked for message in pair))


def _render_example(template: str, manner: PromptMode, example: WorkedExample) -> tuple[ChatMessage, ChatMessage]:
    module = _load_macros(template, manner, EXAMPLE_DAY, fence=EXAMPLE_DELIMITER, **example.facts, answer=example.reply)
    reply = (
        json.dumps(example.reply, ensure_ascii=False)
        if manner.structured
        else str(_render_macro(module, "reply")).strip()
    )
    return ChatMessage("user", str(_render_macro(module, "turn")).strip()), ChatMessage("assistant", reply)


def _load_macros(template: str, manner: PromptMode, day: date, **facts: Any) -> TemplateModule:
    known = {"structured": manner.structured, "student": manner.student, "today": spell_date(day)}
    return _build_environment().get_template(f"{template}.j2").make_module({**known, **facts})


def _render_macro(module: TemplateModule, name: str) -> Any:
    return getattr(module, name)()


@cache
def _build_environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATE_FOLDER),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - a prompt is no HTML: models read "&lt;" as it stands
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {"line": flatten_line, "source": _describe_source, "numbers": _join_numbers}
    return environment


def spell_date(day: date) -> str:
    """Return a date as it is written in prompts: "Sunday, 1 March 2026"."""
    return f"{day:%A}, {day.day} {day:%B %Y}"


def _describe_source(evidence: Evidence) -> str:
    """Say where a sentence stands: page, section, date."""
    written = evidence.document.date
    return f"{describe_place(evidence.document, evidence.passage)}{f' ({written:%Y-%m-%d})' if written else ''}"


def _join_numbers(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
