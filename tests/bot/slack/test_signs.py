"""What shows in Slack that a question was taken, before anything is posted."""

from dataclasses import replace

from bot.platforms.slack.client import UPDATE
from bot.platforms.slack.platform import STATUS_PACE, UPDATES_SPARED
from bot.types import ProgressSign
from bot.views.turn_view import View
from tests.bot.slack.shop import Shop
from tests.bot.views.moments import FINAL, WAY
from tests.platforms.fake_server import refused
from tests.platforms.slack.responding import made


def waiting(before: int) -> View:
    return View(7, "en", status=f"Waiting: {before} before you …", before=before)


async def test_a_status_is_the_sign_of_a_question_in_a_thread(shop: Shop) -> None:
    """Other words come at leisure, the same ones only before Slack forgets them; it ends with a private answer."""
    asked, first = await shop.asked(only_asker=True), View(7, "en", status="Looking …")
    assert await shop.platform.show_sign(asked, first) is ProgressSign.WORDED
    for view in (first, waiting(3)):
        await shop.platform.show_sign(asked, view)
    assert shop.slack.state.statuses["C1", asked.message].loading == ["Looking …"]
    await shop.clock.advance(STATUS_PACE)
    for view in (first, waiting(3), waiting(3)):
        await shop.platform.show_sign(asked, view)
    assert shop.slack.state.statuses["C1", asked.message].loading == ["Waiting: 3 before you …"]
    assert len(shop.slack.calls("assistant.threads.setStatus")) == 2

    await shop.shown(asked, FINAL)
    assert shop.slack.state.statuses == {}
    assert shop.slack.refused == shop.slack.limited == []


async def test_who_used_a_command_is_told_once_that_the_answer_comes(shop: Shop) -> None:
    """With what they asked, and how many are before them; it pings nobody."""
    asked = replace(await shop.asked(), text="Is <!here> open?", handle=made(shop.slack, "C1", "U1"), only_asker=True)
    asked = replace(asked, message="", place=replace(asked.place, thread=""))
    for before in (3, 2):
        assert await shop.platform.show_sign(asked, waiting(before)) is ProgressSign.WORDED

    (told,) = shop.slack.state.ours()
    assert told.only == "U1"
    assert "here" in told.text
    assert told.text.endswith("Waiting: 3 before you …")
    assert shop.slack.pings == shop.slack.refused == []


async def test_many_who_wait_keep_their_sign_instead_of_a_message(shop: Shop) -> None:
    """Each message on its way would have to be updated, of which Slack allows few."""
    shop.slack.faults["chat.startStream"] = [refused("unknown_method")] * 99
    most = UPDATE.rate.calls - UPDATES_SPARED
    for number in range(most + 3):
        asked = await shop.asked(channel=f"C{number % 3 + 1}")
        await shop.platform.show_sign(asked, WAY[0])
        await shop.shown(asked, WAY[0])
    assert len(shop.slack.calls("chat.postMessage")) == most
    await shop.shown(asked, FINAL)
    shop.whole(asked, FINAL)
    assert shop.slack.calls("chat.update") == []
