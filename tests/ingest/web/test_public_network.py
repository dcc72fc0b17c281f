"""Only the public web is read, in any spelling of an address, after redirects, and if a name resolves otherwise."""

import socket
from ipaddress import IPv4Address, IPv6Address

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.types import SourceUnavailable
from ingest.web.public_network import PrivateAddress, PublicTransport, is_public, resolve_host
from ingest.web.web_client import RequestPolicy, WebClient
from tests.ingest.servers.web import Answer, of_paths, serve

PRIVATE = (
    *("127.0.0.1", "127.8.9.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1"),
    *("224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1"),
    *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12:3456::1", "fec0::1", "ff02::1", "2001:db8::1"),
    *("::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2001:0:1::1"),
    *("192.0.0.192", "168.63.129.16", "64:ff9b::c000:c0", "64:ff9b::a83f:8110"),
    *("localhost", "", "8.8.8.8.8"),
)


@pytest.mark.parametrize("text", PRIVATE)
def test_private_addresses_are_not_public(text: str) -> None:
    assert not is_public(text)


@pytest.mark.parametrize("text", ["8.8.8.8", "93.184.215.14", "2606:4700::1111", "64:ff9b::808:808"])
def test_public_addresses_are_public(text: str) -> None:
    assert is_public(text)


@given(st.integers(0, 2**32 - 1))
def test_embedded_address_decides_whether_an_address_is_public(number: int) -> None:
    """Addresses of translators and tunnels contain another address."""
    plain = IPv4Address(number)
    for hidden in (f"64:ff9b::{plain}", f"::ffff:{plain}", str(IPv6Address((0x2002 << 112) | (number << 80)))):
        assert is_public(str(plain)) or not is_public(hidden)


class Connected(httpx.BaseTransport):
    """A transport that notes the targets of requests, and sends none."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return httpx.Response(200, content=b"hello", request=request)


@pytest.mark.parametrize("found", [("10.0.0.1",), ("93.184.215.14", "127.0.0.1"), ("::1",)])
def test_name_with_a_private_address_is_refused(found: tuple[str, ...]) -> None:
    """It is refused even if it also has a public one."""
    inner = Connected()
    transport = PublicTransport(inner=inner, resolve=lambda *_: found)
    with httpx.Client(transport=transport) as client, pytest.raises(PrivateAddress) as raised:
        client.get("https://user:secret@news.example/a?token=secret")
    assert not inner.requests
    assert "secret" not in str(raised.value)


def test_checked_address_is_used_under_the_host_name() -> None:
    """The name is not resolved again."""
    answers = [("93.184.215.14",), ("127.0.0.1",)]
    inner = Connected()
    transport = PublicTransport(inner=inner, resolve=lambda *_: answers.pop(0))
    with httpx.Client(transport=transport) as client:
        reply = client.get("https://news.example/a")
    (sent,) = inner.requests
    assert (sent.url.host, sent.headers["Host"], sent.extensions["sni_hostname"]) == (
        "93.184.215.14",
        "news.example",
        "news.example",
    )
    assert str(reply.url) == "https://news.example/a"
    assert len(answers) == 1


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "0x7f.1", "2130706433", "127.1", "0", "[::1]", "[::ffff:127.0.0.1]"]
)
def test_no_spelling_of_the_local_address_connects(host: str) -> None:
    """A server listens, and the C library accepts many spellings of a number."""

    def resolve(name: str, port: int) -> tuple[str, ...]:
        if ":" in name:
            return (name,)
        return (socket.inet_ntoa(socket.inet_aton(name)),) if name[0].isdigit() else resolve_host(name, port)

    with serve(of_paths({"/": Answer(200, b"secret")})) as server:
        port = server.url.rpartition(":")[2]
        client = WebClient(RequestPolicy("Test", gap=0.0, tries=1), transport=PublicTransport(resolve=resolve))
        with pytest.raises(SourceUnavailable):
            client.get(f"http://{host}:{port}/")
        assert server.requests == []


def test_redirect_to_a_private_address_is_refused() -> None:
    """An allowed host is only allowed at its port."""
    with serve(of_paths({"/": Answer(200, b"secret")})) as inside:
        with serve(of_paths({"/": Answer(302, b"", {"Location": inside.url + "/"})})) as outside:
            allowed = [outside.url.partition("://")[2]]
            client = WebClient(RequestPolicy("Test", gap=0.0, tries=1), transport=PublicTransport(allowed))
            with pytest.raises(PrivateAddress):
                client.get(outside.url + "/", follow=lambda _: True)
        assert inside.requests == []
