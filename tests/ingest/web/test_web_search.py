"""Web search: engines, pages within limits of time and size, and failures."""

import asyncio
import logging
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from ingest.sandbox import Sandbox
from ingest.types import Block, Page, Section, SourceUnavailable
from ingest.web.search_engines.engine import ENGINES, EngineAccess, list_addresses, normalize_address
from ingest.web.search_engines.page_beginning import count_tokens, take_beginning
from ingest.web.search_engines.web_search import ReadingBounds, WebSearch
from storage.types import Document, Hit, Passage, PassageKind, QueryTime
from tests.ingest.servers.search_engines import KEY, Engine, SameProcess, limited
from tests.ingest.servers.web import Answer, Request, WebServer, serve

AGENT = "Footnote/test (ops@example.com)"
HTML = {"Content-Type": "text/html; charset=utf-8"}
NOW = datetime(2026, 11, 23, 1, tzinfo=UTC)
KINDS = ("searxng", "brave")


def page(*sentences: str, title: str = "Kites") -> Answer:
    body = "".join(f"<p>{sentence}</p>" for sentence in sentences)
    return Answer(200, f"<html lang=en><title>{title}</title><h1>{title}</h1>{body}</html>".encode(), HTML)


@contextmanager
def searching(
    engine: Engine,
    site: Mapping[str, Answer] | Callable[[Request], Answer],
    *,
    key: str = KEY,
    seconds: float = 5.0,
    sandbox: Sandbox | None = None,
) -> Iterator[tuple[WebSearch, WebServer]]:
    """Yield a search with a fake engine and one fake site, whose addresses begin with a slash."""
    found: Mapping[str, Answer] = site if isinstance(site, Mapping) else {}
    script = (lambda request: found.get(request.path, Answer(404))) if isinstance(site, Mapping) else site
    with serve(engine) as asked, serve(script) as pages:
        engine.addresses = [f"{pages.url}{url}" if url.startswith("/") else url for url in engine.addresses]
        where = asked.url if engine.kind == "searxng" else f"{asked.url}/res/v1/web/search"
        access = EngineAccess(where, AGENT, key, seconds)
        hosts = tuple(f"{host}:{pages.server_port}" for host in ("127.0.0.1", "localhost"))
        bounds = ReadingBounds(AGENT, seconds, hosts=hosts)
        with WebSearch(
            ENGINES[engine.kind](access), bounds, now=lambda: NOW, sandbox=sandbox or SameProcess()
        ) as search:
            yield search, pages


def texts(hits: Sequence[Hit]) -> list[str]:
    return [hit.passage.text for hit in hits]


@pytest.mark.parametrize("kind", KINDS)
async def test_page_beginnings_become_passages_of_the_web_corpus(kind: str) -> None:
    """They are in the engine's order, under the final address, without the engine's texts."""
    engine = Engine(kind, ["/b", "/a#part", "/missing", "/a"])
    moved = Answer(301, b"", {"Location": "/kites"})
    with searching(engine, {"/a": page("A kite needs wind."), "/b": moved, "/kites": page("Kites fly.")}) as (
        web,
        site,
    ):
        hits = await web.search("kites  wind", 5)
        assert engine.queries == ["kites wind"]
        assert texts(hits) == ["Kites fly.", "A kite needs wind."]
        first = hits[0].document
        assert (first.corpus, first.key, first.url) == (f"web:{kind}", f"{site.url}/kites", f"{site.url}/kites")
        assert (first.title, first.revision, first.language) == ("Kites", "read 2026-11-23", "en")
        assert hits[0].passage.corpus == first.corpus
        assert "SAY THIS" not in repr(hits)
        assert all(request.headers["user-agent"] == AGENT for request in site.requests)
        assert not any("x-subscription-token" in request.headers for request in site.requests)


@pytest.mark.parametrize(("kind", "time", "limit"), [
    ("searxng", None, ""),
    ("searxng", "recent", "year"),
    ("searxng", 2026, "year"),  # this year
    ("searxng", 2019, ""),  # it knows no such range
    ("brave", None, ""),
    ("brave", "recent", "py"),
    ("brave", 2019, "2019-01-01to2026-11-23"),
    ("brave", 2027, ""),
    ("brave", 1850, ""),
])  # fmt: skip
async def test_time_of_a_query_limits_the_search(kind: str, time: QueryTime, limit: str) -> None:
    engine = Engine(kind, ["/1"])
    with searching(engine, {"/1": page("One.")}) as (web, _):
        assert texts(await web.search("kites", 1, time=time)) == ["One."]
        assert engine.times == [limit]


@pytest.mark.parametrize(("kind", "limits"), [
    ("searxng", {"time_range": "recent"}),
    ("brave", {"freshness": "recent"}),
    ("brave", {"freshness": "2027-01-01to2026-11-23"}),
])  # fmt: skip
async def test_unknown_time_is_refused_by_the_engine(kind: str, limits: Mapping[str, str]) -> None:
    with searching(Engine(kind), {}) as (web, _), pytest.raises(SourceUnavailable):
        await web.find("kites", 1, limits)


@pytest.mark.parametrize("kind", KINDS)
async def test_pages_of_other_times_follow_if_too_few_are_recent(kind: str) -> None:
    engine = Engine(kind, ["/old", "/new"], old=("/old",))
    with searching(engine, {"/old": page("Old."), "/new": page("New.")}) as (web, _):
        assert texts(await web.search("kites", 1, time="recent")) == ["New."]
        assert texts(await web.search("kites", 2, time="recent")) == ["New.", "Old."]
        assert [bool(time) for time in engine.times] == [True, True, False]


async def test_unreadable_pages_are_replaced_up_to_the_wanted_number() -> None:
    engine = Engine("searxng", ["/gone", "/1", "/picture", "/2", "/3", "/4"])
    site = {f"/{number}": page(f"Page {number} is here.") for number in range(1, 5)}
    site["/picture"] = Answer(200, b"\x89PNG", {"Content-Type": "image/png"})
    with searching(engine, site) as (web, pages):
        assert texts(await web.search("pages", 3)) == ["Page 1 is here.", "Page 2 is here.", "Page 3 is here."]
        assert "/4" not in pages.paths()


async def test_robots_txt_is_read_and_each_host_has_one_connection() -> None:
    engine = Engine("searxng", ["/private/a", "/1", "/2", "/3"])
    site = {f"/{number}": page(f"Page {number}.") for number in (1, 2, 3)} | {"/private/a": page("Secret.")}
    site["/robots.txt"] = Answer(200, b"User-agent: footnote\nDisallow: /private/", {"Content-Type": "text/plain"})
    with searching(engine, site) as (web, pages):
        assert texts(await web.search("pages", 4)) == ["Page 1.", "Page 2.", "Page 3."]
        assert "/private/a" not in pages.paths()
        assert pages.most_open == 1


async def test_forgotten_pages_are_neither_fetched_nor_redirected_to() -> None:
    engine = Engine("searxng", ["/gone", "/leads", "/1"])
    site = {"/gone": page("Old."), "/leads": Answer(302, b"", {"Location": "/gone"}), "/1": page("New.")}
    with searching(engine, site) as (web, pages):
        assert texts(await web.search("pages", 3, skip={f"{pages.url}/gone"})) == ["New."]


async def test_concurrent_queries_fetch_a_common_page_once() -> None:
    """The page may be unavailable."""
    engine = Engine("searxng", ["/1", "/gone", "/2"])
    with searching(engine, {"/1": page("One."), "/2": page("Two.")}) as (web, pages):
        found = await asyncio.gather(web.search("kites", 3), web.search("kites wind", 3))
        assert [texts(hits) for hits in found] == [["One.", "Two."]] * 2
        assert sorted(path for path in pages.paths() if path != "/robots.txt") == ["/1", "/2", "/gone"]


REFUSALS = {
    "no JSON allowed": Engine("searxng", formats=("html",)),
    "nothing behind it answers": Engine("searxng", silent=[["google", "timeout"]]),
    "a page for people": Engine("searxng", refusing=[Answer(200, b"<html>", HTML)]),
    "too many brackets": Engine("searxng", refusing=[Answer(200, b"[" * 100_000, HTML)]),
    "a list": Engine("brave", refusing=[Answer(200, b"[]", HTML)]),
    "too often": Engine("brave", refusing=[limited(60)]),
    "too often, twice": Engine("brave", refusing=[limited(0), limited(0)]),
    "broken": Engine("searxng", refusing=[Answer(500, headers={"Retry-After": "0"}), Answer(502)]),
    "elsewhere": Engine("searxng", refusing=[Answer(302, b"", {"Location": "http://169.254.169.254/latest"})]),
    "too large": Engine("searxng", refusing=[Answer(200, b'{"results": [' + b" " * (5 << 20), HTML)]),
}


@pytest.mark.parametrize("case", REFUSALS)
async def test_engine_failure_differs_from_no_results(case: str) -> None:
    engine = REFUSALS[case]
    with searching(engine, {}, seconds=3.0) as (web, _), pytest.raises(SourceUnavailable) as raised:
        await web.search("secret plans", 5)
    assert raised.value.hint
    assert "refresh" not in raised.value.hint
    assert "rule" not in raised.value.hint
    assert KEY not in f"{raised.value} {raised.value.hint}"
    assert "secret plans" not in str(raised.value)


async def test_wrong_key_is_reported_without_showing_it() -> None:
    with searching(Engine("brave"), {}, key="wrong-key") as (web, _), pytest.raises(SourceUnavailable) as raised:
        await web.search("kites", 5)
    assert "api_key" in raised.value.hint
    assert "wrong-key" not in repr((raised.value, web._engine))


async def test_no_results_is_not_an_outage() -> None:
    with searching(Engine("searxng"), {}) as (web, _):
        assert await web.search("kites", 5) == ()


async def test_key_is_not_sent_to_a_redirect_target() -> None:
    """The error message contains only the host."""
    seen = list[Mapping[str, str]]()

    def elsewhere(request: Request) -> Answer:
        seen.append(request.headers)
        return Answer(200, b"{}")

    with serve(elsewhere) as other:
        engine = Engine("brave", refusing=[Answer(302, b"", {"Location": f"{other.url}/x"})])
        with searching(engine, {}) as (web, _), pytest.raises(SourceUnavailable):
            await web.search("kites", 5)
    assert seen == []


INWARD: tuple[object, ...] = (
    *("file:///etc/passwd", "javascript:alert(1)", "data:text/html,hello", "ftp://example.com/a", "//example.com/a"),
    *(
        "http://",
        "http:///a",
        "https://user:secret@example.com/",
        "http://[::1",
        "http://a b/",
        "\x00",
        "",
        None,
        7,
        {},
    ),
    "http://example.com/" + "a" * 3_000,
)


def test_only_web_addresses_are_accepted() -> None:
    assert list_addresses([{"url": url} for url in INWARD] + [None, "x", [], {}], 20) == ()
    assert list_addresses({"url": "http://example.com"}, 20) == ()
    assert normalize_address(" HTTPS://Example.com/a<b>|c?q=1#part ") == "https://example.com/a%3Cb%3E%7Cc?q=1"


async def test_no_page_is_fetched_from_the_local_network() -> None:
    """Addresses may be names, numbers or redirects."""
    with serve(lambda _: page("The secret is 42.")) as inside:
        port = inside.url.rpartition(":")[2]
        named = [f"{host}:{port}/" for host in ("http://127.0.0.1", "http://localhost", "http://[::1]")]
        engine = Engine("searxng", [*named, "/leads", "http://169.254.169.254/latest/meta-data", "/1"])
        site = {"/leads": Answer(302, b"", {"Location": inside.url}), "/1": page("Public.")}
        with searching(engine, site) as (web, _):
            assert texts(await web.search("secrets", 6)) == ["Public."]
        assert inside.requests == []


async def test_search_with_only_local_pages_names_the_setting_that_allows_them() -> None:
    engine = Engine("searxng", ["http://10.0.0.1/wiki", "http://[::1]/"])
    with searching(engine, {}) as (web, _), pytest.raises(SourceUnavailable) as raised:
        await web.search("pages", 5)
    assert "hosts in [search_engine]" in raised.value.hint


def bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return b"".join([*(packer.compress(b"<p>" + b"a" * (1 << 20)) for _ in range(64)), packer.flush()])


HOSTILE = {
    "html bomb": Answer(200, b"<div>" * 200_000, HTML),
    "packed bomb": Answer(200, bomb(), {**HTML, "Content-Encoding": "gzip"}),
    "larger than it says": Answer(200, b"<p>" + b"a" * (5 << 20), HTML, unsized=True),
    "no text": Answer(200, b"<html><body><img src=x></body></html>", HTML),
    "login": Answer(200, b"<form>Please log in <input type=password></form>", HTML),
    "wrong type": Answer(200, b"PK\x03\x04", {"Content-Type": "application/zip"}),
    "no type": Answer(200, b"Some text."),
    "broken pdf": Answer(200, b"%PDF-1.7 nothing", {"Content-Type": "application/pdf"}),
    "breaks off": Answer(200, b"<p>Half a page" * 99, HTML, sent=20),
    "loop": Answer(302, b"", {"Location": "/loop"}),
    "odd target": Answer(302, b"", {"Location": "http://[::1"}),
    "no target": Answer(302),
    "script target": Answer(302, b"", {"Location": "javascript:alert(1)"}),
}


async def test_harmful_pages_are_skipped_with_a_logged_reason(caplog: pytest.LogCaptureFixture) -> None:
    """The log omits the query of an address."""
    site = {f"/{name.replace(' ', '-')}": answer for name, answer in HOSTILE.items()}
    engine = Engine("searxng", [*(f"{path}?token=hidden" for path in site), "/1"])
    asked = {f"{path}?token=hidden": answer for path, answer in site.items()} | {"/1": page("Fine.")}
    with (
        caplog.at_level(logging.INFO, logger="ingest"),
        searching(engine, asked, seconds=20.0, sandbox=Sandbox()) as (web, _),
    ):
        assert texts(await web.search("harm", 10)) == ["Fine."]
    left_out = [record for record in caplog.records if record.message == "page skipped"]
    assert len(left_out) == len(site)
    assert "hidden" not in " ".join(str(vars(record)) for record in left_out)


async def test_endless_pages_cost_at_most_the_time_limit() -> None:
    """Pages that arrive in time are used; without any, the search fails. No thread remains."""
    before = threading.active_count()
    slow = Answer(200, b"<p>Slow", HTML, sent=5, stalls=True)
    engine = Engine("searxng", ["/slow", "/1"])
    with searching(engine, {"/slow": slow, "/1": page("Quick.")}, seconds=2.0) as (web, pages):
        engine.addresses = [engine.addresses[0], f"http://localhost:{pages.server_port}/1"]  # counts as another host
        assert texts(await web.search("pages", 2)) == ["Quick."]
    engine = Engine("searxng", ["/slow", "/slow?1", "/slow?2"])
    with searching(engine, lambda _: slow, seconds=0.5) as (web, _):
        async with asyncio.timeout(60):
            with pytest.raises(SourceUnavailable):
                await web.search("pages", 3)
    assert threading.active_count() <= before


async def test_slow_engine_is_an_outage() -> None:
    engine = Engine("searxng", refusing=[Answer(200, b"{}", sent=1, stalls=True)])
    with searching(engine, {}, seconds=0.3) as (web, _), pytest.raises(SourceUnavailable, match="in time"):
        await web.search("pages", 1)


async def test_unreachable_pages_are_an_outage() -> None:
    """Pages that only deny access are not."""
    engine = Engine("searxng", ["/1", "/2"])
    with searching(engine, {"/1": Answer(403), "/2": Answer(404)}) as (web, _):
        assert await web.search("pages", 2) == ()
    engine = Engine("searxng", ["/1"])
    with searching(engine, lambda _: Answer(503)) as (web, _), pytest.raises(SourceUnavailable):
        await web.search("pages", 2)


async def test_failed_engine_rests_for_searches_that_need_not_succeed() -> None:
    engine = Engine("searxng", ["/1"], [Answer(400)])
    with searching(engine, {"/1": page("One.")}) as (web, _):
        web.refuse_while_resting()
        with pytest.raises(SourceUnavailable, match="HTTP 400"):
            await web.search("kites", 1, seconds=3.0)
        with pytest.raises(SourceUnavailable, match="failed less than"):
            web.refuse_while_resting()
        assert texts(await web.search("kites", 1)) == ["One."]


async def test_engine_without_a_fair_time_does_not_rest() -> None:
    engine = Engine("searxng", ["/1"], [Answer(200, b"{}", sent=1, stalls=True)])
    with searching(engine, {"/1": page("One.")}) as (web, _):
        with pytest.raises(SourceUnavailable, match="in time"):
            await web.search("kites", 1, seconds=0.2)
        web.refuse_while_resting()


ARTICLE = "https://en.m.wikipedia.org/wiki/Kite#Flight"


async def test_page_of_a_corpus_is_not_fetched_and_has_its_beginning_read() -> None:
    document = Document("wikipedia", "12", "Kite", "https://en.wikipedia.org/wiki/Kite", "100")
    beginning = ("A kite flies. " * 40, "It needs wind. " * 40, "It falls. " * 40)
    stored = [
        Hit(Passage(str(place), "wikipedia", "12", "", text, place, ""), document, 0.0)
        for place, text in enumerate(beginning)
    ]
    asked = list[str]()

    async def local(url: str) -> tuple[Hit, ...]:
        asked.append(url)
        return tuple(stored) if "wikipedia" in url else ()

    engine = Engine("searxng", ["/1", ARTICLE])
    with searching(engine, {"/1": page("One.")}) as (web, pages):
        hits = await web.search("kites", 2, local=local)
        assert texts(hits) == ["One.", *beginning[:1]]
        assert (hits[1].document, hits[1].score) == (document, 0.5)
        assert asked == [f"{pages.url}/1", ARTICLE.partition("#")[0]]
        stored = [Hit(Passage("0", "wikipedia", "12", "", "A long kite. " * 999, 0, ""), document, 0.0)]
        assert len(await web.search("kites", 2, local=local)) == 2


async def test_articles_in_infoboxes_of_searxng_come_first() -> None:
    boxes = [ARTICLE, "https://www.wikidata.org/wiki/Q42962"]
    with searching(Engine("searxng", ["/1"], boxes=boxes), {}) as (web, pages):
        assert await web.find("kites", 5) == (ARTICLE.partition("#")[0], f"{pages.url}/1")


async def test_cancelled_search_leaves_nothing_running() -> None:
    """The connection closes at once."""
    engine = Engine("searxng", ["/slow"])
    asked = threading.Event()

    def site(_: Request) -> Answer:
        asked.set()
        return Answer(200, b"<p>Slow", HTML, sent=5, stalls=True)

    with searching(engine, site, seconds=30.0) as (web, _):
        task = asyncio.create_task(web.search("pages", 1))
        assert await asyncio.to_thread(asked.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not web._clients


def test_page_is_read_up_to_its_first_tokens() -> None:
    """It has whole sentences and rows with their headings; endless headings are cut."""
    sentence = "The north pier has nine berths for boats. "
    long = Block(sentence * 60)
    rows = Block("\n".join(f"row {number}; value {number}" for number in range(99)), PassageKind.TABLE)
    whole = Page("T" * 900, (Section(("H" * 900,), (Block("First."), long)), Section(("Late",), (rows,))))
    taken = take_beginning(whole, 256)
    (section,) = taken.sections
    assert [len(taken.title), len(section.path[0])] == [200, 200]
    text = " ".join(block.text for block in section.blocks)
    assert text.endswith("for boats.")
    assert 200 < count_tokens(text) <= 256
    table = take_beginning(Page("T", (Section((), (rows,)),)), 40).sections[0].blocks[0]
    assert table.text.splitlines()[-1] in rows.text.splitlines()
    assert count_tokens(table.text) <= 44
