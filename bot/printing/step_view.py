"""How the steps of a recorded turn look in a terminal: each search and each call of a model, in order. Pure.

Shortened, a step is two or three lines; in full it shows all that was recorded of it.
"""

from __future__ import annotations

from textwrap import shorten
from typing import TYPE_CHECKING, Any

from rich.text import Text

from bot.printing.facts_view import block, fact_lines, line
from bot.printing.tables import counted
from bot.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType
    from rich.padding import Padding

SHORT = 200
"""Characters of a reply, or of what was asked, that are shown unless all is."""
_TELLING = ("claim", "query", "draft")
"""Facts of a call that tell it from others of its stage."""
_SHOWN_APART = frozenset(
    {"stage", "template", "model", "milliseconds", "prompt_tokens", "completion_tokens", "facts", "reply", "error"}
)


def step_lines(body: Mapping[str, Any], *, full: bool) -> list[RenderableType]:
    """Show one step."""
    lines = _call(body, full=full) if "template" in body else _search(body, full=full)
    return [_heading(body), *lines]


def _heading(body: Mapping[str, Any]) -> Text:
    """Name the step, with what it took: `verify · small-model · 438 ms · 812 + 31 tokens`."""
    stage, template = str(body.get("stage", "")), str(body.get("template", ""))
    named = f"{stage} ({template})" if template and template != stage else stage
    tokens = (
        f"{body['prompt_tokens']:,} + {body.get('completion_tokens', 0):,} tokens" if "prompt_tokens" in body else ""
    )
    attempts = counted(body["attempts"], "attempt") if body.get("attempts", 1) != 1 else ""
    took = (str(body.get("model", "")), f"{body.get('milliseconds', 0):,.0f} ms", tokens, attempts)
    told = "".join(f" · {one_line(part)}" for part in took if part)
    return Text.assemble((one_line(named), "bold"), (told, "dim"))


def _search(body: Mapping[str, Any], *, full: bool) -> Iterator[Padding]:
    when = f" ({body['time']})" if body.get("time") else ""
    hits: Sequence[Any] = body.get("hits", ())
    found = f"error: {body['error']}" if "error" in body else counted(len(hits), "passage")
    yield line(f"“{body.get('query', '')}”{when}: {found}")
    for passage, score, *_ in hits if full else ():
        yield line(f"{passage} {score:.2f}", depth=2)


def _call(body: Mapping[str, Any], *, full: bool) -> Iterator[Padding]:
    facts = body.get("facts", {})
    if full:
        yield from fact_lines(facts)
        yield from fact_lines({name: value for name, value in body.items() if name not in _SHOWN_APART})
    for name, text in {**_telling(facts, full=full), "reply": body.get("reply")}.items():
        if text:
            yield from _said(name, str(text), full=full)
    if "error" in body:
        yield line(f"error: {body['error']}")


def _telling(facts: Mapping[str, Any], *, full: bool) -> Mapping[str, Any]:
    """Return what tells a call from others of its stage, where not all facts are shown anyway."""
    return {} if full else {name: facts.get(name) for name in _TELLING}


def _said(name: str, text: str, *, full: bool) -> tuple[Padding, ...]:
    """Show a text: its beginning in one paragraph, or all of it as it stands."""
    if full:
        return line(f"{name}:"), block(text)
    return (line(f"{name}: {shorten(one_line(text), SHORT, placeholder=' …')}"),)
