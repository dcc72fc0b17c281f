"""Progress signs in Discord, before anything is posted."""

from dataclasses import replace

from bot.platforms.discord.platform import TYPING_SECONDS
from bot.types import ProgressSign
from bot.views.turn_view import View
from tests.bot.discord.adapter import DiscordAdapter, plain
from tests.bot.views.moments import FINAL
from tests.platforms.fake_server import BROKEN

BEGUN, WAITS = View(7, "en", status="Looking …"), View(7, "en", status="Waiting: 3 before you …", before=3)


async def test_typing_indicator_shows_that_a_message_is_being_answered(adapter: DiscordAdapter) -> None:
    one, other = await adapter.ask(), await adapter.ask()
    for question in (one, other):
        assert await adapter.platform.show_sign(question, BEGUN) is ProgressSign.SHOWN
    assert len(adapter.discord.calls("typing")) == 1
    # A thread that is only to be opened on the message is not there yet.
    opening = replace(one, place=replace(one.place, thread=one.message))
    await adapter.clock.advance(TYPING_SECONDS)
    assert await adapter.platform.show_sign(opening, WAITS) is ProgressSign.SHOWN
    assert [call.names["channel"] for call in adapter.discord.calls("typing")] == ["201", "201"]

    # With a message of ours it is over.
    await adapter.show(one, FINAL)
    assert await adapter.platform.show_sign(other, BEGUN) is ProgressSign.SHOWN
    assert len(adapter.discord.calls("typing")) == 3

    adapter.discord.faults["typing"] = [BROKEN] * 9
    away = await adapter.ask(channel="202")
    assert await adapter.platform.show_sign(away, BEGUN) is ProgressSign.NONE


async def test_waiting_command_shows_its_place_in_the_queue(adapter: DiscordAdapter) -> None:
    question = await adapter.invoke(private=True)
    assert await adapter.platform.show_sign(question, BEGUN) is ProgressSign.SHOWN
    assert adapter.discord.calls("edit_response") == []
    for _ in range(2):
        assert await adapter.platform.show_sign(question, WAITS) is ProgressSign.WORDED
    (shown,) = adapter.discord.state.ours()
    assert "Waiting: 3 before you …" in str(plain(shown))
    assert len(adapter.discord.calls("edit_response")) == 1
