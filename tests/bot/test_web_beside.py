"""The web next to the corpora: every system with a model searches both, in one ranking, if the settings say so."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from bot.access import Asker
from bot.answering.question_answering import answer, check
from bot.answering.web_beside import WebBeside, merge_by_words
from bot.app import App
from bot.settings.tables.search_settings import SearchEngineSettings
from bot.settings.tables.settings_tables import LimitSettings
from bot.types import TurnRequest, TurnResult
from bot.views.catalog import list_languages, translate
from bot.views.message_layout import build_blocks
from bot.views.view_reducer import finish_view, start_view
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.web.search_engines.engine import EngineAccess, SearxngEngine
from ingest.web.search_engines.web_search import ReadingBounds, WebSearch
from pipeline.llm.model import BudgetMeter, ModelCall, ModelReply
from pipeline.llm.model_client import LazyModel
from pipeline.types import Status
from storage.types import EntryKind, Hit, SearchQuery, Verdict
from tests.bot.model_app import make_request, open_model_app
from tests.ingest.servers.search_engines import Engine, SameProcess
from tests.ingest.servers.web import Answer, of_paths, serve
from tests.ingest.sources.dumps import dump
from tests.ingest.sources.dumps import page as article
from tests.pipeline.scripted import accept
from tests.pipeline.world import hit

WEB = "web:searxng"
SYSTEMS = ("wikichat", "wikichat-fast", "augmenter", "in-context", "retrieve-then-generate", "search-engine")
QUERY = "Search: yes\nQuery: Skarholm lighthouse height\nTime: none"
LIGHT = "Skarholm lighthouse is 31 metres high and was painted by Mr Secret."
QUESTION = "How high is Skarholm lighthouse, which our Mr Secret painted?"
ARTICLE = "https://en.m.wikipedia.org/wiki/Leuchtturm_Skarholm#Height"
DUMP = dump(
    article(1, "Skarholm lighthouse", "Skarholm lighthouse has a height of 31 metres above the sea."),
    article(2, "Leuchtturm Skarholm", "#REDIRECT [[Skarholm lighthouse]]", redirect="Skarholm lighthouse"),
)


def web_page(text: str) -> Answer:
    html = f"<html lang=en><title>Lights</title><h1>Lights</h1><p>{text}</p></html>"
    return Answer(200, html.encode(), {"Content-Type": "text/html"})


class CalledModel(LazyModel):
    """A model that notes its calls at once, before they can be cancelled, and answers none."""

    stages: tuple[str, ...] = ()

    async def complete(self, call: ModelCall, spent: BudgetMeter) -> ModelReply:
        self.stages = (*self.stages, call.stage)
        return await super().complete(call, spent)


@dataclass
class Surfing:
    app: App
    engine: Engine
    prompts: list[str]  # of the model
    hosts: list[str] = field(default_factory=list)  # whose addresses were looked up, to fetch their pages

    async def ask(self, system: str = "wikichat-fast", text: str = QUESTION, **more: Any) -> TurnResult:
        return await answer(self.app, make_request(text, system=system, **more), lambda _: None)

    async def searches(self, done: TurnResult) -> list[Mapping[str, Any]]:
        entries = await self.app.audit.turn(done.answer_id)
        return [entry.body for entry in entries if entry.kind is EntryKind.STEP and entry.body["stage"] == "search"]


@asynccontextmanager
async def surfing(
    home: Path,
    addresses: Sequence[str] = ("/light",),
    *,
    refusing: Sequence[Answer] = (),
    script: Mapping[str, Any] | None = None,
    limits: LimitSettings | None = None,
    **settings: Any,
) -> AsyncIterator[Surfing]:
    """Open an app with a model, a search engine whose pages are on one site, and a dump of a small Wikipedia."""
    engine, written = Engine("searxng", refusing=[*refusing]), {"web_query": QUERY, **(script or {})}
    async with open_model_app(home, written, limits=limits) as (app, server):
        (home / "dump.xml").write_bytes(DUMP)
        await refresh_corpus(WikipediaDump(home / "dump.xml"), "wikipedia", app.passages, progress=lambda _: None)
        with serve(engine) as asked, serve(of_paths({"/light": web_page(LIGHT)})) as site:
            engine.addresses = [f"{site.url}{one}" if one.startswith("/") else one for one in addresses]
            given = {"every_system": True, "wait_seconds": 30.0, "type": "searxng", "url": asked.url} | settings
            chosen = app.settings.model_copy(update={"search_engine": SearchEngineSettings.model_validate(given)})
            turned = Surfing(app, engine, [])

            def resolve(host: str, _port: int) -> Sequence[str]:
                if host == "127.0.0.1":
                    return (host,)
                turned.hosts.append(host)
                raise OSError("no name is known here")

            bounds = ReadingBounds("Test", hosts=(site.url.partition("://")[2],))
            access = SearxngEngine(EngineAccess(asked.url, "Test"))
            with WebSearch(access, bounds, resolve=resolve, sandbox=SameProcess()) as web:
                turned.app = replace(app, web=web, settings_source=chosen)
                yield turned
                turned.prompts += [str(request.body) for request in server.requests]


def cited(done: TurnResult) -> set[str]:
    assert done.answer.status is Status.ANSWERED
    return {citation.corpus for citation in done.answer.citations}


@pytest.mark.parametrize("system", SYSTEMS)
async def test_system_with_a_model_searches_both(tmp_path: Path, system: str) -> None:
    """Only the query that the model wrote for strangers leaves; the passages are in one ranking."""
    async with surfing(tmp_path) as web:
        done = await web.ask(system)
        assert cited(done) >= {"handbook", WEB}
        assert web.engine.queries == ["Skarholm lighthouse height"]
        assert done.web_fault is None
        kept = [step["kept"] for step in await web.searches(done) if "kept" in step]
        assert [page["document"]["corpus"] for pages in kept for page in pages] == [WEB]


@pytest.mark.parametrize("system", ["wikichat", "augmenter"])
async def test_web_is_off_unless_the_settings_ask_for_it(tmp_path: Path, system: str) -> None:
    async with surfing(tmp_path, every_system=False) as web:
        done = await web.ask(system)
        assert WEB not in cited(done)
        assert web.engine.queries == []
    assert not any("public search engine" in prompt for prompt in web.prompts)


ELSEWHERE = Asker("slack", "channel", "T1", "C2", "U1", shared_with_other_organisations=False)


@pytest.mark.parametrize("case", ["no calls", "no model", "check", "scope", "place", "one call", "small talk"])
async def test_web_is_not_searched_and_no_query_is_written(tmp_path: Path, case: str) -> None:
    async with surfing(tmp_path) as web:
        match case:
            case "no calls":
                called = CalledModel(web.app.settings.model.plain(), AsyncExitStack())
                done = await answer(
                    replace(web.app, llm=called), make_request(QUESTION, system="extractive"), lambda _: None
                )
                assert not called.stages
            case "no model":
                done = await answer(
                    replace(web.app, llm=None), make_request(QUESTION, system="wikichat"), lambda _: None
                )
            case "check":
                done = await check(web.app, make_request(LIGHT, system="wikichat"), lambda _: None)
            case "scope":
                done = await web.ask(corpora=("handbook", "wikipedia"))
            case "place":
                done = await answer(web.app, TurnRequest(QUESTION, ELSEWHERE, system="wikichat-fast"), lambda _: None)
            case "one call":
                done = await web.ask("retrieve-then-generate", effort="quick")
            case _:
                done = await web.ask(text="Thanks!")
        assert (web.engine.queries, done.web_fault) == ([], None)
    assert not any("public search engine" in prompt for prompt in web.prompts)


async def test_web_is_not_searched_if_the_model_declines(tmp_path: Path) -> None:
    async with surfing(tmp_path, script={"web_query": "Search: no"}) as web:
        done = await web.ask()
        assert (web.engine.queries, done.web_fault, cited(done) - {"handbook", "wikipedia"}) == ([], None, set())
    assert sum("public search engine" in prompt for prompt in web.prompts) == 1


async def test_question_is_not_sent_if_the_query_cannot_be_read(tmp_path: Path) -> None:
    async with surfing(tmp_path, script={"web_query": "I would search for Mr Secret."}) as web:
        done = await web.ask()
        assert done.web_fault
        assert (web.engine.queries, done.web_fault.kind, done.answer.status) == (
            [],
            "unreadable_reply",
            Status.ANSWERED,
        )


@pytest.mark.parametrize("system", ["wikichat", "augmenter", "search-engine"])
async def test_failed_engine_is_recorded_and_shown_and_the_corpora_answer(tmp_path: Path, system: str) -> None:
    async with surfing(tmp_path, refusing=[Answer(400)]) as web:
        done = await web.ask(system)
        assert "handbook" in cited(done)
        assert done.web_fault
        assert (done.web_fault.kind, "HTTP 400" in done.web_fault.message) == ("search_unavailable", True)
        assert ["HTTP 400" in step["error"] for step in await web.searches(done) if "error" in step] == [True]
        closed = (await web.app.audit.turn(done.answer_id))[-1]
        assert closed.body["web_fault"]["kind"] == "search_unavailable"
        view = finish_view(start_view(1, "de"), done)
        assert view.notice == translate("web_unsearched", "de")
        again = await web.ask(system)
        assert again.web_fault
        assert "failed less than" in again.web_fault.message
    assert sum("public search engine" in prompt for prompt in web.prompts) == 1  # no query is written for nothing


async def test_slow_engine_delays_an_answer_by_the_limit_only(tmp_path: Path) -> None:
    slow = Answer(200, b"{}", sent=1, stalls=True)
    async with surfing(tmp_path, refusing=[slow], wait_seconds=0.5) as web, asyncio.timeout(60):
        done = await web.ask()
        assert "handbook" in cited(done)
        assert done.web_fault
        assert "in time" in done.web_fault.message or "within 0.5 seconds" in done.web_fault.message


async def test_search_that_still_runs_at_the_end_of_a_turn_is_cancelled() -> None:
    async def find() -> tuple[Hit, ...]:
        return await asyncio.Future[tuple[Hit, ...]]()

    async def search(_query: SearchQuery, _k: int) -> tuple[Hit, ...]:
        return ()

    web = WebBeside(seconds=60)
    web.connect(find)
    await web.join(search)(SearchQuery("lighthouse"), 1)
    async with asyncio.timeout(20):
        await web.close()
    assert web.fault is None


async def test_next_query_is_shown_the_library_query_not_that_for_strangers(tmp_path: Path) -> None:
    script = {"query": "Search: yes\nQuery: lighthouse of Mr Secret\nTime: none"}
    async with surfing(tmp_path, script=script, limits=LimitSettings(query="always")) as web:
        done = await web.ask("wikichat")
        assert done.query
        assert (done.query.text, web.engine.queries) == ("lighthouse of Mr Secret", ["Skarholm lighthouse height"])


async def test_web_alone_in_scope_fails_as_an_outage(tmp_path: Path) -> None:
    async with surfing(tmp_path, refusing=[Answer(400)]) as web:
        done = await web.ask(corpora=(WEB,))
        assert done.failure
        assert (done.answer.status, done.failure.kind) == (Status.FAILED, "search_unavailable")
        assert cited(await web.ask("search-engine", corpora=("handbook",))) == {"handbook"}


async def test_claims_are_verified_by_the_pages_of_the_web(tmp_path: Path) -> None:
    script = {
        "generate": "It is high.",
        "split": "- Skarholm lighthouse is 31 metres high. | none",
        "verify": accept(1),
    }
    async with surfing(tmp_path, script=script) as web:
        done = await web.ask("wikichat", corpora=("handbook", WEB))
        (checked,) = [checked for checked in done.answer.claims if checked.claim.origin == "model"]
        assert checked.verdict is Verdict.SUPPORTS
        of = {citation.passage_id: citation.corpus for citation in done.answer.citations}
        assert {of.get(passage) for passage in checked.evidence} == {WEB}
        assert len(web.engine.queries) == 1  # no claim is sent


async def test_wikipedia_article_is_taken_from_the_dump_with_its_revision(tmp_path: Path) -> None:
    """The engine returns the address of a redirect on the mobile site."""
    async with surfing(tmp_path, [ARTICLE]) as web:
        done = await web.ask("search-engine", corpora=("wikipedia", WEB))
        (citation,) = done.answer.citations
        assert (citation.corpus, citation.document, citation.revision) == ("wikipedia", "1", "100")
        assert citation.date
        assert citation.date.isoformat() == "2016-04-22T10:19:33+00:00"
        assert web.hosts == []
        (found,) = [step["hits"] for step in await web.searches(done) if step["query"] == "Skarholm lighthouse height"]
        assert {hit[2] for hit in found} == {"wikipedia"}
        assert not any("kept" in step for step in await web.searches(done))  # the dump has it


@pytest.mark.parametrize(("address", "corpora", "time"), [
    (ARTICLE, ("handbook", WEB), "none"),  # the asker may not read the dump
    (ARTICLE, ("wikipedia", WEB), "recent"),
    (ARTICLE.replace("//en", "//de"), ("wikipedia", WEB), "none"),
    (ARTICLE.replace("Leuchtturm", "Faro"), ("wikipedia", WEB), "none"),
])  # fmt: skip
async def test_wikipedia_article_is_fetched_if_the_dump_may_not_replace_it(
    tmp_path: Path, address: str, corpora: Sequence[str], time: str
) -> None:
    query = f"Search: yes\nQuery: Skarholm lighthouse news\nTime: {time}"
    async with surfing(tmp_path, [address], script={"web_query": query}) as web:
        done = await web.ask("search-engine", corpora=tuple(corpora))
        assert set(web.hosts) == {address.split("/")[2]}
        assert not any("kept" in step for step in await web.searches(done))


async def test_footnote_shows_that_a_page_is_from_the_web(tmp_path: Path) -> None:
    async with surfing(tmp_path) as web:
        done = await web.ask("wikichat")
        view = finish_view(start_view(1, "en"), done)
        origins = {source.title: source.origin for source in view.sources}
        day = next(one.revision for one in done.answer.citations if one.corpus == WEB).removeprefix("read ")
        assert (origins["Lights"], origins["Skarholm lighthouse"]) == (f"web, read {day}", "")
        shown = "".join(run.text for block in build_blocks(view, UTC) for group in block.groups for run in group)
        assert f"Lights · web, read {day}" in shown
    assert all("2026-11-28" in translate("from_web", language, day="2026-11-28") for language in list_languages())


def test_web_passage_precedes_passages_with_fewer_words_of_the_query() -> None:
    def found(text: str, name: str) -> Hit:
        return hit(text, key=name, title=name)

    own = (found("A lighthouse of granite.", "own1"), found("Granite is a stone.", "own2"))
    best, equal = found("A lighthouse of granite is 31 metres high.", "w1"), found("Granite lies.", "w2")
    merged = merge_by_words("lighthouse metres granite", own, (equal, best, found("No.", "w3"), own[0]))
    assert [one.document.key for one in merged] == ["w1", "own1", "own2", "w2"]
