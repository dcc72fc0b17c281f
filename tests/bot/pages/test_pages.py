"""The pages over plain HTTP: their contents, access to them, and that recorded text is never markup."""

import asyncio
import json
import os
import re
import runpy
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Connection
from starlette.applications import Starlette
from starlette.routing import Route

from bot.app import Records
from bot.pages.page_router import HEADERS, PUBLIC
from bot.pages.pages_server import serve_pages, share_service
from bot.settings.tables.settings_tables import Settings
from bot.views.sanitize import strip_invisible
from pipeline.errors import QuestionWithoutWords
from pipeline.types import SearchStarted
from storage.record.erasure import ErasureTarget, RecordErasure
from storage.record.proof.signed_notes import create_key
from storage.record.record_search import RecordFilter
from storage.types import RECORD, EntryKind
from tests.bot.fake_services import FakeHome, FakeServices, abstained
from tests.bot.pages.made_record import (
    ADMIN,
    READER,
    TOKENS,
    WORDS,
    Texts,
    browser,
    made_app,
    make_turn,
    opened_records,
)
from tests.bot.test_example_pool import turn as confirmed_turn

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></textarea></style><svg/onload=alert(1)>",
    "{{ 7 * 7 }}{% include 'x' %}${7*7}",
    "javascript:alert(1)",
    "&lt;b&gt; &amp;amp; &#x3c;i&#x3e;",
    "<!-- --><![CDATA[ <b> ]]>",
    "\u202edesrever\u202c \u2066isolated\u2069",
    "nul \x00 bell \x07 escape \x1b[31m red",
    "line\none\r\ntwo\u2028three",
    "שלום עולם مرحبا",
    "a" * 3_000,
    "\x00split\x00",
)
LISTS = ("/answers", "/documents", "/unanswered", "/figures", "/corpora")


def list_hostile_texts() -> tuple[str, ...]:
    data = os.environ.get("FOOTNOTE_DATA", "")
    files = sorted(Path(data).glob("**/blns*.json")) if data else []
    naughty = json.loads(files[0].read_text(encoding="utf-8")) if files else []
    return (*HOSTILE, *(text for text in naughty if text.strip()))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Records, Any]]:
    with opened_records(tmp_path_factory.mktemp("home")) as opened:

        async def fill() -> None:
            records = opened[0]
            await records.audit.append(*make_turn("plain", Texts(WORDS), url="https://example.com/a"))
            await records.audit.append(*make_turn("nothing", Texts("no gym"), status="abstained"))

        asyncio.run(fill())
        yield opened


@pytest.fixture
def app(made: tuple[Records, Any]) -> Starlette:
    return made_app(*made)


class Skeleton(HTMLParser):
    """A page's elements with the names of their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(sorted(name for name, _ in attrs))))
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def routes(app: Starlette) -> list[tuple[str, str]]:
    return [
        (method, route.path.replace("{turn_id}", "plain"))
        for route in app.routes if isinstance(route, Route)
        for method in sorted(route.methods or ()) if method != "HEAD"
    ]  # fmt: skip


async def form_token(client: Any, page: str = "/") -> str:
    found = re.search(r'name="form_token" value="(\w+)"', (await client.get(page)).text)
    assert found
    return found[1]


@asynccontextmanager
async def signed_in(app: Starlette, line: str) -> AsyncIterator[httpx.AsyncClient]:
    async with browser(app) as client:
        done = await client.post("/sign-in", data={"token": line.split()[2], "next": "/answers"})
        assert (done.status_code, done.headers["location"]) == (303, "/answers")
        yield client


async def test_hostile_text_stays_text_in_every_field(made: tuple[Records, Any], app: Starlette) -> None:
    records, texts = made[0], list_hostile_texts()
    fields = 45
    for number, start in enumerate(range(0, len(texts), fields)):
        some = texts[start : start + fields]
        await records.audit.append(*make_turn(f"hostile{number}", Texts(*some), url="javascript:alert(1)"))
        tame_texts = Texts(*("tame" for _ in some))
        await records.audit.append(*make_turn(f"tame{number}", tame_texts, url="javascript:alert(1)"))
        async with browser(app) as client:
            wild, tame = [Skeleton((await client.get(f"/answers/{item}{number}")).text) for item in ("hostile", "tame")]
        assert wild.elements == tame.elements
        shown = re.sub(r"\s+", "", wild.text)
        expected = {item for item in some if len(item) > 3}
        found = sum(re.sub(r"\s+", "", strip_invisible(item)) in shown for item in expected)
        assert found >= len(expected) - len(some) // 3
        links = [value for name, value in wild.attributes if name in {"href", "action", "src"}]
        assert all(link.startswith(("/", "#", "https://")) for link in links), links


@pytest.mark.parametrize("path", LISTS)
async def test_hostile_text_stays_text_in_lists_and_forms(made: tuple[Records, Any], app: Starlette, path: str) -> None:
    await made[0].audit.append(*make_turn(f"wild{path}", Texts(*HOSTILE), url="javascript:alert(1)"))
    names = ("words", "asker", "corpus", "document", "named", "since", "until", "step", "before")
    async with browser(app) as client:
        for item in HOSTILE:
            page = Skeleton((await client.get(path, params=dict.fromkeys(names, item))).text)
            assert not {"script", "img", "b", "i"} & {tag for tag, _ in page.elements}
            assert not [name for name, _ in page.attributes if name.startswith("on")]


@pytest.mark.parametrize(("path", "expected"), [
    ("/", "Question, or statement to check"), ("/answers", "plain words"), ("/answers/plain", "Afterwards"),
    ("/documents", "plain words"), ("/corpora", "No refresh has run yet"), ("/unanswered", "asked 1 time"),
    ("/figures", "Supported statements"),
])  # fmt: skip
async def test_pages_have_no_script_and_are_not_cached(app: Starlette, path: str, expected: str) -> None:
    async with browser(app) as client:
        page = await client.get(path, params={"since": "2026-10-01", "until": "2026-10-31"})

    assert page.status_code == 200
    assert expected in Skeleton(page.text).text
    assert {name: page.headers[name] for name in HEADERS} == HEADERS
    assert page.headers["cache-control"] == "no-store"
    assert "<script" not in page.text
    assert " style=" not in page.text


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31", "2026-10-05"])
async def test_lists_accept_any_date_as_a_filter(app: Starlette, path: str, day: str) -> None:
    async with browser(app) as client:
        for asked in ({"since": day}, {"until": day}, {"since": day, "until": "2026-10-05", "step": "day"}):
            page = await client.get(path, params=asked)
            assert page.status_code in {200, 400}
            assert len(page.content) < 500_000


@pytest.mark.parametrize(("asked", "found"), [
    ({}, True), ({"words": "plain"}, True), ({"words": "zeppelin"}, False), ({"status": "answered"}, True),
    ({"status": "refused"}, False), ({"verdict": "REFUTES"}, True), ({"rating": "down"}, True),
    ({"rating": "up"}, False), ({"platform": "slack"}, True), ({"platform": "discord"}, False),
    ({"corpus": WORDS}, True),
    ({"since": "2026-10-05", "until": "2026-10-05"}, True), ({"since": "2026-10-06"}, False),
    ({"before": "1"}, False),
])  # fmt: skip
async def test_answers_are_found_by_filters(app: Starlette, asked: dict[str, str], found: bool) -> None:  # noqa: FBT001
    async with browser(app) as client:
        page = (await client.get("/answers", params=asked)).text
    assert ("/answers/plain" in page) is found


@pytest.mark.parametrize(("path", "asked", "status", "expected"), [
    ("/answers", {"since": "yesterday"}, 400, "“yesterday” is not a day"),
    ("/answers", {}, 200, ">erased</option>"),
    ("/documents", {"named": "Plain Words"}, 200, "exactly this address, title or path; capital letters matter"),
])  # fmt: skip
async def test_lists_show_their_filters_and_the_errors_of_invalid_filters(
    app: Starlette, path: str, asked: dict[str, str], status: int, expected: str
) -> None:
    async with browser(app) as client:
        page = await client.get(path, params=asked)
    assert (page.status_code, expected in page.text) == (status, True)


async def test_reading_an_answer_or_a_list_is_recorded_with_the_visitor(
    made: tuple[Records, Any], app: Starlette
) -> None:
    async with browser(app) as client:
        await client.get("/answers/plain")
        await client.get("/answers", params={"words": "plain"})
    own, lists = [await made[0].audit.turn(item) for item in ("plain", RECORD)]
    assert (own[-1].kind, own[-1].body) == (EntryKind.READ, {"by": "pages:/operator", "what": "answer"})
    assert lists[-1].body["filter"]["words"] == "plain"


async def test_receipt_proves_an_answer_and_its_download_is_recorded(made: tuple[Records, Any]) -> None:
    app = made_app(*made)
    async with browser(app) as client:
        assert "There is no signing key" in (await client.get("/answers/plain/receipt")).text
        create_key(Settings().record.key_path)
        receipt = await client.get("/answers/plain/receipt")
    script: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[3] / "docs" / "verify_receipt.py"))
    assert receipt.headers["content-disposition"] == 'attachment; filename="receipt-plain.json"'
    assert script["verify_receipt"](receipt.text)
    assert (await made[0].audit.turn("plain"))[-1].body == {"by": "pages:/operator", "what": "receipt"}


async def test_erased_text_is_on_no_page(made: tuple[Records, Any], app: Starlette) -> None:
    await made[0].audit.append(*make_turn("erasable", Texts("Zebra")))
    erasure = RecordErasure(made[0].audit.database)
    async with browser(app) as client:
        assert "Zebra" in (await client.get("/answers/erasable")).text
        await erasure.erase(ErasureTarget(conversation="erasable"), why="asked for", by="terminal", whole=False)
        story, listed = [(await client.get(path)).text for path in ("/answers/erasable", "/answers")]
    assert "Zebra" not in story
    assert '/answers/erasable">(erased)</a>' in listed
    assert "its text was erased" in story


async def test_damaged_answer_shows_its_damage(made: tuple[Records, Any], app: Starlette) -> None:
    await made[0].audit.append(*make_turn("broken", Texts("Quagga")))

    def damage(connection: Connection) -> None:
        connection.exec_driver_sql("DROP TRIGGER entries_keep_update")
        connection.exec_driver_sql("UPDATE entries SET body = '{' WHERE turn_id = 'broken' AND kind = 'turn_closed'")
        connection.exec_driver_sql("UPDATE entries SET at = '?' WHERE turn_id = 'broken' AND kind = 'turn_opened'")
        connection.exec_driver_sql("UPDATE entries SET kind = '?' WHERE turn_id = 'broken' AND kind = 'delivered'")

    await made[0].audit.database.write(damage)
    async with browser(app) as client:
        page = await client.get("/answers/broken")

    text = Skeleton(page.text).text
    assert page.status_code == 200
    for fault in ("its body cannot be read", "its moment cannot be read", "its kind, '?', is none that is known"):
        assert fault in text
    assert "Quagga" in text
    assert "erased" not in text


async def test_documents_with_the_same_title_are_distinguished(made: tuple[Records, Any], app: Starlette) -> None:
    await made[0].audit.append(*make_turn("titled", Texts("a text", "another", "a third")))
    async with browser(app) as client:
        page = (await client.get("/documents")).text
    assert re.search(r'<td>[^<]*<br><span class="detail" dir="auto">[^<]+</span></td>', page)


@pytest.mark.parametrize("task", ["ask", "check"])
async def test_question_is_answered_with_its_evidence(made: tuple[Records, Any], task: str) -> None:
    services = FakeServices()
    async with browser(made_app(*made, services)) as client:
        filled = {"form_token": await form_token(client), "question": " When does the quay open? ", "task": task}
        page = await client.post("/ask", data=filled)

    text = Skeleton(page.text).text
    assert "Searching “When does the quay open?”" in text
    assert text.index("Searching") < text.index("The quay opens at seven.")
    assert "<mark>The quay opens at seven.</mark> It closes at nine." in page.text
    assert page.text.endswith("</html>")
    assert (services.asked[0].text, services.asked[0].asker.user_id) == ("When does the quay open?", "pages:/operator")


@pytest.mark.parametrize(("outcome", "expected"), [
    (abstained(), "The nearest pages"), (QuestionWithoutWords("The question has no words."), "has no words"),
])  # fmt: skip
async def test_unanswered_page_shows_the_reason(made: tuple[Records, Any], outcome: Any, expected: str) -> None:
    async with browser(made_app(*made, FakeServices(answer=outcome))) as client:
        filled = {"form_token": await form_token(client), "question": "?"}
        page = await client.post("/ask", data=filled)
    assert expected in page.text
    assert page.text.endswith("</html>")


async def test_visitor_without_sign_in_sees_nothing(made: tuple[Records, Any]) -> None:
    app = made_app(*made, tokens=TOKENS)
    before = await made[0].search.count(RecordFilter())
    async with browser(app) as client:
        for method, path in routes(app):
            if path in PUBLIC:
                continue
            page = await client.request(method, path)
            assert page.status_code == (303 if method == "GET" else 403), path
            assert WORDS not in page.text
            assert page.headers.get("location", "/sign-in").startswith("/sign-in")
            assert "set-cookie" not in page.headers
    assert await made[0].search.count(RecordFilter()) == before


async def test_changing_routes_require_our_form_and_the_role(made: tuple[Records, Any]) -> None:
    app = made_app(*made, tokens=TOKENS)
    posts = [path for method, path in routes(app) if method == "POST" and path not in PUBLIC]
    async with signed_in(app, ADMIN) as client:
        token = await form_token(client)
        for path in posts:
            assert (await client.post(path, data={"form_token": "0" * 64})).status_code == 403, path
            assert (await client.post(path, content=b"{}")).status_code == 415, path
            for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "http://evil.example"}):
                refused = await client.post(path, data={"form_token": token}, headers=headers)
                assert refused.status_code == 403, path
    async with signed_in(app, READER) as client:
        token = await form_token(client)
        refused = [path for path in posts if "role" in (await client.post(path, data={"form_token": token})).text]
    assert refused == ["/answers/plain/rating", "/answers/plain/example", "/documents/forget"]


async def test_form_token_of_another_visitor_is_refused(made: tuple[Records, Any]) -> None:
    app = made_app(*made, tokens=TOKENS)
    async with signed_in(app, READER) as other, signed_in(app, ADMIN) as client:
        stolen = {"form_token": await form_token(other), "what": "up"}
        assert (await client.post("/answers/plain/rating", data=stolen)).status_code == 403


async def test_permitted_changes_are_made_and_recorded(made: tuple[Records, Any]) -> None:
    services = FakeServices()
    app = made_app(*made, services, tokens=TOKENS)
    async with signed_in(app, ADMIN) as client:
        token = {"form_token": await form_token(client)}
        rated = await client.post("/answers/plain/rating", data=token | {"what": "up", "comment": "right"})
        missed = await client.post("/answers/plain/rating", data=token | {"what": "missed"})
        unfit = await client.post("/answers/plain/example", data=token)
        unsure = await client.post("/documents/forget", data=token | {"corpus": "handbook", "document": "old.md"})
        assert (unsure.status_code, services.named) == (404, [])
        sure = token | {"corpus": "handbook", "document": "old.md", "sure": "yes"}
        assert (await client.post("/documents/forget", data=sure)).status_code == 303
        pages = [(await client.get(item.headers["location"])).text for item in (rated, unfit, missed)]

    assert "Your rating was recorded" in pages[0]
    assert "cannot be a worked example" in pages[1]
    assert services.named == [("old.md", "handbook")]
    entries = await made[0].audit.turn("plain")
    first, last = [entry.body for entry in entries if entry.kind is EntryKind.FEEDBACK][-2:]
    assert {"what": "up", "by": "pages:/admin", "comment": "right"}.items() <= first.items()
    assert {"what": "down", "by": "pages:/admin", "missed": True}.items() <= last.items()
    assert (await made[0].audit.turn(RECORD))[-1].body == {
        "by": "pages:/admin", "key": "forgotten", "now": "handbook: old.md"
    }  # fmt: skip


async def test_fully_confirmed_answer_becomes_an_example_once(made: tuple[Records, Any]) -> None:
    await made[0].audit.append(*confirmed_turn())
    app = made_app(*made, tokens=TOKENS)
    async with signed_in(app, ADMIN) as client:
        token = {"form_token": await form_token(client)}
        page = await client.post("/answers/t1/example", data=token, follow_redirects=True)
        assert "This is a worked example now." in page.text
        assert "/answers/t1/example" not in page.text
    assert [(item.turn_id, item.by) for item in await made[0].examples.all()] == [("t1", "pages:/admin")]


async def test_closed_page_stops_the_turn(made: tuple[Records, Any]) -> None:
    stopped = asyncio.Event()

    class Slow(FakeHome):
        async def answer(self, asked: Any, observe: Any) -> Any:
            observe(SearchStarted(asked.text))
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

    settings = Settings.model_validate({"pages": {"port": 0}})
    async with (
        serve_pages(settings, *made, share_service(Slow(FakeServices()))) as address,
        httpx.AsyncClient(base_url=address) as client,
        asyncio.timeout(60),
    ):
        filled = {"form_token": await form_token(client), "question": "When?"}
        async with client.stream("POST", "/ask", data=filled) as page:
            async for piece in page.aiter_text():
                if "Searching" in piece:
                    break
            assert not stopped.is_set()
        await stopped.wait()


async def test_sessions_end_with_signing_out(made: tuple[Records, Any]) -> None:
    app = made_app(*made, tokens=TOKENS)
    async with browser(app) as client:
        wrong = await client.post("/sign-in", data={"token": "x" * 30, "next": "//evil.example"})
        assert (wrong.status_code, "is unknown" in wrong.text, "set-cookie" in wrong.headers) == (403, True, False)
        right = await client.post("/sign-in", data={"token": READER.split()[2], "next": "//evil.example"})
        assert right.headers["location"] == "/"
        assert {"HttpOnly", "SameSite=lax"} <= set(right.headers["set-cookie"].split("; "))
        cookie = client.cookies["footnote"]
        await client.post("/sign-out", data={"form_token": await form_token(client)})
        client.cookies.set("footnote", cookie)
        assert (await client.get("/answers")).status_code == 303


@pytest.mark.parametrize(("headers", "status"), [
    ({"host": "127.0.0.1:8711"}, 200), ({"host": "localhost:8711"}, 200), ({"host": "[::1]:8711"}, 200),
    ({"host": "evil.example"}, 421), ({"host": ""}, 421), ({"x-forwarded-for": "198.51.100.7"}, 403),
])  # fmt: skip
async def test_foreign_hosts_and_forwarded_requests_are_refused_without_sign_in(
    app: Starlette, headers: dict[str, str], status: int
) -> None:
    async with browser(app) as client:
        assert (await client.get("/answers", headers=headers)).status_code == status


async def test_proxy_names_the_visitor(made: tuple[Records, Any]) -> None:
    settings = {"proxy_header": "X-Email", "proxies": ["10.0.0.0/24"], "proxy_roles": {"anna@example.com": "admin"}}
    app = made_app(*made, **settings)
    for peer, headers, shown in (
        ("10.0.0.7", {"X-Email": "anna@example.com"}, "anna@example.com, admin"),
        ("10.0.0.7", {"X-Email": "bob@example.com"}, "bob@example.com, reader"),
        ("10.0.0.7", {}, "Access is not allowed"),
        ("10.0.1.7", {"X-Email": "anna@example.com"}, "Access is not allowed"),
    ):
        async with browser(app, peer=peer, **headers) as client:
            assert shown in (await client.get("/answers")).text
