"""The ways from the command line into the rest of the house, as functions that tests replace by their own.

Each imports what it opens only when it is walked through: `footnote --help` loads no index and no model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from bot.app import App, Records
    from bot.settings import Settings
    from bot.turns import Answered, Asked
    from ingest.refreshing import Progress, RefreshReport
    from ingest.types import Source
    from pipeline.llm.settings import ModelSettings
    from pipeline.model import LLM
    from pipeline.types import Event
    from storage.passages import PassageStore


class OpenApp(Protocol):
    """Opens the home as its owner."""

    def __call__(self, settings: Settings, *, rebuilding: bool = False) -> AbstractAsyncContextManager[App]:
        """Open it."""
        ...


class Refresh(Protocol):
    """Brings a corpus up to date with its source."""

    def __call__(
        self, source: Source, corpus: str, store: PassageStore, *, progress: Callable[[Progress], None]
    ) -> Awaitable[RefreshReport]:
        """Do it, and report."""
        ...


class TakeTurn(Protocol):
    """Takes up what somebody asks, and returns what came of it."""

    def __call__(self, app: App, asked: Asked, tell: Callable[[Event], None]) -> Coroutine[Any, Any, Answered]:
        """Do it; `tell` hears what happens meanwhile."""
        ...


class OpenFolder(Protocol):
    """Makes a source of a folder."""

    def __call__(self, path: Path, *, url_base: str, include: tuple[str, ...], exclude: tuple[str, ...]) -> Source:
        """Make it. Raises an error that says what to do if there is no such folder."""
        ...


def _open_app(settings: Settings, *, rebuilding: bool = False) -> AbstractAsyncContextManager[App]:
    from bot.app import open_app

    return open_app(settings, rebuilding=rebuilding)


def _open_records(settings: Settings) -> AbstractAsyncContextManager[Records]:
    from bot.app import open_records

    return open_records(settings)


def _open_folder(path: Path, *, url_base: str, include: tuple[str, ...], exclude: tuple[str, ...]) -> Source:
    from ingest.sources.folder import Folder

    return Folder(path, url_base=url_base, include=include, exclude=exclude)


def _open_dump(dump: Path) -> Source:
    from ingest.sources.wikipedia_dump import WikipediaDump

    return WikipediaDump(dump)


def _open_model(settings: ModelSettings) -> AbstractAsyncContextManager[LLM]:
    from pipeline.llm.opening import open_model

    return open_model(settings)


async def _answer(app: App, asked: Asked, tell: Callable[[Event], None]) -> Answered:
    from bot.answering import answer

    return await answer(app, asked, tell)


async def _check(app: App, asked: Asked, tell: Callable[[Event], None]) -> Answered:
    from bot.answering import check

    return await check(app, asked, tell)


async def _refresh(
    source: Source, corpus: str, store: PassageStore, *, progress: Callable[[Progress], None]
) -> RefreshReport:
    from ingest.refreshing import refresh

    return await refresh(source, corpus, store, progress=progress)


@dataclass(frozen=True, slots=True)
class Doors:
    """What commands do the work with."""

    open_app: OpenApp = _open_app
    open_records: Callable[[Settings], AbstractAsyncContextManager[Records]] = _open_records
    answer: TakeTurn = _answer
    open_folder: OpenFolder = _open_folder
    open_dump: Callable[[Path], Source] = _open_dump
    refresh: Refresh = _refresh
    check: TakeTurn = _check
    open_model: Callable[[ModelSettings], AbstractAsyncContextManager[LLM]] = _open_model
