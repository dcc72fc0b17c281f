"""Run `footnote ingest`, `forget`, `corpora` and `reindex`: what is indexed, and where it comes from."""

import asyncio
import re
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from pydantic import ValidationError
from rich.text import Text

from bot.cli import terminal_output
from bot.cli.command_context import CommandContext, JsonOption, format_examples, open_command
from bot.cli.rendering import corpus_view, json_documents
from bot.cli.rendering.corpus_view import render_corpora, render_forgotten
from bot.cli.terminal_output import format_count, show_progress
from bot.settings.field_types import validate_web_address
from bot.settings.settings_errors import SettingsError
from bot.settings.settings_tables import CORPUS_NAME, CORPUS_NAME_RULE
from bot.settings.source_settings import SOURCE_ENTRIES, FolderSettings, SourceSettings, WikipediaSettings
from bot.views.error_messages import Fault, ReportableError, explain_error
from bot.views.sanitize import sanitize_line

if TYPE_CHECKING:
    from bot.server.refresh.document_lookup import ForgottenDocument
    from bot.server.refresh.run_history import RefreshSummary
    from bot.server.service import BotService
    from ingest.types import RefreshProgress, RefreshReport
    from storage.types import CorpusInfo, DocumentRef


ConfirmRemovalOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--confirm-removal",
        metavar="NAME",
        help="Remove from this corpus what its source lists no more, however much that is; may be given several times.",
    ),
]
RefreshResults = tuple[list["RefreshReport"], dict[str, Fault]]


def refresh_corpora(
    frame: CommandContext, wanted: Mapping[str, SourceSettings], confirmed: Sequence[str] | None
) -> RefreshResults:
    """Bring corpora up to date, and return what came of each, or why nothing did.

    Raises:
        SettingsError: A removal is confirmed for a corpus that is not to be read in.
    """
    for name in confirmed or ():
        if name not in wanted:
            message = f"A removal is confirmed for “{name}”, which has no source in the settings."
            raise SettingsError(message, hint=f"There are: {', '.join(wanted)}.")
    return asyncio.run(_refresh_all(frame, wanted, confirmed or ()))


def refresh_and_print(
    frame: CommandContext, corpus: str, source: SourceSettings, confirmed: Sequence[str] | None
) -> None:
    """Bring a corpus up to date, and tell what that did."""
    report = asyncio.run(_refresh_one(frame, corpus, source, confirmed=corpus in (confirmed or ())))
    frame.output.give(json_documents.build_ingest_document(report), corpus_view.render_reports([report]))


async def _refresh_one(
    frame: CommandContext, corpus: str, source: SourceSettings, *, confirmed: bool
) -> "RefreshReport":
    async with frame.doors.open_home(frame.settings) as home:
        return await _refresh(frame, home, corpus, source, confirmed=confirmed)


async def _refresh_all(
    frame: CommandContext, wanted: Mapping[str, SourceSettings], confirmed: Sequence[str]
) -> RefreshResults:
    reports, faults = list["RefreshReport"](), dict[str, Fault]()
    async with frame.doors.open_home(frame.settings) as home:
        for corpus, source in wanted.items():
            try:
                reports.append(await _refresh(frame, home, corpus, source, confirmed=corpus in confirmed))
            except Exception as error:
                if not isinstance(error, ReportableError):
                    raise
                faults[corpus] = explain_error(error)
                frame.output.note(f"footnote: {corpus}: {faults[corpus].line()}")
    return reports, faults


async def _refresh(
    frame: CommandContext, home: "BotService", corpus: str, source: SourceSettings, *, confirmed: bool
) -> "RefreshReport":
    with show_progress(frame.output.err, label=corpus, unit="documents") as tell:

        def progress(step: "RefreshProgress") -> None:
            tell(step.done, step.total, step.doing or format_count(step.passages, "passage"))

        return await home.refresh(corpus, source, progress, confirm_removal=confirmed)


def ingest_one(
    context: typer.Context,
    address: Annotated[
        str, typer.Option("--only", metavar="ADDRESS", help="Read in this one document, also if it was forgotten.")
    ] = "",
    corpus: Annotated[str, typer.Option(help="With --only: the corpus whose source has it.")] = "",
    *,
    as_json: JsonOption = False,
) -> None:
    """Read documents in. Run again, it reads what changed and forgets what is gone."""
    if context.invoked_subcommand:
        if address or corpus or as_json:
            raise typer.BadParameter(f"Write options behind `{context.invoked_subcommand}`; --only stands alone.")
        return
    if not address:
        raise typer.BadParameter("Name the document with --only, or say what to read: `footnote ingest --help`.")
    with open_command(context, as_json=as_json) as frame:
        reports = asyncio.run(_read_document(frame, address, _select_sources(frame, corpus)))
        frame.output.give(json_documents.build_ingest_all_document(reports, {}), corpus_view.render_reports(reports))


def _select_sources(frame: CommandContext, corpus: str) -> "dict[str, SourceSettings]":
    there = frame.settings.sources
    wanted = {name: source for name, source in there.items() if corpus in {"", name}}
    if wanted:
        return wanted
    if corpus and there:
        message = f"The settings know no corpus “{corpus}” with a source."
        raise SettingsError(message, hint=f"There are: {', '.join(there)}.")
    hint = "Add a [[corpus]] with a source, or use `footnote ingest folder PATH --corpus NAME`."
    raise SettingsError("No corpus in the settings has a source.", hint=hint)


async def _read_document(
    frame: CommandContext, address: str, wanted: "dict[str, SourceSettings]"
) -> "tuple[RefreshReport, ...]":
    async with frame.doors.open_home(frame.settings) as home:
        return await home.read_one(address, wanted)


def status(
    context: typer.Context,
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, max=1_000, help="How many runs and nights at most.")
    ] = 20,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show what is being read in now, by whichever process, what the last runs and nights came to, and what comes."""
    from bot.cli.rendering import corpus_view, json_documents

    with open_command(context, as_json=as_json) as frame:
        found = asyncio.run(_load_refreshes(frame, count))
        frame.output.give(
            json_documents.build_refreshes_document(found), corpus_view.render_refreshes(found, frame.settings.zone)
        )


async def _load_refreshes(frame: CommandContext, count: int) -> "RefreshSummary":
    async with frame.doors.open_history(frame.settings) as history:
        return await history.told(frame.settings, datetime.now(UTC), count=count)


ingest_app = typer.Typer()
ingest_app.callback(
    no_args_is_help=True,
    invoke_without_command=True,
    epilog=format_examples(
        "footnote ingest folder handbook --corpus handbook",
        "footnote ingest wikipedia --dump enwiki-20260101.xml.bz2 --corpus wikipedia",
        "footnote ingest all",
        "footnote ingest --only https://docs.example.com/rules.html",
    ),
)(ingest_one)


def _validate_corpus_name(name: str) -> str:
    if not re.fullmatch(CORPUS_NAME, name):
        raise typer.BadParameter(f"A corpus is named by {CORPUS_NAME_RULE}.")
    return name


def _validate_address(url: str) -> str:
    try:
        return validate_web_address(url)
    except ValueError as error:
        raise typer.BadParameter(f"It {error}.") from error


@ingest_app.command(
    epilog=format_examples(
        "footnote ingest folder handbook --corpus handbook",
        "footnote ingest folder docs --corpus docs --url-base https://docs.example.com --exclude 'drafts/**'",
    )
)
def folder(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(help="The folder; all beneath it is read.")],
    corpus: Annotated[
        str, typer.Option(callback=_validate_corpus_name, help="The corpus to read it into; made if it is new.")
    ],
    url_base: Annotated[
        str,
        typer.Option(callback=_validate_address, help="Footnotes link to this address followed by the file's path."),
    ] = "",
    include: Annotated[list[str] | None, typer.Option(help="Only files like this, such as '**/*.md'.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="No files like this, such as 'drafts/**'.")] = None,
    *,
    confirm_removal: ConfirmRemovalOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read a folder of documents into a corpus: md, rst, txt, html, pdf, docx, pptx, xlsx, epub, e-mail and more."""
    with open_command(context, as_json=as_json) as frame:
        globs = {"include": tuple(include or ("**/*",)), "exclude": tuple(exclude or ())}
        source = FolderSettings(type="folder", path=path, url_base=url_base, newest_days=None, **globs)
        refresh_and_print(frame, corpus, source, confirm_removal)


@ingest_app.command(
    epilog=format_examples(
        "footnote ingest wikipedia --dump enwiki-20260101.xml.bz2 --corpus wikipedia",
        "footnote ingest wikipedia --wiki simple --contact you@example.com --corpus wikipedia",
    )
)
def wikipedia(
    context: typer.Context,
    corpus: Annotated[
        str, typer.Option(callback=_validate_corpus_name, help="The corpus to read it into; made if it is new.")
    ],
    dump: Annotated[
        Path | None, typer.Option(help="A file: pages-articles, as .xml, .xml.bz2 or .xml.gz, or CirrusSearch's.")
    ] = None,
    wiki: Annotated[str, typer.Option(help="Download the latest dump of this one: simple, en, dewiki ...")] = "",
    contact: Annotated[str, typer.Option(help="With --wiki: an address at which its mirror can reach you.")] = "",
    mirror: Annotated[
        str, typer.Option(callback=_validate_address, help="With --wiki: another mirror than Wikimedia's.")
    ] = "",
    *,
    cirrus: Annotated[
        bool, typer.Option("--cirrus", help="It is a dump of CirrusSearch: plain text, quick to read.")
    ] = False,
    confirm_removal: ConfirmRemovalOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read a dump of Wikipedia, or of another wiki, into a corpus: its articles, redirects as their other titles."""
    if bool(wiki) == (dump is not None):
        raise typer.BadParameter("Name either a file with --dump, or a wiki with --wiki.")
    if wiki and not contact:
        raise typer.BadParameter("Mirrors want to know who downloads: give --contact, such as an e-mail address.")
    given = {"dump": dump, "wiki": wiki, "contact": contact, "cirrus": cirrus} | ({"mirror": mirror} if mirror else {})
    source = _build_wikipedia_source(**given)
    with open_command(context, as_json=as_json) as frame:
        refresh_and_print(frame, corpus, source, confirm_removal)


def _build_wikipedia_source(**given: object) -> WikipediaSettings:
    try:
        return WikipediaSettings.model_validate({"type": "wikipedia", **given})
    except ValidationError as error:
        fault = error.errors()[0]
        reason = fault["msg"].removeprefix("Value error, ")
        raise typer.BadParameter(f"--{'.'.join(map(str, fault['loc']))} {reason}.") from error


def _describe_sources() -> str:
    types = "; ".join(f"{name}: {entry.summary}" for name, entry in SOURCE_ENTRIES.items())
    return f"Bring every corpus of footnote.toml that has a source up to date.\n\nTypes of source: {types}."


@ingest_app.command(
    "all",
    help=_describe_sources(),
    epilog=format_examples("footnote ingest all", "footnote ingest all --confirm-removal handbook"),
)
def ingest_all(
    context: typer.Context, *, confirm_removal: ConfirmRemovalOption = None, as_json: JsonOption = False
) -> None:
    """Bring every corpus of footnote.toml that has a source up to date."""
    with open_command(context, as_json=as_json) as frame:
        wanted = frame.settings.sources
        if not wanted:
            hint = "Add a [[corpus]] with a source, or use `footnote ingest folder PATH --corpus NAME`."
            raise SettingsError("No corpus in the settings has a source.", hint=hint)
        reports, faults = refresh_corpora(frame, wanted, confirm_removal)
        frame.output.give(
            json_documents.build_ingest_all_document(reports, faults), corpus_view.render_reports(reports)
        )
        if faults:
            raise typer.Exit(1)


ingest_app.command("status", epilog=format_examples("footnote ingest status", "footnote ingest status --json"))(status)


def forget(
    context: typer.Context,
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="Its address, its key, or its exact title.", show_default=False)
    ],
    corpus: Annotated[str, typer.Option(help="The corpus it is to be forgotten from, where several have it.")] = "",
    *,
    as_json: JsonOption = False,
) -> None:
    """Forget one document at once: it is found and cited no more, and refreshes leave it out.

    `footnote ingest --only ADDRESS` brings it back. The record of what was answered keeps what it quoted.
    """
    with open_command(context, as_json=as_json) as frame:
        done = asyncio.run(_forget(frame, address, corpus))
        frame.output.give(json_documents.build_forget_document(done), Text(format_forgotten(done)))


def format_forgotten(done: "ForgottenDocument") -> str:
    """Return the line that tells of it. Pure."""
    one = done.document
    where = one.url or one.key
    return sanitize_line(
        f"Forgotten: {one.title}, of {one.corpus} ({format_count(done.passages, 'passage')}). "
        f"It is found and cited no more; `footnote ingest --only {shlex.quote(where)}` brings it back."
    )


async def _forget(frame: CommandContext, address: str, corpus: str) -> "ForgottenDocument":
    async with frame.doors.open_home(frame.settings) as home:
        return await home.forget(address, corpus)


ForgottenOption = Annotated[bool, typer.Option("--forgotten", help="List what was forgotten on purpose instead.")]


def corpora(context: typer.Context, *, forgotten: ForgottenOption = False, as_json: JsonOption = False) -> None:
    """List what is indexed: documents, passages, how old it is, what the last refresh came to, and who may read it."""
    with open_command(context, as_json=as_json) as frame:
        if forgotten:
            away = asyncio.run(_load_forgotten(frame))
            frame.output.give(json_documents.build_forgotten_document(away), render_forgotten(away))
            return
        there, settings = asyncio.run(_load_corpora(frame)), frame.settings
        missing = sorted(settings.sources.keys() - {corpus.name for corpus in there})
        view = render_corpora(there, settings.readers, settings.zone, datetime.now(UTC), missing)
        frame.output.give(json_documents.build_corpora_document(there, settings.readers, missing), view)


def reindex(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """Make the indexes again from the database, as after a change of embedding function."""
    with open_command(context, as_json=as_json) as frame:
        started = time.monotonic()
        passages = asyncio.run(_reindex(frame))
        seconds = time.monotonic() - started
        said = Text(f"Indexed again: {terminal_output.format_count(passages, 'passage')}, in {seconds:,.1f} s.")
        frame.output.give(json_documents.build_reindex_document(passages, seconds), said)


async def _load_corpora(frame: CommandContext) -> "tuple[CorpusInfo, ...]":
    from bot.server.refresh.run_history import build_history, resolve_run

    now, told = datetime.now(UTC), list["CorpusInfo"]()
    async with frame.doors.open_records(frame.settings) as records:
        for info in await records.manifest.corpora():
            run = info.last_run
            if run and not run.ended:
                run = await resolve_run(run, build_history(records.manifest.database).leases, now)
            told.append(replace(info, last_run=run))
    return tuple(told)


async def _load_forgotten(frame: CommandContext) -> "tuple[DocumentRef, ...]":
    async with frame.doors.open_records(frame.settings) as records:
        return await records.manifest.all_forgotten()


async def _reindex(frame: CommandContext) -> int:
    async with frame.doors.open_app(frame.settings, rebuilding=True) as app:
        with show_progress(frame.output.err, label="reindex", unit="passages") as tell:
            return await app.passages.reindex(tell)
