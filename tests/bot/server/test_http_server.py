"""Tests of the server's HTTP: liveness, and readiness with its reasons and without secrets."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from bot.server.http_server import (
    MAX_BODY_BYTES,
    CannotListen,
    ConnectionLimits,
    bind_socket,
    build_http_app,
    serve_http,
)
from bot.server.monitoring.health import Readiness, ReadinessCheck
from bot.server.monitoring.server_log import build_redactor
from bot.settings.tables.network_settings import HttpSettings

ANYWHERE = HttpSettings(port=0)


def says(reason: str) -> ReadinessCheck:
    async def check() -> str:
        return reason

    return check


async def breaks() -> str:
    raise OSError(28, "No space left on device", "/home/footnote.db")


async def asked(path: str, checks: Mapping[str, ReadinessCheck], *secrets: str) -> httpx.Response:
    async with (
        serve_http(ANYWHERE, build_http_app(checks, build_redactor(secrets))) as address,
        httpx.AsyncClient() as client,
    ):
        return await client.get(address + path)


@pytest.mark.parametrize(
    ("path", "checks", "expected"),
    [
        ("/healthz", {"model": "None is configured."}, {"status": "alive"}),
        ("/readyz", {"database": "", "slack": ""}, {"status": "ready", "reasons": {}}),
        (  # without the model, questions are answered by quotation
            "/readyz",
            {"model": "It does not answer.", "corpora": "travel was never read in.", "index": ""},
            {"status": "degraded", "reasons": {"model": "It does not answer.", "corpora": "travel was never read in."}},
        ),
        (  # a corpus that was never ingested does not affect the others
            "/readyz",
            {"corpora": "travel was never read in.", "index": ""},
            {"status": "ready", "reasons": {"corpora": "travel was never read in."}},
        ),
    ],
)
async def test_liveness_and_readiness_are_reported(path: str, checks: dict[str, str], expected: object) -> None:
    response = await asked(path, {name: says(reason) for name, reason in checks.items()})

    assert (response.status_code, response.json()) == (200, expected)
    assert "server" not in response.headers


async def test_readiness_reasons_are_listed_without_secrets() -> None:
    checks = {"database": breaks, "slack": says("Refused hunter22."), "index": says("")}
    response = await asked("/readyz", checks, "hunter22")

    assert response.status_code == 503
    reasons = response.json()["reasons"]
    assert reasons.keys() == {"database", "slack"}
    assert reasons["slack"] == "Refused ***."
    assert reasons["database"].startswith("No space left on device: /home/footnote.db")


async def test_simultaneous_probes_run_each_check_once() -> None:
    looks, now = 0, 0.0

    async def check() -> str:
        nonlocal looks
        looks += 1
        await asyncio.sleep(0)
        return ""

    readiness = Readiness({"database": check}, build_redactor([]), clock=lambda: now)
    await asyncio.gather(*(readiness.reasons() for _ in range(20)))
    assert looks == 1
    now = 2.0
    await readiness.reasons()
    assert looks == 2


async def test_request_bodies_of_platform_routes_are_limited(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "bot.server.http_server")

    async def echo(request: Request) -> Response:
        return PlainTextResponse(str(len(await request.body())))

    app = build_http_app({}, build_redactor([]), [Route("/slack/events", echo, methods=["POST"])])
    async with serve_http(ANYWHERE, app) as address, httpx.AsyncClient() as client:
        small = await client.post(address + "/slack/events?token=hunter22", content=b"x" * 1000)
        large = await client.post(address + "/slack/events", content=b"x" * (MAX_BODY_BYTES + 1))

    assert (small.text, large.status_code) == ("1000", 413)
    logged: list[Any] = [(r.method, r.path, r.status) for r in caplog.records if r.name == "bot.server.http_server"]  # type: ignore[attr-defined]
    assert logged == [("POST", "/slack/events", 200), ("POST", "/slack/events", 413)]
    assert "hunter22" not in caplog.text


async def test_client_that_does_not_read_is_disconnected() -> None:
    given_up = asyncio.Event()

    async def flood(_: Request) -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            try:
                for _ in range(64):  # more than any system buffers for a client that does not read
                    yield bytes(1 << 20)
            finally:
                given_up.set()

        return StreamingResponse(pieces())

    app, limits = build_http_app({}, str, [Route("/flood", flood)]), ConnectionLimits(0.05)
    async with serve_http(ANYWHERE, app, limits=limits) as address, asyncio.timeout(60):
        _, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"GET /flood HTTP/1.1\r\nHost: x\r\n\r\n")
        await given_up.wait()
        writer.close()


@pytest.mark.parametrize(
    "sent", [b"", b"POST /slack/events HT", b"POST /slack/events HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"]
)
async def test_incomplete_requests_are_disconnected(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    begun, given_up = asyncio.Event(), asyncio.Event()

    async def echo(request: Request) -> Response:
        return PlainTextResponse(str(len(await request.body())))

    async def think(_: Request) -> Response:
        begun.set()
        await given_up.wait()
        return PlainTextResponse("42")

    routes = [Route("/slack/events", echo, methods=["POST"]), Route("/think", think)]
    app, limits = build_http_app({}, str, routes), ConnectionLimits(0.5)
    async with serve_http(ANYWHERE, app, limits=limits) as address, httpx.AsyncClient() as client, asyncio.timeout(60):
        thinking = asyncio.create_task(client.get(address + "/think"))
        await begun.wait()
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
        writer.write(sent)
        assert (await client.get(address + "/healthz")).status_code == 200
        with suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
        given_up.set()
        assert (await thinking).text == "42"

    assert "Traceback" not in caplog.text


async def test_idle_connections_do_not_block_others() -> None:
    app, limits = build_http_app({}, str), ConnectionLimits(connections=5)
    async with serve_http(ANYWHERE, app, limits=limits) as address, httpx.AsyncClient() as client, asyncio.timeout(60):
        assert (await client.get(address + "/healthz")).status_code == 200
        idle = [await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2])) for _ in range(9)]
        assert (await client.get(address + "/healthz")).status_code == 200
        with suppress(ConnectionError):
            assert await idle[0][0].read() == b""
        for _, writer in idle:
            writer.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
async def test_server_answers_at_its_address(host: str) -> None:
    at = HttpSettings(host=host, port=0)
    async with serve_http(at, build_http_app({}, build_redactor([]))) as address, httpx.AsyncClient() as client:
        assert (await client.get(address + "/healthz")).status_code == 200


def test_used_port_is_reported_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(CannotListen, match=f"Another program listens at 127.0.0.1:{port}.") as caught:
            bind_socket("127.0.0.1", port)
    assert "[http]" in caught.value.hint


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("192.0.2.1", r"^Cannot listen at 192\.0\.2\.1:80: it is not an address of this machine"),
        *(
            (host, ": (it is not a host name|this machine cannot resolve the name)")
            for host in ("a" * 70, "x..y", "é" * 70)
        ),
    ],
)
def test_invalid_host_is_reported_plainly(host: str, reason: str) -> None:
    with pytest.raises(CannotListen, match=rf"{reason}\.$"):
        bind_socket(host, 80)
