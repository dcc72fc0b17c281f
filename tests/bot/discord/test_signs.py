"""What shows in Discord that a question was taken, before anything is posted."""

from dataclasses import replace

from bot.platforms.discord.platform import TYPING_SECONDS
from bot.types import ProgressSign
from bot.views.turn_view import View
from tests.bot.discord.stall import Stall, plain
from tests.bot.views.moments import FINAL
from tests.platforms.fake_server import BROKEN

BEGUN, WAITS = View(7, "en", status="Looking …"), View(7, "en", status="Waiting: 3 before you …", before=3)


async def test_typing_is_the_sign_of_a_message(stall: Stall) -> None:
    """Once for all who wait in a channel, and again before it is over; where it cannot be shown there is none."""
    one, other = await stall.asked(), await stall.asked()
    for asked in (one, other):
        assert await stall.platform.show_sign(asked, BEGUN) is ProgressSign.SHOWN
    assert len(stall.discord.calls("typing")) == 1
    # A thread that is only to be opened on the message is not there yet.
    opening = replace(one, place=replace(one.place, thread=one.message))
    await stall.clock.advance(TYPING_SECONDS)
    assert await stall.platform.show_sign(opening, WAITS) is ProgressSign.SHOWN
    assert [call.names["channel"] for call in stall.discord.calls("typing")] == ["201", "201"]

    # With a message of ours it is over.
    await stall.shown(one, FINAL)
    assert await stall.platform.show_sign(other, BEGUN) is ProgressSign.SHOWN
    assert len(stall.discord.calls("typing")) == 3

    stall.discord.faults["typing"] = [BROKEN] * 9
    away = await stall.asked(channel="202")
    assert await stall.platform.show_sign(away, BEGUN) is ProgressSign.NONE


async def test_in_the_place_of_a_commands_answer_stands_how_many_are_before_it(stall: Stall) -> None:
    """Until the answer takes that place; before, Discord itself says that we think."""
    asked = await stall.invoked(private=True)
    assert await stall.platform.show_sign(asked, BEGUN) is ProgressSign.SHOWN
    assert stall.discord.calls("edit_response") == []
    for _ in range(2):
        assert await stall.platform.show_sign(asked, WAITS) is ProgressSign.WORDED
    (shown,) = stall.discord.state.ours()
    assert "Waiting: 3 before you …" in str(plain(shown))
    assert len(stall.discord.calls("edit_response")) == 1
