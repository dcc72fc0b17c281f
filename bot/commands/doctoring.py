"""`footnote doctor`: whether all is well, and with `--model` how well the model that is set does its work."""

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from bot.commands.frame import AsJson, Frame, command, invocation_of, speaking
from bot.console import Failed, Fault
from bot.progress import told_progress
from bot.settings import FILE_NAME
from pipeline.stages import STAGES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bot.doctoring.checks import Finding
    from bot.doctoring.running import Findings, Wanted
    from bot.doors import Doors

TOKENS = 2_000_000
NO_MODEL = Fault(
    "no_model",
    "No model is configured.",
    "Set OPENAI_API_KEY, or base_url and name under [model] in footnote.toml.",
)
NOTHING = Fault("nothing_to_try", "As it is set, the bot does nothing at this stage.", "Name another stage, or none.")


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
    """Check everything and say what to do; with --model, how well the model does each stage, and what suits it."""
    if (stages or compare) and not model:
        raise typer.BadParameter("To try stages or ways of asking, say --model.")
    if not model:
        _look(context, as_json=as_json)
        return
    with command(context, as_json=as_json) as frame:
        from bot.doctoring import running

        _examine(frame, running.Wanted(tuple(stages or ()), limit, tokens, compare=compare))


def _look(context: typer.Context, *, as_json: bool) -> None:
    """Look at everything, whatever is broken; exit with 1 if something is."""
    with speaking(context, as_json=as_json) as output:
        from bot.doctoring import health

        invocation = invocation_of(context)
        found = asyncio.run(_found(invocation.config, invocation.doors))
        document = health.document(found)
        if as_json:
            output.give(document)
        else:  # a finding is a line, however wide the terminal
            output.out.print(health.view(found), soft_wrap=True)
        if not document["healthy"]:
            raise typer.Exit(1)


async def _found(config: "Path | None", doors: "Doors") -> "Sequence[Finding]":
    from bot.doctoring.checks import Finding, failing, findings
    from bot.doctoring.looking import scene
    from bot.doctoring.registry import CHECKS
    from bot.settings_reading import load

    try:
        settings = load(config)
    except Exception as error:  # noqa: BLE001 - a broken settings file is a finding like others
        return (failing(error),)
    path = config or FILE_NAME
    told = f"{path} can be read" if path.exists() else "there is no footnote.toml, so all is at its default"
    looked = await scene(settings, doors.open_model)
    return (Finding("ok", f"Settings: {told}."), *await findings(CHECKS, looked))


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
