"""Reading from web servers: pauses, retries, limits, and messages without secrets."""

import gzip
import threading
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from ingest.types import ReadingStopped, SourceUnavailable
from ingest.web.http_reply import AccessDenied, ResponseTooLarge, read_content
from ingest.web.web_client import RequestPolicy, WebClient, build_user_agent
from tests.ingest.servers.web import Answer, in_turn, of_paths, serve

AGENT = build_user_agent("ops@example.com", "1.2")


class Time:
    """A clock that only advances in `wait`, which notes the waits."""

    def __init__(self):
        self.now = 100.0
        self.waits = []

    def clock(self):
        return self.now

    def wait(self, seconds):
        self.waits.append(round(seconds, 3))
        self.now += seconds
        return False


def web(time, *, transport=None, **changes):
    policy = RequestPolicy(AGENT, **{"gap": 2.0, "tries": 4, **changes})
    return WebClient(policy, transport=transport, wait=time.wait, clock=time.clock)


def refused(work):
    with pytest.raises(SourceUnavailable) as raised:
        work()
    return f"{raised.value} {raised.value.hint}"


def test_requests_share_a_connection_name_the_agent_and_pause():
    """Each request names the operator, and follows the previous one after a gap, on the same connection."""
    time = Time()
    with serve(lambda _: Answer(200, b"ok")) as server, web(time) as client:
        for path in ("/a", "/b", "/c"):
            assert client.get(server.url + path).content == b"ok"

        assert {request.headers["user-agent"] for request in server.requests} == {AGENT}
        assert "ops@example.com" in AGENT
        assert (server.most_open, time.waits) == (1, [2.0, 2.0])


@pytest.mark.parametrize(
    ("headers", "waits"),
    [
        ({"Retry-After": "30"}, [30.0]),
        ({"Retry-After": "Sun, 01 Nov 2026 10:00:40 GMT", "Date": "Sun, 01 Nov 2026 10:00:00 GMT"}, [40.0]),
        ({"Retry-After": "soon"}, [1.0, 2.0]),
        ({}, [1.0, 2.0, 4.0]),
    ],
)
@pytest.mark.parametrize("status", [429, 500, 503])
def test_retry_after_is_obeyed(headers, waits, status):
    """The header has seconds, or a date by the server's clock; without it, waits grow from one second."""
    time = Time()

    answers = [Answer(status, headers=headers)] * len(waits) + [Answer(200, b"ok")]
    with serve(in_turn(*answers)) as server, web(time, gap=0.5) as client:
        assert client.get(server.url + "/").content == b"ok"
    # The wait is longer than the gap, so no further wait is needed.
    assert time.waits == waits


def test_client_raises_one_line_after_the_last_attempt_or_a_too_long_wait():
    """It gives up after the last attempt, or at once if it would have to wait for hours."""
    time = Time()
    answers = {"/down?token=secret": Answer(502), "/rest": Answer(503, headers={"Retry-After": "7200"})}
    with serve(of_paths(answers)) as server:
        down = refused(lambda: web(time, gap=0.0).get(f"{server.url}/down?token=secret"))
        waits, asked = time.waits, len(server.requests)
        rest = refused(lambda: web(Time()).get(f"{server.url}/rest"))

        assert (waits, asked, len(server.requests)) == ([1.0, 2.0, 4.0], 4, 5)
        assert down.startswith(f"{server.url}/down answers HTTP 502. ")
        assert "secret" not in down
        assert "asks to wait 7,200 seconds" in rest


def test_missing_pages_are_returned_and_denials_name_the_credential():
    """404 and 410 are for the caller; 401 and 403 name the credential."""
    answers = of_paths({"/gone": Answer(410), "/in": Answer(401), "/no": Answer(403)})
    with serve(answers) as server, WebClient(RequestPolicy(AGENT, gap=0.0), credential="WIKI_TOKEN") as client:
        assert client.get(server.url + "/none").status == 404
        assert client.get(server.url + "/gone").status == 410
        for path in ("/in", "/no"):
            with pytest.raises(AccessDenied) as raised:
                client.get(server.url + path)
            assert "WIKI_TOKEN" in raised.value.hint
        assert len(server.requests) == 4


def test_credentials_stay_with_their_host():
    """Redirects to another host are followed only if allowed, without credentials."""
    with serve(lambda _: Answer(200, b"media")) as other:
        answers = {
            "/a": Answer(302, headers={"Location": "/b?x=1"}),
            "/b?x=1": Answer(200, b"here"),
            "/away": Answer(307, headers={"Location": other.url + "/file"}),
            "/round": Answer(301, headers={"Location": "/round"}),
        }
        with serve(of_paths(answers)) as server:
            client = WebClient(RequestPolicy(AGENT, gap=0.0), headers={"X-Token": "t"}, auth=("ann", "pw"))
            found = client.get(server.url + "/a")
            away = client.get(server.url + "/away")
            media = client.get(server.url + "/away", follow=lambda _: True)
            round_and_round = refused(lambda: client.get(server.url + "/round"))

            assert (found.url, found.content) == (server.url + "/b?x=1", b"here")
            assert (away.status, away.headers["Location"]) == (307, other.url + "/file")
            assert media.content == b"media"
            assert all({"x-token", "authorization"} <= set(request.headers) for request in server.requests)
            assert not {"x-token", "authorization"} & set(other.requests[0].headers)
            assert "redirects too often" in round_and_round


def test_size_limit_applies_to_unpacked_responses():
    """Unpacking stops at the limit; broken and truncated responses are retried."""
    bomb = gzip.compress(bytes(50 << 20))
    packed = {"Content-Encoding": "gzip"}
    answers = {
        "/bomb": Answer(200, bomb, packed),
        "/large": Answer(200, bytes(2 << 20)),
        "/fits": Answer(200, gzip.compress(b"text"), packed),
        "/torn": Answer(200, gzip.compress(b"text" * 99)[:-9], packed),
        "/odd": Answer(200, b"no gzip", packed),
        "/brotli": Answer(200, b"x", {"Content-Encoding": "br"}),
        "/twice": Answer(200, zlib.compress(b"x"), {"Content-Encoding": "gzip, gzip"}),
    }
    with serve(of_paths(answers)) as server:
        client = web(Time(), largest=1 << 20, tries=1, gap=0.0)
        assert client.get(server.url + "/fits").content == b"text"
        for path in ("/bomb", "/large"):
            with pytest.raises(ResponseTooLarge, match="larger than 1 MB"):
                client.get(server.url + path)
        assert "closed the connection early" in refused(lambda: client.get(server.url + "/torn"))
        assert "unpacked" in refused(lambda: client.get(server.url + "/odd"))
        assert "not requested" in refused(lambda: client.get(server.url + "/brotli"))
        assert "not requested" in refused(lambda: client.get(server.url + "/twice"))


def test_bomb_is_not_unpacked_beyond_the_limit():
    """Not even if it arrives in one block."""
    bomb = httpx.Response(200, headers={"Content-Encoding": "gzip"}, request=httpx.Request("GET", "http://wiki.test/"))
    packed = gzip.compress(bytes(30 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(ResponseTooLarge):
            read_content(bomb, [packed], 1 << 20)
        assert tracemalloc.get_traced_memory()[1] < 5 << 20
    finally:
        tracemalloc.stop()


def test_very_slow_server_is_abandoned():
    """Its pauses are short, but the average is too slow."""
    time = Time()

    class Drip(httpx.SyncByteStream):
        def __iter__(self):
            for _ in range(1_000):
                time.now += 50
                yield b"x"

    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Drip()))
    assert "sends too slowly" in refused(lambda: web(time, transport=transport, tries=2).get("http://wiki.test/"))
    assert time.now < 500


@pytest.mark.parametrize(
    ("error", "explanation"),
    [
        (httpx.ConnectTimeout("x"), "did not answer in time"),
        (httpx.ReadTimeout("x"), "did not answer in time"),
        (httpx.ConnectError("[Errno -2] Name or service not known"), "cannot be reached ([Errno -2] Name or"),
        (httpx.RemoteProtocolError("peer closed"), "closed the connection early"),
    ],
)
def test_connection_errors_are_explained_without_secrets(error, explanation):
    def fail(_request):
        raise error

    client = web(Time(), transport=httpx.MockTransport(fail))
    message = refused(lambda: client.get("http://ann:pw@wiki.test/x?key=k"))
    assert message.startswith(f"http://wiki.test/x {explanation}")
    assert "pw" not in message
    assert "key" not in message


@pytest.mark.parametrize("url", ["gopher://wiki.test/", "http://[", "nothing", "http:///x", "http://a\nb/"])
def test_invalid_addresses_are_refused_in_one_line(url):
    assert "\n" not in refused(lambda: web(Time(), tries=1).get(url))


def test_stop_interrupts_a_blocking_request():
    """Later requests are refused."""
    asked, over = threading.Event(), threading.Event()

    def silent(_request):
        asked.set()
        over.wait(60)
        return Answer(200)

    with serve(silent) as server:
        client = WebClient(RequestPolicy(AGENT))
        with ThreadPoolExecutor(1) as thread:
            reading = thread.submit(client.get, server.url + "/")
            assert asked.wait(60)
            client.stop()
            with pytest.raises(ReadingStopped):
                reading.result(60)
        over.set()
        with pytest.raises(ReadingStopped):
            client.get(server.url + "/")
        assert len(server.requests) == 1


def test_stop_interrupts_a_wait():
    with serve(in_turn(Answer(503, headers={"Retry-After": "100"}))) as server:
        client = WebClient(RequestPolicy(AGENT))
        timer = threading.Timer(0.05, client.stop)
        timer.start()
        with pytest.raises(ReadingStopped):
            client.get(server.url + "/")
        timer.join()
