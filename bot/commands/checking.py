"""`footnote check`: is one statement true, by what the documents say?"""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from bot.commands.asking import NOTHING, Corpora, at_terminal, given
from bot.commands.frame import AsJson, Frame, command
from bot.console import Failed, fault_in
from bot.printing import documents, verdict_view
from bot.watching import watching

if TYPE_CHECKING:
    from bot.turns import Answered, Asked


def check(
    context: typer.Context,
    claim: Annotated[str, typer.Argument(help="One statement, in one sentence; - reads it from stdin.")],
    corpora: Corpora = None,
    system: Annotated[
        str, typer.Option("--system", help="Who judges: extractive by rules alone, others by a model and rules.")
    ] = "",
    *,
    as_json: AsJson = False,
) -> None:
    """Check one statement: do the documents support it, refute it, or say too little?"""
    with command(context, as_json=as_json) as frame:
        from bot.turns import Asked

        asked = Asked(given(claim), at_terminal(), corpora=tuple(corpora or ()), system=system)
        done = asyncio.run(_check(frame, asked))
        if done.failure:
            raise Failed(fault_in(done.failure))
        frame.output.give(documents.checked(done, asked.text), verdict_view.verdict_view(done, frame.settings.zone))


async def _check(frame: Frame, asked: "Asked") -> "Answered":
    async with frame.doors.open_home(frame.settings) as home:
        with watching(frame.output) as tell:
            done = await home.check(asked, tell)
        if not done.failure and not done.answer.citations and not await home.corpora():
            frame.output.note(NOTHING.line())
        return done
