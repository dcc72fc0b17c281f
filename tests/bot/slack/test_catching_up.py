"""Catching up with missed questions: within half of the limits, completely, and despite Slack's refusals."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bot.platforms.shared.catch_up import CatchUpRun, ResumeMarker
from bot.platforms.slack import events
from bot.platforms.slack.events import SlackBotIdentity, SlackMessagePosted
from bot.platforms.slack.intake import SlackHistoryReader
from bot.types import Question
from storage.errors import StorageError
from tests.bot.fake_intake import FakeIntake
from tests.bot.slack.adapter import SlackAdapter, make_question
from tests.platforms.fake_server import BROKEN, LIMITED, RESET, UNAVAILABLE, Fault, refused
from tests.platforms.slack.state import BOT, Channel

US = SlackBotIdentity("T1", BOT)


def taking(**facts: Any) -> FakeIntake:
    """Return what takes every mention."""

    def made(written: SlackMessagePosted) -> Question | None:
        asker = make_question(written.channel, written.ts).asker
        return events.build_message_question(written, US, asker) if written.mentions(US) else None

    return FakeIntake(made, **facts)


def catching(adapter: SlackAdapter, taker: FakeIntake, folder: Path) -> CatchUpRun:
    """Return a catch-up run for a fake intake, with its marker in a folder."""
    each: Any = taker
    archive = SlackHistoryReader(adapter.call, US, each)
    return CatchUpRun(archive, each, each, ResumeMarker(folder, "slack"), adapter.clock.now, adapter.clock.advance)


async def missed(adapter: SlackAdapter, channel: str = "C1") -> str:
    """Post a mention while the bot is disconnected, and return its ts."""
    return str(await adapter.slack.people.mention("When?", channel=channel, silent=True))


async def test_catch_up_of_many_channels_stays_within_limits(adapter: SlackAdapter, tmp_path: Path) -> None:
    began, taker = adapter.clock.now(), taking()
    for number in range(120):
        adapter.slack.state.channels[f"CX{number}"] = Channel(f"CX{number}", f"x{number}", members={"U1", BOT})
    question = [await missed(adapter, f"CX{number}") for number in range(0, 120, 17)]
    await catching(adapter, taker, tmp_path).run(began - 1)

    assert taker.messages == sorted(question)
    assert adapter.slack.limited == []
    assert adapter.clock.now() > began + 60


@pytest.mark.parametrize("method", ["users.conversations", "conversations.history", "conversations.replies"])
@pytest.mark.parametrize(
    "fault", [BROKEN, RESET, UNAVAILABLE, LIMITED, Fault(429, retry_after=60), refused("token_revoked")]
)
async def test_catch_up_survives_repeated_failures(
    adapter: SlackAdapter, tmp_path: Path, method: str, fault: Fault
) -> None:
    root = await adapter.slack.people.say("Good morning!", silent=True)
    began, taker = adapter.clock.now(), taking()
    await adapter.clock.advance(1)
    question = [await missed(adapter), str(await adapter.slack.people.mention("Who?", thread=root, silent=True))]
    adapter.slack.faults[method] = [fault] * 9
    await catching(adapter, taker, tmp_path).run(began)

    assert taker.messages == sorted(question)
    assert not adapter.slack.faults[method]
    assert not ResumeMarker(tmp_path, "slack").file.exists()


async def test_unreadable_channel_does_not_stop_the_others(adapter: SlackAdapter, tmp_path: Path) -> None:
    began, taker = adapter.clock.now(), taking(faults=[StorageError("away")])
    adapter.slack.faults["conversations.history"] = [refused("missing_scope")]
    question = [await missed(adapter, channel) for channel in ("C1", "C2")]
    await catching(adapter, taker, tmp_path).run(began - 1)

    assert len(taker.taken) == 1
    assert taker.taken[0].message in question


async def test_restart_during_catch_up_loses_nothing(adapter: SlackAdapter, tmp_path: Path) -> None:
    began = adapter.clock.now()
    await adapter.clock.advance(1)
    question = await missed(adapter)
    adapter.slack.faults["users.conversations"] = [refused("missing_scope")]
    await catching(adapter, taking(), tmp_path).run(began)
    later = datetime.fromtimestamp(adapter.clock.now() + 600, UTC)
    taker = taking(last=SimpleNamespace(taken_at=later))
    again = catching(adapter, taker, tmp_path)

    assert await again.since() == began
    await again.run(began)
    assert taker.messages == [question]
    assert await again.since() == later.timestamp() - 1


@pytest.mark.parametrize("kept", ["", "soon", "nan", "\xff"])
async def test_invalid_resume_marker_is_ignored(adapter: SlackAdapter, tmp_path: Path, kept: str) -> None:
    ResumeMarker(tmp_path, "slack").file.write_text(kept, "latin-1")
    assert await catching(adapter, taking(), tmp_path).since() is None
    await asyncio.wait_for(catching(adapter, taking(), tmp_path / "nowhere").run(adapter.clock.now()), 60)


@pytest.mark.parametrize("thread", [False, True])
async def test_edits_and_deletions_while_away_are_handled(
    adapter: SlackAdapter, tmp_path: Path, *, thread: bool
) -> None:
    root = str(await adapter.slack.people.say("Good morning!", silent=True)) if thread else ""
    question = [str(await adapter.slack.people.mention("When?", thread=root, silent=True)) for _ in range(4)]
    await adapter.slack.people.say("A reply", thread=root or question[3], silent=True)
    await adapter.slack.people.edit(question[1], f"<@{BOT}> Who?")
    for gone in question[2:]:
        await adapter.slack.people.delete(gone)
    adapter.slack.faults["conversations.replies"] = [UNAVAILABLE, LIMITED, Fault(403)]
    taker = taking(rows=[SimpleNamespace(key="", channel="slack:T1/C1", message=one) for one in question])
    await catching(adapter, taker, tmp_path).run(adapter.clock.now() + 60)

    assert taker.edited == [f"slack:T1/C1/{question[1]}"]
    assert [one.ts for one in taker.deleted] == question[2:]
