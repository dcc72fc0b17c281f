"""Open a home with documents indexed in it, for one measurement; and pages made here as a source of documents."""

import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bot.settings.settings_tables import Settings
from bot.wiring import App, open_app
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.types import ChangedDocument, DocumentSource, Listing, Page, RefreshReport

EXAMPLE_QUESTIONS = Path(__file__).parent / "questions" / "example_handbook.json"


@dataclass(frozen=True)
class PageSource:
    """Pages as a source of documents, each with its key and its fingerprint."""

    count: int
    pages: Callable[[], Iterable[tuple[str, str, Page]]]
    reference = False

    def expected(self) -> int | None:
        return self.count

    def documents(self, known: Mapping[str, str], since: str = "") -> Listing:
        del known, since
        return Listing(ChangedDocument(key, stamp, 1, partial(_load, page)) for key, stamp, page in self.pages())


@asynccontextmanager
async def open_home(home: Path | None = None, **settings: Any) -> AsyncIterator[App]:
    """Open a home, which is kept if it is named."""
    with tempfile.TemporaryDirectory() as scratch:
        async with open_app(Settings(home=home or Path(scratch), **settings)) as app:
            yield app


@asynccontextmanager
async def open_corpus(
    source: DocumentSource, name: str, /, home: Path | None = None, **settings: Any
) -> AsyncIterator[App]:
    """Open a home with a source's documents in it."""
    async with open_home(home, **settings) as app:
        await refresh_quietly(source, name, app)
        yield app


async def refresh_quietly(source: DocumentSource, corpus: str, app: App) -> RefreshReport:
    """Refresh a corpus of an open home; nobody watches."""
    return await refresh_corpus(source, corpus, app.passages, progress=lambda _: None)


def render_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    first, *others = (f"| {' | '.join(map(str, row))} |" for row in (head, *rows))
    return "\n".join((first, "|" + "---|" * len(head), *others))


def _load(page: Page) -> Page:
    return page
