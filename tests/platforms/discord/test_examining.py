"""What `footnote doctor` finds at the fake Discord."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from bot.doctor.diagnosis import CheckResult, HealthCheck, Inspection, run_checks
from bot.platforms.discord.client import DiscordRateLimit
from bot.platforms.discord.setup import check_discord
from bot.settings.tables.settings_tables import Settings
from tests.platforms.discord.server import serve
from tests.platforms.discord.state import BOT_TOKEN, GUILD, OTHER_GUILD, SECRETS

NO_CHANNEL = "Discord has no channel of that name that the bot can see"


async def at_once(seconds: float) -> None:
    """Wait for nothing."""


async def check(scene: Inspection) -> Sequence[CheckResult]:
    return await check_discord(scene, DiscordRateLimit(sleep=at_once))


async def found(
    discord: Any, readers: Sequence[str] = (), how: HealthCheck = check, **changes: Any
) -> list[tuple[str, str]]:
    given = {"api_url": discord.api, "token": BOT_TOKEN, "servers": [GUILD], "message_content": True, **changes}
    corpus = [{"name": "handbook", "visible_to": list(readers)}]
    settings = Settings.model_validate({"discord": given, "corpus": corpus})
    told = await run_checks([how], Inspection(settings, datetime.now(UTC), lambda _: None))  # type: ignore[arg-type, return-value]
    assert all(one.hint for one in told if one.level in {"warn", "fail"})
    assert not any(secret in f"{one.what} {one.hint}" for one in told for secret in SECRETS)
    return [(one.level, one.what) for one in told]


async def test_all_is_well_where_the_token_is_taken_and_the_bot_may_answer() -> None:
    """And the server is named, as settings name it."""
    async with serve() as discord:
        told = await found(discord)

    assert {level for level, _ in told} == {"ok"}
    assert told[-1] == ("ok", "Discord: it may answer in Skarholm (discord:301).")


async def test_what_lacks_is_named() -> None:
    """A right, a server, an intent that is given and not used."""
    async with serve() as discord:
        discord.state.guilds[GUILD].roles[GUILD].permissions &= ~(1 << 16)
        told = await found(discord, servers=[GUILD, "303"], message_content=False)
        none = await found(discord, servers=[])

    assert ("fail", "Discord: the permission Read Message History was not given in Skarholm.") in told
    assert ("fail", "Discord: the bot is not in the server 303.") in told
    assert ("warn", "Discord: the intent Message Content was given and is not used.") in told
    assert ("warn", "Discord: no server is named, so nothing is answered but DMs.") in none


async def test_a_refused_token_is_told_apart_from_no_answer() -> None:
    """The one is to be copied anew, the other may be fine."""
    async with serve() as discord:
        ((level, what), (untried, _)) = await found(discord, token="not.the.token")
        away = await found(discord, api_url="http://127.0.0.1:1/api")

    assert (level, what[:34], untried) == ("fail", "Discord: the bot token is refused.", "skip")
    assert away[0][1].startswith("Discord: it cannot be reached.")
    assert away[1][1].endswith("for it could not be asked.")


async def test_a_reader_in_a_server_that_is_not_named_reads_nothing() -> None:
    """Nobody would find out."""
    async with serve() as discord:
        told = await found(discord, ["*", "discord:301/201", "discord:9/5", "slack:T1/C1"], check_discord)

    assert [what for level, what in told if level != "ok"] == [
        "Discord: discord:9/5 reads nothing, for its server is not named."
    ]


async def test_it_is_told_which_channel_a_name_means() -> None:
    """In one of the servers alone where that is named."""
    async with serve() as discord:
        discord.state.channels["202"].kind = 2
        told = await found(discord, ["discord:#random", "discord:#harbour", f"discord:{GUILD}/#general"])
        both = await found(discord, ["discord:#general"], servers=[GUILD, OTHER_GUILD])

    assert told[-3:] == [
        ("fail", f"Discord: nobody reads by discord:#harbour: {NO_CHANNEL}."),
        ("ok", "Discord: discord:#random is discord:301/203."),
        ("ok", "Discord: discord:301/#general is discord:301/201."),
    ]
    assert f"2 channels of that name: discord:301/201, discord:{OTHER_GUILD}/211" in both[-1][1]
