"""Run `footnote ingest`: a command for most types of source, and the commands for all configured sources."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer
from pydantic import ValidationError

from bot.cli.command_context import CommandContext, JsonOption, format_examples, open_command, parse_path
from bot.cli.generated_options import list_parameters, set_parameters
from bot.cli.rendering import ingest_view
from bot.cli.rendering.refresh_view import build_refreshes_document, render_refreshes
from bot.cli.terminal_output import build_document, show_progress
from bot.server.refresh.dump_costs import measure_dump
from bot.settings.errors import SettingsError
from bot.settings.settings_errors import describe_fault
from bot.settings.tables.field_types import is_path_type
from bot.settings.tables.settings_tables import validate_corpus_name
from bot.settings.tables.source_registry import SOURCE_ENTRIES
from bot.settings.tables.source_settings import FolderSettings, SourceEntry, SourceSettings, WikipediaSettings
from bot.views.error_messages import Fault, ReportableError, explain_error
from bot.views.text_formats import format_count
from bot.views.text_layout import Text
from ingest.types import EngineName, RefreshProgress, RefreshReport

if TYPE_CHECKING:
    from bot.server.service import BotService


def _validate_corpus_name(name: str | None) -> str | None:
    try:
        return name if name is None else validate_corpus_name(name)
    except ValueError as error:
        raise typer.BadParameter(f"It {error}.") from error


ConfirmRemovalOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--confirm-removal",
        metavar="NAME",
        help="Remove all documents of this corpus that its source no longer lists, however many; repeatable.",
    ),
]
EngineOption: TypeAlias = Annotated[
    Literal["local", "ray"] | None,
    typer.Option(help="Read and embed on this machine, or on a Ray cluster; default from settings."),
]
CorpusOption: TypeAlias = Annotated[
    str | None, typer.Option(callback=_validate_corpus_name, help="The corpus to ingest into; created if it is new.")
]
MODES: Mapping[str, Mapping[str, str]] = {
    "folder": {
        "restore": "Also ingest forgotten documents again.",
        "dry_run": "List files to read, and skipped files with reasons.",
    },
    "wikipedia": {"estimate": "Estimate the cost on this machine: hours, disk and memory."},
}
"""Flags of one source's command that are not settings, with their help."""
ingest_app = typer.Typer(add_completion=False)


@ingest_app.callback(
    no_args_is_help=True,
    invoke_without_command=True,
    epilog=format_examples(
        "footnote ingest folder handbook --corpus handbook",
        "footnote ingest wikipedia --dump enwiki-20260101.xml.bz2 --corpus wikipedia",
        "footnote ingest all",
        "footnote ingest --only https://docs.example.com/rules.html",
    ),
)
def ingest_one(
    context: typer.Context,
    address: Annotated[
        str, typer.Option("--only", metavar="ADDRESS", help="Ingest this one document, even if it was forgotten.")
    ] = "",
    corpus: Annotated[str, typer.Option(help="With --only: the corpus whose source has it.")] = "",
    *,
    as_json: JsonOption = False,
) -> None:
    if context.invoked_subcommand:
        if address or corpus or as_json:
            message = f"Write options after `{context.invoked_subcommand}`; --only is used without a command."
            raise typer.BadParameter(message)
        return
    if not address:
        raise typer.BadParameter("Name the document with --only, or what to ingest: `footnote ingest --help`.")
    with open_command(context, as_json=as_json) as ctx:
        web = ctx.settings.search_engine.corpus  # its pages have no source
        sources = {} if web and (corpus == web or not ctx.settings.sources) else _select_sources(ctx, corpus)
        reports = ctx.call_service(lambda service: service.read_one(address, sources))
        ctx.output.give(ingest_view.build_ingest_all_document(reports, {}), ingest_view.render_reports(reports))


def _add_source_command(type_: str, entry: SourceEntry) -> None:
    """Add the command that ingests one source of this type; its options are settings of the source."""
    if not (command := entry.command):
        return
    flags = {
        name: (Annotated[bool, typer.Option(f"--{name.replace('_', '-')}", help=text)], False)
        for name, text in MODES.get(type_, {}).items()
    }
    options = {key: _describe_option(entry, key, text) for key, text in command.options.items()}
    argument = {key: options.pop(key) for key in [command.argument] if key}

    def run(context: typer.Context, **typed: Any) -> None:
        shared = {name: typed.pop(name) for name in ("corpus", "confirm_removal", "engine", "as_json")}
        modes = {name: typed.pop(name) for name in flags}
        _ingest_source(context, type_, typed, modes, **shared)

    parameters = list_parameters(
        {
            **argument,
            "corpus": (CorpusOption, None),
            **options,
            **flags,
            "confirm_removal": (ConfirmRemovalOption, None),
            "engine": (EngineOption, None),
            "as_json": (JsonOption, False),
        }
    )
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    set_parameters(run, [context, *parameters])
    ingest_app.command(type_, help=command.summary, epilog=format_examples(*command.examples))(run)


def _describe_option(entry: SourceEntry, key: str, text: str) -> tuple[Any, Any]:
    """Return an option's annotation and default, which depend on the type of its setting."""
    kind = entry.settings.model_fields[key].annotation
    if entry.command and key == entry.command.argument:
        return Annotated[Path, typer.Argument(parser=parse_path, help=text)], ...
    if is_path_type(kind):
        return Annotated[Path | None, typer.Option(parser=parse_path, help=text)], None
    if kind is bool:
        return Annotated[bool, typer.Option(f"--{key.replace('_', '-')}", help=text)], False
    if kind == tuple[str, ...]:
        return Annotated[list[str] | None, typer.Option(help=text)], None
    return Annotated[str, typer.Option(help=text)], ""


def _ingest_source(
    context: typer.Context,
    type_: str,
    typed: Mapping[str, Any],
    modes: Mapping[str, bool],
    *,
    corpus: str | None,
    confirm_removal: Sequence[str] | None,
    engine: EngineName | None,
    as_json: bool,
) -> None:
    if corpus is None and not (modes.get("dry_run") or modes.get("estimate")):
        raise typer.BadParameter("Name the corpus to ingest into with --corpus.")
    if modes.get("estimate") and (typed["dump"] is None or typed["cirrus"]):
        raise typer.BadParameter("--estimate reads a file of pages-articles: name it with --dump.")
    source = _build_source(type_, typed)
    with open_command(context, as_json=as_json) as ctx:
        if isinstance(source, FolderSettings) and modes.get("dry_run"):
            from bot.server.refresh.source_factory import build_folder  # imports every source's libraries

            files = list(build_folder(source, ctx.settings.ingest.programs).preview())
            ctx.output.give(ingest_view.build_preview_document(files), ingest_view.render_preview(files))
        elif isinstance(source, WikipediaSettings) and source.dump and modes.get("estimate"):
            cost = measure_dump(source.dump, ctx.settings)
            ctx.output.give(build_document(estimate=asdict(cost)), ingest_view.render_estimate(source.dump.name, cost))
        elif corpus:
            confirmed, restore = corpus in (confirm_removal or ()), modes.get("restore", False)

            async def refresh(service: "BotService") -> tuple[RefreshReport, list[str]]:
                report = await refresh_corpus(
                    ctx, service, corpus, source, engine, confirm_removal=confirmed, restore=restore
                )
                return report, await list_unread(service, [report])

            report, unread = ctx.call_service(refresh)
            ctx.output.give(ingest_view.build_ingest_document(report), ingest_view.render_reports([report]))
            _fail_unread(ctx, unread)


def _build_source(type_: str, typed: Mapping[str, Any]) -> SourceSettings:
    """Build the settings of a source from options. Raises `typer.BadParameter`."""
    values = {
        key: tuple(filter(None, value)) if isinstance(value, list) else value
        for key, value in typed.items()
        if value or isinstance(value, list)
    }
    try:
        return SOURCE_ENTRIES[type_].settings.model_validate({"type": type_, **values})
    except ValidationError as error:
        fault = error.errors()[0]
        name = f"--{str(fault['loc'][0]).replace('_', '-')}" if fault["loc"] else "The source"
        raise typer.BadParameter(f"{name} {describe_fault(fault)}.") from error


for source_type, source_entry in SOURCE_ENTRIES.items():
    _add_source_command(source_type, source_entry)


@ingest_app.command(
    "all",
    epilog=format_examples("footnote ingest all", "footnote ingest all --confirm-removal handbook"),
    help="Bring every corpus of footnote.toml that has a source up to date.\n\nTypes of source: "
    + "; ".join(f"{name}: {entry.summary}" for name, entry in SOURCE_ENTRIES.items())
    + ".",
)
def ingest_all(
    context: typer.Context,
    *,
    confirm_removal: ConfirmRemovalOption = None,
    engine: EngineOption = None,
    as_json: JsonOption = False,
) -> None:
    with open_command(context, as_json=as_json) as ctx:
        sources, confirmed = _select_sources(ctx, ""), confirm_removal or ()
        for name in confirmed:
            if name not in sources:
                message = f"A removal is confirmed for “{name}”, which has no source in the settings."
                raise SettingsError(message, hint=f"There are: {', '.join(sources)}.")
        reports, faults = list[RefreshReport](), dict[str, Fault]()

        async def refresh_all(service: "BotService") -> list[str]:
            for corpus, source in sources.items():
                try:
                    report = await refresh_corpus(
                        ctx, service, corpus, source, engine, confirm_removal=corpus in confirmed
                    )
                    reports.append(report)
                except Exception as error:
                    if not isinstance(error, ReportableError):
                        raise
                    faults[corpus] = explain_error(error)
                    ctx.output.note(f"footnote: {corpus}: {faults[corpus].line()}")
            return await list_unread(service, reports)

        unread = ctx.call_service(refresh_all)
        ctx.output.give(ingest_view.build_ingest_all_document(reports, faults), ingest_view.render_reports(reports))
        _fail_unread(ctx, unread)
        if faults:
            raise typer.Exit(1)


@ingest_app.command(epilog=format_examples("footnote ingest remove handbook", "footnote ingest remove handbook --yes"))
def remove(
    context: typer.Context,
    corpus: Annotated[str, typer.Argument(metavar="CORPUS", callback=_validate_corpus_name, show_default=False)],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove a corpus with all its documents. The record of past answers keeps its quotations.

    If the settings have a source for it, the next refresh ingests it again, unless you remove the source.
    """
    with open_command(context, as_json=as_json) as ctx:
        ctx.confirm(f"All documents of “{corpus}” will be removed.", confirmed=yes)
        report = ctx.call_service(lambda service: service.remove(corpus))
        count = format_count(report.removed, "document")
        text = f"Removed: {corpus} ({count}, {format_count(report.passages_removed, 'passage')})."
        if corpus in ctx.settings.sources:
            text += " Its [[corpus]] still has a source: the next refresh ingests it again."
        ctx.output.give(ingest_view.build_ingest_document(report), Text(text))


@ingest_app.command("status", epilog=format_examples("footnote ingest status", "footnote ingest status --json"))
def status(
    context: typer.Context,
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, max=1_000, help="How many runs and nightly refreshes at most.")
    ] = 20,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show the runs in progress, past runs, past nightly refreshes, and when the next one is."""
    with open_command(context, as_json=as_json) as ctx:
        settings, now = ctx.settings, datetime.now(UTC)
        opening = ctx.services.open_history(settings)
        summary = ctx.call(opening, lambda history: history.summarize(settings, now, count=count))
        ctx.output.give(build_refreshes_document(summary), render_refreshes(summary, settings.zone))


async def refresh_corpus(
    ctx: CommandContext,
    service: "BotService",
    corpus: str,
    source: SourceSettings,
    engine: EngineName | None = None,
    *,
    confirm_removal: bool = False,
    restore: bool = False,
) -> RefreshReport:
    """Refresh one corpus; show the progress, and return the report."""
    with show_progress(ctx.output.err, label=corpus, unit="documents") as report:

        def progress(step: RefreshProgress) -> None:
            report(step.done, step.total, step.doing or format_count(step.passages, "passage"))

        return await service.refresh(
            corpus,
            source,
            progress,
            confirm_removal=confirm_removal,
            restore=restore,
            engine=engine,
            dense=ctx.settings.find_corpus(corpus).dense,
        )


async def list_unread(service: "BotService", reports: Sequence[RefreshReport]) -> list[str]:
    """Return the corpora of which nothing could be read, neither now nor in earlier runs."""
    empty = (report for report in reports if not (report.added or report.changed or report.unchanged))
    failed = [report.corpus for report in empty if report.failures]
    filled = {info.name for info in await service.corpora() if info.documents} if failed else set[str]()
    return [corpus for corpus in failed if corpus not in filled]


def explain_unread(corpora: Sequence[str]) -> Fault:
    hint = "The report shows why; docs/sources.md lists the formats that can be read."
    return Fault("nothing_read", f"Nothing of {' and '.join(corpora)} could be read.", hint)


def _fail_unread(ctx: CommandContext, corpora: Sequence[str]) -> None:
    if corpora:
        ctx.output.note(f"footnote: {explain_unread(corpora).line()}")
        raise typer.Exit(1)


def _select_sources(ctx: CommandContext, corpus: str) -> Mapping[str, SourceSettings]:
    """Return the configured sources: that of `corpus`, or all if empty. Raises `SettingsError` if there is none."""
    sources = ctx.settings.sources
    selected = {name: source for name, source in sources.items() if corpus in {"", name}}
    if selected:
        return selected
    if corpus and sources:
        message = f"The settings have no corpus “{corpus}” with a source."
        raise SettingsError(message, hint=f"There are: {', '.join(sources)}.")
    hint = "Add a [[corpus]] with a source, or use `footnote ingest folder PATH --corpus NAME`."
    raise SettingsError("No corpus in the settings has a source.", hint=hint)
