"""The fake Discord's interactions, with discord.py in between: answered in time, once, and for a quarter of an hour."""

from collections.abc import AsyncIterator
from typing import Any

import discord as sdk
import pytest
from discord import app_commands

from tests.platforms.clock import ManualClock
from tests.platforms.discord import limits
from tests.platforms.discord.apps import Client, client, code, connected
from tests.platforms.discord.server import FakeDiscord, serve
from tests.platforms.discord.state import BOT
from tests.platforms.discord.transcript import modal


@pytest.fixture
async def discord() -> AsyncIterator[FakeDiscord]:
    async with serve(clock=ManualClock(), pace=100) as fake:
        yield fake
        assert fake.errors == []


def listening(fake: FakeDiscord) -> tuple[Client, list[sdk.Interaction[Any]]]:
    """Return a client, and the interactions that it hears of and leaves alone."""
    bot, heard = client(fake), list[sdk.Interaction[Any]]()

    @bot.event
    async def on_interaction(interaction: sdk.Interaction[Any]) -> None:
        heard.append(interaction)
        fake.notify()

    return bot, heard


async def register(bot: Client) -> None:
    tree: app_commands.CommandTree[Any] = app_commands.CommandTree(bot)

    @tree.command(description="Ask")
    async def ask(_: sdk.Interaction[Any], question: str, private: str = "") -> None: ...

    @tree.context_menu(name="Ask about this")
    async def about(_: sdk.Interaction[Any], message: sdk.Message) -> None: ...

    group = app_commands.Group(name="footnote", description="Settings")

    @group.command(description="Set")
    async def scope(_: sdk.Interaction[Any], what: str) -> None: ...

    tree.add_command(group)
    await tree.sync()
    bot._connection._command_tree = None  # the tests answer themselves


async def test_a_command_is_deferred_and_answered_for_who_used_it_alone(discord: FakeDiscord) -> None:
    """The original is edited, follow-ups come after it, and others see nothing."""
    bot, heard = listening(discord)
    async with connected(bot, discord):
        await register(bot)
        used = await discord.people.command("ask", user="102", question="When?")
        await discord.until(lambda: heard)
        (one,) = heard
        assert one.data["options"] == [{"name": "question", "type": 3, "value": "When?"}]  # type: ignore[index,typeddict-item]
        await one.response.defer(ephemeral=True, thinking=True)
        assert discord.seen("201", by="102") == "#general\nFootnote (only you see this): Footnote is thinking…"
        await one.edit_original_response(content="In 1887.")
        await one.edit_original_response(content="In 1888.")
        await one.followup.send("More", ephemeral=True)
        await one.followup.send("For all")
        assert await code(one.response._response_type and bot.http.request(_callback(one), json={"type": 5})) == 40060

    assert used.acked == 5
    assert discord.seen("201", by="102") == (
        "#general\n"
        "Footnote (only you see this): In 1888. (edited)\n"
        "Footnote (only you see this): More\n"
        "Footnote: For all"
    )
    assert discord.seen("201", by="101") == "#general\nFootnote: For all"


def _callback(one: sdk.Interaction[Any]) -> sdk.http.Route:
    path = "/interactions/{webhook_id}/{webhook_token}/callback"
    return sdk.http.Route("POST", path, webhook_id=one.id, webhook_token=one.token)


async def test_an_interaction_waits_three_seconds_and_its_token_is_good_for_fifteen_minutes(
    discord: FakeDiscord,
) -> None:
    """After that the person reads that nothing came, and the bot is refused."""
    bot, heard = listening(discord)
    async with connected(bot, discord):
        await register(bot)
        await discord.people.command("ask", question="1")
        await discord.people.command("ask", question="2")
        await discord.until(lambda: len(heard) == 2)
        first, late = heard
        assert await code(first.edit_original_response(content="too soon")) == 10015
        await first.response.send_message("Well")
        await discord.clock.advance(limits.ACK_SECONDS + 0.1)
        assert await code(late.response.defer()) == 10062
        await discord.clock.advance(limits.TOKEN_SECONDS - 10)
        await first.edit_original_response(content="Better")
        await discord.clock.advance(10)
        assert await code(first.edit_original_response(content="Best")) == 50027
        assert await code(first.followup.send("Best")) == 50027

    assert discord.seen("201", by="101") == "#general\nFootnote: Better (edited)\n  The application did not respond"


async def test_a_button_opens_a_modal_that_is_submitted(discord: FakeDiscord) -> None:
    """And what is pressed can change the message that it is in."""
    bot, heard = listening(discord)
    view = sdk.ui.View()
    view.add_item(sdk.ui.Button(label="👎", custom_id="footnote:down:7"))
    async with connected(bot, discord):
        sent = await bot.get_partial_messageable(201).send("In 1887.", view=view)
        await discord.people.press("footnote:down:7", str(sent.id), user="102")
        await discord.until(lambda: heard)
        form = sdk.ui.Modal(title="Feedback", custom_id="footnote:comment:7")
        form.add_item(sdk.ui.TextInput(label="What was wrong?", custom_id="comment", max_length=500))
        response = await heard[0].response.send_modal(form)
        assert modal(discord.people.modal("102"), discord.state) == "= Feedback =\nWhat was wrong?: [_____]\n[Submit]"
        await discord.people.submit(user="102", comment="The year")
        await discord.until(lambda: len(heard) == 2)
        await heard[1].response.edit_message(content="In 1888.", view=None)

    assert response.id == heard[0].id
    assert heard[1].data["components"][0]["components"][0]["value"] == "The year"  # type: ignore[index,typeddict-item]
    assert discord.seen("201", by="101") == "#general\nFootnote: In 1888. (edited)"


async def test_a_context_menu_carries_what_the_bot_may_not_read_otherwise(discord: FakeDiscord) -> None:
    """The message that it is used on; subcommands carry their options within."""
    bot, heard = listening(discord)
    async with connected(bot, discord):
        await register(bot)
        asked = await discord.people.say("When was it built?", user="103")
        await discord.people.menu("Ask about this", asked)
        await discord.people.command("footnote scope", what="all")
        await discord.until(lambda: len(heard) == 2)

    data: Any = heard[0].data
    assert data["resolved"]["messages"][asked]["content"] == "When was it built?"
    inner: Any = heard[1].data
    assert inner["options"][0]["options"] == [{"name": "what", "type": 3, "value": "all"}]


async def test_where_the_bot_is_not_it_answers_by_its_users_installation(discord: FakeDiscord) -> None:
    """In a guild that it is not in, it has five follow-ups and cannot write by itself."""
    bot, heard = listening(discord)
    async with connected(bot, discord):
        await register(bot)
        await discord.people.command("ask", channel="221", question="When?")
        await discord.until(lambda: heard)
        assert BOT not in discord.state.guilds["303"].members
        assert not heard[0].is_guild_integration()
        assert heard[0].is_user_integration()
        await heard[0].response.send_message("0")
        discord.rates.per_route["follow_up"] = (50, 1)
        for number in range(limits.FOLLOW_UPS):
            await heard[0].followup.send(str(number + 1))
        assert await code(heard[0].followup.send("6")) == 40094
        assert await code(bot.get_partial_messageable(221).send("7")) == 50001

    assert discord.seen("221", by="101").count("Footnote") == limits.FOLLOW_UPS + 1


async def test_the_first_follow_up_fills_in_what_was_put_off(discord: FakeDiscord) -> None:
    """It is as ephemeral as the deferral said; it can be deleted, and then it is gone."""
    bot, heard = listening(discord)
    async with connected(bot, discord):
        await register(bot)
        await discord.people.command("ask", question="When?")
        await discord.until(lambda: heard)
        await heard[0].response.defer(ephemeral=True, thinking=True)
        message = await heard[0].followup.send("In 1887.", wait=True)
        original = await heard[0].original_response()
        await heard[0].delete_original_response()
        assert await code(heard[0].edit_original_response(content="…")) == 10008

    assert message.id == original.id
    assert message.flags.ephemeral
    assert discord.seen("201", by="101") == "#general"


BAD: list[tuple[dict[str, Any], str]] = [
    ({"name": "Ask", "description": "d"}, "name"),
    ({"name": "ask", "description": ""}, "description"),
    ({"name": "ask", "description": "d", "colour": 1}, "colour"),
    ({"name": "ask", "description": "d", "options": [{"type": 3, "name": "q"}]}, "options"),
    ({"name": "m" * 33, "type": 3}, "name"),
    ({"name": "ask", "description": "d", "name_localizations": {"xx": "ask"}}, "name_localizations"),
]


@pytest.mark.parametrize(("command", "where"), BAD)
async def test_commands_are_registered_all_or_none(discord: FakeDiscord, command: dict[str, Any], where: str) -> None:
    """One that is wrong refuses all, and says where."""
    bot = client(discord)
    async with connected(bot, discord):
        await register(bot)
        before = list(discord.state.commands)
        good = {"name": "good", "description": "d"}
        assert await code(bot.http.bulk_upsert_global_commands(bot.application_id or 0, [good, command])) == 50035  # type: ignore[list-item]

    assert discord.state.commands == before
    assert where in discord.refused[-1].detail["errors"]["1"]
