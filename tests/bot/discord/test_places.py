"""What is known of people when their turn comes."""

from typing import Any

import pytest

from bot.access import Asker
from bot.platforms.discord import DiscordSettings
from bot.platforms.discord.discord_directory import DiscordDirectory
from bot.platforms.shared.platform_contract import PlatformUnavailable


async def test_who_is_a_member_is_asked_again_when_the_turn_comes() -> None:
    """A DM of one of whom Discord did not speak in time reads what the team's does, once it does."""
    faults = [PlatformUnavailable("away"), PlatformUnavailable("away")]

    async def call(*_: Any, **__: Any) -> Any:
        if faults:
            raise faults.pop()
        return {"roles": ["7"]}

    known = DiscordDirectory(call, DiscordSettings(servers=["1"]))
    taken = Asker("discord", "dm", "", "9", "5", listed_server=(await known.membership("5")).member)
    with pytest.raises(PlatformUnavailable):
        await known.refresh_asker(taken)
    later = await known.refresh_asker(taken)
    await known.close()

    assert (taken.listed_server, later.listed_server) == (False, True)
