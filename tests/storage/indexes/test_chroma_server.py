"""Tests of Chroma servers and Chroma Cloud: address, requests, credentials, and reported errors."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest

from storage.errors import StorageError
from storage.indexes.chroma_connection import ChromaServer, connect_chroma, probe_chroma
from storage.indexes.dense import DenseIndex
from storage.types import Passage
from tests.thorough import TEAM

if TYPE_CHECKING:
    from tests.team_servers import TeamServers

Reply = tuple[int, str]
MOST = 300  # the number that Chroma Cloud writes and returns at a time


@contextmanager
def serving(
    answer: Callable[[BaseHTTPRequestHandler, bytes], Reply], tls: ssl.SSLContext | None = None
) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, text = answer(self, body)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(text.encode())

        do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - as the server calls them

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("reply", "token", "said"),
    [
        ((200, '"0.6.3"'), "", "has version 0.6.3; version 1 is needed"),
        ((404, "no such page"), "", "does not answer like Chroma"),
        ((200, "<html>"), "", "does not answer like Chroma"),
        ((401, "{}"), "tok-1", "refuses the token"),
        ((403, "{}"), "", "requires a token"),
        ((502, "bad gateway of tok-1"), "tok-1", "does not answer like Chroma"),
    ],
)
def test_unsuitable_server_is_reported(reply: Reply, token: str, said: str) -> None:
    with serving(lambda *_: reply) as url, pytest.raises(StorageError, match=said) as caught:
        connect_chroma(ChromaServer(url, token=token))

    assert caught.value.hint
    assert "tok-1" not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize(
    ("scheme", "sent"), [("x-chroma-token", {"x-chroma-token": "t"}), ("bearer", {"Authorization": "Bearer t"})]
)
def test_token_is_sent_in_the_header_of_its_scheme(scheme, sent):
    assert ChromaServer("http://x", token="t", scheme=scheme).headers == sent
    assert ChromaServer("http://x", scheme=scheme).headers == {}


def test_absent_or_silent_server_is_reported():
    go_on = threading.Event()
    with serving(lambda *_: (go_on.wait(60), (200, "1"))[1]) as url:
        with pytest.raises(StorageError, match="does not answer"):
            connect_chroma(ChromaServer(url, seconds=0.05))
        go_on.set()
    with pytest.raises(StorageError, match="does not answer"):
        connect_chroma(ChromaServer(url))


def test_file_without_certificates_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"none\.pem cannot be read"):
        connect_chroma(ChromaServer("https://127.0.0.1:9", ca_file=tmp_path / "none.pem"))


def make_certificate(folder: Path) -> Path:
    """Make a self-signed certificate for 127.0.0.1 and its key, in one file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "chroma")])
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
    here = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    signed = made.add_extension(here, critical=False).sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / "server.pem"
    file.write_bytes(secret + signed.public_bytes(pem))
    return file


@pytest.fixture
def cloud(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ChromaServer]:
    """Put https, tokens and quotas in front of a Chroma server, as Chroma Cloud does."""
    if not TEAM:
        pytest.skip("make team starts a Chroma server")
    behind: TeamServers = request.getfixturevalue("team_servers")
    behind.make_chroma_database("handbook")

    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> Reply:
        if handler.headers["X-Chroma-Token"] != "ck-1":
            return 401, "{}"
        if handler.path.endswith("/auth/identity"):
            return 200, json.dumps({"user_id": "u", "tenant": "default_tenant", "databases": ["handbook"]})
        sent = json.loads(body) if body else {}
        if len(sent.get("ids") or ()) > MOST or (sent.get("limit") or sent.get("n_results") or 0) > MOST:
            return 400, json.dumps({"error": "QuotaError", "message": "quota"})
        passed = Request(behind.chroma_url + handler.path, body or None, method=handler.command)
        passed.add_header("Content-Type", "application/json")
        try:
            with urlopen(passed) as reply:
                return reply.status, reply.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()

    with ExitStack() as stack:
        certificate = make_certificate(tmp_path)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
        url = stack.enter_context(serving(answer, tls))
        yield ChromaServer(url, token="ck-1", ca_file=certificate)


def test_cloud_quotas_are_respected(cloud: ChromaServer) -> None:
    probe_chroma(cloud)
    ids = [f"{number:04}" for number in range(MOST * 2 + 1)]
    passages = [Passage(id_, "c", "d", "", id_, 0, id_) for id_ in ids]
    with closing(DenseIndex(cloud, embedder="e")) as index:
        for start in range(0, len(ids), 32):
            part = passages[start : start + 32]
            index.upsert(part, np.eye(3, dtype=np.float32)[[0] * len(part)])
        assert (len(index.contents("c")), index.corpora()) == (len(ids), ("c",))
        index.delete("c", ids)
        assert index.count("c") == 0


def test_unknown_certificate_authority_is_refused(cloud: ChromaServer) -> None:
    with pytest.raises(StorageError, match="does not answer"):
        connect_chroma(ChromaServer(cloud.url, token=cloud.token))
