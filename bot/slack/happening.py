"""What can have happened in Slack, as frozen values: what somebody wrote, changed, deleted, opened, stopped or ended.

`reading` makes them of Slack's JSON.
"""

import re
from dataclasses import dataclass

from storage.language.lazy_pattern import lazy_compile

_TO_SOMEBODY = lazy_compile(r"\s*<(?:@|!(?=subteam\^|here\b|channel\b|everyone\b))([^|<>]+)(?:\|[^<>]*)?>")
"""Whom a message begins by mentioning: a person, a group, or all who are there."""


@dataclass(frozen=True, slots=True)
class Us:
    """Who we are in a workspace."""

    team: str
    user: str
    bot: str = ""
    enterprise: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """A message that somebody wrote, as it stands."""

    team: str
    channel: str
    ts: str
    user: str
    raw: str
    """Its text as Slack has it, with references to people and channels in it."""
    thread: str = ""
    """The root of the thread that it stands in; empty for a message of the channel itself."""
    direct: bool = False
    """Whether it is in a DM with us."""
    edited: bool = False
    shared: bool = False
    """Whether Slack said with it that people of other organisations are there."""

    @property
    def key(self) -> str:
        """Its key at the desk."""
        return key_of(self.team, self.channel, self.ts)

    @property
    def root(self) -> str:
        """The thread that an answer belongs to."""
        return self.thread or self.ts

    @property
    def conversation(self) -> str:
        """The conversation at the desk."""
        return f"slack:{self.team}/{self.channel}/{self.root}"

    def mentions(self, us: Us) -> bool:
        """Return whether it mentions us."""
        return re.search(rf"<@{re.escape(us.user)}(\|[^<>]*)?>", self.raw) is not None

    def to_others(self, us: Us) -> bool:
        """Return whether it begins with the mention of somebody else or of many, and so is to them."""
        found = _TO_SOMEBODY.match(self.raw)
        return found is not None and found[1] != us.user


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Somebody edited a message."""

    now: Written


@dataclass(frozen=True, slots=True)
class Erased:
    """Somebody deleted a message."""

    team: str
    channel: str
    ts: str

    @property
    def key(self) -> str:
        """The key that it had at the desk."""
        return key_of(self.team, self.channel, self.ts)


@dataclass(frozen=True, slots=True)
class Opened:
    """Somebody opened the chat with us."""

    channel: str
    user: str


@dataclass(frozen=True, slots=True)
class Halted:
    """Somebody pressed Slack's own button that stops an agent."""

    team: str
    channel: str
    thread: str
    user: str
    messages: tuple[str, ...] = ()
    """What was being written."""

    @property
    def conversation(self) -> str:
        """The conversation at the desk."""
        return f"slack:{self.team}/{self.channel}/{self.thread}"


@dataclass(frozen=True, slots=True)
class Changed:
    """Something about a channel is not as it was."""

    channel: str
    what: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The workspace let us go."""

    why: str


Meaning = Written | Rewritten | Erased | Opened | Halted | Changed | Ended | None


def key_of(team: str, channel: str, ts: str) -> str:
    """Return the key of a message at the desk."""
    return f"slack:{team}/{channel}/{ts}"
