"""Reading what was missed: at leisure, until all of it is read, and no matter what Discord refuses meanwhile."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot.platforms.discord.events import DiscordMessagePosted, is_addressed
from bot.platforms.discord.intake import PAGE, DiscordHistoryReader
from bot.platforms.discord.transport import ShardProgress, shard_of
from bot.platforms.shared.catch_up import CatchUpRun, ResumeMarker
from bot.types import Question
from tests.bot.discord.stall import US, Stall, question
from tests.bot.fake_intake import FakeIntake
from tests.platforms.discord.state import GUILD, OTHER_GUILD, Channel
from tests.platforms.fake_server import BROKEN, LIMITED, LIMITED_EVERYWHERE, RESET, UNAVAILABLE, Fault


def taking(**facts: Any) -> FakeIntake:
    """Return what takes every mention."""

    def made(written: DiscordMessagePosted) -> Question | None:
        return question(written.channel, written.id) if is_addressed(written, US) else None

    return FakeIntake(made, **facts)


@dataclass
class Row:
    """What the queue says was taken last."""

    key: str


def catching(stall: Stall, taker: FakeIntake, folder: Path) -> CatchUpRun:
    """Return what catches up for a taker, beside a file in a folder. The second server is none of ours."""
    each: Any = taker
    archive = DiscordHistoryReader(each, stall.call, US, each, lambda: ("999", GUILD))
    return CatchUpRun(archive, each, ResumeMarker(folder, "discord"), stall.clock.now, stall.clock.advance)


async def missed(stall: Stall, channel: str = "201") -> str:
    """Write a mention; nobody is connected who would hear of it, and return its id."""
    return str(await stall.discord.people.mention("When?", channel=channel))


@pytest.mark.parametrize("route", ["get_channels", "active_threads", "get_messages"])
@pytest.mark.parametrize("fault", [BROKEN, RESET, UNAVAILABLE, LIMITED, LIMITED_EVERYWHERE, Fault(429, retry_after=60)])
async def test_whatever_keeps_it_from_reading_is_over_some_time(
    stall: Stall, tmp_path: Path, route: str, fault: Fault
) -> None:
    """However often it comes, nothing that was missed is lost; where we may not read nobody could ask us."""
    began, taker = stall.clock.now(), taking()
    thread = await stall.discord.people.thread("The harbour")
    await stall.clock.advance(1)
    asked = [await missed(stall, channel) for channel in ("201", "204", thread)]
    stall.discord.faults[route] = [fault] * 9
    await catching(stall, taker, tmp_path).run(began)

    assert taker.messages == sorted((asked[0], asked[2]))
    assert not stall.discord.faults[route]
    assert not ResumeMarker(tmp_path, "discord").file.exists()


async def test_more_than_fits_a_page_in_more_channels_than_discord_lets_one_read_at_once(
    stall: Stall, tmp_path: Path
) -> None:
    """Each waits for its turn, however long that takes."""
    began, taker = stall.clock.now(), taking()
    for number in range(60):
        stall.discord.state.channels[f"9{number:03}"] = Channel(f"9{number:03}", f"x{number}", guild=GUILD)
    await stall.clock.advance(1)
    asked = [await missed(stall, f"9{number:03}") for number in range(60)]
    asked += [await missed(stall) for _ in range(PAGE + 1)]
    await catching(stall, taker, tmp_path).run(began)

    assert taker.messages == sorted(asked)
    assert stall.discord.limited == []


async def test_a_restart_while_it_catches_up_loses_nothing(stall: Stall, tmp_path: Path) -> None:
    """The next start looks back to where the first did, whatever was taken in between."""
    began = stall.clock.now()
    await stall.clock.advance(1)
    asked = await missed(stall)
    stall.discord.faults["get_channels"] = [Fault(403, code=20012)]
    await catching(stall, taking(), tmp_path).run(began)
    await stall.clock.advance(600)
    later = stall.discord.state.snowflake()
    taker = taking(last=Row(f"discord:301/201/{later}#told"))
    again = catching(stall, taker, tmp_path)

    assert await again.since() == began
    await again.run(began)
    assert taker.messages == [asked]
    assert await again.since() == pytest.approx(stall.clock.now(), abs=0.01)


def test_a_shard_does_not_know_what_another_missed() -> None:
    """Each is told since when it heard nothing, by its own messages and by when its session began."""
    heard = ShardProgress(100.0)
    assert heard.begun((0, 2), 200.0) == heard.begun((1, 2), 205.0) == 100.0
    number = str(300_000 << 22)
    heard.message({"id": number, "guild_id": OTHER_GUILD})
    assert heard.begun((0, 2), 400.0) == 200.0
    assert heard.begun((1, 2), 400.0) == pytest.approx(1_420_070_400 + 300)
    assert ShardProgress(None).begun((0, 1), 200.0) is None


@pytest.mark.parametrize("ready", [{}, {"shard": None}, {"shard": [1]}, {"shard": ["0", 1]}, {"shard": [2, 1]}])
def test_a_session_that_says_nothing_of_shards_is_the_only_one(ready: dict[str, Any]) -> None:
    """As is one that says what cannot be."""
    assert shard_of(ready) == (0, 1)
    assert shard_of({"shard": [1, 2]}) == (1, 2)


async def test_what_was_edited_or_deleted_meanwhile_is_looked_at_again(stall: Stall, tmp_path: Path) -> None:
    """What stands as it was asked is left alone, as is what may not be read any more, once it can be told."""
    asked = [await missed(stall) for _ in range(3)] + [await missed(stall, "202")]
    await stall.discord.people.edit(asked[1], "<@501> Who?")
    await stall.discord.people.delete(asked[2])
    await stall.discord.people.deny("202", 1 << 10)
    stall.discord.faults["get_message"] = [UNAVAILABLE, LIMITED, Fault(403)]
    keys = [f"discord:{GUILD}/{'202' if one == asked[3] else '201'}/{one}" for one in asked]
    taker = taking(rows=[Row(key) for key in keys])
    await catching(stall, taker, tmp_path).run(stall.clock.now() + 60)

    assert taker.edited == [keys[1]]
    assert [one.ids for one in taker.deleted] == [(asked[2],)]
