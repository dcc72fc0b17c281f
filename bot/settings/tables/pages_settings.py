"""Define where the pages are served, and who may read them."""

import ipaddress
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from bot.settings.tables.field_types import SettingsTable, require

Role = Literal["reader", "editor", "admin"]
ROLES: tuple[Role, ...] = ("reader", "editor", "admin")
"""Each may what those before it may: read and ask; rate answers; approve examples and forget documents."""
MIN_TOKEN = 20  # characters
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class PageToken(NamedTuple):
    """Somebody who signs in, and by what."""

    name: str
    role: Role
    secret: SecretStr


def _parse_tokens(said: Any) -> Any:
    """Read lines of a name, a role and a token each. Raises `ValueError`, which shows no token."""
    if isinstance(said, tuple):
        return said
    if isinstance(said, SecretStr):
        said = said.get_secret_value()
    lines = said if isinstance(said, list) else str(said).splitlines()
    found = tuple(_parse_token(str(line)) for line in lines if str(line).strip())
    names, secrets = {one.name for one in found}, {one.secret.get_secret_value() for one in found}
    if len(names) < len(found) or len(secrets) < len(found):
        raise ValueError("has two lines with one name or one token, and each is somebody's own")
    return found


def _parse_token(line: str) -> PageToken:
    match line.split():
        case [name, role, secret] if role in ROLES and len(secret) >= MIN_TOKEN:
            return PageToken(name, role, SecretStr(secret))
    raise ValueError(
        f'must have lines like "anna reader TOKEN": a name, one of {", ".join(ROLES)}, and a token of at least '
        f"{MIN_TOKEN} characters"
    )


def _is_network(said: str) -> bool:
    try:
        ipaddress.ip_network(said)
    except ValueError:
        return False
    return True


_Network = Annotated[str, require(_is_network, 'must be addresses or networks, such as "10.0.0.7" or "10.0.0.0/24"')]


class PagesSettings(SettingsTable):
    """The pages on which the record is read."""

    enabled: bool = False  # whether `footnote serve` serves them
    host: str = Field(default="127.0.0.1", min_length=1)
    port: int = Field(default=8711, ge=0, le=65_535)  # 0 takes any that is free
    hosts: tuple[Annotated[str, AfterValidator(str.lower)], ...] = ()  # the names that browsers reach them by
    tokens: Annotated[tuple[PageToken, ...], BeforeValidator(_parse_tokens)] = ()
    proxy_header: str = ""  # what a proxy names the person in who has signed in there
    proxies: tuple[_Network, ...] = ()  # whose header is believed
    proxy_roles: dict[str, Role] = Field(default_factory=dict)  # whoever is not named is a reader

    @property
    def is_open(self) -> bool:
        """Whether whoever reaches them may do all: on this machine alone, where nobody is told to sign in."""
        return not self.tokens and not self.proxy_header

    @property
    def fault(self) -> str:
        """Why they cannot be served so; empty where they can."""
        if self.proxy_header and not self.proxies:
            return "[pages] proxy_header is believed from whoever is in proxies, and there is nobody"
        if self.is_open and (self.host not in LOOPBACK or self.hosts):
            return "[pages] would show the record to whoever comes: they are served beyond this machine"
        return ""
