"""Show corpora and forgotten documents: as text for a terminal, and as JSON documents. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, tzinfo

from rich.console import Group, RenderableType

from bot.cli.terminal_output import Document, build_document, pick
from bot.views.error_messages import explain_nothing_ingested
from bot.views.sanitize import sanitize_line
from bot.views.text_formats import build_table, format_duration, format_moment
from bot.views.text_layout import Text
from storage.types import CorpusInfo, DocumentRef, RefreshRun


def render_forgotten_counts(forgotten: Mapping[str, int]) -> list[Text]:
    """Render how many documents of each corpus are forgotten; nothing if none are."""
    some = ", ".join(f"{count:,} of {corpus}" for corpus, count in forgotten.items() if count)
    line = f"Forgotten on purpose, and left out: {some}. `footnote corpora --forgotten` lists them."
    return [Text(line)] if some else []


DAY = 86_400  # seconds
MOST_LISTED = 100  # lines of a list of any length
ALL_LISTED = "`--json` lists all of them."


def format_age(at: datetime | None, now: datetime) -> str:
    """Format the time since a moment: `3 h 20 min`; empty for None."""
    seconds = max((now - at).total_seconds(), 0.0) if at else 0.0
    days = int(seconds // DAY)
    return "" if at is None else f"{days:,} days" if days > 1 else format_duration(seconds)


def format_corpus(corpus: str, edition: str) -> str:
    """Return a corpus with the edition of its source, if any, on a second line."""
    return f"{corpus}\n{sanitize_line(edition)}" if edition else corpus


def format_run_outcome(run: RefreshRun) -> str:
    """Format the state of a run, on two lines to keep tables narrow."""
    held_back = f",\n{run.held_back:,} held back" if run.held_back else ""
    return f"{run.state.value}{held_back}"


_DENSE = {"eager": "", "lazy": "\nlazy", "off": "\nwords only"}
TERMINAL_ONLY = "the terminal only"


def render_corpora(
    corpora: Sequence[CorpusInfo],
    readers: Mapping[str, Sequence[str]],
    zone: tzinfo,
    now: datetime,
    missing: Sequence[str] = (),
) -> RenderableType:
    """Render the indexed corpora and their readers; `missing` are configured corpora that were never ingested."""
    if not corpora:
        nothing = explain_nothing_ingested(missing)
        return Text(f"{nothing.message} {nothing.hint}")
    rows = build_table(
        "Corpus", "Documents", "Passages", "Unread", "Last refresh", "Last run", "Readers", numbers=(1, 2, 3)
    )
    for corpus in corpora:
        refreshed = format_moment(corpus.refreshed, zone)
        rows.add_row(
            format_corpus(corpus.name, corpus.edition),
            f"{corpus.documents:,}",
            f"{corpus.passages:,}{_DENSE[corpus.dense]}",
            f"{corpus.failures:,}",
            f"{refreshed}\n{format_age(corpus.refreshed, now)} ago" if refreshed else "never finished",
            format_run_outcome(corpus.last_run) if corpus.last_run else "",
            ", ".join(readers.get(corpus.name, ())) or TERMINAL_ONLY,
        )
    below = [
        Text(f"{corpus.name}, {format_moment(run.begun, zone)}: {sanitize_line(run.fault)}")
        for corpus in corpora
        if (run := corpus.last_run) and run.fault
    ]
    below += render_forgotten_counts({corpus.name: corpus.forgotten for corpus in corpora})
    if missing:
        hint = "`footnote ingest all` ingests them, `footnote ingest status` shows earlier attempts."
        below.append(Text(f"Not ingested yet: {', '.join(missing)}. {hint}"))
    return Group(rows, Text(), *below) if below else rows


def render_forgotten(forgotten: Sequence[DocumentRef]) -> RenderableType:
    if not forgotten:
        return Text("Nothing is forgotten.")
    rows = build_table("Corpus", "Title", "Address")
    for document in forgotten[:MOST_LISTED]:
        rows.add_row(document.corpus, sanitize_line(document.title), sanitize_line(document.url or document.key))
    more = f"And {len(forgotten) - MOST_LISTED:,} more: {ALL_LISTED}"
    return Group(
        rows,
        *([Text(), Text(more)] if len(forgotten) > MOST_LISTED else ()),
        Text(),
        Text(
            "`footnote ingest --only ADDRESS` brings one back. If the settings have no source for its corpus, "
            "`footnote ingest folder PATH --corpus NAME --restore` brings all back."
        ),
    )


def build_corpora_document(
    corpora: Iterable[CorpusInfo], readers: Mapping[str, Sequence[str]], missing: Sequence[str] = ()
) -> Document:
    return build_document(
        missing=list(missing),
        corpora=[
            {
                **pick(corpus, "name documents passages dense refreshed failures edition forgotten"),
                "last_run": pick(corpus.last_run, "state begun ended fault") if corpus.last_run else None,
                "readers": list(readers.get(corpus.name, ())),
            }
            for corpus in corpora
        ],
    )


def build_forgotten_document(forgotten: Iterable[DocumentRef]) -> Document:
    return build_document(forgotten=[list_document(document) for document in forgotten])


def list_document(document: DocumentRef) -> Document:
    return {"corpus": document.corpus, "document": document.key, "title": document.title, "url": document.url}
