"""Define what the server serves: its own port, the pages and MCP. Also define who may use these with which tokens."""

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from bot.settings.tables.field_types import RESTART, SCOPE, SettingsTable, WebAddress, require
from storage.language.lazy_pattern import lazy_compile

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
Role = Literal["reader", "editor", "admin"]
ROLES: tuple[Role, ...] = ("reader", "editor", "admin")
"""Each includes those before it: read and ask; rate answers; approve examples and forget documents."""
MIN_TOKEN = 20  # characters of a token of the pages
MCP = "mcp"  # the platform of requests over MCP, in ids and in the record
TOKENS, GROUPS = "tokens", "groups"  # the first part of its ids: `mcp:tokens/anna`, `mcp:groups/editors`
_NAME = r"[A-Za-z0-9][\w.-]{0,59}"
_MCP_LINE = lazy_compile(rf"(?P<name>{_NAME})(?P<groups>(\s+{_NAME})*)\s+sha256:(?P<digest>[0-9a-f]{{64}})")
_MCP_READER = lazy_compile(rf"{MCP}:({TOKENS}|{GROUPS})/{_NAME}")


class PageToken(NamedTuple):
    """A user of the pages, and the token to sign in with."""

    name: str
    role: Role
    secret: SecretStr


@dataclass(frozen=True, slots=True)
class McpToken:
    """A program that may ask: its name, its groups, and the digest of its token, which is not stored.

    The token has 256 random bits, so the digest may be shown: it does not reveal the token.
    """

    name: str
    groups: tuple[str, ...]
    digest: str


Token = TypeVar("Token", PageToken, McpToken)


def list_token_ids(name: str, groups: Iterable[str]) -> tuple[str, ...]:
    """Return the ids by which `visible_to` lets a token read a corpus: its own id, then those of its groups."""
    return (f"{MCP}:{TOKENS}/{name}", *(f"{MCP}:{GROUPS}/{group}" for group in groups))


def is_mcp_reader(text: str) -> bool:
    """Return whether a text has the form of a token's or a group's id."""
    return bool(_MCP_READER.fullmatch(text))


def digest_token(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def format_token_line(name: str, groups: tuple[str, ...], token: str) -> str:
    """Return the line of the settings for a token of MCP. Raises `ValueError` for an invalid name."""
    if not all(map(re.compile(_NAME).fullmatch, (name, *groups))):
        raise ValueError("names are letters, digits, dots, dashes and underscores, 60 at most")
    return " ".join((name, *groups, f"sha256:{digest_token(token)}"))


def _parse_lines(given: Any, parse: Callable[[str], Token], identify: Callable[[Token], Hashable]) -> tuple[Token, ...]:
    """Parse a token from each line. Raises `ValueError`, whose message shows no token."""
    if isinstance(given, tuple):
        return given
    text = given.get_secret_value() if isinstance(given, SecretStr) else given
    lines = text if isinstance(text, list) else str(text).splitlines()
    tokens = tuple(parse(str(line)) for line in lines if str(line).strip())
    names, secrets = {token.name for token in tokens}, set(map(identify, tokens))
    if len(names) < len(tokens) or len(secrets) < len(tokens):
        raise ValueError("has two lines with the same name or the same token; each must be unique")
    return tokens


def _match(tokens: Iterable[Token], sent: str, read: Callable[[Token], str]) -> Token | None:
    """Return the token for which `read` returns the value `sent`, or None. Compares all tokens in constant time."""
    value = sent.encode("utf-8", "replace")
    equal = [token for token in tokens if hmac.compare_digest(read(token).encode(), value)]
    return equal[0] if equal else None


def _parse_page_token(line: str) -> PageToken:
    match line.split():
        case [name, role, secret] if role in ROLES and len(secret) >= MIN_TOKEN:
            return PageToken(name, role, SecretStr(secret))
    raise ValueError(
        f'must have lines like "anna reader TOKEN": a name, one of {", ".join(ROLES)}, and a token of at least '
        f"{MIN_TOKEN} characters"
    )


def _parse_mcp_token(line: str) -> McpToken:
    if not (match := _MCP_LINE.fullmatch(line.strip())):
        raise ValueError('must have lines like "anna editors sha256:…", which `footnote mcp token NAME` makes')
    return McpToken(match["name"], tuple(match["groups"].split()), match["digest"])


_PageTokens = BeforeValidator(
    lambda given: _parse_lines(given, _parse_page_token, lambda token: token.secret.get_secret_value())
)
_McpTokens = BeforeValidator(lambda given: _parse_lines(given, _parse_mcp_token, lambda token: token.digest))
_HostName = Annotated[str, AfterValidator(str.lower)]


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


_Network = Annotated[str, require(_is_network, 'must be addresses or networks, such as "10.0.0.7" or "10.0.0.0/24"')]


class HttpSettings(SettingsTable):
    """Where the server listens for health checks, and for requests from platforms."""

    host: str = Field(default="127.0.0.1", min_length=1)
    port: int = Field(default=8710, ge=0, le=65_535)  # 0 takes any free one
    metrics: bool = True  # whether /metrics is served to Prometheus
    traces: WebAddress = ""  # of OpenTelemetry's collector; empty for none


class PagesSettings(SettingsTable):
    """The pages that show the record."""

    enabled: bool = False  # whether `footnote serve` serves them
    host: str = Field(default="127.0.0.1", min_length=1)
    port: int = Field(default=8711, ge=0, le=65_535)  # 0 takes any free one
    hosts: tuple[_HostName, ...] = ()  # the names that browsers reach them by
    tokens: Annotated[tuple[PageToken, ...], _PageTokens] = ()
    proxy_header: str = ""  # in which a proxy names the user who signed in there
    proxies: tuple[_Network, ...] = ()  # whose header is trusted
    proxy_roles: dict[str, Role] = Field(default_factory=dict)  # users without an entry are readers

    @property
    def is_open(self) -> bool:
        """Whether visitors need no sign-in and may do everything; `fault` allows this on a loopback address only."""
        return not self.tokens and not self.proxy_header

    def match_token(self, secret: str) -> PageToken | None:
        """Return the token with this secret; None if it is unknown."""
        return _match(self.tokens, secret.strip(), lambda token: token.secret.get_secret_value())

    @property
    def fault(self) -> str:
        """Why the pages cannot be served with these settings; empty if they can."""
        if self.proxy_header and not self.proxies:
            return "[pages] proxy_header is trusted only from addresses in proxies, which is empty"
        if self.is_open and (self.host not in LOOPBACK or self.hosts):
            return "[pages] would show the record to everyone: they are served beyond this machine"
        return ""


class McpSettings(SettingsTable):
    """Which programs may ask over MCP."""

    enabled: Annotated[bool, RESTART] = False  # whether `footnote serve` answers it over HTTP
    tokens: Annotated[tuple[McpToken, ...], _McpTokens, SCOPE] = ()
    hosts: Annotated[tuple[_HostName, ...], RESTART] = ()
    """Further names that programs reach the server by."""

    def match_token(self, secret: str) -> McpToken | None:
        """Return the token with this secret; None if it is unknown."""
        return _match(self.tokens, digest_token(secret), lambda token: token.digest)
