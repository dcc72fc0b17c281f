"""Reading what was missed: at leisure, until all of it is read, and no matter what Slack refuses meanwhile."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bot.desk.types import Question, Taken
from bot.slack import reading
from bot.slack.catching_up import CatchingUp
from bot.slack.gaps import NAME, Gaps
from bot.slack.happening import Us, Written
from storage.errors import StorageError
from tests.bot.slack.shop import Shop, question
from tests.platforms.slack.faults import BROKEN, LIMITED, RESET, UNAVAILABLE, Fault, refused
from tests.platforms.slack.world import BOT, Channel

US = Us("T1", BOT)


@dataclass
class Taker:
    """Takes every mention, and says when something was taken last."""

    last: datetime | None = None
    taken: list[Question] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)
    on_take: Any = None

    async def newest(self, _: str) -> Any:
        return SimpleNamespace(taken_at=self.last) if self.last else None

    async def question(self, written: Written) -> Question | None:
        if self.faults:
            raise self.faults.pop()
        asker = question(written.channel, written.ts).asker
        return reading.question(written, US, asker) if written.mentions(US) else None

    async def take(self, asked: Question) -> Taken:
        if any(one.key == asked.key for one in self.taken):
            return Taken.KNOWN
        self.taken.append(asked)
        return Taken.NEW


def catching(shop: Shop, taker: Taker, folder: Path) -> CatchingUp:
    """Return what catches up for a taker, beside a file in a folder."""
    each: Any = taker
    return CatchingUp(each, each, shop.call, US, each, Gaps(folder / NAME), shop.clock.now)


async def missed(shop: Shop, channel: str = "C1") -> str:
    """Write a mention that nobody hears of, and return its ts."""
    return str(await shop.slack.acts.mention("When?", channel=channel, silent=True))


async def test_more_channels_than_slack_lets_one_read_in_a_minute(shop: Shop, tmp_path: Path) -> None:
    """Each waits for its turn, however long that takes."""
    began, taker = shop.clock.now(), Taker()
    for number in range(120):
        shop.slack.world.channels[f"CX{number}"] = Channel(f"CX{number}", f"x{number}", members={"U1", BOT})
    asked = [await missed(shop, f"CX{number}") for number in range(0, 120, 17)]
    await catching(shop, taker, tmp_path).run(began - 1)

    assert sorted(one.message for one in taker.taken) == sorted(asked)
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
    root = await shop.slack.acts.say("Good morning!", silent=True)
    began, taker = shop.clock.now(), Taker()
    await shop.clock.advance(1)
    asked = [await missed(shop), str(await shop.slack.acts.mention("Who?", thread=root, silent=True))]
    shop.slack.faults[method] = [fault] * 9
    await catching(shop, taker, tmp_path).run(began)

    assert sorted(one.message for one in taker.taken) == sorted(asked)
    assert not shop.slack.faults[method]
    assert not (tmp_path / NAME).exists()


async def test_a_channel_that_may_not_be_read_keeps_none_from_being_read(shop: Shop, tmp_path: Path) -> None:
    """What is refused for good is left, and a database that is away is waited for."""
    began, taker = shop.clock.now(), Taker(faults=[StorageError("away")])
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
    await catching(shop, Taker(), tmp_path).run(began)
    later = datetime.fromtimestamp(shop.clock.now() + 600, UTC)
    taker = Taker(last=later)
    again = catching(shop, taker, tmp_path)

    assert await again.since() == began
    await again.run(began)
    assert [one.message for one in taker.taken] == [asked]
    assert await again.since() == later.timestamp() - 1


@pytest.mark.parametrize("kept", ["", "soon", "nan", "\xff"])
async def test_a_file_that_says_nothing_is_passed_over(shop: Shop, tmp_path: Path, kept: str) -> None:
    """As is one that cannot be written."""
    (tmp_path / NAME).write_text(kept, "latin-1")
    assert await catching(shop, Taker(), tmp_path).since() is None
    await asyncio.wait_for(catching(shop, Taker(), tmp_path / "nowhere").run(shop.clock.now()), 5)
