"""Every call of Discord's REST API that the desk needs, as data. Paths hold names, never values: they may be logged.

What may be repeated says so: whatever reads, and whatever sets something to what it should be. A post may be too where
it carries a nonce, for Discord then returns the first of that nonce.
"""

import string
from dataclasses import dataclass

_MAJOR = ("guild", "channel", "application", "token")
"""Of calls that differ in these, limits are counted apart."""


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path."""

    method: str
    path: str
    repeatable: bool = True

    @property
    def interaction(self) -> bool:
        """Whether an interaction's token opens it: the bot's is not sent, and its limit over all calls not touched."""
        return "{token}" in self.path

    @property
    def names(self) -> tuple[str, ...]:
        """What its path has to be told."""
        return tuple(name for _, name, _, _ in string.Formatter().parse(self.path) if name)

    def key(self, ids: dict[str, str]) -> tuple[str, str]:
        """Return what its limit is counted by: the route, and what stands for the values that matter."""
        return f"{self.method} {self.path}", "/".join(ids[name] for name in self.names if name in _MAJOR)

    def __str__(self) -> str:
        """Return it for people."""
        return f"{self.method} {self.path}"


ME = Route("GET", "/users/@me")
OPEN_DM = Route("POST", "/users/@me/channels")
POST = Route("POST", "/channels/{channel}/messages")
"""With a nonce."""
READ = Route("GET", "/channels/{channel}/messages")
READ_ONE = Route("GET", "/channels/{channel}/messages/{message}")
EDIT = Route("PATCH", "/channels/{channel}/messages/{message}")
DELETE = Route("DELETE", "/channels/{channel}/messages/{message}")
TYPING = Route("POST", "/channels/{channel}/typing")
OPEN_THREAD = Route("POST", "/channels/{channel}/messages/{message}/threads")
"""A message has one thread at most."""
CHANGE_CHANNEL = Route("PATCH", "/channels/{channel}")
ANSWER = Route("GET", "/webhooks/{application}/{token}/messages/@original")
EDIT_ANSWER = Route("PATCH", "/webhooks/{application}/{token}/messages/{message}")
DELETE_ANSWER = Route("DELETE", "/webhooks/{application}/{token}/messages/{message}")
FOLLOW_UP = Route("POST", "/webhooks/{application}/{token}", repeatable=False)
"""There is no nonce for it."""
CALLBACK = Route("POST", "/interactions/{interaction}/{token}/callback")
"""Discord takes the first answer to an interaction, and says of further ones that there was one."""
CHANNEL = Route("GET", "/channels/{channel}")
MEMBER = Route("GET", "/guilds/{guild}/members/{user}")
GUILD = Route("GET", "/guilds/{guild}")
CHANNELS = Route("GET", "/guilds/{guild}/channels")
ROLES = Route("GET", "/guilds/{guild}/roles")
ACTIVE_THREADS = Route("GET", "/guilds/{guild}/threads/active")
APPLICATION = Route("GET", "/applications/@me")
COMMANDS = Route("GET", "/applications/{application}/commands")
SET_COMMANDS = Route("PUT", "/applications/{application}/commands")
