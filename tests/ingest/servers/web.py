"""A scripted web server on 127.0.0.1, with failures: truncated, reset or missing responses.

with serve(lambda request: Answer(200, b"hello")) as server:
    ...  # server.url, server.requests
"""

import json
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import httpx


@dataclass(frozen=True)
class Request:
    path: str  # with query
    headers: Mapping[str, str]  # by lower-case name
    form: bytes = b""  # posted body
    method: str = "GET"


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: int | None = None  # bytes of the body before the connection is closed; None: all
    stalls: bool = False  # whether the connection then stalls instead of being closed
    unsized: bool = False  # whether it has no Content-Length


Script = Callable[[Request], Answer]


class WebServer(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.requests: list[Request] = []
        self.open: set[socket.socket] = set()
        self.most_open = 0  # simultaneous connections
        self.lock = threading.Lock()

    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors: clients may disconnect."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: WebServer
    timeout = 10
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        with self.server.lock:
            still_open = {connection for connection in self.server.open if not _is_left(connection)}
            self.server.open = still_open | {self.connection}
            self.server.most_open = max(self.server.most_open, len(self.server.open))

    def finish(self) -> None:
        super().finish()
        with self.server.lock:
            self.server.open.discard(self.connection)

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""

    def _answer(self) -> None:
        form = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path, headers, form, self.command)
        self.server.requests.append(request)
        self._send(self.server.script(request) if urlsplit(self.path).path.startswith("/") else Answer(400))

    do_GET = do_POST = _answer  # noqa: N815 - the server's own names

    def _send(self, answer: Answer) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.unsized:
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body if answer.sent is None else answer.body[: answer.sent])
        if answer.stalls:
            self.connection.recv(1)  # until the client leaves
            self.close_connection = True
        elif answer.sent is not None:
            self.wfile.flush()
            # With a linger time of 0, closing sends a reset.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()


@contextmanager
def serve(script: Script) -> Iterator[WebServer]:
    with WebServer(script) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def answer_json(body: object, status: int = 200, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, json.dumps(body).encode(), {"Content-Type": "application/json", **named})


def of_paths(answers: Mapping[str, Answer]) -> Script:
    return lambda request: answers.get(request.path, Answer(404, b"not found"))


def in_turn(*answers: Answer) -> Script:
    """Return a script that gives each answer once, and repeats the last."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def ranged(request: Request, content: bytes, *, etag: str = "", modified: str = "", sent: int | None = None) -> Answer:
    """Answer with a file or a range (RFC 9110), which needs a matching `If-Range`."""
    headers = {"Accept-Ranges": "bytes"}
    if etag:
        headers["ETag"] = etag
    if modified:
        headers["Last-Modified"] = modified
    range_header = request.headers.get("range")
    condition = request.headers.get("if-range")
    if not range_header or (condition is not None and condition not in (etag, modified)):
        return Answer(200, content, headers, sent)
    first, _, last = range_header.removeprefix("bytes=").partition("-")
    start, end = int(first), int(last) + 1 if last else len(content)
    if start >= len(content):
        return Answer(416, b"", {**headers, "Content-Range": f"bytes */{len(content)}"})
    part = content[start:end]
    content_range = f"bytes {start}-{start + len(part) - 1}/{len(content)}"
    return Answer(206, part, {**headers, "Content-Range": content_range}, sent)


def transport(script: Script) -> httpx.MockTransport:
    """Return a transport to the script without a network."""

    def answered(request: httpx.Request) -> httpx.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        answer = script(Request(request.url.raw_path.decode(), headers, request.read()))
        return httpx.Response(answer.status, headers=dict(answer.headers), content=iter([answer.body]))

    return httpx.MockTransport(answered)


def _is_left(connection: socket.socket) -> bool:
    """Return whether the client has closed its end."""
    try:
        # A socket with a timeout would wait despite the flag.
        readable, _, _ = select.select([connection], [], [], 0)
        return bool(readable) and connection.recv(1, socket.MSG_PEEK) == b""
    except (OSError, ValueError):
        return True
