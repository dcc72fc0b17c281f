"""The fake Discord itself, with discord.py in between: what people do reaches a client, and what it writes is seen."""

from collections.abc import AsyncIterator
from typing import Any

import discord as sdk
import pytest
from discord.http import Route

from tests.platforms.clock import ManualClock
from tests.platforms.discord import limits
from tests.platforms.discord.apps import client, connected
from tests.platforms.discord.server import FakeDiscord, serve
from tests.platforms.discord.state import HISTORY, MENTION_EVERYONE

POST = Route("POST", "/channels/{channel_id}/messages", channel_id=201)


@pytest.fixture
async def discord() -> AsyncIterator[FakeDiscord]:
    async with serve(clock=ManualClock(), pace=100) as fake:
        yield fake
        assert fake.errors == []


async def test_a_mention_is_answered_by_a_reply(discord: FakeDiscord) -> None:
    """People see question and answer as a conversation; nobody is pinged."""
    bot = client(discord)

    @bot.event
    async def on_message(message: sdk.Message) -> None:
        if message.author.id != bot.application_id and not message.author.bot:
            view = sdk.ui.LayoutView()
            view.add_item(
                sdk.ui.TextDisplay("It was built in 1887. [\\[1\\] Lighthouse](<https://skarholm.example/l>)")
            )
            await message.reply(view=view, nonce=7)

    async with connected(bot, discord):
        asked = await discord.people.mention("When was it built?", user="102")
        await discord.until(lambda: discord.people.answers(asked))

    assert discord.seen("201", by="101") == (
        "#general\n"
        "Ben: @Footnote When was it built?\n"
        "Footnote, to Ben: It was built in 1887. [1] Lighthouse <https://skarholm.example/l>"
    )
    assert discord.notified == []
    assert discord.links == ["https://skarholm.example/l"]


async def test_the_rest_of_what_a_person_sees(discord: FakeDiscord) -> None:
    """Threads at their messages, forum posts, buttons, edits, what is disabled, and who is typing."""
    bot = client(discord)
    async with connected(bot, discord):
        asked = await discord.people.mention("When?")
        thread = await discord.people.thread("When?", message=asked)
        await discord.people.say("Anybody?", user="102", channel=thread)
        place = await bot.fetch_channel(int(thread))
        assert isinstance(place, sdk.Thread)
        assert place.parent_id == 201
        view = sdk.ui.View()
        view.add_item(sdk.ui.Button(label="Evidence", custom_id="footnote:evidence:7"))
        view.add_item(sdk.ui.Button(label="Site", url="https://skarholm.example/"))
        view.add_item(sdk.ui.Button(label="Stop", custom_id="footnote:stop:7", disabled=True))
        sent = await place.send("In 1886.", view=view, suppress_embeds=True)
        await sent.edit(content="In *1887*\\.")
        await place.typing()
        kinds = [one.type async for one in place.history(oldest_first=True)]
        assert kinds[0] is sdk.MessageType.thread_starter_message
        post = await discord.people.post("Boats", "Which boats?", user="103")

    assert discord.seen("201", by="102") == (
        "#general\n"
        "Ana: @Footnote When?\n"
        "  # When?\n"
        "  Ben: Anybody?\n"
        "  Footnote: In *1887*. (edited)\n"
        "    [Evidence] [Site <https://skarholm.example/>] [Stop (disabled)]\n"
        "  … Footnote is typing"
    )
    assert discord.seen("206", by="102") == "#questions\n  # Boats\n  Cleo: Which boats?"
    assert discord.state.messages[post].channel == post
    assert discord.seen("208", by="102") == ""


async def test_of_two_with_one_nonce_the_first_is_returned_for_some_minutes(discord: FakeDiscord) -> None:
    """Within them nothing is posted twice, whatever it says; after them it is."""
    bot = client(discord)
    async with connected(bot, discord):
        here = bot.get_partial_messageable(201)
        first = await here.send("one", nonce="q1.0")
        again = await here.send("two", nonce="q1.0")
        await discord.clock.advance(limits.NONCE_SECONDS + 1)
        later = await here.send("three", nonce="q1.0")

    assert (first.id, "one") == (again.id, again.content)
    assert later.id != first.id
    assert discord.posts == 2


async def test_a_history_is_read_in_pages(discord: FakeDiscord) -> None:
    """However many there are, before and after a message; without the right to read, there is nothing."""
    bot = client(discord)
    for number in range(limits.PAGE + 7):
        await discord.people.say(str(number))
    async with connected(bot, discord):
        here = await bot.fetch_channel(201)
        assert isinstance(here, sdk.TextChannel)
        found = [one.content async for one in here.history(limit=None, oldest_first=True)]
        middle = discord.state.here("201")[3]
        around = [one.content async for one in here.history(limit=3, around=sdk.Object(int(middle.id)))]
        await discord.people.deny("201", HISTORY)
        nothing = [one async for one in here.history()]

    assert found == [str(number) for number in range(limits.PAGE + 7)]
    assert sorted(around) == ["2", "3", "4"]
    assert nothing == []


ALLOWED: list[tuple[Any, list[str]]] = [
    (None, ["101", "102", "&402"]),
    ({"parse": []}, []),
    ({"parse": [], "replied_user": True}, ["101"]),
    ({"parse": ["users"]}, ["102"]),
    ({"parse": ["roles", "everyone"]}, ["&402"]),
    ({"parse": [], "users": ["102"], "roles": ["402"]}, ["102", "&402"]),
    ({"users": ["103"]}, []),
]


@pytest.mark.parametrize(("allowed", "pinged"), ALLOWED)
async def test_who_is_pinged_is_what_allowed_mentions_says(
    discord: FakeDiscord, allowed: Any, pinged: list[str]
) -> None:
    """With none, all are, and whoever is replied to; everyone only with the right to that."""
    bot = client(discord)
    asked = await discord.people.say("?")
    text = "\\<@102> `<@&402>` <@&401> @everyone https://a.example <https://b.example>"
    body = {"content": text, "message_reference": {"message_id": asked}}
    body |= {} if allowed is None else {"allowed_mentions": allowed}
    async with connected(bot, discord):
        await bot.http.request(POST, json=body)

    assert sorted(one for _, one in discord.notified) == sorted(pinged)
    assert len(discord.pings) >= 4
    assert discord.unfurled == ["https://a.example"]


async def test_the_role_that_is_the_bots_own_is_known(discord: FakeDiscord) -> None:
    """People mention it when they mean the bot; what it names is told even where nobody is pinged."""
    bot, heard = client(discord), list[sdk.Message]()

    @bot.event
    async def on_message(message: sdk.Message) -> None:
        heard.append(message)
        discord.notify()

    async with connected(bot, discord):
        await discord.people.say("<@&403> When?")
        await discord.until(lambda: heard)

    (named,) = heard[0].role_mentions
    assert named.is_bot_managed()
    assert discord.people.find(str(heard[0].id)).notified == []


async def test_who_may_pings_everyone(discord: FakeDiscord) -> None:
    """And every role, if allowed_mentions lets it."""
    discord.state.guilds["301"].roles["301"].permissions |= MENTION_EVERYONE
    bot = client(discord)
    async with connected(bot, discord):
        await bot.http.request(POST, json={"content": "@here <@&401>"})
        await bot.http.request(POST, json={"content": "@here <@&401>", "allowed_mentions": {"parse": ["users"]}})

    assert [one for _, one in discord.notified] == ["&401", "everyone"]


async def test_what_is_deleted_is_told(discord: FakeDiscord) -> None:
    """One message, or many at once; the reply to one that is gone says so."""
    bot, gone = client(discord), list[int]()

    @bot.event
    async def on_raw_message_delete(event: sdk.RawMessageDeleteEvent) -> None:
        gone.append(event.message_id)

    @bot.event
    async def on_raw_bulk_message_delete(event: sdk.RawBulkMessageDeleteEvent) -> None:
        gone.extend(sorted(event.message_ids))

    async with connected(bot, discord):
        asked = [await discord.people.say("?") for _ in range(3)]
        reply = await bot.get_partial_messageable(201).get_partial_message(int(asked[0])).reply("!")
        await discord.people.delete(asked[0])
        await discord.people.delete_many(*asked[1:])
        await bot.wait_for("socket_event_type", check=lambda name: name == "MESSAGE_DELETE_BULK", timeout=60)
        found = await bot.get_partial_messageable(201).fetch_message(reply.id)

    assert gone == [int(one) for one in asked]
    assert isinstance(found.reference, sdk.MessageReference)
    assert isinstance(found.reference.resolved, sdk.DeletedReferencedMessage)
    assert discord.seen("201", by="101") == "#general\nFootnote, to a deleted message: !"
