"""kill -9 before a command of Discord is deferred, in a long private answer, and with several shards."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bot.platforms.discord.messages import NOTHING
from bot.types import DeliveryOutcome
from tests.platforms.bots import text
from tests.platforms.crashes.bot_processes import ForkServer
from tests.platforms.crashes.crash_points import Point
from tests.platforms.crashes.scenes import RULES_QUESTION, Scene, scene_of
from tests.platforms.discord.state import GUILD, OTHER_GUILD, Message
from tests.platforms.example_app import ANSWERS, BUILT, MADE, RULES
from tests.thorough import THOROUGH


@dataclass
class Restart:
    """Crashes a bot, and starts another."""

    scene: Scene
    row: Any = None

    @property
    def messages(self) -> list[Message]:
        ours: list[Message] = self.scene.workspace.server.state.ours()
        return ours

    @property
    def answer(self) -> str:
        return text(self.scene.answer)

    async def run(self, point: Point, question: str = BUILT) -> "Restart":
        """Interactions that were not deferred by the crash are too late for it afterwards."""
        discord: Any = self.scene.workspace.server
        await self.scene.crash(point, question)
        discord.ack_seconds = 0.0
        key = self.scene.workspace.question_key(self.scene.asks)
        async with self.scene.start(self.scene.spec) as process:
            await process.until_ready()
            await process.until(lambda: process.is_over(key))
        self.row = (await self.scene.aftermath()).row
        assert (self.row.state, self.row.handle) == ("done", "")
        return self


@asynccontextmanager
async def restart_of(kind: str, forks: ForkServer, source: Path, folder: Path) -> AsyncIterator[Restart]:
    async with scene_of(kind, forks, source, folder) as scene:
        scene.scenario = replace(scene.scenario, lingers=False)
        yield Restart(scene)


async def test_command_not_deferred_in_time_is_answered_in_the_channel(
    forks: ForkServer, filled: Path, tmp_path: Path
) -> None:
    async with restart_of("discord, command", forks, filled, tmp_path) as restart:
        after = await restart.run(Point("defer", "before"))
        assert after.row.outcome == DeliveryOutcome.DELIVERED
        assert after.answer.count(ANSWERS[BUILT]) == len(after.messages) == 1


async def test_private_command_not_deferred_in_time_asks_its_user_to_repeat_it(
    forks: ForkServer, filled: Path, tmp_path: Path
) -> None:
    async with restart_of("discord, private", forks, filled, tmp_path) as restart:
        after = await restart.run(Point("defer", "before"))
        (message,) = after.messages
        assert after.scene.workspace.server.state.channels[message.channel].guild == ""
        assert ANSWERS[BUILT] not in repr(after.messages)
        assert after.row.outcome != DeliveryOutcome.DELIVERED


LONG = [
    Point("final post", "after"),
    Point("note posted", "before", 2),
    Point("final edit", "after", 3),
    Point("final post", "before"),
    Point("note posted", "after", 2),
    Point("delivered", "before"),
    Point("finish", "before"),
]


@pytest.mark.parametrize("point", LONG if THOROUGH else LONG[:1], ids=str)
async def test_long_private_answer_has_no_message_twice(
    forks: ForkServer, library: Path, tmp_path: Path, point: Point
) -> None:
    """Discord returns only its first message; the others are known from the record. A lost one is an empty line."""
    async with restart_of("discord, long private", forks, library, tmp_path) as restart:
        after = await restart.run(point, question=RULES_QUESTION)
        assert after.row.outcome == DeliveryOutcome.DELIVERED
        assert [after.answer.count(rule) for rule in RULES] == [1] * len(RULES)
        assert len(after.messages) > 1
        strays = [message for message in after.messages if message.id not in after.row.posted]
        assert all(NOTHING in str(stray.components) for stray in strays)
        assert len(strays) <= (str(point) in {"after final post", "before note posted 2"})


POINTS = [Point("post", "after"), Point("final edit", "before", 2)]


@pytest.mark.parametrize("point", POINTS if THOROUGH else POINTS[:1], ids=str)
async def test_questions_of_each_shard_are_answered_once(
    forks: ForkServer, filled: Path, tmp_path: Path, point: Point
) -> None:
    """Those taken before the crash, and one of each shard that came while no bot was running."""
    async with scene_of("discord", forks, filled, tmp_path) as scene:
        discord: Any = scene.workspace.server
        spec = replace(scene.spec, settings={"shards": 2, "servers": [GUILD, OTHER_GUILD]})
        askers = {"201": "101", "211": "104"}

        async def ask_all(question: str) -> dict[str, str]:
            asked = {
                await discord.people.mention(question, channel=asker, user=askers[asker]): asker for asker in askers
            }
            return {
                f"discord:{discord.state.channels[one].guild}/{one}/{message}": message
                for message, one in asked.items()
            }

        async with scene.start(replace(spec, point=point)) as doomed:
            await doomed.until_ready()
            before = await ask_all(BUILT)
            await doomed.end()
        meanwhile = await ask_all(MADE)
        async with scene.start(spec) as process:
            await process.until_ready()
            assert len(discord.gateway.connected) == 2
            await process.until(lambda: all(map(process.is_over, before)))
            await process.until(lambda: set(meanwhile) <= set(process.reports["finished"]))
        for question, asked in ((BUILT, before), (MADE, meanwhile)):
            for message in asked.values():
                assert text(scene.workspace.answer(message)).count(ANSWERS[question]) == 1
        assert len(discord.state.ours()) == len(before) + len(meanwhile)
