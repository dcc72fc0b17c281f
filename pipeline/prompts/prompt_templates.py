"""Render a prompt template with its facts into the messages of a call.

Each call has a template in this folder, with the macros `instruction()`, `turn()` and `reply()`. Worked examples are
data next to it; `turn()` and `reply()` render them into the messages before the turn itself. So examples look exactly
like turns, and everything before the turn is the same bytes every day, which servers cache. Today's date is in the
turn. Quoted text is enclosed in delimiters that it cannot contain. `prompter.py` calls the model.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path
from random import Random
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, UndefinedError

from pipeline.llm.model import ChatMessage
from pipeline.prompts.demonstrations import WorkedExample, fit_demo
from pipeline.replies.footnotes import describe_place
from pipeline.replies.stage_replies import feedback_format
from pipeline.stages.findings import SourcedFinding, collect_sentences
from pipeline.types import Conversation, Demonstration, Turn
from storage.language.lazy_pattern import lazy_compile
from storage.types import Document, Evidence, Hit, Passage

MissingFact = UndefinedError  # a template wants a fact that it is not given
TEMPLATE_FOLDER = Path(__file__).parent
DELIMITER_LETTERS = "bcdfghjkmnpqrstvwxz"  # no vowels, so that none is a word of a language
DELIMITER_LENGTH = 12
EXAMPLE_DELIMITER = "example"  # of worked examples, which are the same in every call; no turn ever has it
_CONTROL_TOKENS = lazy_compile(
    r"<(?=[|｜])|(?<=[|｜])>|<(?=/?(?:s|bos|eos|pad|unk|think|start_of_turn|end_of_turn|start_of_image|tool_call)>)"
    r"|<(?=<SYS>)|<(?=</SYS>)|\[(?=/?(?:INST|TOOL_CALLS|AVAILABLE_TOOLS|SYSTEM_PROMPT)\])",
    re.IGNORECASE,
)


def draw_delimiter(random: Random, text: str) -> str:
    folded = text.casefold()
    while (fence := "".join(random.choices(DELIMITER_LETTERS, k=DELIMITER_LENGTH))) in folded:
        pass
    return fence


def flatten_line(text: str) -> str:
    """Return a text on one line and without control tokens, so that no part of it looks like a line of the prompt."""
    return _CONTROL_TOKENS.sub(lambda mark: f"{mark[0]} " if mark[0] != ">" else " >", " ".join(text.split()))


_DATED = lazy_compile(r"\{(year|date)(?:([+-]\d+))?\}")


def load_examples(file: Path, day: date, answered_by: str = "reply") -> tuple[WorkedExample, ...]:
    """Return the examples in a file; empty if it does not exist. `answered_by` is the field with the reply."""
    if not file.exists():
        return ()
    examples = []
    for raw in _fill_dates(day, json.loads(file.read_text(encoding="utf-8"))):
        facts = {name: _parse_fact(name, value, day) for name, value in raw.items() if name != answered_by}
        examples.append(WorkedExample(facts, raw[answered_by]))
    return tuple(examples)


def _fill_dates(day: date, value: Any) -> Any:
    def fill(match: re.Match[str]) -> str:
        shift = int(match[2] or 0)
        moved = day + timedelta(days=shift)
        return str(day.year + shift) if match[1] == "year" else f"{moved.day} {moved:%B %Y}"

    if isinstance(value, str):
        return _DATED.sub(fill, value)
    if isinstance(value, list):
        return [_fill_dates(day, item) for item in value]
    return {name: _fill_dates(day, one) for name, one in value.items()} if isinstance(value, dict) else value


def _parse_fact(name: str, raw: Any, day: date) -> object:
    match name:
        case "talk":
            return Conversation(tuple(Turn("user" if speaker == "user" else "bot", text) for speaker, text in raw))
        case "sentences":
            return _parse_sentences(raw, day)
        case "findings" | "told":
            return tuple(SourcedFinding(finding["text"], _parse_sentences([finding], day)) for finding in raw)
        case "feedback":
            return feedback_format().from_json(raw)
    return raw


def _parse_sentences(passages: list[Mapping[str, Any]], day: date) -> tuple[Evidence, ...]:
    hits = []
    for place, raw in enumerate(passages):
        age = raw.get("days_old")
        written = None if age is None else datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(days=age)
        document = Document("example", str(place), raw["title"], date=written, language=raw.get("language", "en"))
        passage = Passage(f"example-{place}", "example", str(place), raw.get("section", ""), raw["text"], 0, "")
        hits.append(Hit(passage, document, 0.0))
    return collect_sentences(hits)


SHARING = frozenset({"claims", "summarise", "bullets", "verify", "verdicts", "draft", "answer", "continuation"})
"""Templates whose calls can share a beginning, which has the rules of all of them."""
EXAMPLE_DAY = date(2025, 3, 3)  # the date in all worked examples


@dataclass(frozen=True, slots=True)
class PromptMode:
    structured: bool = False  # whether the reply is JSON by a schema; otherwise strict text
    student: bool = False  # whether the model was distilled for these calls: no examples, no reasoning before a verdict
    shown: bool = True  # whether examples are shown; a small context window may have no room for them
    tone: str = ""  # how text for people is to be worded; part of the turn, after all rules
    sharing: bool = False  # whether all calls begin with the rules of all, for servers that charge less for cached text
    brief: bool = False  # whether the prompt is short, for slow servers
    folder: Path = TEMPLATE_FOLDER  # searched first for templates


@dataclass(frozen=True, slots=True)
class Prompt:
    messages: tuple[ChatMessage, ...]
    max_tokens: int
    shared: int = 0  # how many characters of the first message all calls share


def render_prompt(
    template: str,
    facts: Mapping[str, object],
    mode: PromptMode,
    now: datetime,
    random: Random,
    demos: Sequence[Demonstration] = (),
) -> Prompt:
    """Render a call. `demos` are demonstrations; they come after the template's own examples and before the turn.

    Each demonstration has its own delimiter, which distinguishes its quotations from the turn's. Raises `MissingFact`
    if the template needs a fact that is missing.
    """
    module = _load_macros(template, mode, now.date(), fence="", **facts)
    quoted = "\n".join((str(module.turn()), *(demo.searched for demo in demos)))
    fence = draw_delimiter(random, quoted)
    turn = str(_load_macros(template, mode, now.date(), fence=fence, **facts).turn()).strip()
    bare = replace(mode, tone="")
    flat = [replace(demo, query=flatten_line(demo.query), answer=flatten_line(demo.answer)) for demo in demos]
    shown = [(demo.day, example) for demo in flat if (example := fit_demo(template, demo))]
    before = [*render_prefix(template, bare)]
    for day, example in shown:
        before += _render_example(template, bare, day, example, draw_delimiter(random, f"{quoted}\n{fence}"))
    shared = len(render_beginning(bare)) if _shares(template, mode) else 0
    return Prompt((*before, ChatMessage("user", turn)), int(getattr(module, "reply_tokens", 1_024)), shared)


@lru_cache(maxsize=128)
def render_prefix(template: str, mode: PromptMode) -> tuple[ChatMessage, ...]:
    """Render the messages before the turn, which are the same for every turn."""
    module = _load_macros(template, mode, EXAMPLE_DAY)
    beginning = f"{render_beginning(mode)}\n" if _shares(template, mode) else ""
    messages = [ChatMessage("system", f"{beginning}{str(module.instruction()).strip()}")]
    if mode.student or not mode.shown:
        return tuple(messages)
    own = (mode.folder / f"{template}.j2").exists()
    file = (mode.folder if own else TEMPLATE_FOLDER) / f"{getattr(module, 'examples', template)}.json"
    for example in load_examples(file, EXAMPLE_DAY, getattr(module, "answered_by", "reply")):
        messages += _render_example(template, mode, EXAMPLE_DAY, example, EXAMPLE_DELIMITER)
    return tuple(messages)


@lru_cache(maxsize=8)
def render_beginning(mode: PromptMode) -> str:
    """Render the shared beginning of the instructions."""
    return str(_load_macros("_shared", mode, EXAMPLE_DAY).beginning()).strip()


def _shares(template: str, mode: PromptMode) -> bool:
    return mode.sharing and not (mode.student or mode.brief) and template in SHARING


def _render_example(
    template: str, mode: PromptMode, day: date, example: WorkedExample, fence: str
) -> tuple[ChatMessage, ChatMessage]:
    worked = _load_macros(template, mode, day, **{**example.facts, "fence": fence})
    return ChatMessage("user", str(worked.turn()).strip()), render_reply(template, mode, example.reply)


def render_reply(template: str, mode: PromptMode, answer: Any) -> ChatMessage:
    """Render the reply of a worked example from its parts."""
    if mode.structured:
        return ChatMessage("assistant", json.dumps(answer, ensure_ascii=False))
    return ChatMessage("assistant", str(_load_macros(template, mode, EXAMPLE_DAY, answer=answer).reply()).strip())


def _load_macros(template: str, mode: PromptMode, day: date, **facts: Any) -> Any:
    known: dict[str, Any] = {"structured": mode.structured, "student": mode.student, "tone": mode.tone}
    known |= {"today": spell_date(day), "sharing": _shares(template, mode), "brief": mode.brief}
    return _build_environment(mode.folder).get_template(f"{template}.j2").make_module({**known, **facts})


@cache
def _build_environment(folder: Path) -> Environment:
    environment = Environment(
        loader=FileSystemLoader((folder, TEMPLATE_FOLDER)),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - prompts are not HTML: models read "&lt;" literally
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )

    environment.filters |= {
        "line": flatten_line,
        "source": _describe_source,
        "numbers": lambda found: ", ".join(map(str, found)),
    }
    return environment


def load_templates(*, student: bool, sharing: bool) -> None:
    """Compile all templates, and render the messages before each turn. Blocks for half a second."""
    for file in sorted(TEMPLATE_FOLDER.glob("[!_]*.j2")):
        for structured in (False, True):
            render_prefix(file.stem, PromptMode(structured, student, sharing=sharing))


def spell_date(day: date) -> str:
    """Return a date as prompts write it: "Sunday, 1 March 2026"."""
    return f"{day:%A}, {day.day} {day:%B %Y}"


def _describe_source(evidence: Evidence) -> str:
    written = evidence.document.date
    return f"{describe_place(evidence.document, evidence.passage)}{f' ({written:%Y-%m-%d})' if written else ''}"
