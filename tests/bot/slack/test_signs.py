"""Progress signs in Slack, before anything is posted."""

from dataclasses import replace

from bot.platforms.slack.client import UPDATE
from bot.platforms.slack.platform import STATUS_PACE, UPDATES_SPARED
from bot.types import ProgressSign
from bot.views.turn_view import View
from tests.bot.slack.adapter import SlackAdapter
from tests.bot.views.moments import FINAL, WAY
from tests.platforms.fake_server import refused
from tests.platforms.slack.responding import made


def waiting(before: int) -> View:
    return View(7, "en", status=f"Waiting: {before} before you …", before=before)


async def test_status_of_a_thread_is_set_renewed_and_ended(adapter: SlackAdapter) -> None:
    question, first = await adapter.ask(only_asker=True), View(7, "en", status="Looking …")
    assert await adapter.platform.show_sign(question, first) is ProgressSign.WORDED
    for view in (first, waiting(3)):
        await adapter.platform.show_sign(question, view)
    assert adapter.slack.state.statuses["C1", question.message].loading == ["Looking …"]
    await adapter.clock.advance(STATUS_PACE)
    for view in (first, waiting(3), waiting(3)):
        await adapter.platform.show_sign(question, view)
    assert adapter.slack.state.statuses["C1", question.message].loading == ["Waiting: 3 before you …"]
    assert len(adapter.slack.calls("assistant.threads.setStatus")) == 2

    await adapter.show(question, FINAL)
    assert adapter.slack.state.statuses == {}
    assert adapter.slack.refused == adapter.slack.limited == []


async def test_command_is_acknowledged_once(adapter: SlackAdapter) -> None:
    question = replace(
        await adapter.ask(), text="Is <!here> open?", handle=made(adapter.slack, "C1", "U1"), only_asker=True
    )
    question = replace(question, message="", place=replace(question.place, thread=""))
    for before in (3, 2):
        assert await adapter.platform.show_sign(question, waiting(before)) is ProgressSign.WORDED

    (told,) = adapter.slack.state.ours()
    assert told.only == "U1"
    assert "here" in told.text
    assert told.text.endswith("Waiting: 3 before you …")
    assert adapter.slack.pings == adapter.slack.refused == []


async def test_many_waiting_questions_keep_their_sign(adapter: SlackAdapter) -> None:
    adapter.slack.faults["chat.startStream"] = [refused("unknown_method")] * 99
    most = UPDATE.rate.calls - UPDATES_SPARED
    for number in range(most + 3):
        question = await adapter.ask(channel=f"C{number % 3 + 1}")
        await adapter.platform.show_sign(question, WAY[0])
        await adapter.show(question, WAY[0])
    assert len(adapter.slack.calls("chat.postMessage")) == most
    await adapter.show(question, FINAL)
    adapter.check_shown(question, FINAL)
    assert adapter.slack.calls("chat.update") == []
