"""Serve the pages, each with its path and the role that may see it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

from starlette.applications import Starlette

from bot.app import Records, SettingsSource
from bot.pages.ask_page import AskedService, AskPages, OpenService
from bot.pages.corpus_pages import CorpusPages
from bot.pages.page_router import Page, build_pages_app
from bot.pages.record_pages import RecordPages
from bot.server.http_server import serve_http
from bot.server.refresh.run_history import RefreshHistory
from bot.settings.settings_errors import find_exposure
from bot.settings.tables.network_settings import HttpSettings


def build_app(
    source: SettingsSource, records: Records, history: RefreshHistory, open_service: OpenService
) -> Starlette:
    ask = AskPages(records.manifest, open_service)
    record, corpora = RecordPages(records), CorpusPages(records, history, open_service)
    pages = (
        Page("/", ask.show_form),
        Page("/ask", ask.answer, method="POST"),
        Page("/answers", record.list_answers),
        Page("/answers/{turn_id}", record.show_answer),
        Page("/answers/{turn_id}/receipt", record.give_receipt),
        Page("/answers/{turn_id}/rating", record.rate, "editor", "POST"),
        Page("/answers/{turn_id}/example", record.approve, "admin", "POST"),
        Page("/documents", corpora.list_documents),
        Page("/documents/show", corpora.show_document),
        Page("/documents/forget", corpora.forget, "admin", "POST"),
        Page("/corpora", corpora.list_corpora),
        Page("/unanswered", record.list_unanswered),
        Page("/figures", record.show_figures),
    )
    return build_pages_app(source, pages)


@asynccontextmanager
async def serve_pages(
    source: SettingsSource,
    records: Records,
    history: RefreshHistory,
    open_service: OpenService,
    hurried: asyncio.Event | None = None,
) -> AsyncIterator[str]:
    """Serve the pages within the block, and yield their address; `hurried` ends the grace period.

    Raises `SettingsError` if everyone could read them, and `CannotListen` if the address is in use or not this
    machine's.
    """
    settings = source.current
    if fault := find_exposure(settings):
        raise fault
    place = HttpSettings(host=settings.pages.host, port=settings.pages.port)
    async with serve_http(place, build_app(source, records, history, open_service), hurried) as address:
        yield address


def share_service(service: AskedService) -> OpenService:
    """Return a function that opens nothing: each question uses this service, which is already open."""
    return lambda: nullcontext(service)
