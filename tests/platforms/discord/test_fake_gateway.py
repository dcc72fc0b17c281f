"""The fake Discord's gateway, with discord.py at it: what it tells to whom, and every way that a connection ends."""

import asyncio
from collections.abc import AsyncIterator

import discord as sdk
import pytest

from tests.platforms.clock import ManualClock
from tests.platforms.discord.apps import INTENTS, client, connected
from tests.platforms.discord.server import FakeDiscord, serve
from tests.platforms.discord.state import BOT, OTHER_GUILD


@pytest.fixture
async def discord() -> AsyncIterator[FakeDiscord]:
    async with serve(clock=ManualClock(), pace=100) as fake:
        yield fake
        assert fake.errors == []


class Listener:
    """What a client hears."""

    def __init__(self, fake: FakeDiscord, **options: object) -> None:
        self.bot, self.heard = client(fake, **options), list[str]()
        self.resumed = 0

        @self.bot.event
        async def on_message(message: sdk.Message) -> None:
            self.heard.append(message.content)
            fake.notify()

        @self.bot.event
        async def on_resumed() -> None:
            self.resumed += 1
            fake.notify()


@pytest.mark.parametrize("how", ["op 7", "op 9", "cut", "closed", "zombie"])
async def test_what_was_missed_is_replayed_when_a_session_is_resumed(discord: FakeDiscord, how: str) -> None:
    """However the connection ended, and each event once."""
    discord.gateway.heartbeat_ms = 50
    listener = Listener(discord, heartbeat_timeout=0.2)
    gateway = discord.gateway
    async with connected(listener.bot, discord):
        await discord.people.say("before")
        await discord.until(lambda: listener.heard)
        match how:
            case "op 7":
                gateway.reconnect()
            case "op 9":
                gateway.invalidate(resumable=True)
            case "cut":
                gateway.cut()
            case "closed":
                await gateway.close(4000)
            case "zombie":
                gateway.deafen()
        await discord.people.say("meanwhile")
        await discord.until(lambda: listener.resumed)
        await discord.people.say("after")
        await discord.until(lambda: len(listener.heard) >= 3)

    assert listener.heard == ["before", "meanwhile", "after"]
    assert (gateway.identifies, gateway.resumes) == (1, 1)
    assert gateway.closes == []


async def test_a_session_that_is_over_is_begun_anew(discord: FakeDiscord) -> None:
    """After op 9 without resuming, what was said meanwhile is lost."""
    listener = Listener(discord)
    async with connected(listener.bot, discord):
        discord.gateway.invalidate(resumable=False)
        await discord.people.say("lost")
        await discord.until(lambda: discord.gateway.identifies == 2 and discord.gateway.connected)
        await discord.people.say("heard")
        await discord.until(lambda: listener.heard)

    assert listener.heard == ["heard"]
    assert (discord.gateway.identifies, discord.gateway.resumes) == (2, 0)


@pytest.mark.parametrize("intends", ["reads", "reads not"])
async def test_contents_are_told_by_intent(discord: FakeDiscord, intends: str) -> None:
    """Without it, content is empty but for DMs, mentions of the bot and what it says itself."""
    intents = sdk.Intents(**{**dict(INTENTS), "message_content": intends == "reads"})
    listener = Listener(discord, intents=intents)
    async with connected(listener.bot, discord):
        await discord.people.say("overheard")
        await discord.people.mention("asked")
        await discord.people.dm("told")
        await listener.bot.get_partial_messageable(201).send("own")
        await discord.until(lambda: len(listener.heard) == 4)

    assert listener.heard == ["overheard" if intends == "reads" else "", f"<@{BOT}> asked", "told", "own"]


async def test_what_the_portal_did_not_give_is_not_had(discord: FakeDiscord) -> None:
    """A disallowed intent ends with 4014, and over the API contents are empty too."""
    asked = await discord.people.say("overheard")
    discord.gateway.granted = 0
    with pytest.raises(sdk.PrivilegedIntentsRequired):
        async with connected(client(discord), discord):
            raise AssertionError
    intents = sdk.Intents(**{**dict(INTENTS), "message_content": False})
    async with connected(client(discord, intents=intents), discord) as bot:
        found = await bot.get_partial_messageable(201).fetch_message(int(asked))

    assert found.content == ""
    assert [code for code, _ in discord.gateway.closes] == [4014]


async def test_a_token_that_is_good_no_more_ends_it(discord: FakeDiscord) -> None:
    """At the login, and when it is revoked while connected."""
    with pytest.raises(sdk.LoginFailure):
        async with connected(client(discord), discord, token="another"):
            raise AssertionError
    bot = client(discord)
    async with bot:
        running = asyncio.create_task(bot.start("FAKE.BOT.TOKENNEVERLOGGED"))
        await discord.until(lambda: discord.gateway.connected)
        await discord.people.revoke()
        with pytest.raises(sdk.ConnectionClosed) as caught:
            await running

    assert caught.value.code == 4004


async def test_where_the_bot_sees_nothing_it_hears_nothing(discord: FakeDiscord) -> None:
    """Channels and guilds that it is not in; an event that comes twice comes twice."""
    listener = Listener(discord)
    async with connected(listener.bot, discord):
        await discord.people.say("hidden", channel="204")
        await discord.people.say("foreign", channel="221")
        seen = await discord.people.say("seen", channel="208")
        await discord.people.again(seen)
        await discord.until(lambda: len(listener.heard) >= 2)

    assert listener.heard == ["seen", "seen"]


async def test_guilds_are_parted_among_shards(discord: FakeDiscord) -> None:
    """DMs are the first one's, and each event is told once."""
    discord.gateway.shards = 2
    listener = Listener(discord, shards=2)
    async with connected(listener.bot, discord):
        await discord.until(lambda: len(discord.gateway.connected) == 2)
        shards = {
            one.shard: [event["d"]["id"] for event in one.sent if event["t"] == "GUILD_CREATE"]
            for one in discord.gateway.connected
        }
        await discord.people.say("here")
        await discord.people.say("there", channel="211", user="102")
        await discord.people.dm("alone")
        await discord.until(lambda: len(listener.heard) == 3)

    assert shards == {(0, 2): ["301"], (1, 2): [OTHER_GUILD]}
    assert sorted(listener.heard) == ["alone", "here", "there"]


async def test_channels_and_guilds_come_and_go(discord: FakeDiscord) -> None:
    """Threads are begun, archived and deleted, channels renamed, the bot invited and removed."""
    bot, heard = client(discord), list[str]()

    @bot.event
    async def on_socket_event_type(name: str) -> None:
        heard.append(name)
        discord.notify()

    async with connected(bot, discord):
        heard.clear()
        thread = await discord.people.thread("A thread")
        await discord.people.archive(thread)
        await discord.people.rename("201", "lobby")
        await discord.people.deny("201")
        await discord.people.remove_channel(thread)
        await discord.people.invite("303")
        await discord.people.kick("303")
        await discord.until(lambda: "GUILD_DELETE" in heard)

    updated = ["THREAD_CREATE", "THREAD_UPDATE", "CHANNEL_UPDATE", "CHANNEL_UPDATE", "THREAD_DELETE"]
    assert heard == [*updated, "GUILD_CREATE", "GUILD_DELETE"]
