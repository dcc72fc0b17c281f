"""Run `footnote doctor`: check everything, or examine the model with `--model`."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType

from bot.cli.command_context import (
    CommandContext,
    JsonOption,
    Services,
    find_cli_state,
    open_bare_command,
    open_command,
)
from bot.cli.terminal_output import CommandError, Document, build_document, pick, show_progress
from bot.doctor.checks import CHECKS
from bot.doctor.diagnosis import CheckResult, inspect_home, report_error, run_checks
from bot.settings.settings_errors import find_misplaced_secrets
from bot.settings.settings_reader import (
    is_exposed,
    list_old_keys,
    load_platform_tables,
    load_settings,
    locate_variables,
)
from bot.settings.tables.settings_tables import FILE_NAME
from bot.views.error_messages import Fault
from bot.views.text_layout import Hanging, Text
from pipeline.stages import STAGES

DOCTOR_TOKENS = 2_000_000
NO_MODEL = Fault(
    "no_model", "No model is configured.", "Set OPENAI_API_KEY, or base_url and name under [model] in footnote.toml."
)
NOTHING_TO_TRY = Fault(
    "nothing_to_try",
    "With these settings the bot makes no model calls at this stage.",
    "Name another stage, or leave --stage out.",
)
_MARKS = {"ok": ("ok  ", "green"), "warn": ("WARN", "yellow"), "fail": ("FAIL", "red"), "skip": ("--  ", "dim")}


def _validate_stages(stages: list[str] | None) -> list[str] | None:
    for stage in stages or ():
        if stage not in STAGES:
            raise typer.BadParameter(f"There is no stage {stage!r}; there are: {', '.join(STAGES)}.")
    return stages


def doctor(
    context: typer.Context,
    stages: Annotated[
        list[str] | None,
        typer.Option("--stage", callback=_validate_stages, help="Examine only this stage; repeatable."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most this many cases of each kind of call.")] = 1_000,
    tokens: Annotated[
        int, typer.Option("--tokens", min=1, help="Stop before the calls use more than this many tokens.")
    ] = DOCTOR_TOKENS,
    *,
    model: Annotated[bool, typer.Option("--model", help="Try the model on cases with known answers.")] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare all formats and prompts, with three times the calls.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    if (stages or compare) and not model:
        raise typer.BadParameter("To use --stage or --compare, add --model.")
    if model:
        with open_command(context, as_json=as_json) as ctx:
            _examine_model(ctx, tuple(stages or ()), limit, tokens, compare=compare)
        return
    with open_bare_command(context, as_json=as_json) as output:
        state = find_cli_state(context)
        results = asyncio.run(_run_all_checks(state.config, state.services))
        output.give(build_health_document(results), render_health(results))
        if not is_healthy(results):
            raise typer.Exit(1)


async def _run_all_checks(config: Path | None, services: Services) -> Sequence[CheckResult]:
    """Run all checks; if the settings are invalid, run only those that need no settings."""
    try:
        settings = load_settings(config)
    except Exception as error:  # noqa: BLE001 - a broken settings file is a finding like others
        secrets = map(report_error, find_misplaced_secrets(load_platform_tables(config)))
        skipped = "Not checked: home, documents, model and platforms, because the settings cannot be read."
        return (
            *report_error(error),
            *chain.from_iterable(secrets),
            *_check_variables(config),
            CheckResult("skip", skipped),
        )
    inspection = await inspect_home(settings, services.open_model)
    return (
        *_check_settings_file(config or FILE_NAME),
        *_check_variables(config),
        *await run_checks(CHECKS, inspection),
    )


def _check_settings_file(path: Path) -> Iterator[CheckResult]:
    """Report that the settings file can be read, and the outdated names in it."""
    state = f"{path} can be read" if path.exists() else "there is no footnote.toml, so all settings are defaults"
    yield CheckResult("ok", f"Settings: {state}.")
    if old := list_old_keys(path):
        message = f"Settings: {', '.join(old)} has a new name, visible_to; the old one is still read."
        yield CheckResult("warn", message, f"Rename it in {path}.")


def _check_variables(config: Path | None) -> Iterator[CheckResult]:
    """Check that other users of this machine cannot read the file of secrets next to the settings."""
    if is_exposed(variables := locate_variables(config)):
        message = f"Settings: {variables}, which holds secrets, can be opened by other users of this machine."
        yield CheckResult("warn", message, f"`chmod 600 {variables}` prevents that.")


def is_healthy(results: Sequence[CheckResult]) -> bool:
    return not any(result.level == "fail" for result in results)


def build_health_document(results: Sequence[CheckResult]) -> Document:
    return build_document(healthy=is_healthy(results), findings=[pick(result, "level what hint") for result in results])


def render_health(results: Sequence[CheckResult]) -> RenderableType:
    lines = ((_MARKS[result.level], Fault("", result.what, result.hint).line()) for result in results)
    return Group(*(Hanging(Text.assemble(mark, "  "), Text(line)) for mark, line in lines))


def _examine_model(ctx: CommandContext, stages: Sequence[str], limit: int, tokens: int, *, compare: bool) -> None:
    """Examine the configured model and report; after Ctrl-C, report what was measured so far."""
    # These import prompts, parsers and gold cases, which the other checks do not need.
    from bot.cli.rendering.exam_view import build_exam_document, render_report
    from bot.doctor.model_exam import ExamRequest, ExamResults, build_report, plan_exam, run_exam

    if not ctx.settings.model.configured:
        raise CommandError(NO_MODEL)
    results, now = ExamResults(), datetime.now(ctx.settings.zone)
    plan = plan_exam(ExamRequest(stages, limit, tokens, compare=compare), ctx.settings, now)
    if not plan.ways:
        raise CommandError(NOTHING_TO_TRY)

    async def examine() -> None:
        with show_progress(ctx.output.err, label="doctor", unit="cases") as count:
            await run_exam(plan, ctx.services.open_model, tokens=tokens, now=now, report=count, results=results)

    def report() -> None:
        measured = build_report(results, ctx.settings)
        ctx.output.give(build_exam_document(measured), render_report(measured))

    try:
        asyncio.run(examine())
    except KeyboardInterrupt:
        if results.anything:
            report()
        raise
    if results.fault:
        raise results.fault
    report()
