"""How the end of a recorded turn looks in a terminal: what it took, what was claimed, what was withheld and why. Pure.

This is the evidence view: claims that were not confirmed are shown here, marked as what they are, and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from bot.printing.facts_view import indented, line
from bot.printing.tables import counted
from bot.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import RenderableType


def usage_line(usage: Mapping[str, Any]) -> str:
    """Say what was asked of a model: `7 calls in 4 rounds, 3,940 + 67 tokens, cost 0.0041`; nothing if nothing was."""
    if not usage.get("llm_calls"):
        return ""
    calls = f"{counted(usage['llm_calls'], 'call')} in {counted(usage.get('llm_rounds', 0), 'round')}"
    tokens = f"{usage.get('prompt_tokens', 0):,} + {usage.get('completion_tokens', 0):,} tokens"
    cost = usage.get("cost")
    return f"{calls}, {tokens}" + (f", cost {cost:.6g}" if cost is not None else "")


def claim_lines(body: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Show each claim with its verdict, whose it was, why, and the passages, with their pages where recorded."""
    pages = {
        page.get("passage_id"): page.get("title") for page in (*body.get("nearest", ()), *body.get("citations", ()))
    }
    if body.get("claims"):
        yield from (Text(), Text("claims", style="bold"))
    for checked in body.get("claims", ()):
        claim = checked.get("claim", {})
        whose = f"{checked.get('verdict', '')} ({claim.get('origin', '')})"
        yield indented(Text.assemble((one_line(whose), "bold"), f" {one_line(str(claim.get('text', '')))}"))
        named = (f"{one} ({pages[one]})" if pages.get(one) else one for one in checked.get("evidence", ()))
        evidence = f"by {', '.join(named)}" if checked.get("evidence") else ""
        yield from (line(why, depth=2, style="dim") for why in (checked.get("reasoning"), evidence) if why)


def withheld_lines(body: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Show each sentence that the gate did not let through, and its reason; and what had left a turn that broke off."""
    for name, heading in (("withheld", "withheld"), ("spoken", "said before it broke off")):
        if body.get(name):
            yield from (Text(), Text(heading, style="bold"))
        for sentence in body.get(name, ()):
            yield line(str(sentence.get("text", "")))
            if sentence.get("reason"):
                yield line(str(sentence["reason"]), depth=2, style="dim")
