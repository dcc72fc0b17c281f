"""kill -9 at every step between a question and its answer; what stands there afterwards, once the bot is back."""

import shutil
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.desk.types import Outcome
from storage.audit import AuditLog
from storage.database import open_database
from storage.queue import DONE, Queue
from storage.types import EntryKind, LogEntry, QueuedQuestion
from storage.verifying import verify
from tests.platforms.dialects import DISCORD, SLACK, Dialect
from tests.platforms.fake_server import FakeServer, Message, serve
from tests.platforms.killing.fuses import Point
from tests.platforms.killing.lives import Life, Nursery, nursery
from tests.platforms.world import ANSWERS, BUILT, HOST, MADE


@dataclass(frozen=True)
class Kind:
    """What can be done with the answer."""

    dialect: Dialect = SLACK
    edits: bool = True
    reads_back: bool = True
    only_asker: bool = False

    @property
    def traits(self) -> dict[str, Any]:
        return {"dialect": self.dialect.name, "edits": self.edits, "reads_back": self.reads_back}

    @property
    def certain(self) -> bool:
        """Whether it can always be known what stands there."""
        return self.reads_back and not self.only_asker


KINDS = {
    "editable": Kind(),
    "ephemeral": Kind(only_asker=True),
    "unreadable": Kind(DISCORD, reads_back=False),
}
EVERYWHERE = (
    Point("put", "before"),
    Point("put", "after"),
    Point("ack", "before"),
    Point("ack", "after"),
    Point("turn_opened", "before"),
    Point("turn_opened", "after"),
    Point("system", "before"),
    Point("say", "before"),
    Point("say", "after"),
    Point("system", "after"),
    Point("turn_closed", "before"),
    Point("turn_closed", "after"),
    Point("note turn_id", "before"),
    Point("note turn_id", "after"),
    Point("note sending", "before"),
    Point("note sending", "after"),
    Point("post", "before"),
    Point("post", "after"),
    Point("note posted", "before"),
    Point("note posted", "after"),
    Point("delivered", "before"),
    Point("delivered", "after"),
    Point("finish", "before"),
    Point("finish", "after"),
)
EDITED = (Point("edit", "before"), Point("edit", "after"))
DOUBTFUL = {"note sending", "post", "note posted"}
"""Where a crash leaves open whether something was posted."""
CASES = [(kind, point) for kind in KINDS for point in (*EVERYWHERE, *(EDITED if kind != "ephemeral" else ()))]


@pytest.fixture(scope="module")
def nurse() -> Iterator[Nursery]:
    with nursery() as place:
        yield place


@dataclass(frozen=True)
class Aftermath:
    """What is there when all has been done."""

    row: QueuedQuestion
    left: Sequence[QueuedQuestion]
    turns: Sequence[Sequence[LogEntry]]
    """Of the question, oldest first."""

    @property
    def delivered(self) -> list[str]:
        """The outcomes on record."""
        entries = [entry for turn in self.turns for entry in turn if entry.kind is EntryKind.DELIVERED]
        return [entry.body["outcome"] for entry in entries]


async def aftermath(home: Path, key: str) -> Aftermath:
    """Read the records of a home that nobody owns any more."""
    with open_database("", home=home) as database:
        queue, audit = Queue(database), AuditLog(database)
        row = await queue.by_key(key)
        assert row, "it was never taken"
        opened = [entry for entry, _ in await audit.turns(50) if entry.body["ticket"] == row.ticket]
        ids = dict.fromkeys([*(entry.turn_id for entry in reversed(opened)), row.turn_id])
        turns = [await audit.turn(turn_id) for turn_id in ids if turn_id]

        return Aftermath(row, await queue.open("nobody", datetime.now(UTC), sole=True), turns)


def whole(messages: Sequence[Message], question: str) -> bool:
    """Return whether these messages are a complete answer, and nothing else."""
    text = "\n".join(message.plain for message in messages)
    buttons = {name for message in messages for name, _ in message.buttons}
    links = [link for message in messages for reading in message.read for link in reading.links]
    said = text.count(ANSWERS[question]) == 1 and text.count("[1]") == 2
    return said and links == [f"{HOST}light.md"] and "stop" not in buttons


def lost(message: Message) -> bool:
    """Return whether this says that an answer is under way: its id was lost, and nobody can ask for it."""
    return "stop" in {name for name, _ in message.buttons}


async def killed(
    server: FakeServer, nurse: Nursery, home: Path, kind: Kind, point: Point, question: str, **more: Any
) -> str:
    """Ask, die at the point, come back, and do whatever is left to do. Returns the message that asked."""
    asks = await server.say(question, only_asker=kind.only_asker)
    life = Life(str(home), server.url, **kind.traits, **more)
    async with nurse.child(replace(life, point=point)) as doomed:
        assert await doomed.end() == -signal.SIGKILL, f"it never came {point}"
    async with nurse.child(life):
        await server.until(lambda it: not it.unacked)
        await server.again(asks)
        # Questions of one conversation are answered one after another: when this is done, so is that before it.
        after = await server.say(MADE, thread=asks, only_asker=kind.only_asker)
        await server.until(lambda it: any(key.endswith(after) for key in it.finished))
    return asks


@pytest.mark.parametrize(("kind", "point"), CASES, ids=[f"{kind}-{point}" for kind, point in CASES])
async def test_killed_at_any_step_it_answers_once(
    nurse: Nursery, filled: Path, tmp_path: Path, kind: str, point: Point
) -> None:
    """One whole answer; at most one, and the record says so, where nobody can tell what was posted."""
    home, which = tmp_path / "home", KINDS[kind]
    shutil.copytree(filled, home)
    async with serve(which.dialect) as server:
        asks = await killed(server, nurse, home, which, point, BUILT)
        key = f"{which.dialect.name}:T1/C1/{asks}"
        after = await aftermath(home, key)
        answers = server.answers(asks)

    assert (after.row.state, after.left, after.row.handle) == (DONE, (), "")
    assert [finding for turn in after.turns for finding in verify(turn)] == []
    kinds = [{entry.kind for entry in turn} for turn in after.turns]
    assert all(EntryKind.TURN_CLOSED in kind for kind in kinds if EntryKind.TURN_OPENED in kind)
    assert after.delivered == [after.row.outcome]
    if after.row.outcome == Outcome.DELIVERED:
        final = [message for message in answers if not lost(message)]
        assert whole(final, BUILT), server.shown(asks)
        assert len(final) == 1
        assert server.posts[key] == len(answers) <= (1 if which.certain else 2)
    else:
        assert after.row.outcome == Outcome.UNCERTAIN
        assert not which.certain
        assert point.name in DOUBTFUL
        assert server.posts[key] <= 1
    assert server.refused == []


SHORT = 160
"""So short a message that an answer and its source need two."""
SLOW = 1_000.0
"""So slow a pace that nothing is shown between the first view and the last."""
TWO = (
    Point("final post", "before"),
    Point("final post", "after"),
    Point("note posted", "before", 2),
    Point("note posted", "after", 2),
    Point("delivered", "before"),
)
ONLY_TWO = (Point("final post", "before", 2), Point("final post", "after", 2), Point("delivered", "before"))
FINAL = (*TWO, Point("final edit", "before"), Point("final edit", "after"))
LONG = [*((kind, point) for kind in ("editable", "unreadable") for point in FINAL)]
LONG += [("ephemeral", point) for point in ONLY_TWO]


@pytest.mark.parametrize(("kind", "point"), LONG, ids=[f"{kind}-{point}" for kind, point in LONG])
async def test_killed_between_the_messages_of_a_long_answer_it_is_whole(
    nurse: Nursery, filled: Path, tmp_path: Path, kind: str, point: Point
) -> None:
    """None of them stands there twice; none is missing where it can be told what stands there."""
    home, which = tmp_path / "home", KINDS[kind]
    shutil.copytree(filled, home)
    async with serve(which.dialect.smaller(SHORT)) as server:
        asks = await killed(server, nurse, home, which, point, BUILT, message=SHORT, pace=SLOW)
        key = f"{which.dialect.name}:T1/C1/{asks}"
        after = await aftermath(home, key)
        answers = server.answers(asks)

    assert (after.row.state, after.left) == (DONE, ())
    assert after.delivered == [after.row.outcome]
    if after.row.outcome == Outcome.DELIVERED:
        assert whole(answers, BUILT), server.shown(asks)
        assert server.posts[key] == len(answers) >= 2
    else:
        assert (after.row.outcome, which.certain) == (Outcome.UNCERTAIN, False)
        assert len({answer.parts for answer in answers}) == len(answers)
    assert server.refused == []
