"""Tests of calls over HTTP with the official client, in both versions of the protocol and within rights."""

import asyncio
from typing import Any

import httpx
import pytest

from bot.access import select_readable
from bot.server.http_server import MAX_BODY_BYTES
from bot.server.mcp.tool_calls import TOOLS, make_owner_asker, make_token_asker
from bot.server.mcp.tool_results import QUOTED
from pipeline.errors import ModelUnavailable
from pipeline.types import Answer, Status
from tests.bot.fake_services import abstained, answered
from tests.bot.server.mcp.programs import ANNA, BOB, ERAS, EVE, SETTINGS, Library, call, connected, served

LISTING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
OPENING = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": _HELLO}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def quick(**changes: Any) -> Library:
    library = Library(**changes)
    library.open.set()
    return library


async def test_every_tool_is_listed_and_answers(era: str) -> None:
    library, progress = quick(), list[str | None]()

    async def hear(_: float, __: float | None, message: str | None) -> None:
        progress.append(message)

    async with served(library) as address, connected(address, ANNA, era) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        answer = await client.call_tool("ask", {"question": "When does the quay open?"}, progress_callback=hear)
        text, checked = await call(client, "check", claim="The quay opens at eight.", corpora=["handbook"])
        found, passages = await call(client, "search", query="quay", count=3)
        listed, corpora = await call(client, "sources")

    assert tools.keys() == TOOLS.keys()
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
    assert "citations" in (tools["ask"].output_schema or {})["required"]
    result = answer.structured_content
    assert (result["status"], result["answer_id"], result["notice"]) == ("answered", "abc123", QUOTED)
    assert result["sentences"] == [{"text": "The quay opens at seven.", "citations": [1], "note": ""}]
    assert result["citations"][0] | {"title": "Harbour", "quote": "The quay opens at seven."} == result["citations"][0]
    assert result["citations"][0].keys() >= {"url", "date", "passage_id"}
    assert len(progress) >= 2
    assert "quay" in str(progress[0])
    assert checked["answer_id"] == "abc123"
    assert "The quay opens at seven." in text
    assert passages["passages"][0]["text"] in found
    assert library.searched == [("quay", ("handbook",), 3)]
    assert [item["name"] for item in corpora["corpora"]] == ["handbook"]
    assert "handbook" in listed
    assert [(item.asker, item.corpora) for item in library.asked] == [
        (make_token_asker("anna", ["editors"]), ()),
        (make_token_asker("anna", ["editors"]), ("handbook",)),
    ]


async def test_token_reads_only_corpora_that_name_it() -> None:
    library = quick()
    async with served(library) as address:
        for token, name in ((ANNA, "handbook"), (BOB, "minutes")):
            async with connected(address, token) as client:
                _, listed = await call(client, "sources")
                await call(client, "search", query="pay")
                stolen = await client.call_tool("search", {"query": "pay", "corpora": ["salaries"]})

            assert [corpus["name"] for corpus in listed["corpora"]] == [name]
            assert library.searched.pop() == ("pay", (name,), 8)
            assert stolen.is_error
            assert stolen.content[0].text.count("salaries") == 1


def test_empty_scope_reads_nothing() -> None:
    corpora = SETTINGS.visible_to | {"open": ("*",)}

    assert select_readable(corpora, make_token_asker("carol", ())) == ()
    assert select_readable(corpora, make_token_asker("anna", ("editors",))) == ("handbook",)
    assert select_readable(corpora, make_owner_asker("root")) == tuple(corpora)


async def test_access_needs_a_token_and_the_right_host() -> None:
    known = {"Authorization": f"Bearer {ANNA}"}
    refused = [
        ({}, 401),
        ({"Authorization": f"Bearer {EVE}"}, 401),
        ({"Authorization": f"Basic {ANNA}"}, 401),
        (known | {"Host": "evil.example"}, 421),
        (known | {"Origin": "https://evil.example"}, 403),
    ]
    async with served(quick()) as address, httpx.AsyncClient(headers=ACCEPT) as client:
        for headers, status in refused:
            response = await client.post(address, json=LISTING, headers=headers)
            assert response.status_code == status
            assert (status == 401) == response.headers.get("www-authenticate", "").startswith("Bearer")
        assert (await client.get(address, headers=known)).status_code == 405
        assert (await client.post(address, content=b" " * (MAX_BODY_BYTES + 1), headers=known)).status_code == 413


async def test_session_is_refused_for_another_token() -> None:
    async with served(quick()) as address, httpx.AsyncClient(headers=ACCEPT) as client:
        opened = await client.post(address, json=OPENING, headers={"Authorization": f"Bearer {ANNA}"})
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        stolen = await client.post(address, json=LISTING, headers={"Authorization": f"Bearer {BOB}", **session})

    assert (opened.status_code, stolen.status_code) == (200, 404)


async def test_cancelled_call_is_stopped(era: str) -> None:
    library = Library()
    async with served(library) as address, connected(address, ANNA, era) as client:
        asking = asyncio.create_task(client.call_tool("ask", {"question": "When?"}))
        await library.begun.wait()
        asking.cancel()
        await asyncio.wait_for(library.stopped.wait(), 30)
        assert (await client.list_tools()).tools


async def test_broken_connection_stops_its_call(era: str) -> None:
    library = Library()
    about: dict[str, Any] = {"name": "ask", "arguments": {"question": "When?"}}
    async with served(library) as address:
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {ANNA}", **ACCEPT}) as client:
            if era == "legacy":
                opened = await client.post(address, json=OPENING)
                client.headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
                await client.post(address, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
            else:
                metadata = {"protocolVersion": era, "clientCapabilities": {}}
                about["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in metadata.items()}
                client.headers.update({"Mcp-Protocol-Version": era, "Mcp-Method": "tools/call", "Mcp-Name": "ask"})
            calling = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": about}
            posting = asyncio.create_task(client.post(address, json=calling, timeout=30))
            await asyncio.wait_for(library.begun.wait(), 30)
            posting.cancel()
        await asyncio.wait_for(library.stopped.wait(), 30)


async def test_stopping_server_stops_its_calls() -> None:
    library, hurried = Library(), asyncio.Event()
    hurried.set()

    async def ask(address: str) -> None:
        async with connected(address, ANNA) as client:
            await client.call_tool("ask", {"question": "When?"})

    async with served(library, hurried=hurried) as address:
        asking = asyncio.create_task(ask(address))
        await library.begun.wait()
    assert library.stopped.is_set()
    assert (await asyncio.gather(asking, return_exceptions=True))[0]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "question: Field required"),
        ({"question": "When?", "corpus": "x"}, "corpus: Extra inputs"),
        ({"question": 7}, "question: Input should be"),
    ],
)
async def test_wrong_arguments_are_reported(given: dict[str, Any], expected: str) -> None:
    async with served(quick()) as address, connected(address, ANNA) as client:
        done = await client.call_tool("ask", given)

    assert done.is_error
    assert expected in done.content[0].text


async def test_failure_is_returned_as_a_result() -> None:
    failed = answered(answer=Answer(Status.FAILED), text="Something went wrong.")
    library = quick(result=abstained())
    async with served(library) as address, connected(address, ANNA) as client:
        text, result = await call(client, "ask", question="When?")
        library.result = failed
        broken = await client.call_tool("ask", {"question": "When?"})
        library.result = ModelUnavailable("The model does not answer.", hint="Try later.")
        down = await client.call_tool("ask", {"question": "When?"})

    assert result["status"] == "abstained"
    assert result["nearest"][0]["title"] == "Harbour"
    assert "I found nothing." in text
    assert broken.is_error
    assert broken.structured_content["text"] == "Something went wrong."
    assert down.is_error
    assert down.content[0].text == "The model does not answer — Try later."


async def test_bug_report_omits_the_error_text(caplog: pytest.LogCaptureFixture) -> None:
    library = quick(result=RuntimeError("hunter2"))
    async with served(library) as address, connected(address, ANNA) as client:
        done = await client.call_tool("ask", {"question": "When?"})

    assert done.is_error
    assert "hunter2" not in str(done)
    assert "hunter2" in caplog.text
