"""How what is indexed looks in a terminal: how much, how old, what the last refresh came to, who reads it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from bot.printing.run_words import age, named, outcome
from bot.printing.tables import left_out, moment, table
from bot.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime, tzinfo

    from storage.refresh_types import Listed
    from storage.types import CorpusInfo

TERMINAL_ONLY = "the terminal only"


def corpora_view(
    corpora: Sequence[CorpusInfo],
    readers: Mapping[str, Sequence[str]],
    zone: tzinfo,
    now: datetime,
    missing: Sequence[str] = (),
) -> RenderableType:
    """Show what is indexed, and who may read it; `missing` are corpora of the settings that were never read in."""
    if not corpora:
        return Text("Nothing is ingested yet. `footnote ingest folder PATH --corpus NAME` reads a folder in.")
    rows = table("Corpus", "Documents", "Passages", "Unread", "Last refresh", "Last run", "Readers", numbers=(1, 2, 3))
    for corpus in corpora:
        refreshed = moment(corpus.refreshed, zone)
        rows.add_row(
            named(corpus.name, corpus.edition),
            *(f"{count:,}" for count in (corpus.documents, corpus.passages, corpus.failures)),
            f"{refreshed}\n{age(corpus.refreshed, now)} ago" if refreshed else "never to its end",
            outcome(corpus.last_run) if corpus.last_run else "",
            ", ".join(readers.get(corpus.name, ())) or TERMINAL_ONLY,
        )
    below = [*_faults(corpora, zone), *left_out({corpus.name: corpus.forgotten for corpus in corpora})]
    if missing:
        why = "`footnote ingest status` shows whether that was tried, `footnote ingest all` does it."
        below.append(Text(f"Not read in so far: {', '.join(missing)}. {why}"))
    return Group(rows, Text(), *below) if below else rows


def forgotten_view(forgotten: Sequence[Listed]) -> RenderableType:
    """Show what was forgotten on purpose, and how it comes back."""
    if not forgotten:
        return Text("Nothing is forgotten.")
    rows = table("Corpus", "Title", "Address")
    for one in forgotten:
        rows.add_row(one.corpus, one_line(one.title), one_line(one.url or one.key))
    return Group(rows, Text(), Text("`footnote ingest --only ADDRESS` brings one back."))


def _faults(corpora: Sequence[CorpusInfo], zone: tzinfo) -> Iterator[Text]:
    for corpus in corpora:
        run = corpus.last_run
        if run and run.fault:
            yield Text(f"{corpus.name}, {moment(run.begun, zone)}: {one_line(run.fault)}")
