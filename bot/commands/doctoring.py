"""`footnote doctor`: what is set up, and with `--model` how well the model that is set does its work."""

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from bot.commands.frame import AsJson, Frame, command
from bot.console import Failed, Fault
from bot.progress import told_progress
from pipeline.stages import STAGES

if TYPE_CHECKING:
    from bot.doctoring.running import Findings, Wanted

TOKENS = 2_000_000
NO_MODEL = Fault(
    "no_model",
    "No model is configured.",
    "Set OPENAI_API_KEY, or base_url and name under [model] in footnote.toml.",
)
NOTHING = Fault("nothing_to_try", "A model that is set as a student refines nothing.", "Name another stage, or none.")


def _known(stages: list[str] | None) -> list[str] | None:
    for stage in stages or ():
        if stage not in STAGES:
            raise typer.BadParameter(f"There is no stage {stage!r}; there are: {', '.join(STAGES)}.")
    return stages


def doctor(
    context: typer.Context,
    stages: Annotated[
        list[str] | None, typer.Option("--stage", callback=_known, help="This stage alone; may be given several times.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="So many cases of each kind at most.")] = 1_000,
    tokens: Annotated[int, typer.Option("--tokens", min=1, help="Stop before more tokens are used.")] = TOKENS,
    *,
    model: Annotated[bool, typer.Option("--model", help="Try the model on cases whose answers are known.")] = False,
    compare: Annotated[bool, typer.Option("--compare", help="Try every way of asking, at thrice the calls.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say what is set up; with --model, how well the model does each stage, and which settings suit it."""
    if (stages or compare) and not model:
        raise typer.BadParameter("To try stages or ways of asking, say --model.")
    with command(context, as_json=as_json) as frame:
        from bot.doctoring import running, set_up

        if model:
            _examine(frame, running.Wanted(tuple(stages or ()), limit, tokens, compare=compare))
        else:
            facts = asyncio.run(set_up.found(frame.settings, frame.doors.open_records))
            frame.output.give(facts, set_up.view(facts))


def _examine(frame: Frame, wanted: "Wanted") -> None:
    """Examine the model that is set, and report; on Ctrl-C, what was measured until then."""
    from bot.doctoring.running import Findings

    if not frame.settings.model.configured:
        raise Failed(NO_MODEL)
    findings = Findings()
    try:
        asyncio.run(_run(frame, wanted, findings))
    except KeyboardInterrupt:
        if findings.anything:
            _give(frame, findings)
        raise
    if findings.fault:
        raise findings.fault
    _give(frame, findings)


async def _run(frame: Frame, wanted: "Wanted", findings: "Findings") -> None:
    from bot.doctoring.running import plan, run

    now = datetime.now(frame.settings.zone)
    asked = plan(wanted, frame.settings, now)
    if not asked.ways:
        raise Failed(NOTHING)
    with told_progress(frame.output.err, label="doctor", unit="cases") as tell:
        await run(asked, frame.doors.open_model, tokens=wanted.tokens, now=now, tell=tell, findings=findings)


def _give(frame: Frame, findings: "Findings") -> None:
    from bot.doctoring.document import document
    from bot.doctoring.report import view
    from bot.doctoring.running import report

    found = report(findings, frame.settings)
    frame.output.give(document(found), view(found))
