"""Run `footnote passages` and `forget`: show the stored passages of a document, or forget it."""

from collections.abc import Collection
from datetime import tzinfo
from typing import Annotated

import typer
from rich.console import Group, RenderableType

from bot.app import Records
from bot.cli.command_context import JsonOption, open_command
from bot.cli.rendering.corpus_view import list_document
from bot.cli.terminal_output import CommandError, Document, build_document
from bot.server.refresh.document_lookup import ForgottenDocument, name_restoring_command, select_documents
from bot.views.error_messages import Fault
from bot.views.sanitize import sanitize_line, sanitize_text
from bot.views.text_formats import format_count, format_timestamp
from bot.views.text_layout import Text
from storage.database.document_versions import StoredVersion
from storage.types import DocumentRef, PassageKind

AddressArgument = Annotated[
    str, typer.Argument(metavar="ADDRESS", help="The document's address, key or exact title.", show_default=False)
]


def passages(
    context: typer.Context,
    address: AddressArgument,
    corpus: Annotated[str, typer.Option(help="The document's corpus, if several have it.")] = "",
    *,
    as_json: JsonOption = False,
) -> None:
    with open_command(context, as_json=as_json) as ctx:
        stored = ctx.call_records(lambda records: _load_document(records, address, corpus))
        ctx.output.give(build_passages_document(stored), render_passages(stored, ctx.settings.zone))


async def _load_document(records: Records, address: str, corpus: str) -> StoredVersion:
    documents = select_documents(await records.manifest.find(address), address, corpus)
    if len(documents) > 1:
        names = "; ".join(f"{document.key} of {document.corpus}" for document in documents)
        raise CommandError(
            Fault("ambiguous_document", f"Several documents are called “{address}”.", f"They are: {names}.")
        )
    for document in documents:
        if stored := (await records.manifest.stored(document.corpus, [document.key])).get(document.key):
            return stored
    forgotten = select_documents(await records.manifest.find_forgotten(address), address, corpus)
    message = f"“{address}” was forgotten on purpose." if forgotten else f"No document is called “{address}”."
    hint = "Give its address, its key, or its exact title; `footnote search WORDS` shows addresses."
    raise CommandError(Fault("unknown_document", message, hint))


def forget(
    context: typer.Context,
    address: AddressArgument,
    corpus: Annotated[str, typer.Option(help="The corpus to forget it from, if several have it.")] = "",
    *,
    as_json: JsonOption = False,
) -> None:
    """To bring the document back, use `footnote ingest --only ADDRESS`.

    If the settings have no source for its corpus, use `footnote ingest folder PATH --corpus NAME --restore`. The record
    of past answers keeps its quotations.
    """
    with open_command(context, as_json=as_json) as ctx:
        done = ctx.call_service(lambda service: service.forget(address, corpus))
        printed = build_document(**list_document(done.document), passages=done.passages)
        ctx.output.give(printed, Text(format_forgotten(done, ctx.settings.sources)))


def render_passages(stored: StoredVersion, zone: tzinfo) -> RenderableType:
    """Render a document word for word, each passage under its number and section."""
    document = stored.document
    date = f", {document.date.astimezone(zone):%Y-%m-%d}" if document.date else ""
    place = f"{document.corpus}: {document.url or document.key}{date}"
    count = format_count(len(stored.passages), "passage")
    lines = [Text(sanitize_line(f"{document.title} ({place}, {count})"), style="bold")]
    for number, passage in enumerate(stored.passages, 1):
        kind = "" if passage.kind is PassageKind.PROSE else f" [{passage.kind}]"
        lines += [Text(), Text(sanitize_line(f"{number}. {passage.section}{kind}".rstrip()), style="dim")]
        lines.append(Text(sanitize_text(passage.text)))
    return Group(*lines)


def build_passages_document(stored: StoredVersion) -> Document:
    document = stored.document
    about = list_document(DocumentRef(document.corpus, document.key, document.title, document.url))
    rows = [
        {"passage_id": passage.id, "section": passage.section, "kind": passage.kind.value, "text": passage.text}
        for passage in stored.passages
    ]
    about |= {"revision": document.revision, "date": format_timestamp(document.date), "aliases": list(document.aliases)}
    return build_document(**about, passages=rows)


def format_forgotten(done: ForgottenDocument, sources: Collection[str]) -> str:
    document = done.document
    return sanitize_line(
        f"Forgotten: {document.title}, of {document.corpus} ({format_count(done.passages, 'passage')}). "
        f"It is no longer found or cited; `{name_restoring_command(document, sources)}` brings it back."
    )
