"""Decide whether a message in a channel is addressed to the bot.

The rules are the same for all platforms, so that people may talk among themselves.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum


class Audience(StrEnum):
    """Whose a message is."""

    OURS = "ours"  # somebody asks us
    ANYBODYS = "anybodys"  # nobody asked us, but we may answer
    THEIRS = "theirs"  # it is no business of ours


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A message, as far as it tells whose it is."""

    addressed: bool  # whether it mentions us, replies to us, or stands in a DM
    to_others: bool  # whether it is said to somebody else, or to all who are there
    within: bool  # whether it stands in a thread that began before it
    edited: bool = False  # whether its author has changed it since


Participates = Callable[[bool], Awaitable[bool]]
"""Says whether we take part in a thread; given True, whether we do so because this message's author asked us there."""


def classify_audience(remark: IncomingMessage, *, joined: bool, follows: bool, every: bool) -> Audience:
    """Return whose a message is; pure."""
    if remark.addressed:
        return Audience.OURS
    if remark.to_others:
        return Audience.THEIRS
    if remark.within:
        asked = follows and not every
        return Audience.THEIRS if not joined else Audience.OURS if asked else Audience.ANYBODYS
    # What nobody asked us when it was written is not asked by a change of it.
    return Audience.ANYBODYS if every and not remark.edited else Audience.THEIRS


async def find_audience(remark: IncomingMessage, joined: Participates, *, every: bool) -> Audience:
    """Return the same, and look up only what it depends on. Raises what `joined` raises."""
    in_thread = remark.within and not (remark.addressed or remark.to_others)
    takes_part = in_thread and await joined(False)  # noqa: FBT003 - see `Participates`
    follows = takes_part and not every and await joined(True)  # noqa: FBT003 - see `Participates`
    return classify_audience(remark, joined=takes_part, follows=follows, every=every)


def is_edit_addressed(remark: IncomingMessage, *, unasked: bool) -> bool:
    """Return whether an edit changes a question that was taken; pure.

    An edit that takes our mention away makes it no less a question to us, and in a thread none has to mention us.
    """
    return not unasked or remark.addressed or remark.within
