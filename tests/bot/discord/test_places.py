"""A user's rights when they ask, and at their turn."""

from types import SimpleNamespace
from typing import Any

import pytest

from bot.access import Asker
from bot.desk.platform_port import PlatformUnavailable
from bot.platforms.discord import DiscordSettings
from bot.platforms.discord.directory import DiscordDirectory, ServerMember, place_asker
from bot.platforms.discord.events import DM, ChannelInfo
from bot.platforms.shared.api_client import RequestRefused
from bot.platforms.shared.lookup_cache import PEOPLE_SECONDS

TEAM = DiscordSettings(servers=("1", "2"), deny=("66", "77"))
READERS = ("*", "discord:1/5", "discord:2/5", "discord:1/7", "discord:2/7", "slack:1/5")
APP: Any = SimpleNamespace(settings=SimpleNamespace(discord=TEAM, readers=READERS))
CHANNEL, DIRECT = Asker("discord", "channel", "1", "9", "5"), Asker("discord", "dm", "", "9", "5")
IN, OUT, DENIED = ServerMember(frozenset({"7"})), ServerMember(present=False), ServerMember(frozenset({"77"}))


@pytest.mark.parametrize(
    ("asker", "members", "listed", "principals", "exclusion"),
    [
        (CHANNEL, {}, True, (), ""),
        (CHANNEL, {"1": DENIED}, True, (), "denied"),
        (Asker("discord", "channel", "1", "9", "66"), {}, True, (), "denied"),
        (Asker("discord", "channel", "3", "9", "5"), {}, False, (), "elsewhere"),
        (DIRECT, {"1": OUT, "2": OUT}, False, (), ""),
        (DIRECT, {"1": IN, "2": OUT}, True, ("discord:1/5", "discord:1/7"), ""),
        (DIRECT, {"1": OUT, "2": IN}, True, ("discord:2/5", "discord:2/7"), ""),
        (DIRECT, {"1": IN, "2": DENIED}, True, ("discord:1/5", "discord:1/7", "discord:2/5"), "denied"),
        (Asker("discord", "dm", "", "9", "66"), {}, False, (), "denied"),
    ],
)
def test_asker_rights_follow_settings_and_membership(
    asker: Asker, members: dict[str, ServerMember], listed: object, principals: tuple[str, ...], exclusion: str
) -> None:
    placed = place_asker(asker, members, TEAM, READERS)

    assert (placed.listed_server, placed.principals, placed.exclusion) == (listed, principals, exclusion)


class Discord:
    """Returns one user's roles in each server; they are not a member of others."""

    def __init__(self, **roles: list[str]) -> None:
        self.roles, self.away, self.calls = roles, 0, 0

    async def __call__(self, *_: Any, guild: str, **__: Any) -> Any:
        self.calls += 1
        if self.away:
            self.away -= 1
            raise PlatformUnavailable("Discord is away.")
        if f"s{guild}" not in self.roles:
            raise RequestRefused("Discord knows no such member.")
        return {"roles": self.roles[f"s{guild}"]}


async def test_membership_is_looked_up_again_before_the_question_is_answered() -> None:
    discord, now = Discord(s1=["7"]), [0.0]
    known = DiscordDirectory(discord, APP, lambda: now[0])
    discord.away = 4
    taken = await known.look_up(known.newcomer(ChannelInfo("9", DM), "5", direct=True))
    with pytest.raises(PlatformUnavailable):
        await known.refresh_asker(taken)
    later = await known.refresh_asker(taken)
    discord.roles.clear()
    now[0] = PEOPLE_SECONDS + 1
    left = await known.refresh_asker(later)
    await known.close()

    assert [one.listed_server for one in (taken, later, left)] == [False, True, False]
    assert [one.principals for one in (taken, later, left)] == [(), ("discord:1/5", "discord:1/7"), ()]


async def test_missing_roles_are_looked_up() -> None:
    discord, now = Discord(s1=["77"]), [0.0]
    known = DiscordDirectory(discord, APP, lambda: now[0])
    where = ChannelInfo("9", 0, "1")
    given = known.newcomer(where, "5", direct=False, roles=frozenset({"7"}))
    assert (given.exclusion, discord.calls) == ("", 0)
    unsaid = await known.look_up(known.newcomer(where, "6", direct=False))
    now[0] = PEOPLE_SECONDS + 1
    later = await known.refresh_asker(given)
    await known.close()

    assert (unsaid.exclusion, later.exclusion) == ("denied", "denied")
