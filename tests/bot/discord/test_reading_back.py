"""The conversation before a question, read from Discord: threads and DMs by time, channels by replies."""

from dataclasses import replace

from bot.platforms.discord.directory import read_conversation
from tests.bot.discord.stall import US, Stall
from tests.bot.views.moments import FINAL


async def test_a_thread_is_read_from_its_end(stall: Stall) -> None:
    """All pages of it that are needed, with the message that it was opened on, ours among it in plain words."""
    stall.discord.page = 2
    root = await stall.discord.people.say("The quay: when?")
    thread = await stall.discord.people.thread("The quay", message=root)
    for n in range(3):
        await stall.discord.people.say(f"word {n}", channel=thread)
    first = await stall.asked("And then, <@102>?", thread=thread)
    await stall.told(first, FINAL)
    asked = await stall.asked("And now?", thread=thread)
    await stall.discord.people.say("later", channel=thread)

    said = await stall.platform.heard(asked, 50)
    assert [one.user for one in said] == ["101"] * 5 + [""]
    said_before = ["The quay: when?", "word 0", "word 1", "word 2", "And then, @Ben?"]
    assert [one.text for one in said[:5]] == said_before
    assert "Sentence 1 of the answer. [1]" in said[-1].text
    assert "\u2060" not in said[-1].text
    assert [one.text for one in await stall.platform.heard(asked, 2)] == [one.text for one in said[-2:]]


async def test_in_a_channel_what_a_question_replies_to_counts(stall: Stall) -> None:
    """As far back as it goes, and nothing of what others say there."""
    root = await stall.discord.people.say("The quay opens at seven.", user="102")
    await stall.discord.people.say("Lunch?")
    second = await stall.discord.people.say("On Sundays too?", reply=root)
    third = await stall.discord.people.say("I wonder.", user="103", reply=second)
    fourth = await stall.discord.people.mention("Is that so?", reply=third)
    asked = replace(await stall.asked(), message=fourth)

    said = await stall.platform.heard(asked, 50)
    assert [one.text for one in said] == ["The quay opens at seven.", "On Sundays too?", "I wonder."]
    assert [one.user for one in said] == ["102", "101", "103"]
    assert [one.text for one in await stall.platform.heard(asked, 1)] == ["I wonder."]
    await stall.discord.people.delete(second)
    assert [one.text for one in await stall.platform.heard(asked, 50)] == ["I wonder."]


async def test_a_dm_is_read_by_time(stall: Stall) -> None:
    """What stands before the question, also where that is a command."""
    one = await stall.discord.people.dm("Hello.")
    channel = stall.discord.people.find(one).channel
    await stall.clock.advance(1)
    command = await stall.invoked(channel=channel)
    await stall.clock.advance(1)
    asked = await stall.asked(channel=channel)
    assert [one.text for one in await stall.platform.heard(asked, 50)] == ["Hello."]
    assert [one.text for one in await stall.platform.heard(command, 50)] == ["Hello."]


async def test_a_command_in_a_channel_has_nothing_before_it(stall: Stall) -> None:
    """Nor a question whose channel is gone, or that nobody finds any more."""
    await stall.discord.people.say("Lunch?")
    command = await stall.invoked()
    asked = await stall.asked()
    gone = replace(asked, place=replace(asked.place, thread="77"))
    assert await stall.platform.heard(command, 50) == ()
    assert await read_conversation(stall.call, gone, US, 50) == ()
    await stall.discord.people.delete(asked.message)
    assert await stall.platform.heard(asked, 50) == ()


async def test_before_a_message_that_is_no_reply_nothing_is_looked_for(stall: Stall) -> None:
    asked = await stall.asked()
    alone = replace(asked, conversation=f"{asked.place.channel_id}/{asked.message}")
    assert await stall.platform.heard(alone, 50) == ()
    assert stall.discord.calls("get_message") == []
