"""An app with three small pages, opened as the bot opens it, except for a cheap embedder."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bot.app import App
from bot.settings.live.live_settings import LiveSettings
from bot.settings.tables.settings_tables import Settings
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.types import Page
from tests.fakes import PageSource
from tests.storage.stores import kept, opened

BUILT = "When was Skarholm lighthouse built?"
MADE = "What is the pier of Skarholm made of?"
RISES = "How high does the tide rise at Skarholm?"
ANSWERS: Mapping[str, str] = {
    BUILT: "Skarholm lighthouse was built in 1887.",
    MADE: "The pier of Skarholm is made of oak.",
    RISES: "The tide at Skarholm rises four metres.",
}
PAGES = {
    "light.md": {"title": "Skarholm lighthouse", "": f"{ANSWERS[BUILT]} A keeper lives beside it."},
    "pier.md": {"title": "Pier", "": f"{ANSWERS[MADE]} In the storm of 1953 it was lost."},
    "tide.md": {"title": "Tides", "": ANSWERS[RISES]},
}
RULES = tuple(
    f"Rule {number} of the harbour book says that no boat of type {number} may moor at quay {number} of the harbour of "
    f"Skarholm while the bell of tower {number} rings for the boats that come home through the fog of the night."
    for number in range(1, 61)
)
"""What makes an answer long, recited by `systems.recite`."""
BOOK = {"book.md": {"title": "The harbour book", "": " ".join(RULES)}}
EVERYWHERE = {"corpus": [{"name": "handbook", "readers": ["*"]}]}


HOST = "https://skarholm.example/"


@dataclass
class LinkedPages(PageSource):
    """Pages with addresses: `HOST` and the key."""

    urls: Mapping[str, str] = field(default_factory=dict)
    """Other addresses, by key."""

    def _load(self, key: str) -> Page:
        return replace(super()._load(key), url=self.urls.get(key, HOST + key))


def with_settings(app: App, **changes: Any) -> App:
    """Return the app with other settings, also in a server that may change them while it runs."""
    settings, source = app.settings.model_copy(update=changes), app.settings_source
    if isinstance(source, LiveSettings):
        source.current = settings
        return app
    return replace(app, settings_source=settings)


async def fill(home: Path, pages: Mapping[str, Any] = PAGES, **urls: str) -> None:
    """Index the pages into a home."""
    with opened(home) as store:
        await refresh_corpus(LinkedPages(pages, urls=urls), "handbook", store, progress=lambda _: None)


@contextmanager
def open_example_app(home: Path, **settings: Any) -> Iterator[App]:
    """Open a home. All may read it unless settings say otherwise."""
    with opened(home) as store:
        values = Settings.model_validate({**EVERYWHERE, **settings, "home": home})
        yield App(values, store, **kept(store))
