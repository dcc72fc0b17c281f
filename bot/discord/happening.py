"""What can happen in Discord that means something to us, besides what people invoke: values without behaviour."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Us:
    """Who we are."""

    application: str
    user: str


@dataclass(frozen=True, slots=True)
class Written:
    """A message that somebody wrote, as it stands."""

    guild: str
    """The server; empty in a DM."""
    channel: str
    """Where it stands: in a thread, the thread."""
    id: str
    user: str
    raw: str
    """Its text as Discord has it; empty where Discord does not let us read it."""
    at: datetime
    roles: frozenset[str] = frozenset()
    """Of who wrote it."""
    people: frozenset[str] = frozenset()
    """Whom it mentions; a reply may mention whom it answers without a word of it."""
    groups: frozenset[str] = frozenset()
    """Which roles it mentions."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Of whom it mentions, by their ids."""
    replied: str = ""
    """The message that it replies to."""
    replied_user: str = ""
    """Who wrote that."""
    edited: bool = False

    @property
    def key(self) -> str:
        """Its key at the desk."""
        return key_of(self.guild, self.channel, self.id)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Somebody edited a message."""

    now: Written


@dataclass(frozen=True, slots=True)
class Erased:
    """Messages were deleted."""

    guild: str
    channel: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel or a thread as far as it matters here."""

    id: str
    kind: int
    guild: str = ""
    parent: str = ""
    """Of a thread, the channel that it is in."""
    name: str = ""

    @property
    def is_thread(self) -> bool:
        """Whether it is a thread; a post in a forum is one."""
        return self.kind in THREADS


@dataclass(frozen=True, slots=True)
class Learned:
    """What Discord says of a server's channels, threads, and of the role that is ours there."""

    guild: str
    channels: tuple[Channel, ...] = ()
    gone: tuple[str, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    """Names by id."""
    ours: str = ""
    """The role that Discord made for us."""
    joined: bool = False
    """Whether the server itself is told of, as when we enter it."""


DM, ANNOUNCED, THREAD, PRIVATE = 1, 10, 11, 12
"""Types of channels."""
THREADS = frozenset({ANNOUNCED, THREAD, PRIVATE})


def key_of(guild: str, channel: str, message: str) -> str:
    """Return the key of a message at the desk."""
    return f"discord:{guild}/{channel}/{message}"
