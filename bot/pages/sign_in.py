"""Decide who a visitor of the pages is, and what they may do there; pure but for the sessions, which are in memory.

On this machine alone nobody signs in. Elsewhere a visitor signs in by a token, which makes a session, or is named by a
proxy. Whoever changes something proves that one of our pages sent them: with a token that only such a page could hold.
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
MAX_NAME = 200  # characters of who a proxy names
OPERATOR = "operator"  # whoever reads on this machine, where nobody signs in
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who reads, and by which cookie they are known again."""

    name: str
    role: Role
    cookie: str  # the value of the session's cookie

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)

    @property
    def asker(self) -> Asker:
        """Who it is, as the record names them."""
        return Asker("pages", "terminal", user=self.name)


@dataclass
class Sessions:
    """Who has signed in. A restart signs everybody out."""

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
        """Return what a form of this visitor's must bring back."""
        bound = f"{visitor.cookie}\n{visitor.name}".encode()
        return hmac.new(self._key, bound, hashlib.sha256).hexdigest()

    def is_form_token(self, visitor: Visitor, said: str) -> bool:
        return hmac.compare_digest(self.form_token(visitor).encode(), said.encode("utf-8", "replace"))


def make_cookie() -> str:
    return secrets.token_urlsafe(32)


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "replace")).hexdigest()


def match_token(settings: PagesSettings, said: str) -> PageToken | None:
    """Return whose token it is; every token is compared, in the same time."""
    given = said.strip().encode("utf-8", "replace")
    equal = [hmac.compare_digest(one.secret.get_secret_value().encode(), given) for one in settings.tokens]
    return next((one for one, same in zip(settings.tokens, equal, strict=True) if same), None)


def identify(
    settings: PagesSettings, sessions: Sessions, headers: Mapping[str, str], peer: str, cookie: str
) -> Visitor | None:
    """Return who sends a request; None where they must sign in. `headers` are by lower-case names.

    On this machine alone, what came through a proxy is refused: it comes from elsewhere.
    """
    if settings.is_open:
        via = any(name in headers for name in _FORWARDED)
        return None if via else Visitor(OPERATOR, "admin", cookie or make_cookie())
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


def is_host_known(settings: PagesSettings, said: str) -> bool:
    """Return whether a `Host` header names us: by a name of the settings, of this machine, or by an address.

    A page elsewhere can make its own name lead to this machine, but no address.
    """
    name = said.strip().lower()
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    if name in {settings.host.lower(), *settings.hosts} or name in LOOPBACK:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
