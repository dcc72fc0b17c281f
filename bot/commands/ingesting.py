"""`footnote ingest`: documents in, passages out."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot import documents, tables
from bot.commands.frame import AsJson, Frame, command, examples
from bot.console import Fault, Mendable, fault_of
from bot.progress import told_progress
from bot.settings import CORPUS_NAME, CORPUS_NAME_RULE, SettingsError
from bot.source_settings import FolderSettings, SourceSettings, WikipediaSettings
from bot.tables import counted
from bot.values import web_address

if TYPE_CHECKING:
    from bot.home import Home
    from ingest.refreshing import Progress, RefreshReport

app = typer.Typer(
    no_args_is_help=True,
    help="Read documents in. Run again, it reads what changed and forgets what is gone.",
    epilog=examples(
        "footnote ingest folder handbook --corpus handbook",
        "footnote ingest wikipedia --dump enwiki-20260101.xml.bz2 --corpus wikipedia",
        "footnote ingest all",
    ),
)


def _corpus_name(name: str) -> str:
    if not re.fullmatch(CORPUS_NAME, name):
        raise typer.BadParameter(f"A corpus is named by {CORPUS_NAME_RULE}.")
    return name


def _address(url: str) -> str:
    try:
        return web_address(url)
    except ValueError as error:
        raise typer.BadParameter(f"It {error}.") from error


@app.command(
    epilog=examples(
        "footnote ingest folder handbook --corpus handbook",
        "footnote ingest folder docs --corpus docs --url-base https://docs.example.com --exclude 'drafts/**'",
    )
)
def folder(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(help="The folder; all beneath it is read.")],
    corpus: Annotated[str, typer.Option(callback=_corpus_name, help="The corpus to read it into; made if it is new.")],
    url_base: Annotated[
        str, typer.Option(callback=_address, help="Footnotes link to this address followed by the file's path.")
    ] = "",
    include: Annotated[list[str] | None, typer.Option(help="Only files like this, such as '**/*.md'.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="No files like this, such as 'drafts/**'.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Read a folder of documents into a corpus: md, rst, txt, html, pdf, docx, pptx, xlsx, epub, e-mail and more."""
    with command(context, as_json=as_json) as frame:
        patterns = {"include": include, "exclude": exclude}
        given = {name: tuple(globs) for name, globs in patterns.items() if globs}
        source = FolderSettings(type="folder", path=path, url_base=url_base, **given)
        report = asyncio.run(_one(frame, corpus, source))
        frame.output.give(documents.ingested(report), tables.reports_view([report]))


@app.command(epilog=examples("footnote ingest wikipedia --dump enwiki-20260101.xml.bz2 --corpus wikipedia"))
def wikipedia(
    context: typer.Context,
    dump: Annotated[Path, typer.Option(help="The file: pages-articles, as .xml, .xml.bz2 or .xml.gz.")],
    corpus: Annotated[str, typer.Option(callback=_corpus_name, help="The corpus to read it into; made if it is new.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Read a dump of Wikipedia, or of another wiki, into a corpus: its articles, redirects as their other titles."""
    with command(context, as_json=as_json) as frame:
        report = asyncio.run(_one(frame, corpus, WikipediaSettings(type="wikipedia", dump=dump)))
        frame.output.give(documents.ingested(report), tables.reports_view([report]))


@app.command("all", epilog=examples("footnote ingest all"))
def everything(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Bring every corpus of footnote.toml that has a source up to date."""
    with command(context, as_json=as_json) as frame:
        wanted = {corpus.name: corpus.source for corpus in frame.settings.corpus if corpus.source}
        if not wanted:
            hint = "Add a [[corpus]] with a source, or use `footnote ingest folder PATH --corpus NAME`."
            raise SettingsError("No corpus in the settings has a source.", hint=hint)
        reports, faults = asyncio.run(_all(frame, wanted))
        for name, fault in faults.items():
            frame.output.note(f"footnote: {name}: {fault.line()}")
        frame.output.give(documents.all_ingested(reports, faults), tables.reports_view(reports))
        if faults:
            raise typer.Exit(1)


async def _one(frame: Frame, corpus: str, source: SourceSettings) -> "RefreshReport":
    async with frame.doors.open_home(frame.settings) as home:
        return await _refreshed(frame, home, corpus, source)


async def _all(frame: Frame, wanted: Mapping[str, SourceSettings]) -> "tuple[list[RefreshReport], dict[str, Fault]]":
    reports, faults = [], {}
    async with frame.doors.open_home(frame.settings) as home:
        for corpus, source in wanted.items():
            try:
                reports.append(await _refreshed(frame, home, corpus, source))
            except Exception as error:
                if not isinstance(error, Mendable):
                    raise
                faults[corpus] = fault_of(error)
    return reports, faults


async def _refreshed(frame: Frame, home: "Home", corpus: str, source: SourceSettings) -> "RefreshReport":
    with told_progress(frame.output.err, label=corpus, unit="documents") as tell:

        def progress(step: "Progress") -> None:
            tell(step.done, step.total, counted(step.passages, "passage"))

        return await home.refresh(corpus, source, progress)
