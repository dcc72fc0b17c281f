"""Connect only to the public web, never to this machine or its network, as the names to connect to are untrusted.

A name is resolved here, all its addresses are checked, and the connection uses a checked address. So it does not matter
if the name resolves to another address the next time (DNS rebinding).
"""

import socket
from collections.abc import Callable, Collection, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import httpx

from ingest.types import SourceUnavailable
from ingest.web.http_reply import format_url
from ingest.web.web_client import load_ssl_context

Resolve = Callable[[str, int], Sequence[str]]
"""Returns the IP addresses of a host name. Blocks. Raises `OSError`."""
_NAT64 = IPv6Network("64:ff9b::/96")
_CLOUD_SERVICES = (IPv4Network("192.0.0.0/24"), IPv4Network("168.63.129.16/32"))
"""Addresses that seem public, but where Oracle's and Azure's clouds give credentials to their own machines."""


class PrivateAddress(SourceUnavailable):
    """An address is not on the public web."""


def resolve_host(host: str, port: int) -> tuple[str, ...]:
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in answers))


def is_public(text: str) -> bool:
    """Return whether an IP address is on the public web. Pure.

    A NAT64 address counts as the IPv4 address in it; other IPv6 addresses that contain one are refused.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        if address in _NAT64:
            address = IPv4Address(int(address) & 0xFFFFFFFF)
        elif address.ipv4_mapped or address.sixtofour or address.teredo or address.is_site_local:
            return False
    if isinstance(address, IPv4Address) and any(address in network for network in _CLOUD_SERVICES):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


class PublicTransport(httpx.BaseTransport):
    """Connects only to public addresses, and to `allowed` hosts such as `wiki.lan` or `10.0.0.5:8080`."""

    def __init__(
        self,
        allowed: Collection[str] = (),
        *,
        inner: httpx.BaseTransport | None = None,
        resolve: Resolve = resolve_host,
    ) -> None:
        self._allowed, self._resolve = frozenset(allowed), resolve
        # Two names at one address must not share a connection, which was opened for one of them.
        limits = httpx.Limits(max_connections=1, max_keepalive_connections=0)
        self._inner = inner or httpx.HTTPTransport(verify=load_ssl_context(), limits=limits)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request to a checked address. Raises `PrivateAddress`."""
        failed: httpx.ConnectError | httpx.ConnectTimeout | None = None
        for address in self._find_addresses(request.url):
            sent = httpx.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,  # including Host
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": request.url.host},
            )
            try:
                return self._inner.handle_request(sent)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failed = error
        raise failed or httpx.ConnectError("its name has no address")

    def close(self) -> None:
        self._inner.close()

    def _find_addresses(self, url: httpx.URL) -> Sequence[str]:
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            addresses = self._resolve(url.host, port)
        except (OSError, UnicodeError) as error:
            raise httpx.ConnectError("its name cannot be resolved") from error
        if url.netloc.decode("ascii") not in self._allowed and not all(map(is_public, addresses)):
            hint = "Add the host to hosts in [search_engine] if its pages may be read."
            raise PrivateAddress(f"{format_url(url)} is not on the public web.", hint=hint)
        return addresses
