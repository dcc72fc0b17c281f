"""Show one document: as text for a terminal, and as JSON documents. Pure."""

from datetime import tzinfo

from rich.console import Group, RenderableType

from bot.cli.rendering.corpus_view import list_document
from bot.cli.terminal_output import Document, build_document
from bot.server.refresh.document_lookup import ForgottenDocument
from bot.views.sanitize import sanitize_line, sanitize_text
from bot.views.text_formats import format_count, format_timestamp
from bot.views.text_layout import Text
from storage.database.document_versions import StoredVersion
from storage.types import DocumentRef, PassageKind


def render_passages(found: StoredVersion, zone: tzinfo) -> RenderableType:
    """Render a document word for word, each passage under its number and section."""
    of = found.document
    date = f", {of.date.astimezone(zone):%Y-%m-%d}" if of.date else ""
    count = format_count(len(found.passages), "passage")
    lines = [Text(sanitize_line(f"{of.title} ({of.corpus}: {of.url or of.key}{date}, {count})"), style="bold")]
    for number, passage in enumerate(found.passages, 1):
        kind = "" if passage.kind is PassageKind.PROSE else f" [{passage.kind}]"
        lines += [Text(), Text(sanitize_line(f"{number}. {passage.section}{kind}".rstrip()), style="dim")]
        lines.append(Text(sanitize_text(passage.text)))
    return Group(*lines)


def build_forget_document(done: ForgottenDocument) -> Document:
    return build_document(**list_document(done.document), passages=done.passages)


def build_passages_document(found: StoredVersion) -> Document:
    of = found.document
    about = list_document(DocumentRef(of.corpus, of.key, of.title, of.url))
    rows = [
        {"passage_id": passage.id, "section": passage.section, "kind": passage.kind.value, "text": passage.text}
        for passage in found.passages
    ]
    date = format_timestamp(of.date) if of.date else None
    return build_document(**about, revision=of.revision, date=date, aliases=list(of.aliases), passages=rows)
