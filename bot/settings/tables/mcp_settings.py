"""Define which programs may ask over MCP, by which tokens, and as whom settings name them."""

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from bot.settings.tables.field_types import RESTART, SCOPE, SettingsTable
from storage.language.lazy_pattern import lazy_compile

MCP = "mcp"  # the platform of what comes over MCP, in ids and in the record
TOKENS, GROUPS = "tokens", "groups"  # the first part of its ids: `mcp:tokens/anna`, `mcp:groups/editors`
_NAME = r"[A-Za-z0-9][\w.-]{0,59}"
_LINE = lazy_compile(rf"(?P<name>{_NAME})(?P<groups>(\s+{_NAME})*)\s+sha256:(?P<digest>[0-9a-f]{{64}})")
_READER = lazy_compile(rf"{MCP}:({TOKENS}|{GROUPS})/{_NAME}")


@dataclass(frozen=True, slots=True)
class McpToken:
    """A program that may ask: its name, its groups, and the digest of its token, which is kept nowhere.

    The token has 256 random bits: nobody finds it by its digest, which may stand on record.
    """

    name: str
    groups: tuple[str, ...]
    digest: str


def list_token_ids(name: str, groups: Iterable[str]) -> tuple[str, ...]:
    """Return whom `visible_to` may name for a token to read a corpus, itself first."""
    return (f"{MCP}:{TOKENS}/{name}", *(f"{MCP}:{GROUPS}/{group}" for group in groups))


def is_mcp_reader(text: str) -> bool:
    """Return whether this has the form of a token's or a group's id."""
    return bool(_READER.fullmatch(text))


def digest_token(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def format_token_line(name: str, groups: tuple[str, ...], token: str) -> str:
    """Return the line of the settings for a token. Raises `ValueError`: a name is none."""
    if not all(map(re.compile(_NAME).fullmatch, (name, *groups))):
        raise ValueError("names are letters, digits, dots, dashes and underscores, 60 at most")
    return " ".join((name, *groups, f"sha256:{digest_token(token)}"))


def _parse_tokens(said: Any) -> Any:
    """Read lines of a name, groups and a digest each. Raises `ValueError`, which shows no digest."""
    if isinstance(said, tuple):
        return said
    lines = said if isinstance(said, list) else str(said).splitlines()
    found = tuple(_parse_token(str(line)) for line in lines if str(line).strip())
    names, digests = {one.name for one in found}, {one.digest for one in found}
    if len(names) < len(found) or len(digests) < len(found):
        raise ValueError("has two lines with one name or one token, and each is some program's own")
    return found


def _parse_token(line: str) -> McpToken:
    if not (match := _LINE.fullmatch(line.strip())):
        raise ValueError('must have lines like "anna editors sha256:…", which `footnote mcp token NAME` makes')
    return McpToken(match["name"], tuple(match["groups"].split()), match["digest"])


class McpSettings(SettingsTable):
    """What programs may ask over MCP."""

    enabled: Annotated[bool, RESTART] = False  # whether `footnote serve` answers it over HTTP
    tokens: Annotated[tuple[McpToken, ...], BeforeValidator(_parse_tokens), SCOPE] = ()
    hosts: Annotated[tuple[Annotated[str, AfterValidator(str.lower)], ...], RESTART] = ()
    """The names that programs reach the server by, besides this machine's."""

    def match_token(self, said: str) -> McpToken | None:
        """Return whose token it is; every one is compared, in the same time."""
        given = digest_token(said)
        equal = [hmac.compare_digest(one.digest, given) for one in self.tokens]
        return next((one for one, same in zip(self.tokens, equal, strict=True) if same), None)
