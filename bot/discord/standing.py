"""Where somebody stands who invokes something: in one of our servers, in their DM with us, or wherever they took us.

Whoever installed the app for themselves uses it in servers and DMs where the bot itself is not. What is answered there
is theirs alone, and made of what they may read in their DM with us: nothing is known of who else is there.
"""

from dataclasses import replace

from bot.access import Asker
from bot.discord.happening import DM
from bot.discord.invoking import Invoked
from bot.discord.needs import moderates
from bot.discord.places import Places


def is_ours(places: Places, found: Invoked) -> bool:
    """Return whether the bot itself is there: in a DM with us, or in a server of the team's that installed the app."""
    return found.direct or (found.installed and places.listed(found.guild))


def taken_along(found: Invoked) -> Invoked:
    """Return what was invoked where the bot is not: of no server, so that it has no part in what is there."""
    return replace(found, guild="", channel=replace(found.channel, guild="", kind=DM, parent=""), permissions="")


async def standing(places: Places, found: Invoked) -> Asker:
    """Return who invoked something and where they stand, with what Discord lets them do there."""
    if found.direct or not is_ours(places, found):
        return await places.asker(taken_along(found).channel, found.user, direct=True)
    asker = await places.asker(found.channel, found.user, direct=False)
    return replace(asker, moderates=moderates(found.permissions))
