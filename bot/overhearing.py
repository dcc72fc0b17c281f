"""Whether a message in a channel is to us: the rules for all platforms, so that people may talk among themselves.

Asked are we by whoever addresses us, and in a thread that we take part in by whoever asked us there before. What others
write there, and anything where a channel wants every question answered, is a question that nobody asked us: it is
answered where there is an answer, and else met with silence. What is said to somebody else is theirs.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum


class Meant(StrEnum):
    """Whose a message is."""

    OURS = "ours"
    """Somebody asks us."""
    ANYBODYS = "anybodys"
    """Nobody asked us, but we may answer."""
    THEIRS = "theirs"
    """It is no business of ours."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A message, as far as it tells whose it is."""

    addressed: bool
    """Whether it mentions us, replies to us, or stands in a DM."""
    to_others: bool
    """Whether it is said to somebody else, or to all who are there."""
    within: bool
    """Whether it stands in a thread that began before it."""
    edited: bool = False
    """Whether its author has changed it since."""


Joined = Callable[[bool], Awaitable[bool]]
"""Says whether we take part in a thread; given True, whether we do so because this message's author asked us there."""


def meant(remark: Remark, *, joined: bool, follows: bool, every: bool) -> Meant:
    """Return whose a message is; pure.

    Args:
        remark: The message.
        joined: Whether we take part in the thread that it stands in.
        follows: Whether its author asked us there before.
        every: Whether the channel wants every question answered.
    """
    if remark.addressed:
        return Meant.OURS
    if remark.to_others:
        return Meant.THEIRS
    if remark.within:
        asked = follows and not every
        return Meant.THEIRS if not joined else Meant.OURS if asked else Meant.ANYBODYS
    # What nobody asked us when it was written is not asked by a change of it.
    return Meant.ANYBODYS if every and not remark.edited else Meant.THEIRS


async def overheard(remark: Remark, joined: Joined, *, every: bool) -> Meant:
    """Return the same, and look up only what it depends on. Raises what `joined` raises."""
    in_thread = remark.within and not (remark.addressed or remark.to_others)
    takes_part = in_thread and await joined(False)  # noqa: FBT003 - see `Joined`
    follows = takes_part and not every and await joined(True)  # noqa: FBT003 - see `Joined`
    return meant(remark, joined=takes_part, follows=follows, every=every)


def edit_counts(remark: Remark, *, unasked: bool) -> bool:
    """Return whether an edit changes a question that was taken; pure.

    An edit that takes our mention away makes it no less a question to us, and in a thread none has to mention us.

    Args:
        remark: The message as it now stands.
        unasked: Whether nobody had asked us by it.
    """
    return not unasked or remark.addressed or remark.within
