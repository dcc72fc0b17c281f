"""Run `footnote init`, `doctor` and `serve`: what an operator sets up, checks and runs."""

import asyncio
import logging
import secrets
import sys
from dataclasses import asdict
from datetime import datetime
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli import rendering
from bot.cli.command_context import (
    CommandContext,
    JsonOption,
    find_cli_state,
    format_examples,
    open_bare_command,
    open_command,
)
from bot.cli.questions.question_commands import identify_terminal_user
from bot.cli.terminal_output import CommandError, build_document, show_progress
from bot.views.error_messages import Fault, ReportableError, explain_error
from bot.views.sanitize import sanitize_line
from bot.views.text_layout import Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bot.cli.command_context import Services
    from bot.doctor.diagnosis import CheckResult
    from bot.doctor.model_exam import ExamRequest, ExamResults
    from bot.settings.live.live_settings import ReloadReport
    from bot.settings.tables.settings_tables import Settings


def init(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """Write a footnote.toml with every setting, explained and at its default."""
    with open_bare_command(context, as_json=as_json) as output:
        from bot.settings.tables.settings_tables import FILE_NAME

        path = write_starter(find_cli_state(context).config or FILE_NAME)
        public = make_record_key(path)
        lines = (
            f"{path} is written: every setting, explained.",
            f"The record is signed by this key; note it elsewhere: {public}",
            "Next: footnote ingest folder PATH --corpus NAME",
        )
        output.give(rendering.json_documents.build_init_document(str(path), public), Text("\n".join(lines)))


def make_record_key(settings_file: Path) -> str:
    """Make the key that signs the record, unless there is one; return the public one."""
    from bot.settings.settings_reader import load_settings
    from storage.record.proof.key_file import create_key, load_key

    file = load_settings(settings_file).record.key_path
    return str((load_key(file) if file.exists() else create_key(file)).public)


def _read_starter() -> str:
    """Return the starter file, in which each platform explains its own table."""
    from bot.settings.platform_registry import load_platforms

    text = resources.files("bot.settings").joinpath("starter.toml").read_text(encoding="utf-8")
    platforms = (resources.files(entry.settings.__module__) for entry in load_platforms().values())
    own = [file.read_text(encoding="utf-8") for one in platforms if (file := one / "starter.toml").is_file()]
    return text.replace("# PLATFORMS\n", "\n".join(own))


def write_starter(path: Path) -> Path:
    """Write the starter file, and return its path.

    Raises `SettingsError`: there is a file already, which is left as it is; or it cannot be written there.
    """
    from bot.settings.settings_errors import SettingsError, explain_write_error

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(_read_starter())
    except FileExistsError as error:
        hint = "Edit it, or move it away to get a new one."
        raise SettingsError(f"{path} is already there, and was left as it is.", hint=hint) from error
    except OSError as error:
        raise explain_write_error(error, path) from error
    return path


DOCTOR_TOKENS = 2_000_000
NO_MODEL = Fault(
    "no_model", "No model is configured.", "Set OPENAI_API_KEY, or base_url and name under [model] in footnote.toml."
)
NOTHING_TO_TRY = Fault(
    "nothing_to_try", "With these settings the bot does nothing at this stage.", "Name another stage, or none."
)


def _validate_stages(stages: list[str] | None) -> list[str] | None:
    from pipeline.stages import STAGES

    for stage in stages or ():
        if stage not in STAGES:
            raise typer.BadParameter(f"There is no stage {stage!r}; there are: {', '.join(STAGES)}.")
    return stages


def doctor(
    context: typer.Context,
    stages: Annotated[
        list[str] | None,
        typer.Option("--stage", callback=_validate_stages, help="Only this stage; may be given several times."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many cases of each kind at most.")] = 1_000,
    tokens: Annotated[int, typer.Option("--tokens", min=1, help="Stop before more tokens are used.")] = DOCTOR_TOKENS,
    *,
    model: Annotated[bool, typer.Option("--model", help="Try the model on cases with known answers.")] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Try every way of asking, with three times the calls.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check everything and say what to do; with --model, how well the model does each stage, and what suits it."""
    if (stages or compare) and not model:
        raise typer.BadParameter("To try stages or ways of asking, add --model.")
    if not model:
        _check_all(context, as_json=as_json)
        return
    with open_command(context, as_json=as_json) as ctx:
        from bot.doctor import model_exam

        _examine_model(ctx, model_exam.ExamRequest(tuple(stages or ()), limit, tokens, compare=compare))


def _check_all(context: typer.Context, *, as_json: bool) -> None:
    """Run all checks, whatever is broken; exit with 1 if one fails."""
    with open_bare_command(context, as_json=as_json) as output:
        from bot.doctor import diagnosis

        state = find_cli_state(context)
        found = asyncio.run(_run_all_checks(state.config, state.services))
        document = diagnosis.build_health_document(found)
        output.give(document, diagnosis.render_health(found))
        if not document["healthy"]:
            raise typer.Exit(1)


async def _run_all_checks(config: "Path | None", services: "Services") -> "Sequence[CheckResult]":
    from bot.doctor.checks import CHECKS
    from bot.doctor.diagnosis import CheckResult, inspect_home, report_error, run_checks
    from bot.settings.settings_errors import find_misplaced_secrets
    from bot.settings.settings_reader import list_old_keys, load_platform_tables, load_settings
    from bot.settings.tables.settings_tables import FILE_NAME

    try:
        settings = load_settings(config)
    except Exception as error:  # noqa: BLE001 - a broken settings file is a finding like others
        secrets = (report_error(fault) for fault in find_misplaced_secrets(load_platform_tables(config)))
        left = CheckResult(
            "skip", "Not looked at: home, documents, model and platforms, as there are no settings to go by."
        )
        return (*report_error(error), *chain.from_iterable(secrets), *_check_variables(config), left)
    path = config or FILE_NAME
    told = f"{path} can be read" if path.exists() else "there is no footnote.toml, so all is at its default"
    looked = await inspect_home(settings, services.open_model)
    results = [CheckResult("ok", f"Settings: {told}.")]
    if old := list_old_keys(path):
        message = f"Settings: {', '.join(old)} has a new name, visible_to; the old one is still read."
        results.append(CheckResult("warn", message, f"Rename it in {path}."))
    return (*results, *_check_variables(config), *await run_checks(CHECKS, looked))


def _check_variables(config: "Path | None") -> "Sequence[CheckResult]":
    """Check that nobody else may read the secrets beside the settings."""
    from bot.doctor.diagnosis import CheckResult
    from bot.settings.environment_file import is_exposed, locate_variables

    if not is_exposed(variables := locate_variables(config)):
        return ()
    message = f"Settings: {variables}, which holds secrets, can be opened by other users of this machine."
    return (CheckResult("warn", message, f"`chmod 600 {variables}` keeps it from them."),)


def _examine_model(ctx: CommandContext, wanted: "ExamRequest") -> None:
    """Examine the configured model, and report; on Ctrl-C, what was measured until then."""
    from bot.doctor.model_exam import ExamResults

    if not ctx.settings.model.configured:
        raise CommandError(NO_MODEL)
    findings = ExamResults()
    try:
        asyncio.run(_run_model_exam(ctx, wanted, findings))
    except KeyboardInterrupt:
        if findings.anything:
            _print_model_report(ctx, findings)
        raise
    if findings.fault:
        raise findings.fault
    _print_model_report(ctx, findings)


async def _run_model_exam(ctx: CommandContext, wanted: "ExamRequest", findings: "ExamResults") -> None:
    from bot.doctor.model_exam import plan_exam, run_exam

    now = datetime.now(ctx.settings.zone)
    asked = plan_exam(wanted, ctx.settings, now)
    if not asked.ways:
        raise CommandError(NOTHING_TO_TRY)
    with show_progress(ctx.output.err, label="doctor", unit="cases") as tell:
        await run_exam(asked, ctx.services.open_model, tokens=wanted.tokens, now=now, tell=tell, findings=findings)


def _print_model_report(ctx: CommandContext, findings: "ExamResults") -> None:
    from bot.doctor.model_exam import build_exam_document, build_report, render_report

    found = build_report(findings, ctx.settings)
    ctx.output.give(build_exam_document(found), render_report(found))


def serve(context: typer.Context) -> None:
    """Serve the configured platforms until a signal asks to stop; other commands work meanwhile."""
    with open_command(context, as_json=False) as ctx:
        from bot.server.monitoring.server_log import build_live_redactor, configure_logging, set_own_level
        from bot.settings.live.live_settings import LiveSettings
        from bot.settings.settings_reader import SettingsFile

        live, file = LiveSettings(ctx.settings), SettingsFile(find_cli_state(context).config)
        if not ctx.output.debug:
            live.observers.append(lambda settings: set_own_level(settings.log.level))
        redact = build_live_redactor(lambda: live.current)
        with configure_logging(sys.stderr, level=ctx.settings.log.level, redact=redact, debug=ctx.output.debug):
            try:
                asyncio.run(ctx.services.serve(live, file.read))
            except Exception as error:
                fault = explain_error(error).redacted(redact)
                if not isinstance(error, ReportableError | OSError):
                    logging.getLogger(__name__).exception("the server failed")
                # Not chained: what is shown of it with --debug stands in the log, without secrets.
                raise CommandError(fault) from None


NO_SERVER = Fault(
    "no_server",
    "No server answers here, so nothing is reloaded.",
    "The next `footnote serve` reads the settings.",
)


def reload(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """Have the running server take changed settings; say what took effect, and what waits for a restart."""
    with open_bare_command(context, as_json=as_json) as output:
        from bot.settings.settings_reader import find_home

        report = asyncio.run(_ask_to_reload(find_home(find_cli_state(context).config)))
        if report.faults and not as_json:
            for fault in report.faults:
                output.note(f"footnote: {fault}")
            output.note("Nothing was changed: the server goes on with the settings that it had.")
        else:
            output.give(build_document(**asdict(report)), Text("\n".join(_list_reloaded(report))))
        if report.faults:
            raise typer.Exit(1)


def _list_reloaded(report: "ReloadReport") -> "Iterator[str]":
    yield f"In effect from the next question on: {', '.join(map(sanitize_line, report.changed)) or 'nothing new'}."
    if report.waiting:
        yield f"Waits for a restart of the server: {', '.join(map(sanitize_line, report.waiting))}."
    yield from (f"{sanitize_line(note)}." for note in report.notes)


async def _ask_to_reload(home: Path) -> "ReloadReport":
    from bot.server.control.control_socket import connect_service

    async with connect_service(home) as service:
        if service is None:
            raise CommandError(NO_SERVER)
        return await service.reload()


def pages(
    context: typer.Context,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65_535, help="Another port than that of the settings.")
    ] = None,
) -> None:
    """Serve the pages on which the record is read, alone or beside a running server, until Ctrl-C."""
    with open_command(context, as_json=False) as ctx:
        at = ctx.settings.pages
        settings = ctx.settings.model_copy(
            update={"pages": at if port is None else at.model_copy(update={"port": port})}
        )
        asyncio.run(_show_pages(ctx, settings))


async def _show_pages(ctx: CommandContext, settings: "Settings") -> None:
    from bot.pages.pages_server import serve_pages

    services = ctx.services
    async with (
        services.open_records(settings) as records,
        services.open_history(settings) as history,
        serve_pages(settings, records, history, lambda: services.open_home(settings)) as address,
    ):
        ctx.output.note(f"The pages are at {address} until Ctrl-C.")
        await asyncio.Event().wait()


mcp_app = typer.Typer(
    no_args_is_help=False,
    epilog=format_examples("footnote mcp", "footnote --config /etc/footnote.toml mcp --as editors"),
)


@mcp_app.callback(invoke_without_command=True)
def mcp(
    context: typer.Context,
    reader: Annotated[
        str, typer.Option("--as", metavar="NAME", help="Read only what the token of this name may.")
    ] = "",
) -> None:
    """Answer the assistant or editor that starts this, over MCP on stdin and stdout; alone or beside a server."""
    if context.invoked_subcommand is None:
        with open_command(context, as_json=False) as ctx:
            asyncio.run(_answer_program(ctx, reader))


async def _answer_program(ctx: CommandContext, reader: str) -> None:
    from bot.server.mcp.mcp_server import serve_stdio
    from bot.server.mcp.shared_home import SharedHome
    from bot.server.mcp.tool_calls import make_owner_asker, make_token_asker

    known = {token.name: token for token in ctx.settings.mcp.tokens}
    if reader and reader not in known:
        hint = f"There are: {', '.join(known)}." if known else "`footnote mcp token NAME` makes one."
        raise CommandError(Fault("unknown_token", f"There is no token {reader!r} under [mcp].", hint))
    token, owner = known.get(reader), identify_terminal_user().user
    asker = make_token_asker(token.name, token.groups) if token else make_owner_asker(owner)
    await serve_stdio(SharedHome(lambda: ctx.services.open_home(ctx.settings)), ctx.settings, asker)


@mcp_app.command(epilog=format_examples("footnote mcp token anna", "footnote mcp token ci --group editors"))
def token(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Who will use it, such as a person or a program.")],
    groups: Annotated[
        list[str] | None, typer.Option("--group", help="A group that it is in; may be given several times.")
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Make a token by which a program asks `footnote serve`. It is shown once; settings keep only its digest."""
    with open_bare_command(context, as_json=as_json) as output:
        from bot.settings.tables.mcp_settings import format_token_line, list_token_ids

        secret = secrets.token_urlsafe(32)
        try:
            line = format_token_line(name, tuple(groups or ()), secret)
        except ValueError as error:
            message = "Names are letters, digits, dots, dashes and underscores, 60 at most."
            raise typer.BadParameter(message) from error
        readers = " or ".join(f'"{one}"' for one in list_token_ids(name, groups or ()))
        told = (
            f"The token, for the program alone: {secret}",
            f"The line for `tokens` under [mcp]:  {line}",
            f"What it may read is named by visible_to of a [[corpus]]: {readers}",
            "`footnote reload` takes these; [mcp] enabled = true, if that is new, wants a restart of the server.",
        )
        output.give(build_document(token=secret, line=line), Text("\n".join(told)))
