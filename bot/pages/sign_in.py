"""Identify a visitor of the pages, and decide what they may do; pure, except for the sessions, which are in memory.

On this machine alone, no sign-in is needed. Otherwise a visitor signs in with a token, which opens a session, or is
named by a proxy. Every change must carry a token that only one of our own pages contains.
"""

import hashlib
import hmac
import ipaddress
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bot.access import Asker
from bot.settings.tables.network_settings import LOOPBACK, ROLES, PagesSettings, PageToken, Role

SESSION_SECONDS = 12 * 60 * 60
MAX_SESSIONS = 1_000
MAX_NAME = 200  # characters of a name from a proxy
OPERATOR = "operator"  # the visitor on this machine without signing in
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


@dataclass(frozen=True, slots=True)
class Visitor:
    """A visitor, and the cookie that identifies them."""

    name: str
    role: Role
    cookie: str  # the value of the session's cookie

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)

    @property
    def asker(self) -> Asker:
        """The visitor as the record names them."""
        return Asker("pages", "terminal", user=self.name)


@dataclass
class Sessions:
    """The signed-in visitors. A restart signs everybody out."""

    clock: Callable[[], float] = time.monotonic
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _known: OrderedDict[str, tuple[PageToken, float]] = field(default_factory=OrderedDict, repr=False)

    def open(self, token: PageToken) -> str:
        """Return the cookie of a new session."""
        cookie = make_cookie()
        self._known[_digest(cookie)] = (token, self.clock() + SESSION_SECONDS)
        while len(self._known) > MAX_SESSIONS:
            self._known.popitem(last=False)
        return cookie

    def find(self, cookie: str) -> PageToken | None:
        token, until = self._known.get(_digest(cookie), (None, 0.0))
        return token if self.clock() < until else None

    def close(self, cookie: str) -> None:
        self._known.pop(_digest(cookie), None)

    def form_token(self, visitor: Visitor) -> str:
        """Return the token that a form of this visitor must send back to show that it is ours."""
        bound = f"{visitor.cookie}\n{visitor.name}".encode()
        return hmac.new(self._key, bound, hashlib.sha256).hexdigest()

    def is_form_token(self, visitor: Visitor, token: str) -> bool:
        return hmac.compare_digest(self.form_token(visitor).encode(), token.encode("utf-8", "replace"))


def make_cookie() -> str:
    return secrets.token_urlsafe(32)


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "replace")).hexdigest()


def identify(
    settings: PagesSettings, sessions: Sessions, headers: Mapping[str, str], peer: str, cookie: str
) -> Visitor | None:
    """Return the visitor who sends a request; None if they must sign in. `headers` are by lower-case names.

    If the pages are for this machine alone, a request through a proxy is refused: it comes from elsewhere.
    """
    if settings.is_open:
        forwarded = any(name in headers for name in _FORWARDED)
        return None if forwarded else Visitor(OPERATOR, "admin", cookie or make_cookie())
    if settings.proxy_header and is_proxy(settings, peer):
        name = headers.get(settings.proxy_header.lower(), "").strip()[:MAX_NAME]
        return Visitor(name, settings.proxy_roles.get(name, "reader"), cookie or make_cookie()) if name else None
    token = sessions.find(cookie)
    return Visitor(token.name, token.role, cookie) if token else None


def is_proxy(settings: PagesSettings, peer: str) -> bool:
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return any(mapped in ipaddress.ip_network(network) for network in settings.proxies)


def is_host_known(settings: PagesSettings, host: str) -> bool:
    """Return whether a `Host` header names us: a name from the settings, a name of this machine, or an IP address.

    Other web sites can make their own names resolve to this machine, but not an address.
    """
    name = host.strip().lower()
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    if name in {settings.host.lower(), *settings.hosts} or name in LOOPBACK:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
