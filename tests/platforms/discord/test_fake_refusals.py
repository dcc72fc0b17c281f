"""What the fake Discord refuses, with Discord's codes: read where it says that something is wrong."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import discord as sdk
import pytest
from discord.http import Route

from tests.platforms.clock import ManualClock
from tests.platforms.discord.apps import client, code, connected
from tests.platforms.discord.server import FakeDiscord, serve
from tests.platforms.discord.state import BOT_TOKEN, HISTORY, PUBLIC_THREADS, V2


@pytest.fixture
async def discord() -> AsyncIterator[FakeDiscord]:
    async with serve(clock=ManualClock(), pace=100) as fake:
        yield fake
        assert fake.errors == []


def text(content: str = "x") -> dict[str, Any]:
    return {"type": 10, "content": content}


def row(*inner: dict[str, Any]) -> dict[str, Any]:
    return {"type": 1, "components": list(inner)}


def button(**more: Any) -> dict[str, Any]:
    return {"type": 2, "style": 1, "label": "x", "custom_id": "x", **more}


def container(*inner: dict[str, Any]) -> dict[str, Any]:
    return {"type": 17, "components": list(inner)}


def new(*components: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"flags": V2, "components": list(components), **more}


def old(*components: dict[str, Any]) -> dict[str, Any]:
    return {"content": "x", "components": list(components)}


def options(number: int) -> dict[str, Any]:
    found = [{"label": "x", "value": str(one)} for one in range(number)]
    return {"type": 3, "custom_id": "s", "options": found}


INVALID: list[tuple[dict[str, Any], str, str]] = [
    ({"content": "x" * 2_001}, "content", "BASE_TYPE_MAX_LENGTH"),
    ({"content": "🌊" * 1_001}, "content", "BASE_TYPE_MAX_LENGTH"),
    ({"content": 7}, "content", "BASE_TYPE_STRING"),
    ({"content": "x", "colour": 1}, "colour", "BASE_TYPE_UNKNOWN_FIELD"),
    ({"content": "x", "nonce": "x" * 26}, "nonce", "BASE_TYPE_MAX_LENGTH"),
    ({"content": "x", "allowed_mentions": {"parse": ["all"]}}, "allowed_mentions.parse.0", "BASE_TYPE_CHOICES"),
    (
        {"content": "x", "allowed_mentions": {"parse": ["users"], "users": ["101"]}},
        "allowed_mentions",
        "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE",
    ),
    ({"content": "x", "message_reference": {"message_id": "7"}}, "message_reference", "REPLIES_UNKNOWN_MESSAGE"),
    ({"embeds": [{"description": "x" * 4_097}]}, "embeds.0.description", "BASE_TYPE_MAX_LENGTH"),
    ({"embeds": [{"description": "x" * 4_000}] * 2}, "embeds", "MAX_EMBED_SIZE_EXCEEDED"),
    (new(text(), content="x"), "content", "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2"),
    (new(text(), embeds=[{"title": "x"}]), "embeds", "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2"),
    (new(*[text()] * 41), "components", "COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED"),
    (new(container(*[text()] * 40)), "components", "COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED"),
    (new(text("x" * 2_001), container(text("x" * 2_000))), "components", "COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED"),
    (new(text("")), "components.0.content", "BASE_TYPE_REQUIRED"),
    (new({"type": 99}), "components.0.type", "UNION_TYPE_CHOICES"),
    (new(container(container(text()))), "components.0.components.0.type", "UNION_TYPE_CHOICES"),
    (new(button()), "components.0.type", "UNION_TYPE_CHOICES"),
    (old(text()), "components.0.type", "UNION_TYPE_CHOICES"),
    (old(*[row(button(custom_id=str(one))) for one in range(6)]), "components", "BASE_TYPE_MAX_LENGTH"),
    (old(row(button(custom_id="x" * 101))), "components.0.components.0.custom_id", "BASE_TYPE_BAD_LENGTH"),
    (old(row(button(), button())), "components.0.components.1.custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED"),
    (old(row(button(label="x" * 81))), "components.0.components.0.label", "BASE_TYPE_MAX_LENGTH"),
    (old(row(button(label=""))), "components.0.components.0", "BUTTON_COMPONENT_INVALID"),
    (old(row(button(colour=1))), "components.0.components.0.colour", "BASE_TYPE_UNKNOWN_FIELD"),
    (old(row({"type": 2, "style": 1, "label": "x"})), "components.0.components.0.custom_id", "BASE_TYPE_REQUIRED"),
    (
        old(row(button(url="https://a.example"))),
        "components.0.components.0.url",
        "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY_EXCLUSIVE",
    ),
    (
        old(row({"type": 2, "style": 5, "label": "x", "url": "javascript:x"})),
        "components.0.components.0.url",
        "URL_TYPE_INVALID_URL",
    ),
    (
        old(row(*[button(custom_id=str(one)) for one in range(6)])),
        "components.0.components",
        "BASE_TYPE_BAD_LENGTH",
    ),
    (old(row(button(), options(1))), "components.0.components", "COMPONENT_LAYOUT_WIDTH_EXCEEDED"),
    (old(row(options(26))), "components.0.components.0.options", "BASE_TYPE_BAD_LENGTH"),
]


@pytest.mark.parametrize(("body", "where", "what"), INVALID)
async def test_a_body_that_is_wrong_is_refused_and_says_where(
    discord: FakeDiscord, body: dict[str, Any], where: str, what: str
) -> None:
    """By 50035 and a tree of errors; nothing is posted."""
    url, known = f"{discord.api}/channels/201/messages", {"Authorization": f"Bot {BOT_TOKEN}"}
    async with aiohttp.request("POST", url, json=body, headers=known) as response:
        told = await response.json()

    assert (response.status, told["code"], told["message"]) == (400, 50035, "Invalid Form Body")
    at = told["errors"]
    for name in where.split("."):
        at = at[name]
    assert what in [one["code"] for one in at["_errors"]]
    assert discord.posts == 0


async def test_what_fits_is_taken(discord: FakeDiscord) -> None:
    """Everything at its limit; and components get their ids."""
    full = new(container(*[text("x" * 100)] * 30, text("x" * 1_000), row(button(), button(custom_id="y"))))
    bodies = [{"content": "x" * 2_000}, full, old(row(options(25))), {"embeds": [{"description": "x" * 4_096}]}]
    bot = client(discord)
    async with connected(bot, discord):
        sent = [await bot.http.request(Route("POST", "/channels/201/messages"), json=body) for body in bodies]

    assert [one["id"] for one in sent[1]["components"][0]["components"][-1]["components"]] == [34, 35]
    assert discord.refused == []


async def test_who_may_not_is_told_so(discord: FakeDiscord) -> None:
    """Channels that are not there, not seen, not writable; others' messages; people who take no DMs."""
    bot, people = client(discord), discord.people
    theirs = await people.say("?", user="102")
    async with connected(bot, discord):

        def send(channel: int) -> Any:
            return bot.get_partial_messageable(channel).send("x")

        message = bot.get_partial_messageable(201).get_partial_message(int(theirs))
        assert await code(send(999)) == 10003
        assert await code(send(204)) == 50001
        assert await code(send(205)) == 50013
        assert await code(send(206)) == 50008
        assert await code(bot.get_partial_messageable(201).send("")) == 50006
        assert await code(message.edit(content="mine")) == 50005
        assert await code(message.delete()) == 50013
        assert await code(bot.get_partial_messageable(201).fetch_message(7)) == 10008
        discord.state.users["103"].closed = True
        assert await code((await bot.fetch_user(103)).send("x")) == 50007
        await people.deny("202", HISTORY)
        asked = await people.say("?", channel="202")
        body = {"content": "x", "message_reference": {"message_id": asked}}
        assert await code(bot.http.request(Route("POST", "/channels/202/messages"), json=body)) == 160002
        tidied = await people.say("?", channel="207")
        await bot.get_partial_messageable(207).get_partial_message(int(tidied)).delete()
        await people.kick()
        assert await code(send(201)) == 50001

    assert discord.posts == 0


async def test_threads_have_rules_of_their_own(discord: FakeDiscord) -> None:
    """One at a message, a name that fits, a right to begin it; a post opens what is archived, an edit does not."""
    bot, people = client(discord), discord.people
    asked = await people.say("?")
    async with connected(bot, discord):
        message = bot.get_partial_messageable(201, guild_id=301).get_partial_message(int(asked))
        assert await code(message.create_thread(name="x" * 101)) == 50035
        thread = await message.create_thread(name="x" * 100)
        assert await code(message.create_thread(name="again")) == 160004
        sent = await thread.send("x")
        await people.archive(asked)
        assert await code(sent.edit(content="y")) == 50083
        assert await code(sent.delete()) == 50083
        await thread.send("open again")
        assert not discord.state.channels[asked].archived
        await people.archive(asked, lock=True)
        assert await code(thread.send("z")) == 50083
        await people.deny("202", PUBLIC_THREADS)
        other = await people.say("?", channel="202")
        elsewhere = bot.get_partial_messageable(202, guild_id=301).get_partial_message(int(other))
        assert await code(elsewhere.create_thread(name="x")) == 50013
        forum = await bot.fetch_channel(206)
        assert isinstance(forum, sdk.ForumChannel)
        post = await forum.create_thread(name="x", content="y")

    assert post.thread.id == post.message.id
    assert post.thread.parent_id == 206


async def test_what_is_of_components_stays_so(discord: FakeDiscord) -> None:
    """Content cannot be given back to it; and what was content must be taken away first."""
    bot = client(discord)
    async with connected(bot, discord):

        def patch(message: str, body: dict[str, Any]) -> Any:
            return bot.http.request(Route("PATCH", f"/channels/201/messages/{message}"), json=body)

        send = Route("POST", "/channels/201/messages")
        ours = (await bot.http.request(send, json=new(text())))["id"]
        plain = (await bot.http.request(send, json={"content": "x"}))["id"]
        assert await code(patch(ours, {"content": "x"})) == 50035
        await patch(ours, {"components": [text("y")]})
        assert await code(patch(plain, new(text()))) == 50035
        edited = await patch(plain, new(text(), content=None))

    assert edited["flags"] & V2
    assert [one.name for one in discord.refused] == ["edit_message", "edit_message"]


async def test_requests_must_be_made_well(discord: FakeDiscord) -> None:
    """A token, JSON that says that it is, a route that there is."""
    known, url = {"Authorization": f"Bot {BOT_TOKEN}"}, f"{discord.api}/channels/201/messages"
    plain = {**known, "Content-Type": "text/plain"}
    typed = {**known, "Content-Type": "application/json"}
    async with aiohttp.ClientSession() as session:
        answers = [
            await session.post(url, json={"content": "x"}),
            await session.post(url, json={"content": "x"}, headers={"Authorization": "Bot another"}),
            await session.post(url, json={"content": "x"}, headers={"Authorization": BOT_TOKEN}),
            await session.post(url, data='{"content": "x"}', headers=plain),
            await session.post(url, data='{"content"', headers=typed),
            await session.get(f"{discord.api}/nowhere", headers=known),
        ]
        told = [(one.status, (await one.json())["code"]) for one in answers]

    assert told == [(401, 0), (401, 0), (401, 0), (400, 50035), (400, 50109), (404, 0)]
    assert discord.posts == 0
