"""Scenes of crash tests: a workspace that outlives its bots, and the record after one of them crashed."""

import shutil
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from storage.database.engine import open_database
from storage.database.queue import Queue
from storage.record.audit_log import AuditLog
from storage.record.proof.record_check import RecordCheck, verify_record
from storage.types import EntryKind, LogEntry, QueuedQuestion
from tests.platforms.crashes.bot_processes import BotProcess, BotSpec, ForkServer
from tests.platforms.crashes.crash_points import Point
from tests.platforms.example_app import BUILT, MADE
from tests.platforms.workspace import Read, Workspace
from tests.platforms.workspaces import WORKSPACES

RULES_QUESTION = "Which rules has the harbour book?"


@dataclass(frozen=True)
class Scenario:
    """How a question is asked on a platform, and which refusals a restart may cause."""

    workspace: str
    ask: dict[str, Any]
    lingers: bool = True
    recites: bool = False
    streams: bool = True
    expected: frozenset[Any] = frozenset()

    @property
    def is_certain(self) -> bool:
        """Whether the bot can always find its posts: Slack does not list a message that only one user sees."""
        return not (self.workspace.startswith("slack") and self.ask)

    @property
    def has_follow_up(self) -> bool:
        """Whether one can ask again in the conversation: each command is a conversation of its own."""
        return self.workspace == "mattermost" or not self.ask


COMMAND, PRIVATE = {"command": True}, {"only_asker": True}
_SLACK = frozenset({"feature_not_enabled", "streaming_state_conflict"})
"""A live message of an earlier process is still live when it is updated."""
_DISCORD = frozenset({("get_response", 10015), ("edit_response", 10015), ("get_messages", 50001)})
"""An interaction that was not answered in time is unknown; catching up reads where the bot may not."""
SCENARIOS = {
    "slack, streamed": Scenario("slack", {}, expected=_SLACK),
    "slack, updated": Scenario("slack", {}, streams=False, expected=_SLACK),
    "slack, private": Scenario("slack", PRIVATE, lingers=False, expected=_SLACK),
    "slack, long": Scenario("slack", {}, recites=True, expected=_SLACK),
    "slack, long updated": Scenario("slack", {}, lingers=False, recites=True, streams=False, expected=_SLACK),
    "slack over HTTP": Scenario("slack over HTTP", {}, lingers=False, expected=_SLACK),
    "slack over HTTP, private": Scenario("slack over HTTP", PRIVATE, lingers=False, expected=_SLACK),
    "discord": Scenario("discord", {}, expected=_DISCORD),
    "discord, command": Scenario("discord", COMMAND, expected=_DISCORD),
    "discord, private": Scenario("discord", PRIVATE, expected=_DISCORD),
    "discord, long": Scenario("discord", {}, recites=True, expected=_DISCORD),
    "discord, long command": Scenario("discord", COMMAND, lingers=False, recites=True, expected=_DISCORD),
    "discord, long private": Scenario("discord", PRIVATE, lingers=False, recites=True, expected=_DISCORD),
    "mattermost": Scenario("mattermost", {}),
    "mattermost, private": Scenario("mattermost", PRIVATE),
    "mattermost, long": Scenario("mattermost", {}, recites=True),
}


@dataclass
class Scene:
    """A workspace that outlives its bots, and their home."""

    scenario: Scenario
    workspace: Workspace
    forks: ForkServer
    home: Path
    asks: str = ""
    others: int = 0
    """Messages that answered other questions."""

    @property
    def spec(self) -> BotSpec:
        workspace, scenario = self.workspace, self.scenario
        now = workspace.server.clock.now()
        facts = {"http": workspace.http, "recites": scenario.recites, "lingers": scenario.lingers}
        return BotSpec(workspace.name, str(self.home), workspace.server.url, now, **facts)

    def start(self, spec: BotSpec) -> Any:
        return self.forks.start(spec, self.workspace.hear)

    async def ask(self, question: str, thread: str = "") -> str:
        workspace = self.workspace
        where = {"user": workspace.users[0], "channel": workspace.channels[0], "thread": thread}
        return await workspace.say(question, **where, **self.scenario.ask)

    async def crash(self, point: Point, question: str = BUILT) -> None:
        """Ask a bot that ends at a point."""
        async with self.start(replace(self.spec, point=point)) as doomed:
            await doomed.until_ready()
            self.asks = await self.ask(question)
            if point.name == "ack":
                await self._kill_around_ack(doomed, point)
            assert await doomed.end() == -signal.SIGKILL, f"it never came {point}"

    async def _kill_around_ack(self, doomed: BotProcess, point: Point) -> None:
        """Kill it when the server sent an event, or learned that it arrived: only the server knows that moment."""
        workspace = self.workspace
        await workspace.until(lambda: workspace.event_sent if point.moment == "before" else not workspace.pending)
        await doomed.kill()

    async def recover(self, spec: BotSpec | None = None) -> None:
        """Run a bot until all that was open is done."""
        async with self.start(spec or self.spec) as process:
            await process.until_ready()
            await self.workspace.until(lambda: not self.workspace.pending)
            if not self.scenario.has_follow_up:
                await process.until(lambda: process.is_over(self.workspace.question_key(self.asks)))
                return
            await self.workspace.again(self.asks)
            # Questions of one conversation are answered one after another: when this is done, so is that before it.
            after = await self.ask(MADE, thread=self.asks)
            await process.until(lambda: self.workspace.question_key(after) in process.reports["finished"])
        self.others = len(self.workspace.answer(after))

    @property
    def posted(self) -> int:
        return self.workspace.posted - self.others

    @property
    def answer(self) -> tuple[Read, ...]:
        return self.workspace.answer(self.asks)

    async def aftermath(self, asks: str = "") -> "Aftermath":
        return await read_aftermath(self.home, self.workspace.question_key(asks or self.asks))


@asynccontextmanager
async def scene_of(kind: str, forks: ForkServer, source: Path, folder: Path) -> AsyncIterator[Scene]:
    home, scenario = Path(shutil.copytree(source, folder / "home")), SCENARIOS[kind]
    async with WORKSPACES[scenario.workspace]() as workspace:
        if not scenario.streams:
            workspace.forbid_streams()
        yield Scene(scenario, workspace, forks, home)
        workspace.check()
        refused = workspace.server.refused
        assert {one.code if workspace.name == "slack" else (one.name, one.code) for one in refused} <= scenario.expected


@dataclass(frozen=True)
class Aftermath:
    """The queue and the record after everything is done."""

    row: QueuedQuestion
    still_open: Sequence[QueuedQuestion]
    turns: Sequence[Sequence[LogEntry]]
    """The turns of the question, oldest first."""
    record: RecordCheck

    @property
    def outcomes(self) -> list[str]:
        entries = [entry for turn in self.turns for entry in turn if entry.kind is EntryKind.DELIVERED]
        return [entry.body["outcome"] for entry in entries]


async def read_aftermath(home: Path, key: str) -> Aftermath:
    with open_database("", home=home) as database:
        queue, audit = Queue(database), AuditLog(database)
        row = await queue.by_key(key)
        assert row, "the question was never taken"
        opened = [entry for entry, _ in await audit.turns(50) if entry.body["ticket"] == row.ticket]
        ids = dict.fromkeys([*(entry.turn_id for entry in reversed(opened)), row.turn_id])
        turns = [await audit.turn(turn_id) for turn_id in ids if turn_id]
        still_open = await queue.open("nobody", datetime.now(UTC), sole=True)
        return Aftermath(row, still_open, turns, await verify_record(database))
