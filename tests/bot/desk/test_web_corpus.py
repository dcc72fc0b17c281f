"""Tests that the pages of a search engine are a corpus with readers like any other."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.access import Asker
from bot.answering.question_answering import answer
from bot.answering.turn_kit import build_web_search
from bot.app import App
from bot.desk.answer_actions import AnswerActions
from bot.desk.authorized_turn import ActionDenied
from bot.desk.channel_settings import find_searchable_corpora
from bot.server.refresh.document_lookup import NoSuchDocument, forget_document, reread_document
from bot.settings.tables.settings_tables import ChannelValues
from bot.settings.tables.source_settings import SourceContext
from bot.types import TurnRequest
from ingest.web.search_engines.engine import EngineAccess, SearxngEngine
from ingest.web.search_engines.web_search import ReadingBounds, WebSearch
from pipeline.types import CitedSentence, ClaimChecked, Conversation, Status
from storage.errors import UnknownCorpus
from storage.types import CheckedClaim, Claim, EntryKind, Evidence, Hit, QueryTime, SearchQuery, Verdict
from tests.bot.desk.corpora_app import CHANNEL, SYSTEMS, RecordedConversation, open_corpora_app, settings
from tests.ingest.servers.search_engines import Engine, SameProcess
from tests.ingest.servers.web import Answer, WebServer, of_paths, serve
from tests.pipeline.world import registered

WEB = "web:searxng"
HTML = {"Content-Type": "text/html"}
ELSEWHERE = Asker("slack", "channel", "T1", "C2", "U1", shared_with_other_organisations=False)
TERMINAL = Asker("terminal", "terminal")


async def searching(conversation: Conversation, kit: Any) -> Status:
    """Say the first sentence of the first page, and check a claim by the second page."""
    search = kit.engine or kit.search
    first, *others = await search(SearchQuery(conversation.question.text), 3)
    text = first.passage.text
    await kit.say(CitedSentence(text, (Evidence(text, first.passage, first.document, (0, len(text))),)))
    claim = Claim("Kites fly higher.", "model")
    kit.tell(ClaimChecked(CheckedClaim(claim, Verdict.REFUTES, tuple(other.passage.id for other in others))))
    return Status.ANSWERED


def page(text: str) -> Answer:
    return Answer(200, f"<html lang=en><title>Kites</title><p>{text}</p></html>".encode(), HTML)


@asynccontextmanager
async def surfing(home: Path, **changes: Any) -> AsyncIterator[tuple[App, WebServer]]:
    """Open an app with a search engine, which may be searched for one channel."""
    engine = Engine("searxng")
    given = {"type": "searxng", "visible_to": (CHANNEL.channel_id,)} | changes.pop("search_engine", {})
    pages = {"/1": page("A kite needs wind."), "/2": page("Kites fly low.")}
    with serve(engine) as asked, serve(of_paths(pages)) as site:
        engine.addresses = [f"{site.url}/1", f"{site.url}/2"]
        bounds = ReadingBounds("Test", hosts=(site.url.partition("://")[2],))
        searched = WebSearch(SearxngEngine(EngineAccess(asked.url, "Test")), bounds, sandbox=SameProcess())
        async with open_corpora_app(home) as app:
            with searched as web:
                configured = settings(home, search_engine=given | {"url": asked.url}, **changes)
                systems = {**SYSTEMS, **registered(searching=searching)}
                yield replace(app, settings_source=configured, web=web, systems=systems), site


async def asked(app: App, asker: Asker = CHANNEL, text: str = "quayside kites", **more: Any) -> set[str]:
    request = TurnRequest(text, asker, system="searching", **more)
    done = await answer(app, request, lambda _: None)
    return {citation.corpus for citation in done.answer.citations}


async def test_web_is_searched_only_in_its_scope(tmp_path: Path) -> None:
    async with surfing(tmp_path) as (app, site):
        assert await asked(app) == await asked(app, TERMINAL) == {WEB}
        assert await asked(app, corpora=(WEB,)) == {WEB}
        before = len(site.requests)
        assert await asked(app, ELSEWHERE) == {"handbook"}
        assert await asked(app, within=("handbook",)) == await asked(app, corpora=("handbook",)) == {"handbook"}
        with pytest.raises(UnknownCorpus) as raised:
            await asked(app, ELSEWHERE, corpora=(WEB,))
        assert WEB not in raised.value.hint
        assert len(site.requests) == before


async def test_time_of_a_query_reaches_the_web_search(tmp_path: Path) -> None:
    asked_times: tuple[QueryTime, ...] = (None, "recent", 2019)
    times = list[QueryTime]()

    class Timed(WebSearch):
        async def search(
            self, query: str, pages: int, skip: Any = (), time: QueryTime = None, **bounds: Any
        ) -> tuple[Hit, ...]:
            del query, pages, skip, bounds
            times.append(time)
            return ()

    async with surfing(tmp_path) as (app, _):
        web = Timed(SearxngEngine(EngineAccess("http://127.0.0.1:9", "Test")), ReadingBounds("Test"))
        search = build_web_search(replace(app, web=web), (WEB,))
        assert search
        for time in asked_times:
            await search(SearchQuery("kites", time), 1)
    assert times == [*asked_times]


async def test_channel_settings_exclude_the_web(tmp_path: Path) -> None:
    channels = tuple(
        ChannelValues(id=channel, corpora=corpora)
        for channel, corpora in ((CHANNEL.channel_id, ("board",)), ("slack:T1/C3", (WEB,)))
    )
    async with surfing(tmp_path, search_engine={"visible_to": ("*",)}, channel=channels) as (app, _):
        assert await find_searchable_corpora(app, CHANNEL) == {"board"}
        assert await find_searchable_corpora(app, replace(CHANNEL, channel="C3")) == {WEB}
        assert WEB in await find_searchable_corpora(app, ELSEWHERE)


async def test_recorded_web_pages_are_shown_to_readers(tmp_path: Path) -> None:
    async with surfing(tmp_path) as (app, site):
        row, done = await RecordedConversation(app).ask("kites", system="searching")
        site.script = lambda _: Answer(404)
        view = await AnswerActions(app, {}).evidence(row.ticket, CHANNEL)
        shown = [(source.title, source.quote) for item in view.items for source in item.sources]
        assert shown == [("Kites", ""), ("Kites", "Kites fly low.")]  # the first claim is the quotation itself
        citation = done.answer.citations[0]
        assert (citation.passage_text, citation.url) == ("A kite needs wind.", f"{site.url}/1")
        assert citation.revision.startswith("read ")
        narrower = replace(app, settings_source=settings(tmp_path))
        with pytest.raises(ActionDenied):
            await AnswerActions(narrower, {}).evidence(row.ticket, CHANNEL)


async def test_forgotten_web_page_is_not_read_or_shown(tmp_path: Path) -> None:
    async with surfing(tmp_path) as (app, site):
        row, done = await RecordedConversation(app).ask("kites", system="searching")
        address = done.answer.citations[0].url
        with pytest.raises(NoSuchDocument):
            await forget_document(app, address)
        await forget_document(app, f"{address}#part", WEB)
        with pytest.raises(ActionDenied):
            await AnswerActions(app, {}).evidence(row.ticket, CHANNEL)
        site.requests.clear()
        again = await answer(app, TurnRequest("kites", CHANNEL, system="searching"), lambda _: None)
        assert again.answer.citations[0].url == f"{site.url}/2"
        assert "/1" not in site.paths()
        await reread_document(app, address, {}, SourceContext(tmp_path, {}))
        assert await app.manifest.forgotten(WEB) == frozenset()
        with pytest.raises(NoSuchDocument):
            await reread_document(app, address, {}, SourceContext(tmp_path, {}))


async def test_web_page_forgotten_meanwhile_is_not_cited(tmp_path: Path) -> None:
    async def forgetting(_: Conversation, kit: Any) -> Status:
        (first, *_) = await kit.engine(SearchQuery("kites"), 1)
        await app.manifest.forget(WEB, [first.document.key])
        text = first.passage.text
        await kit.say(CitedSentence(text, (Evidence(text, first.passage, first.document, (0, len(text))),)))
        return Status.ANSWERED

    async with surfing(tmp_path) as (app, _):
        forgetful = replace(app, systems=registered(searching=forgetting))
        done = await answer(forgetful, TurnRequest("kites", CHANNEL, system="searching"), lambda _: None)
        assert (done.answer.status, done.answer.withheld) == (Status.ABSTAINED, 1)


async def test_unreachable_engine_is_reported_as_outage(tmp_path: Path) -> None:
    async with surfing(tmp_path) as (app, _):
        access = EngineAccess("http://127.0.0.1:9", "Test", "key-that-nobody-may-see")
        with WebSearch(SearxngEngine(access), ReadingBounds("Test", seconds=0.5), sandbox=SameProcess()) as web:
            request = TurnRequest("kites", CHANNEL, system="searching")
            done = await answer(replace(app, web=web), request, lambda _: None)
        assert done.failure
        assert (done.answer.status, done.failure.kind) == (Status.FAILED, "search_unavailable")
        entries = await app.audit.turn(done.answer_id)
        assert {entry.kind for entry in entries} == {EntryKind.TURN_OPENED, EntryKind.STEP, EntryKind.TURN_CLOSED}
        assert "key-that-nobody-may-see" not in f"{done}{entries}"
