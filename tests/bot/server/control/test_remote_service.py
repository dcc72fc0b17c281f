"""Tests that a home behaves the same through its control socket as directly."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from bot.access import Asker
from bot.server.control import control_protocol
from bot.server.control.control_server import build_control_app, serve_control
from bot.server.control.control_socket import connect_service, find_socket, open_socket
from bot.server.control.remote_service import RemoteError, RemoteService, ServerGone, VersionMismatch
from bot.server.http_server import serve_socket
from bot.server.service import LocalService
from bot.settings.live.live_settings import ReloadReport
from bot.settings.tables.source_settings import FolderSettings
from bot.types import Failure, TurnRequest, TurnResult
from bot.views.error_messages import ReportableError, explain_error
from ingest.types import RefreshProgress, RefreshRefused
from pipeline.types import Answer, AnsweredSentence, Event, SearchStarted, SentencePassed, Status
from storage.errors import UnknownCorpus
from tests.bot.fake_services import FakeHome, FakeServices, answered, hit

ASKER = Asker("terminal", "terminal", user="ada", shared_with_other_organisations=False)
ASKED = TurnRequest("When does the quay open?", ASKER, corpora=("handbook",))


@asynccontextmanager
async def remote(home: LocalService, folder: Path) -> AsyncIterator[LocalService]:
    async with serve_control(home, folder, grace=5), connect_service(folder) as there:
        assert isinstance(there, RemoteService)
        yield there


@dataclass
class Slow(FakeHome):
    """A service that sends a sentence and then blocks; it records cancellation."""

    began: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    recorded: list[str] = field(default_factory=list)

    async def answer(self, asked: TurnRequest, report: Callable[[Event], None]) -> TurnResult:
        report(SentencePassed(AnsweredSentence(asked.text, (1,))))
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)  # as long as closing a record takes
            self.recorded.append("cancelled")
            self.ended.set()
            raise
        raise AssertionError


async def failing(services: FakeServices) -> RemoteError:
    async with remote(FakeHome(services), Path.cwd()) as home:
        with pytest.raises(RemoteError) as caught:
            await home.answer(ASKED, lambda _: None)
    return caught.value


async def test_question_and_answer_are_transferred_whole() -> None:
    services, events = FakeServices(), list[Event]()
    async with remote(FakeHome(services), Path.cwd()) as home:
        done = await home.answer(ASKED, events.append)
        checked = await home.check(ASKED, events.append)

    assert (done, checked) == (answered(), answered())
    assert services.asked == [ASKED, ASKED]
    assert events == [SearchStarted(ASKED.text)] * 2


async def test_search_listing_and_refresh_are_transferred() -> None:
    services, steps = FakeServices(hits=(hit(1), hit(2))), list[RefreshProgress]()
    source = FolderSettings(type="folder", path=Path("docs"), include=("*.md",))
    async with remote(FakeHome(services), Path.cwd()) as home:
        assert await home.search("quay", ["a", "b"], 5) == services.hits
        assert await home.corpora() == services.corpora
        assert await home.refresh("handbook", source, steps.append) == services.report
        options = {"confirm_removal": True, "engine": "ray", "dense": "lazy"}
        assert await home.refresh("handbook", source, steps.append, **options) == services.report
        assert await home.read_one("quay.md", {"handbook": source}) == (services.report,)
        assert await home.forget("old.md", "handbook") == services.forgotten
        assert await home.remove("handbook") == services.report
        assert await home.reload() == ReloadReport(changed=("limits.seconds",), waiting=("home",))

    assert services.searched == [("quay", ("a", "b"), 5)]
    assert services.sources == [source.model_dump(exclude={"type"})] * 2
    assert services.confirmed == [False, True]
    assert services.removed == ["handbook"]
    assert services.engines == [None, "ray"]
    assert services.denses == [None, "lazy"]
    assert services.named == [("quay.md", {"handbook": source}), ("old.md", "handbook")]
    assert steps == [RefreshProgress(3, 3, 9, 1.5)] * 2


@pytest.mark.parametrize(
    "error",
    [
        UnknownCorpus("There is no corpus “x”.", hint="There are: y."),
        RefreshRefused("It would remove everything.", hint="Look at the folder."),
        FileNotFoundError(2, "No such file or directory", "docs"),
    ],
)
async def test_server_error_is_reported_like_a_local_one(error: Exception) -> None:
    caught = await failing(FakeServices(answer=error))

    assert isinstance(caught, ReportableError)
    assert explain_error(caught) == explain_error(error)


async def test_paths_that_are_not_unicode_are_reported() -> None:
    """Paths may contain any bytes; the protocol carries only text."""
    error = FileNotFoundError(2, "No such file or directory", "caf\udce9")
    assert str(await failing(FakeServices(answer=error))) == "No such file or directory: caf?."

    async with remote(FakeHome(FakeServices()), Path.cwd()) as home:
        source = FolderSettings(type="folder", path=Path("caf\udce9"))
        with pytest.raises(control_protocol.NotText) as caught:
            await home.refresh("docs", source, lambda _: None)
    assert isinstance(caught.value, ReportableError)


async def test_unexpected_error_is_reported_and_logged_by_the_server(caplog: pytest.LogCaptureFixture) -> None:
    error = ZeroDivisionError("by zero")
    caught = await failing(FakeServices(answer=error))

    assert explain_error(caught) == explain_error(error)
    assert "ZeroDivisionError" in caplog.text


async def test_reportable_error_is_logged_by_the_server_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "bot.server.control.control_server")
    await failing(FakeServices(answer=UnknownCorpus("There is no corpus “x”.", hint="There are: y.")))

    class Failing(FakeHome):
        async def answer(self, asked: TurnRequest, report: Callable[[Event], None]) -> TurnResult:
            done = await FakeHome.answer(self, asked, report)
            why = Failure("home_unusable", "The disk that holds home is full.", "Free some space.")
            return replace(done, answer=Answer(Status.FAILED), failure=why)

    async with remote(Failing(FakeServices()), Path.cwd()) as home:
        await home.answer(ASKED, lambda _: None)

    logged = [
        (record.levelname, record.cause)
        for record in caplog.records
        if record.name == "bot.server.control.control_server"
    ]  # type: ignore[attr-defined]
    assert logged == [
        ("INFO", "There is no corpus “x” — There are: y."),
        ("WARNING", "The disk that holds home is full — Free some space."),
    ]


async def test_sentences_arrive_before_the_answer_is_complete() -> None:
    slow, events = Slow(FakeServices()), asyncio.Queue[Event]()
    async with remote(slow, Path.cwd()) as home:
        asking = asyncio.create_task(home.answer(ASKED, events.put_nowait))
        assert await events.get() == SentencePassed(AnsweredSentence(ASKED.text, (1,)))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        async with asyncio.timeout(60):
            await slow.ended.wait()

    assert slow.recorded == ["cancelled"]


async def test_stopped_server_ends_its_turns_before_closing(caplog: pytest.LogCaptureFixture) -> None:
    slow = Slow(FakeServices())
    with open_socket(Path.cwd()) as bound:
        async with serve_socket(build_control_app(slow), bound, grace=0), connect_service(Path.cwd()) as home:
            assert home
            asking = asyncio.create_task(home.answer(ASKED, lambda _: None))
            await slow.began.wait()
        assert slow.recorded == ["cancelled"]
        assert "Traceback" not in caplog.text
        with pytest.raises(ServerGone, match=r"stopped before the command was done\.") as caught:
            await asking

    assert caught.value.hint


async def test_simultaneous_questions_get_their_own_answers() -> None:
    class Echo(FakeHome):
        async def answer(self, asked: TurnRequest, report: Callable[[Event], None]) -> TurnResult:
            await asyncio.sleep(0)
            report(SearchStarted(asked.text))
            return answered(text=asked.text)

    async with remote(Echo(FakeServices()), Path.cwd()) as home:
        texts = [f"question {number}" for number in range(30)]
        done = await asyncio.gather(*(home.answer(TurnRequest(text, ASKER), lambda _: None) for text in texts))

    assert [result.text for result in done] == texts


async def test_other_version_of_the_server_is_reported() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        hello = control_protocol.encode_message(control_protocol.ServerHello(os.getpid(), "9.9.9", "another"))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": hello})

    with open_socket(Path.cwd()) as bound:
        async with serve_socket(app, bound, grace=1):
            with pytest.raises(VersionMismatch, match=r"another version: 9\.9\.9; this command has \S+\.") as caught:
                async with connect_service(Path.cwd()):
                    pass
    assert caught.value.hint


async def test_socket_that_closes_without_a_greeting_is_not_taken_for_a_server() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    with open_socket(Path.cwd()) as bound:
        async with await asyncio.start_unix_server(hang_up, sock=bound), connect_service(Path.cwd()) as home:
            assert home is None
    async with connect_service(Path.cwd()) as home:
        assert home is None


async def test_interrupted_server_is_reported_in_one_line() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        hello = (
            control_protocol.encode_message(control_protocol.ServerHello(1, "x", control_protocol.hash_protocol()))
            if b"/hello" in request
            else b""
        )
        line = hello or control_protocol.encode_message(SearchStarted("quay"))
        head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(line)}\r\n\r\n"
        writer.write(head.encode() + line)
        await writer.drain()
        writer.close()

    with open_socket(Path.cwd()) as bound:
        async with await asyncio.start_unix_server(hang_up, sock=bound), connect_service(Path.cwd()) as home:
            assert home
            with pytest.raises(ServerGone):
                await home.answer(ASKED, lambda _: None)


async def test_malformed_request_is_refused_harmlessly() -> None:
    async with serve_control(FakeHome(FakeServices()), Path.cwd(), grace=5):
        transport = httpx.AsyncHTTPTransport(uds=str(find_socket(Path.cwd())))
        async with httpx.AsyncClient(transport=transport, base_url="http://footnote") as client:
            statuses = [
                (await client.post("/answer", content=b"{")).status_code,
                (await client.get("/answer")).status_code,
                (await client.post("/nothing")).status_code,
            ]
            server = (await client.get("/hello")).headers.get("server")

        assert statuses == [400, 405, 404]
        assert server is None
        async with connect_service(Path.cwd()) as home:
            assert home
            assert await home.answer(ASKED, lambda _: None) == answered()


async def test_home_with_a_long_path_is_reachable(tmp_path: Path) -> None:
    folder = tmp_path / ("h" * 200)
    folder.mkdir()
    async with remote(FakeHome(FakeServices()), folder) as home:
        assert await home.answer(ASKED, lambda _: None) == answered()
    with socket.socket(socket.AF_UNIX) as client, pytest.raises(OSError, match="path too long"):
        client.connect(str(folder / "control" / "socket"))
