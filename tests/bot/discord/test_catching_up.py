"""Catching up with missed questions: within half of the limits, completely, and despite Discord's refusals."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot.platforms.discord.events import DiscordMessagePosted, is_addressed
from bot.platforms.discord.intake import PAGE, DiscordHistoryReader
from bot.platforms.discord.transport import ShardProgress, shard_of
from bot.platforms.shared.catch_up import CatchUpRun, ResumeMarker
from bot.types import Question
from tests.bot.discord.adapter import US, DiscordAdapter, make_question
from tests.bot.fake_intake import FakeIntake
from tests.platforms.discord.state import GUILD, OTHER_GUILD, Channel
from tests.platforms.fake_server import BROKEN, LIMITED, LIMITED_EVERYWHERE, RESET, UNAVAILABLE, Fault


def taking(**facts: Any) -> FakeIntake:
    """Return what takes every mention."""

    def made(written: DiscordMessagePosted) -> Question | None:
        return make_question(written.channel, written.id) if is_addressed(written, US) else None

    return FakeIntake(made, **facts)


@dataclass
class Row:
    """What the queue says was taken last."""

    key: str


def catching(adapter: DiscordAdapter, taker: FakeIntake, folder: Path) -> CatchUpRun:
    """Return a catch-up run for a fake intake, with its marker in a folder. The bot is not in the second server."""
    each: Any = taker
    archive = DiscordHistoryReader(adapter.call, US, each, lambda: ("999", GUILD))
    return CatchUpRun(archive, each, each, ResumeMarker(folder, "discord"), adapter.clock.now, adapter.clock.advance)


async def missed(adapter: DiscordAdapter, channel: str = "201") -> str:
    """Post a mention while the bot is disconnected, and return its id."""
    return str(await adapter.discord.people.mention("When?", channel=channel))


@pytest.mark.parametrize("route", ["get_channels", "active_threads", "get_messages"])
@pytest.mark.parametrize("fault", [BROKEN, RESET, UNAVAILABLE, LIMITED, LIMITED_EVERYWHERE, Fault(429, retry_after=60)])
async def test_catch_up_survives_repeated_failures(
    adapter: DiscordAdapter, tmp_path: Path, route: str, fault: Fault
) -> None:
    began, taker = adapter.clock.now(), taking()
    thread = await adapter.discord.people.thread("The harbour")
    await adapter.clock.advance(1)
    question = [await missed(adapter, channel) for channel in ("201", "204", thread)]
    adapter.discord.faults[route] = [fault] * 9
    await catching(adapter, taker, tmp_path).run(began)

    assert taker.messages == sorted((question[0], question[2]))
    assert not adapter.discord.faults[route]
    assert not ResumeMarker(tmp_path, "discord").file.exists()


async def test_catch_up_of_many_channels_and_pages_stays_within_limits(adapter: DiscordAdapter, tmp_path: Path) -> None:
    began, taker = adapter.clock.now(), taking()
    for number in range(60):
        adapter.discord.state.channels[f"9{number:03}"] = Channel(f"9{number:03}", f"x{number}", guild=GUILD)
    await adapter.clock.advance(1)
    question = [await missed(adapter, f"9{number:03}") for number in range(60)]
    question += [await missed(adapter) for _ in range(PAGE + 1)]
    await catching(adapter, taker, tmp_path).run(began)

    assert taker.messages == sorted(question)
    assert adapter.discord.limited == []


async def test_acceptance_time_is_that_of_the_message_id(adapter: DiscordAdapter, tmp_path: Path) -> None:
    last = Row(f"discord:301/201/{adapter.discord.state.snowflake()}#told")

    assert await catching(adapter, taking(last=last), tmp_path).since() == pytest.approx(adapter.clock.now(), abs=0.01)


def test_each_shard_tracks_its_own_progress() -> None:
    heard = ShardProgress(100.0)
    assert heard.begun((0, 2), 200.0) == heard.begun((1, 2), 205.0) == 100.0
    number = str(300_000 << 22)
    heard.message({"id": number, "guild_id": OTHER_GUILD})
    assert heard.begun((0, 2), 400.0) == 200.0
    assert heard.begun((1, 2), 400.0) == pytest.approx(1_420_070_400 + 300)
    assert ShardProgress(None).begun((0, 1), 200.0) is None


@pytest.mark.parametrize("ready", [{}, {"shard": None}, {"shard": [1]}, {"shard": ["0", 1]}, {"shard": [2, 1]}])
def test_session_without_a_shard_number_is_the_only_shard(ready: dict[str, Any]) -> None:
    assert shard_of(ready) == (0, 1)
    assert shard_of({"shard": [1, 2]}) == (1, 2)


async def test_edits_and_deletions_while_away_are_handled(adapter: DiscordAdapter, tmp_path: Path) -> None:
    question = [await missed(adapter) for _ in range(3)] + [await missed(adapter, "202")]
    await adapter.discord.people.edit(question[1], "<@501> Who?")
    await adapter.discord.people.delete(question[2])
    await adapter.discord.people.deny("202", 1 << 10)
    adapter.discord.faults["get_message"] = [UNAVAILABLE, LIMITED, Fault(403)]
    keys = [f"discord:{GUILD}/{'202' if one == question[3] else '201'}/{one}" for one in question]
    taker = taking(rows=[Row(key) for key in keys])
    await catching(adapter, taker, tmp_path).run(adapter.clock.now() + 60)

    assert taker.edited == [keys[1]]
    assert [one.ids for one in taker.deleted] == [(question[2],)]
