"""One turn in all seven stages with a scripted model, shown while it runs and then as it is recorded.

Search, prompts, the reading of replies, the check of every sentence and the record are the real ones: nothing but the
model's replies is made up, and every part that is shown says so.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from rich.text import Text

from bot.answering.question_answering import answer
from bot.cli.questions.question_commands import identify_terminal_user
from bot.cli.rendering.answer_view import render_answer
from bot.cli.rendering.audit_view import render_claims, render_turn
from bot.cli.rendering.turn_progress import render_claim_line, render_event_line
from bot.cli.terminal_output import CommandError, Output
from bot.settings.tables.model_values import ModelValues
from bot.settings.tables.settings_tables import Settings
from bot.types import TurnRequest, TurnResult
from bot.views.error_messages import explain_failure
from bot.views.turn_story import collect_passages, read_claims
from bot.wiring import open_app
from examples.scripted_model import CLAIMS, LABEL, QUESTION, HandbookChanged, build_scripted_model
from pipeline.types import ClaimChecked, Event
from storage.types import LogEntry


def show(output: Output, settings: Settings) -> None:
    """Run the turn and show it, or print that the script does not fit the handbook any more."""
    output.view(_heading(f"What a turn with a model looks like: “{QUESTION}”"))
    try:
        done, entries = asyncio.run(run_turn(settings, lambda event: output.view(_happened(event))))
    except HandbookChanged as changed:
        output.view(Text(f"Skipped: the handbook is not the one that this was written for; {changed}."))
        return
    zone = settings.zone
    calls = [entry for entry in entries if "template" in entry.body]
    output.view(_heading("The answer"), render_answer(done, language="en", zone=zone))
    claims = render_claims(read_claims(entries[-1].body, collect_passages(entries, {})))
    output.view(_heading("Checked: the model's own claims, and then each sentence"), *claims)
    output.view(_heading(f"The model's calls, as `audit show {done.answer_id}` shows them"), render_turn(calls, zone))


async def run_turn(settings: Settings, observe: Callable[[Event], None]) -> tuple[TurnResult, Sequence[LogEntry]]:
    """Run the turn; return its answer and its log entries.

    Raises `HandbookChanged` if the script does not fit the found passages, and `CommandError` if the turn failed.
    """
    # Only for the record: the model at this address, which does not exist, is replaced and never called.
    scripted = ModelValues(name=LABEL, base_url="http://scripted.invalid")
    async with open_app(settings.model_copy(update={"model": scripted})) as app:
        asked = TurnRequest(QUESTION, identify_terminal_user(), system="wikichat")
        done = await answer(replace(app, llm=build_scripted_model()), asked, observe)
        if done.failure:
            raise CommandError(explain_failure(done.failure))
        verdicts = {claim.claim.text: claim.verdict for claim in done.answer.claims if claim.claim.origin == "model"}
        if done.answer.withheld or verdicts != {text: scripted.verdict for text, scripted in CLAIMS.items()}:
            raise HandbookChanged("the answer differs")
        return done, await app.audit.turn(done.answer_id)


def _heading(text: str) -> Text:
    return Text.assemble("\n", (text, "bold"), (f"\n[{LABEL}]", "bold yellow"), "\n")


def _happened(event: Event) -> Text:
    return Text(
        render_claim_line(event.checked) if isinstance(event, ClaimChecked) else render_event_line(event), style="dim"
    )
