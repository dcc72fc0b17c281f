"""Decide who is answered and who may read what, by what settings name; pure.

Nothing is readable unless settings say so. By whatever way somebody comes (a message, an edit of it, a question that
waited or was caught up with, a button), their platform says in an `Asker` what is known of them; it is decided here.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

EVERYONE = "*"


class Exclusion(StrEnum):
    """Why somebody is not answered at all."""

    NONE = ""
    ELSEWHERE = "elsewhere"  # they stand where settings let nobody be answered
    DENIED = "denied"  # settings deny them, or a role of theirs


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, and where. What is not known of a place counts against it."""

    platform: str  # "terminal", "pages", "mcp", or the name of a platform
    kind: Literal["terminal", "channel", "dm"]
    workspace: str = ""  # slack's team, Discord's server; empty in a Discord DM, which stands in no server
    channel: str = ""
    user: str = ""
    shared_with_other_organisations: bool = True
    """Of a Slack channel or DM: whether people of other organisations are in it."""
    listed_server: bool = False  # of a channel elsewhere: whether settings list its server as the team's own
    moderates: bool = False
    """Whether the platform lets them remove there what others write. Known only of whoever acts, not of who asks."""
    uninvited: bool = False  # of a Slack channel: whether the bot is not in it, so that nothing is known of it
    guest: bool = False  # whether they are a guest, to whom `*` is not open
    principals: tuple[str, ...] = ()
    """Of somebody in a DM: what else settings name them by, such as `slack:T1/S1` of a user group, `discord:S1/R1` of a
    role, and `discord:S1/U1`, which is theirs while they are a member of that server."""
    exclusion: Exclusion = Exclusion.NONE
    name: str = field(default="", compare=False)  # what their platform shows of them, for the record alone
    channel_name: str = field(default="", compare=False)

    @property
    def user_id(self) -> str:
        """Who it is, as settings name a person: `slack:T1/U1`."""
        return f"{self.platform}:{self.workspace}/{self.user}"

    @property
    def channel_id(self) -> str:
        """Where they stand, as settings name a channel: `slack:T1/C1`."""
        return f"{self.platform}:{self.workspace}/{self.channel}"


def mark_unplaced(asker: Asker) -> Asker:
    """Return an asker who could not be looked up: that counts against them."""
    return replace(asker, shared_with_other_organisations=True, listed_server=False, guest=True, principals=())


def find_exclusion(*, listed: bool, ids: Collection[str], deny: Collection[str]) -> Exclusion:
    """Return why somebody is not answered, by whether their place is listed, and by the ids of them and their roles."""
    if not listed:
        return Exclusion.ELSEWHERE
    return Exclusion.DENIED if set(ids) & set(deny) else Exclusion.NONE


def select_readable(corpora: Mapping[str, Sequence[str]], asker: Asker) -> tuple[str, ...]:
    """Return the names of the corpora, given with their readers, that may be read here by this asker.

    The terminal's user owns the machine and reads all, and whoever is let in to the pages reads the record of all that
    was ever cited. Elsewhere a channel reads what names that channel, a DM what
    names that user or a group of theirs, and `*` stands for every place that is the team's own, but not for guests.
    Who is not answered reads nothing.
    """
    if is_operator(asker):
        return tuple(corpora)
    if asker.exclusion:
        return ()
    return tuple(name for name, readers in corpora.items() if any(_admits(reader, asker) for reader in readers))


def is_operator(asker: Asker) -> bool:
    """Return whether somebody asks at no place of a platform: at the terminal, by a program there, or on the pages."""
    return asker.kind == "terminal" and asker.platform in {"terminal", "pages", "mcp"}


def _admits(reader: str, asker: Asker) -> bool:
    if reader == EVERYONE:
        return _is_own_place(asker) and not asker.guest
    if asker.kind == "channel":
        return bool(asker.channel) and reader == asker.channel_id
    return bool(asker.user) and (reader == asker.user_id or reader in asker.principals)


def _is_own_place(asker: Asker) -> bool:
    if asker.platform == "slack":
        return not asker.shared_with_other_organisations
    return asker.listed_server


def may_view_turn(asker: Asker, by: Asker, *, alone: bool) -> bool:
    """Return whether somebody (`by`) stands where a turn was answered, or is who asked.

    `alone` says whether the asker alone was shown the answer.
    """
    if is_operator(by):
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
