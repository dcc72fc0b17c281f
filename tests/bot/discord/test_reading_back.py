"""The conversation before a question, read from Discord: threads and DMs by time, channels by replies."""

from dataclasses import replace

from bot.platforms.discord.directory import read_conversation
from tests.bot.discord.adapter import US, DiscordAdapter
from tests.bot.views.moments import FINAL


async def test_latest_messages_of_a_thread_are_read_with_its_root(adapter: DiscordAdapter) -> None:
    adapter.discord.page = 2
    root = await adapter.discord.people.say("The quay: when?")
    thread = await adapter.discord.people.thread("The quay", message=root)
    for n in range(3):
        await adapter.discord.people.say(f"word {n}", channel=thread)
    first = await adapter.ask("And then, <@102>?", thread=thread)
    await adapter.show_all(first, FINAL)
    question = await adapter.ask("And now?", thread=thread)
    await adapter.discord.people.say("later", channel=thread)

    said = await adapter.platform.heard(question, 50)
    assert [one.user for one in said] == ["101"] * 5 + [""]
    said_before = ["The quay: when?", "word 0", "word 1", "word 2", "And then, @Ben?"]
    assert [one.text for one in said[:5]] == said_before
    assert "Sentence 1 of the answer. [1]" in said[-1].text
    assert "\u2060" not in said[-1].text
    assert [one.text for one in await adapter.platform.heard(question, 2)] == [one.text for one in said[-2:]]


async def test_channel_conversation_follows_replies(adapter: DiscordAdapter) -> None:
    root = await adapter.discord.people.say("The quay opens at seven.", user="102")
    await adapter.discord.people.say("Lunch?")
    second = await adapter.discord.people.say("On Sundays too?", reply=root)
    third = await adapter.discord.people.say("I wonder.", user="103", reply=second)
    fourth = await adapter.discord.people.mention("Is that so?", reply=third)
    question = replace(await adapter.ask(), message=fourth)

    said = await adapter.platform.heard(question, 50)
    assert [one.text for one in said] == ["The quay opens at seven.", "On Sundays too?", "I wonder."]
    assert [one.user for one in said] == ["102", "101", "103"]
    assert [one.text for one in await adapter.platform.heard(question, 1)] == ["I wonder."]
    await adapter.discord.people.delete(second)
    assert [one.text for one in await adapter.platform.heard(question, 50)] == ["I wonder."]


async def test_earlier_messages_of_a_dm_are_read_in_order_of_time(adapter: DiscordAdapter) -> None:
    one = await adapter.discord.people.dm("Hello.")
    channel = adapter.discord.people.find(one).channel
    await adapter.clock.advance(1)
    command = await adapter.invoke(channel=channel)
    await adapter.clock.advance(1)
    question = await adapter.ask(channel=channel)
    assert [one.text for one in await adapter.platform.heard(question, 50)] == ["Hello."]
    assert [one.text for one in await adapter.platform.heard(command, 50)] == ["Hello."]


async def test_command_in_a_channel_has_no_earlier_messages(adapter: DiscordAdapter) -> None:
    await adapter.discord.people.say("Lunch?")
    command = await adapter.invoke()
    question = await adapter.ask()
    gone = replace(question, place=replace(question.place, thread="77"))
    assert await adapter.platform.heard(command, 50) == ()
    assert await read_conversation(adapter.call, gone, US, 50) == ()
    await adapter.discord.people.delete(question.message)
    assert await adapter.platform.heard(question, 50) == ()


async def test_message_without_a_reply_has_no_earlier_messages(adapter: DiscordAdapter) -> None:
    question = await adapter.ask()
    alone = replace(question, conversation=f"{question.place.channel_id}/{question.message}")
    assert await adapter.platform.heard(alone, 50) == ()
    assert adapter.discord.calls("get_message") == []
