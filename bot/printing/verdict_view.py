"""How a fact-check looks in a terminal: the verdict, why, and the sentences it rests on. Pure, as `terminal` is."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.text import Text

from bot.printing.terminal import WIDTH, blocks, source_view
from bot.sanitizing import one_line
from bot.wording import claim_of
from storage.types import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import tzinfo

    from bot.turns import Answered

COLOURS: Mapping[Verdict, str] = MappingProxyType({
    Verdict.SUPPORTS: "green",
    Verdict.REFUTES: "red",
    Verdict.NOT_ENOUGH_INFO: "yellow",
})  # fmt: skip


def verdict_view(done: Answered, zone: tzinfo) -> RenderableType:
    """Show what a check found out, with its evidence."""
    found = claim_of(done.answer)
    if not found:
        return Text(one_line(done.text))
    heading = Text.assemble((found.verdict.value, f"bold {COLOURS[found.verdict]}"), f"  {one_line(found.claim.text)}")
    parts: list[RenderableType] = [heading, Text(one_line(found.reasoning), style="dim")]
    if done.answer.citations:
        parts += [Text(), *blocks(source_view(citation, zone=zone) for citation in done.answer.citations)]
    return Constrain(Group(*parts), WIDTH)
