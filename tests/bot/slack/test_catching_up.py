"""Reading what was missed: at leisure, until all of it is read, and no matter what Slack refuses meanwhile."""

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
from tests.bot.slack.shop import Shop, question
from tests.platforms.fake_server import BROKEN, LIMITED, RESET, UNAVAILABLE, Fault, refused
from tests.platforms.slack.state import BOT, Channel

US = SlackBotIdentity("T1", BOT)


def taking(**facts: Any) -> FakeIntake:
    """Return what takes every mention."""

    def made(written: SlackMessagePosted) -> Question | None:
        asker = question(written.channel, written.ts).asker
        return events.build_message_question(written, US, asker) if written.mentions(US) else None

    return FakeIntake(made, **facts)


def catching(shop: Shop, taker: FakeIntake, folder: Path) -> CatchUpRun:
    """Return what catches up for a taker, beside a file in a folder."""
    each: Any = taker
    archive = SlackHistoryReader(each, shop.call, US, each)
    return CatchUpRun(archive, each, ResumeMarker(folder, "slack"), shop.clock.now, shop.clock.advance)


async def missed(shop: Shop, channel: str = "C1") -> str:
    """Write a mention that nobody hears of, and return its ts."""
    return str(await shop.slack.people.mention("When?", channel=channel, silent=True))


async def test_more_channels_than_slack_lets_one_read_in_a_minute(shop: Shop, tmp_path: Path) -> None:
    """Each waits for its turn, however long that takes."""
    began, taker = shop.clock.now(), taking()
    for number in range(120):
        shop.slack.state.channels[f"CX{number}"] = Channel(f"CX{number}", f"x{number}", members={"U1", BOT})
    asked = [await missed(shop, f"CX{number}") for number in range(0, 120, 17)]
    await catching(shop, taker, tmp_path).run(began - 1)

    assert taker.messages == sorted(asked)
    assert shop.slack.limited == []
    assert shop.clock.now() > began + 60


@pytest.mark.parametrize("method", ["users.conversations", "conversations.history", "conversations.replies"])
@pytest.mark.parametrize(
    "fault", [BROKEN, RESET, UNAVAILABLE, LIMITED, Fault(429, retry_after=60), refused("token_revoked")]
)
async def test_whatever_keeps_it_from_reading_is_over_some_time(
    shop: Shop, tmp_path: Path, method: str, fault: Fault
) -> None:
    """However often it comes, nothing that was missed is lost."""
    root = await shop.slack.people.say("Good morning!", silent=True)
    began, taker = shop.clock.now(), taking()
    await shop.clock.advance(1)
    asked = [await missed(shop), str(await shop.slack.people.mention("Who?", thread=root, silent=True))]
    shop.slack.faults[method] = [fault] * 9
    await catching(shop, taker, tmp_path).run(began)

    assert taker.messages == sorted(asked)
    assert not shop.slack.faults[method]
    assert not ResumeMarker(tmp_path, "slack").file.exists()


async def test_a_channel_that_may_not_be_read_keeps_none_from_being_read(shop: Shop, tmp_path: Path) -> None:
    """What is refused for good is left, and a database that is away is waited for."""
    began, taker = shop.clock.now(), taking(faults=[StorageError("away")])
    shop.slack.faults["conversations.history"] = [refused("missing_scope")]
    asked = [await missed(shop, channel) for channel in ("C1", "C2")]
    await catching(shop, taker, tmp_path).run(began - 1)

    assert len(taker.taken) == 1
    assert taker.taken[0].message in asked


async def test_a_restart_while_it_catches_up_loses_nothing(shop: Shop, tmp_path: Path) -> None:
    """The next start looks back to where the first did, whatever was taken in between."""
    began = shop.clock.now()
    await shop.clock.advance(1)
    asked = await missed(shop)
    shop.slack.faults["users.conversations"] = [refused("missing_scope")]
    await catching(shop, taking(), tmp_path).run(began)
    later = datetime.fromtimestamp(shop.clock.now() + 600, UTC)
    taker = taking(last=SimpleNamespace(taken_at=later))
    again = catching(shop, taker, tmp_path)

    assert await again.since() == began
    await again.run(began)
    assert taker.messages == [asked]
    assert await again.since() == later.timestamp() - 1


@pytest.mark.parametrize("kept", ["", "soon", "nan", "\xff"])
async def test_a_file_that_says_nothing_is_passed_over(shop: Shop, tmp_path: Path, kept: str) -> None:
    """As is one that cannot be written."""
    ResumeMarker(tmp_path, "slack").file.write_text(kept, "latin-1")
    assert await catching(shop, taking(), tmp_path).since() is None
    await asyncio.wait_for(catching(shop, taking(), tmp_path / "nowhere").run(shop.clock.now()), 60)


@pytest.mark.parametrize("thread", [False, True])
async def test_what_was_edited_or_deleted_meanwhile_is_looked_at_again(
    shop: Shop, tmp_path: Path, *, thread: bool
) -> None:
    """Also in a thread, and where others replied; what stands as it was asked is left alone, once it can be told."""
    root = str(await shop.slack.people.say("Good morning!", silent=True)) if thread else ""
    asked = [str(await shop.slack.people.mention("When?", thread=root, silent=True)) for _ in range(4)]
    await shop.slack.people.say("A reply", thread=root or asked[3], silent=True)
    await shop.slack.people.edit(asked[1], f"<@{BOT}> Who?")
    for gone in asked[2:]:
        await shop.slack.people.delete(gone)
    shop.slack.faults["conversations.replies"] = [UNAVAILABLE, LIMITED, Fault(403)]
    taker = taking(rows=[SimpleNamespace(key="", channel="slack:T1/C1", message=one) for one in asked])
    await catching(shop, taker, tmp_path).run(shop.clock.now() + 60)

    assert taker.edited == [f"slack:T1/C1/{asked[1]}"]
    assert [one.ts for one in taker.deleted] == asked[2:]
