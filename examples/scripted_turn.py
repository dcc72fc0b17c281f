"""One turn in all seven stages with a scripted model, shown as it happens and then as it stands in the record.

Search, prompts, the reading of replies, the check of every sentence and the record are the real ones: nothing but the
model's replies is made up, and every part that is shown says so.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from rich.text import Text

from bot.answering import answer
from bot.app import open_app
from bot.commands.asking import at_terminal
from bot.console import Failed, Output, fault_in
from bot.printing.outcome_view import claim_lines
from bot.printing.record_view import turn_view
from bot.printing.terminal import answer_view
from bot.settings import Settings
from bot.settings_of.model import ModelValues
from bot.turns import Answered, Asked
from bot.watching import claim_line, event_line
from examples.scripted_model import CLAIMS, LABEL, QUESTION, HandbookChanged, ScriptedModel
from pipeline.types import ClaimChecked, Event
from storage.types import LogEntry


def show(output: Output, settings: Settings) -> None:
    """Take the turn and show it; where what is scripted does not fit the handbook any more, say that instead."""
    output.view(_heading(f"What a turn with a model looks like: “{QUESTION}”"))
    try:
        done, entries = asyncio.run(taken(settings, lambda event: output.view(_happened(event))))
    except HandbookChanged as changed:
        output.view(Text(f"Left out: the handbook is not the one that this was written for; {changed}."))
        return
    zone, calls = settings.zone, [entry for entry in entries if "template" in entry.body]
    output.view(_heading("The answer"), answer_view(done, language="en", zone=zone))
    output.view(
        _heading("What was checked: the model's own claims, and then each sentence"), *claim_lines(entries[-1].body)
    )
    output.view(_heading(f"The model's calls, as `audit show {done.answer_id}` tells them"), turn_view(calls, zone))


async def taken(settings: Settings, tell: Callable[[Event], None]) -> tuple[Answered, Sequence[LogEntry]]:
    """Take the turn; return its answer, and what is on record of it.

    Raises:
        HandbookChanged: what is scripted does not fit what was found.
        Failed: the turn failed.
    """
    # For the record. Nothing is sent: the model that would be asked at this address, which no host has, is replaced.
    scripted = ModelValues(name=LABEL, base_url="http://scripted.invalid")
    async with open_app(settings.model_copy(update={"model": scripted})) as app:
        asked = Asked(QUESTION, at_terminal(), system="wikichat")
        done = await answer(replace(app, llm=ScriptedModel()), asked, tell)
        if done.failure:
            raise Failed(fault_in(done.failure))
        found = {one.claim.text: one.verdict for one in done.answer.claims if one.claim.origin == "model"}
        if done.answer.withheld or found != {text: one.verdict for text, one in CLAIMS.items()}:
            raise HandbookChanged("the answer is another one")
        return done, await app.audit.turn(done.answer_id)


def _heading(text: str) -> Text:
    return Text.assemble("\n", (text, "bold"), (f"\n[{LABEL}]", "bold yellow"), "\n")


def _happened(event: Event) -> Text:
    return Text(claim_line(event.checked) if isinstance(event, ClaimChecked) else event_line(event), style="dim")
