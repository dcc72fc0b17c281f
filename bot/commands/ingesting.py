"""`footnote ingest`: documents in, passages out."""

import re
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from bot.commands import ingest_one, ingest_status
from bot.commands.frame import AsJson, command, examples
from bot.commands.reading import ConfirmRemoval, give_one, read_in
from bot.printing import documents, tables
from bot.settings import CORPUS_NAME, CORPUS_NAME_RULE, SettingsError
from bot.settings_of.sources import FolderSettings
from bot.settings_of.wikipedia import WikipediaSettings
from bot.values import web_address

app = typer.Typer()
app.callback(
    no_args_is_help=True,
    invoke_without_command=True,
    epilog=examples(
        "footnote ingest folder handbook --corpus handbook",
        "footnote ingest wikipedia --dump enwiki-20260101.xml.bz2 --corpus wikipedia",
        "footnote ingest all",
        "footnote ingest --only https://docs.example.com/rules.html",
    ),
)(ingest_one.only)


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
    confirm_removal: ConfirmRemoval = None,
    as_json: AsJson = False,
) -> None:
    """Read a folder of documents into a corpus: md, rst, txt, html, pdf, docx, pptx, xlsx, epub, e-mail and more."""
    with command(context, as_json=as_json) as frame:
        globs = {"include": tuple(include or ("**/*",)), "exclude": tuple(exclude or ())}
        source = FolderSettings(type="folder", path=path, url_base=url_base, newest_days=None, **globs)
        give_one(frame, corpus, source, confirm_removal)


@app.command(
    epilog=examples(
        "footnote ingest wikipedia --dump enwiki-20260101.xml.bz2 --corpus wikipedia",
        "footnote ingest wikipedia --wiki simple --contact you@example.com --corpus wikipedia",
    )
)
def wikipedia(
    context: typer.Context,
    corpus: Annotated[str, typer.Option(callback=_corpus_name, help="The corpus to read it into; made if it is new.")],
    dump: Annotated[
        Path | None, typer.Option(help="A file: pages-articles, as .xml, .xml.bz2 or .xml.gz, or CirrusSearch's.")
    ] = None,
    wiki: Annotated[str, typer.Option(help="Download the latest dump of this one: simple, en, dewiki ...")] = "",
    contact: Annotated[str, typer.Option(help="With --wiki: an address at which its mirror can reach you.")] = "",
    mirror: Annotated[str, typer.Option(callback=_address, help="With --wiki: another mirror than Wikimedia's.")] = "",
    *,
    cirrus: Annotated[
        bool, typer.Option("--cirrus", help="It is a dump of CirrusSearch: plain text, quick to read.")
    ] = False,
    confirm_removal: ConfirmRemoval = None,
    as_json: AsJson = False,
) -> None:
    """Read a dump of Wikipedia, or of another wiki, into a corpus: its articles, redirects as their other titles."""
    if bool(wiki) == (dump is not None):
        raise typer.BadParameter("Name either a file with --dump, or a wiki with --wiki.")
    if wiki and not contact:
        raise typer.BadParameter("Mirrors want to know who downloads: give --contact, such as an e-mail address.")
    given = {"dump": dump, "wiki": wiki, "contact": contact, "cirrus": cirrus} | ({"mirror": mirror} if mirror else {})
    source = _wikipedia(**given)
    with command(context, as_json=as_json) as frame:
        give_one(frame, corpus, source, confirm_removal)


def _wikipedia(**given: object) -> WikipediaSettings:
    try:
        return WikipediaSettings.model_validate({"type": "wikipedia", **given})
    except ValidationError as error:
        fault = error.errors()[0]
        reason = fault["msg"].removeprefix("Value error, ")
        raise typer.BadParameter(f"--{'.'.join(map(str, fault['loc']))} {reason}.") from error


@app.command("all", epilog=examples("footnote ingest all", "footnote ingest all --confirm-removal handbook"))
def everything(context: typer.Context, *, confirm_removal: ConfirmRemoval = None, as_json: AsJson = False) -> None:
    """Bring every corpus of footnote.toml that has a source up to date."""
    with command(context, as_json=as_json) as frame:
        wanted = frame.settings.sources
        if not wanted:
            hint = "Add a [[corpus]] with a source, or use `footnote ingest folder PATH --corpus NAME`."
            raise SettingsError("No corpus in the settings has a source.", hint=hint)
        reports, faults = read_in(frame, wanted, confirm_removal)
        frame.output.give(documents.all_ingested(reports, faults), tables.reports_view(reports))
        if faults:
            raise typer.Exit(1)


app.command("status", epilog=examples("footnote ingest status", "footnote ingest status --json"))(ingest_status.status)
