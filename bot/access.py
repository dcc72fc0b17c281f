"""Decide who may read what, by the readers that settings name: nothing is readable unless they say so; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

EVERYONE = "*"


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, and where. What is not known of a place counts against it."""

    platform: str  # "terminal", or the name of a platform
    kind: Literal["terminal", "channel", "dm"]
    workspace: str = ""  # slack's team, Discord's server; empty in a Discord DM, which stands in no server
    channel: str = ""
    user: str = ""
    shared_with_other_organisations: bool = True
    """Of a Slack channel or DM: whether people of other organisations are in it."""
    listed_server: bool = False  # of a channel elsewhere: whether settings list its server as the team's own
    moderates: bool = False
    """Whether the platform lets them remove there what others write. Known only of whoever acts, not of who asks."""

    @property
    def user_id(self) -> str:
        """Who it is, as settings name a person: `slack:T1/U1`."""
        return f"{self.platform}:{self.workspace}/{self.user}"

    @property
    def channel_id(self) -> str:
        """Where they stand, as settings name a channel: `slack:T1/C1`."""
        return f"{self.platform}:{self.workspace}/{self.channel}"


def mark_unplaced(asker: Asker) -> Asker:
    """Return an asker whose place could not be looked up: that counts against the place."""
    return replace(asker, shared_with_other_organisations=True, listed_server=False)


def select_readable(corpora: Mapping[str, Sequence[str]], asker: Asker) -> tuple[str, ...]:
    """Return the names of the corpora, given with their readers, that may be read here by this asker.

    The terminal's user owns the machine and reads all. Elsewhere a channel reads what names that channel, a DM what
    names that user, and `*` stands for every place that is the team's own.
    """
    if asker.platform == asker.kind == "terminal":
        return tuple(corpora)
    return tuple(name for name, readers in corpora.items() if any(_admits(reader, asker) for reader in readers))


def _admits(reader: str, asker: Asker) -> bool:
    if reader == EVERYONE:
        return _is_own_place(asker)
    platform, _, place = reader.partition(":")
    workspace, _, named = place.partition("/")
    if not named or platform != asker.platform:
        return False
    if asker.kind == "channel":
        return (workspace, named) == (asker.workspace, asker.channel)
    # Discord's user ids are unique over all servers, and a DM stands in none.
    return named == asker.user and (platform == "discord" or workspace == asker.workspace)


def _is_own_place(asker: Asker) -> bool:
    if asker.platform == "slack":
        return not asker.shared_with_other_organisations
    return asker.listed_server


def may_view_turn(asker: Asker, by: Asker, *, alone: bool) -> bool:
    """Return whether somebody (`by`) stands where a turn was answered, or is who asked.

    `alone` says whether the asker alone was shown the answer.
    """
    if by.platform == by.kind == "terminal":
        return True
    return is_same_person(asker, by) or (not alone and is_same_channel(asker, by))


def is_same_channel(asker: Asker, by: Asker) -> bool:
    """Return whether both stand in one channel; a DM is none."""
    return asker.kind == by.kind == "channel" and asker.channel_id == by.channel_id and bool(by.channel)


def is_same_person(asker: Asker, by: Asker) -> bool:
    """Return whether both are one person. On Discord they are so over all servers, on Slack within one workspace."""
    if not by.user or (asker.platform, asker.user) != (by.platform, by.user):
        return False
    return by.platform == "discord" or asker.workspace == by.workspace
