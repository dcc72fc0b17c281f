"""kill -9 while a command is answered in Discord, where the time that its token is good counts besides the step."""

import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bot.platforms.discord.messages import NOTHING
from bot.types import DeliveryOutcome
from storage.database.engine import open_database
from storage.database.queue import Queue
from storage.types import QueuedQuestion
from tests.platforms.discord.scenes import DiscordScene, scene
from tests.platforms.discord.world import GUILD, OTHER_GUILD, Message
from tests.platforms.killing.fuses import Point
from tests.platforms.killing.lives import Nursery, nursery
from tests.platforms.world import ANSWERS, BOOK, BUILT, MADE, RULES, fill
from tests.thorough import THOROUGH

LATER = 16 * 60.0
"""Seconds after which the token of an interaction is good no more."""


@pytest.fixture(scope="module")
def nurse() -> Iterator[Nursery]:
    with nursery() as place:
        yield place


@pytest.fixture
def home(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(filled, tmp_path / "home"))


@dataclass(frozen=True)
class After:
    """What is there when the bot has come back and done what was left."""

    scene: DiscordScene
    asks: str
    row: QueuedQuestion

    @property
    def messages(self) -> list[Message]:
        """All that the bot wrote."""
        return self.scene.street.discord.world.ours()

    @property
    def answered(self) -> str:
        """What the command's answer says."""
        return "\n".join(one.text for one in self.scene.street.answer(self.asks))


@asynccontextmanager
async def killed(
    nurse: Nursery,
    home: Path,
    point: Point,
    *,
    command: bool = True,
    question: str = BUILT,
    later: float = 0.0,
    **facts: bool,
) -> AsyncIterator[After]:
    """Use a command, die at the point, and come back, perhaps later. What should have been deferred by then was not."""
    async with scene(command=command, **facts)() as opened:
        assert isinstance(opened, DiscordScene)
        discord, life = opened.street.discord, opened.life(home)
        async with nurse.child(replace(life, point=point), opened.heard) as doomed:
            await doomed.until(lambda: "ready" in doomed.told)
            asks = await opened.ask(question)
            assert await doomed.end() == -signal.SIGKILL, f"it never came {point}"
        discord.ack_seconds = 0.0
        for one in discord.world.ours() if later else ():
            one.nonce = None  # it is remembered for a few minutes
        discord.token_seconds = discord.token_seconds if not later else 0.0
        now: dict[str, Any] = {"now": discord.clock.now() + later}
        async with nurse.child(replace(life, traits={**life.traits, **now}), opened.heard) as child:
            await child.until(lambda: "ready" in child.told and child.over(opened.key(asks)))
        with open_database("", home=home) as database:
            row = await Queue(database).by_key(opened.key(asks))
        assert row
        assert (row.state, row.handle) == ("done", "")
        yield After(opened, asks, row)


async def test_a_command_that_was_not_deferred_in_time_is_answered_in_the_channel(nurse: Nursery, home: Path) -> None:
    """Once: the person read that the bot did not react, and then reads the answer."""
    async with killed(nurse, home, Point("defer", "before")) as after:
        assert after.row.outcome == DeliveryOutcome.DELIVERED
        assert after.answered.count(ANSWERS[BUILT]) == len(after.messages) == 1


async def test_a_private_command_that_was_not_deferred_in_time_is_answered_to_nobody(
    nurse: Nursery, home: Path
) -> None:
    """Whoever used it is told in a DM to ask again, and nothing is in the channel."""
    async with killed(nurse, home, Point("defer", "before"), only_asker=True) as after:
        (told,) = after.messages
        assert after.scene.street.discord.world.channels[told.channel].guild == ""
        assert ANSWERS[BUILT] not in repr(after.messages)
        assert after.row.outcome != DeliveryOutcome.DELIVERED


@pytest.mark.parametrize("moment", ["before", "after"] if THOROUGH else ["after"])
async def test_whether_a_private_answer_was_shown_is_not_known_after_its_quarter_of_an_hour(
    nurse: Nursery, home: Path, moment: Any
) -> None:
    """It is not shown again, to nobody, and the record says that this is uncertain."""
    async with killed(nurse, home, Point("final edit", moment), only_asker=True, later=LATER) as after:
        assert after.row.outcome == DeliveryOutcome.UNCERTAIN
        assert after.answered.count("[1] Skarholm lighthouse") == (moment == "after")
        assert len(after.messages) == 1


async def test_a_command_whose_quarter_of_an_hour_is_over_is_answered_in_the_channel(
    nurse: Nursery, home: Path
) -> None:
    """Nothing of it is said twice: what stood there is completed."""
    async with killed(nurse, home, Point("turn_closed", "after"), later=LATER) as after:
        assert after.row.outcome == DeliveryOutcome.DELIVERED
        assert after.answered.count("[1] Skarholm lighthouse") == 1


LONG = [
    Point("final post", "after"),
    Point("note posted", "before", 2),
    Point("final edit", "after", 3),
    Point("final post", "before"),
    Point("note posted", "after", 2),
    Point("delivered", "before"),
    Point("finish", "before"),
]
"""The first three are what another platform has not."""


@pytest.mark.parametrize("point", LONG if THOROUGH else LONG[:1], ids=str)
async def test_no_message_of_a_long_private_answer_is_there_twice(nurse: Nursery, home: Path, point: Point) -> None:
    """Discord tells of the first alone: the others are as they were stored. What was not stored is an empty line."""
    await fill(home, BOOK)
    asked = {"question": "Which rules has the harbour book?", "only_asker": True, "recites": True}
    async with killed(nurse, home, point, **asked) as after:  # type: ignore[arg-type]
        assert after.row.outcome == DeliveryOutcome.DELIVERED
        assert [after.answered.count(rule) for rule in RULES] == [1] * len(RULES)
        assert len(after.messages) > 1
        strays = [one for one in after.messages if one.id not in after.row.posted]
        assert all(NOTHING in str(one.components) for one in strays)
        assert len(strays) <= (str(point) in {"after final post", "before note posted 2"})


@pytest.mark.parametrize(
    "point", [Point("post", "after"), Point("final edit", "before")][: 2 if THOROUGH else 1], ids=str
)
async def test_what_was_posted_is_found_when_its_nonce_is_forgotten(nurse: Nursery, home: Path, point: Point) -> None:
    """It is completed, and nothing stands there besides."""
    async with killed(nurse, home, point, command=False, later=LATER) as after:
        assert after.row.outcome == DeliveryOutcome.DELIVERED
        assert after.answered.count("[1] Skarholm lighthouse") == len(after.messages) == 1


@pytest.mark.parametrize(
    "point", [Point("post", "after"), Point("final edit", "before", 2)][: 2 if THOROUGH else 1], ids=str
)
async def test_a_question_of_each_shard_is_answered_once(nurse: Nursery, home: Path, point: Point) -> None:
    """Those that were taken before it died, and one of each that came while nobody was there."""
    async with scene()() as opened:
        assert isinstance(opened, DiscordScene)
        acts, discord = opened.street.discord.acts, opened.street.discord
        facts = {"discord": {"shards": 2, "servers": [GUILD, OTHER_GUILD]}}
        life = opened.life(home)
        life = replace(life, traits={**life.traits, **facts})
        places = {"201": "101", "211": "104"}
        async with nurse.child(replace(life, point=point), opened.heard) as doomed:
            await doomed.until(lambda: "ready" in doomed.told)
            asked = [(channel, await acts.mention(BUILT, channel=channel, user=who)) for channel, who in places.items()]
            assert await doomed.end() == -signal.SIGKILL, f"it never came {point}"
        asked += [(channel, await acts.mention(MADE, channel=channel, user=who)) for channel, who in places.items()]
        keys = [f"discord:{discord.world.channels[channel].guild}/{channel}/{one}" for channel, one in asked]
        async with nurse.child(life, opened.heard) as child:
            await child.until(lambda: "ready" in child.told)
            assert len(discord.gateway.connected) == 2
            await child.until(lambda: all(one in child.told["finished"] or child.over(one) for one in keys[:2]))
            await child.until(lambda: all(one in child.told["finished"] for one in keys[2:]))
        for number, (_, one) in enumerate(asked):
            said = "\n".join(read.text for read in opened.street.answer(one))
            assert said.count(ANSWERS[BUILT if number < len(places) else MADE]) == 1
        assert len(discord.world.ours()) == len(asked)
