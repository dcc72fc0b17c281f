"""Run `footnote ingest`: what is read, from where."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args

import typer
from typer.core import TyperCommand

from bot.cli import rendering
from bot.cli.command_context import CommandContext, JsonOption, format_examples, open_command, parse_path
from bot.cli.terminal_output import build_document, show_progress
from bot.views.error_messages import Fault, ReportableError, explain_error
from bot.views.text_formats import format_count
from bot.views.text_layout import Text
from ingest.types import Site

if TYPE_CHECKING:
    from bot.server.service import BotService
    from bot.settings.settings_errors import SettingsError
    from bot.settings.tables.source_settings import FolderSettings, SourceSettings
    from ingest.types import EngineName, RefreshProgress, RefreshReport


Sources = Mapping[str, "SourceSettings"]
RefreshResults = tuple[list["RefreshReport"], dict[str, Fault], list[str]]


def _validate_corpus_name(name: str) -> str:
    from bot.settings.tables.settings_tables import CORPUS_NAME, CORPUS_NAME_RULE

    if not re.fullmatch(CORPUS_NAME, name):
        raise typer.BadParameter(f"A corpus is named by {CORPUS_NAME_RULE}.")
    return name


def _validate_given_name(name: str | None) -> str | None:
    return None if name is None else _validate_corpus_name(name)


def _validate_address(url: str) -> str:
    from bot.settings.tables.field_types import validate_web_address

    try:
        return validate_web_address(url)
    except ValueError as error:
        raise typer.BadParameter(f"It {error}.") from error


CorpusName: TypeAlias = Annotated[
    str, typer.Option("--corpus", callback=_validate_corpus_name, help="The corpus to ingest into; made if it is new.")
]
ConfirmRemovalOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--confirm-removal",
        metavar="NAME",
        help="Remove from this corpus what its source no longer lists, however much; may be given several times.",
    ),
]
EngineOption: TypeAlias = Annotated[
    Literal["local", "ray"] | None,
    typer.Option(help="What reads and embeds: this machine, or a Ray cluster; else as the settings say."),
]
ingest_app = typer.Typer()


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
    """Ingest documents. Run again, it reads what changed and removes what is gone."""
    if context.invoked_subcommand:
        if address or corpus or as_json:
            raise typer.BadParameter(f"Write options behind `{context.invoked_subcommand}`; --only stands alone.")
        return
    if not address:
        raise typer.BadParameter("Name the document with --only, or say what to ingest: `footnote ingest --help`.")
    with open_command(context, as_json=as_json) as ctx:
        web = ctx.settings.search_engine.corpus  # whose pages have no source
        wanted = {} if web and (corpus == web or not ctx.settings.sources) else _select_sources(ctx, corpus)
        reports = ctx.call_service(lambda service: service.read_one(address, wanted))
        document = rendering.json_documents.build_ingest_all_document(reports, {})
        ctx.output.give(document, rendering.corpus_view.render_reports(reports))


@ingest_app.command(
    epilog=format_examples(
        "footnote ingest folder handbook --corpus handbook",
        "footnote ingest folder docs --corpus docs --url-base https://docs.example.com --exclude 'drafts/**'",
        "footnote ingest folder handbook --dry-run",
    )
)
def folder(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(parser=parse_path, help="The folder; everything beneath it is read.")],
    corpus: Annotated[
        str | None,
        typer.Option(callback=_validate_given_name, help="The corpus to ingest into; made if it is new."),
    ] = None,
    url_base: Annotated[
        str, typer.Option(callback=_validate_address, help="Footnotes link to this address plus the file's path.")
    ] = "",
    site: Annotated[
        str, typer.Option(help="What publishes it at --url-base: jekyll, hugo, mkdocs or docusaurus.")
    ] = "",
    include: Annotated[list[str] | None, typer.Option(help="Only files that match, such as '**/*.md'.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="No files that match, such as 'drafts/**'.")] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            help="Take this in place of the list of what is no document; '' for nothing: see docs/sources.md."
        ),
    ] = None,
    *,
    restore: Annotated[bool, typer.Option("--restore", help="Read in again what was forgotten, too.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be read, and why not.")] = False,
    confirm_removal: ConfirmRemovalOption = None,
    engine: EngineOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ingest a folder of documents: md, rst, txt, html, pdf, docx, pptx, xlsx, epub, e-mail and more."""
    if site and (site not in get_args(Site) or not url_base):
        raise typer.BadParameter("--site is one of jekyll, hugo, mkdocs and docusaurus, and wants its --url-base.")
    if corpus is None and not dry_run:
        raise typer.BadParameter("Name the corpus to ingest into with --corpus.")
    with open_command(context, as_json=as_json) as ctx:
        from bot.settings.tables.source_settings import FolderSettings

        given = {"path": path, "url_base": url_base, "site": site}
        given |= {"include": tuple(include or ("**/*",)), "exclude": tuple(exclude or ())}
        if ignore is not None:
            given["ignore"] = tuple(filter(None, ignore))
        source = FolderSettings.model_validate({"type": "folder", **given})
        if dry_run or corpus is None:
            _preview(ctx, source)
        else:
            _ingest(ctx, corpus, source, confirm_removal, engine, restore=restore)


@ingest_app.command(
    epilog=format_examples(
        "footnote ingest wikipedia --dump enwiki-20260101.xml.bz2 --corpus wikipedia",
        "footnote ingest wikipedia --wiki simple --contact you@example.com --corpus wikipedia",
        "footnote ingest wikipedia --dump enwiki-20260101.xml.bz2 --corpus wikipedia --engine ray",
        "footnote ingest wikipedia --dump enwiki-20260101.xml.bz2 --estimate",
    )
)
def wikipedia(
    context: typer.Context,
    corpus: Annotated[
        str | None,
        typer.Option(callback=_validate_given_name, help="The corpus to ingest into; made if it is new."),
    ] = None,
    dump: Annotated[
        Path | None,
        typer.Option(
            parser=parse_path,
            help="A file: pages-articles, as .xml, .xml.bz2 or .xml.gz, or CirrusSearch's.",
        ),
    ] = None,
    wiki: Annotated[str, typer.Option(help="Download the latest dump of this wiki: simple, en, dewiki ...")] = "",
    contact: Annotated[str, typer.Option(help="With --wiki: an address at which its mirror can reach you.")] = "",
    mirror: Annotated[
        str, typer.Option(callback=_validate_address, help="With --wiki: another mirror than Wikimedia's.")
    ] = "",
    *,
    cirrus: Annotated[
        bool, typer.Option("--cirrus", help="It is a dump of CirrusSearch: plain text, quick to read.")
    ] = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what it would take here: hours, disk and memory.")
    ] = False,
    confirm_removal: ConfirmRemovalOption = None,
    engine: EngineOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ingest a dump of Wikipedia or of another wiki: its articles, with redirects as their other titles."""
    if estimate:
        if dump is None or cirrus:
            raise typer.BadParameter("--estimate looks into a file of pages-articles: name it with --dump.")
        with open_command(context, as_json=as_json) as ctx:
            _estimate(ctx, dump)
        return
    if corpus is None:
        raise typer.BadParameter("Name the corpus to ingest into with --corpus.")
    if bool(wiki) == (dump is not None):
        raise typer.BadParameter("Name either a file with --dump, or a wiki with --wiki.")
    if wiki and not contact:
        raise typer.BadParameter("Mirrors want to know who downloads: give --contact, such as an e-mail address.")
    given = {"dump": dump, "wiki": wiki, "contact": contact, "cirrus": cirrus} | ({"mirror": mirror} if mirror else {})
    source = _build_wikipedia_source(given)
    with open_command(context, as_json=as_json) as ctx:
        _ingest(ctx, corpus, source, confirm_removal, engine)


class SourcesCommand(TyperCommand):
    """A command whose help lists the types of source, which only it waits for."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Add the types to the help."""
        from bot.settings.tables.source_settings import SOURCE_ENTRIES

        types = "; ".join(f"{name}: {entry.summary}" for name, entry in SOURCE_ENTRIES.items())
        self.help = f"{self.help}\n\nTypes of source: {types}."
        super().format_help(ctx, formatter)


@ingest_app.command(
    "all",
    cls=SourcesCommand,
    epilog=format_examples("footnote ingest all", "footnote ingest all --confirm-removal handbook"),
)
def ingest_all(
    context: typer.Context,
    *,
    confirm_removal: ConfirmRemovalOption = None,
    engine: EngineOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring every corpus of footnote.toml that has a source up to date."""
    with open_command(context, as_json=as_json) as ctx:
        wanted, confirmed = _select_sources(ctx, ""), confirm_removal or ()
        for name in confirmed:
            if name not in wanted:
                message = f"A removal is confirmed for “{name}”, which has no source in the settings."
                raise _settings_error(message, f"There are: {', '.join(wanted)}.")
        reports, faults, unread = ctx.call_service(
            lambda service: _refresh_all(ctx, service, wanted, confirmed, engine)
        )
        document = rendering.json_documents.build_ingest_all_document(reports, faults)
        ctx.output.give(document, rendering.corpus_view.render_reports(reports))
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
    """Remove a corpus with all its documents. The record of past answers keeps what it quoted.

    What the settings give a source is read in anew by the next refresh, until it is taken out of them.
    """
    with open_command(context, as_json=as_json) as ctx:
        ctx.confirm(f"All documents of “{corpus}” will be removed.", confirmed=yes)
        report = ctx.call_service(lambda service: service.remove(corpus))
        count = format_count(report.removed, "document")
        said = f"Removed: {corpus} ({count}, {format_count(report.passages_removed, 'passage')})."
        if corpus in ctx.settings.sources:
            said += " Its [[corpus]] still has a source: the next refresh reads it in anew."
        ctx.output.give(rendering.json_documents.build_ingest_document(report), Text(said))


@ingest_app.command("status", epilog=format_examples("footnote ingest status", "footnote ingest status --json"))
def status(
    context: typer.Context,
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, max=1_000, help="How many runs and nights at most.")
    ] = 20,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show what is being ingested now, by any process, what the last runs and nights did, and what is next."""
    with open_command(context, as_json=as_json) as ctx:
        settings, now = ctx.settings, datetime.now(UTC)
        opening = ctx.services.open_history(settings)
        found = ctx.call(opening, lambda history: history.summarize(settings, now, count=count))
        document = rendering.json_documents.build_refreshes_document(found)
        ctx.output.give(document, rendering.corpus_view.render_refreshes(found, settings.zone))


def _ingest(
    ctx: CommandContext,
    corpus: str,
    source: "SourceSettings",
    confirmed: Sequence[str] | None,
    engine: "EngineName | None",
    *,
    restore: bool = False,
) -> None:
    """Refresh one corpus, and print the report."""
    options = {"confirm_removal": corpus in (confirmed or ()), "restore": restore}

    async def run(service: "BotService") -> "tuple[RefreshReport, list[str]]":
        report = await refresh_corpus(ctx, service, corpus, source, engine, **options)
        return report, await list_unread(service, [report])

    report, unread = ctx.call_service(run)
    document = rendering.json_documents.build_ingest_document(report)
    ctx.output.give(document, rendering.corpus_view.render_reports([report]))
    _fail_unread(ctx, unread)


async def list_unread(service: "BotService", reports: "Sequence[RefreshReport]") -> list[str]:
    """Return the corpora of which everything failed, and nothing stands there from before."""
    failed = [one.corpus for one in reports if one.failures and not (one.added or one.changed or one.unchanged)]
    there = {info.name for info in await service.corpora() if info.documents} if failed else set[str]()
    return [corpus for corpus in failed if corpus not in there]


def explain_unread(corpora: Sequence[str]) -> Fault:
    hint = "The report says why; docs/sources.md tells what can be read."
    return Fault("nothing_read", f"Nothing of {' and '.join(corpora)} could be read.", hint)


def _fail_unread(ctx: CommandContext, corpora: Sequence[str]) -> None:
    if corpora:
        ctx.output.note(f"footnote: {explain_unread(corpora).line()}")
        raise typer.Exit(1)


def _preview(ctx: CommandContext, source: "FolderSettings") -> None:
    """Print which files of a folder would be read, and why the others would not."""
    from bot.server.refresh.source_factory import build_folder

    files = list(build_folder(source, ctx.settings.ingest.programs).preview())
    document = rendering.json_documents.build_preview_document(files)
    ctx.output.give(document, rendering.corpus_view.render_preview(files))


def _estimate(ctx: CommandContext, dump: Path) -> None:
    """Print what a dump would take."""
    from bot.server.refresh.dump_costs import measure_dump

    found = measure_dump(dump, ctx.settings)
    document = build_document(estimate=asdict(found))
    ctx.output.give(document, rendering.corpus_view.render_estimate(dump.name, found))


async def _refresh_all(
    ctx: CommandContext,
    service: "BotService",
    wanted: Sources,
    confirmed: Sequence[str],
    engine: "EngineName | None",
) -> RefreshResults:
    """Refresh corpora, and return the reports, the faults, and which corpora nothing could be read of."""
    reports, faults = list["RefreshReport"](), dict[str, Fault]()
    for corpus, source in wanted.items():
        try:
            reports.append(
                await refresh_corpus(ctx, service, corpus, source, engine, confirm_removal=corpus in confirmed)
            )
        except Exception as error:
            if not isinstance(error, ReportableError):
                raise
            faults[corpus] = explain_error(error)
            ctx.output.note(f"footnote: {corpus}: {faults[corpus].line()}")
    return reports, faults, await list_unread(service, reports)


async def refresh_corpus(
    ctx: CommandContext,
    service: "BotService",
    corpus: str,
    source: "SourceSettings",
    engine: "EngineName | None" = None,
    *,
    confirm_removal: bool = False,
    restore: bool = False,
) -> "RefreshReport":
    """Refresh one corpus, and show the progress."""
    with show_progress(ctx.output.err, label=corpus, unit="documents") as tell:

        def progress(step: "RefreshProgress") -> None:
            tell(step.done, step.total, step.doing or format_count(step.passages, "passage"))

        return await service.refresh(
            corpus,
            source,
            progress,
            confirm_removal=confirm_removal,
            restore=restore,
            engine=engine,
            dense=ctx.settings.find_dense(corpus),
        )


def _select_sources(ctx: CommandContext, corpus: str) -> "Sources":
    """Return the configured sources: of one corpus, or all where that is empty."""
    there = ctx.settings.sources
    wanted = {name: source for name, source in there.items() if corpus in {"", name}}
    if wanted:
        return wanted
    if corpus and there:
        message = f"The settings name no corpus “{corpus}” with a source."
        raise _settings_error(message, f"There are: {', '.join(there)}.")
    hint = "Add a [[corpus]] with a source, or use `footnote ingest folder PATH --corpus NAME`."
    raise _settings_error("No corpus in the settings has a source.", hint)


def _settings_error(message: str, hint: str) -> "SettingsError":
    from bot.settings.settings_errors import SettingsError

    return SettingsError(message, hint=hint)


def _build_wikipedia_source(given: Mapping[str, object]) -> "SourceSettings":
    from pydantic import ValidationError

    from bot.settings.tables.source_settings import WikipediaSettings

    try:
        return WikipediaSettings.model_validate({"type": "wikipedia", **given})
    except ValidationError as error:
        fault = error.errors()[0]
        reason = fault["msg"].removeprefix("Value error, ")
        raise typer.BadParameter(f"--{'.'.join(map(str, fault['loc']))} {reason}.") from error
