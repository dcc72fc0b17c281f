"""kill -9 at every step between a question and its answer; what stands there afterwards, once the bot is back."""

import asyncio
import re
import shutil
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.types import DeliveryOutcome
from bot.views.catalog import translate
from storage.database.engine import open_database
from storage.database.queue import DONE, Queue
from storage.record.audit_log import AuditLog
from storage.record.proof.record_check import RecordCheck, verify_record
from storage.types import EntryKind, LogEntry, QueuedQuestion
from tests.platforms.contract import Read
from tests.platforms.houses import SCENES
from tests.platforms.killing.fuses import Point
from tests.platforms.killing.lives import Nursery, nursery
from tests.platforms.killing.scenes import Scene
from tests.platforms.world import ANSWERS, BOOK, BUILT, HOST, MADE, RULES, fill
from tests.storage.stores import damage_postings
from tests.thorough import THOROUGH


def both(*names: str) -> tuple[Point, ...]:
    """Return the points before and after what is done the first time."""
    return tuple(Point(name, moment) for name in names for moment in ("before", "after"))


TAKEN = both("put", "ack")
ANSWERED = (
    *both("turn_opened"),
    Point("system", "before"),
    *both("say"),
    Point("system", "after"),
    *both("turn_closed", "note turn_id"),
)
SHOWN = both("note sending", "post", "note posted", "finish")
EVERYWHERE = (*TAKEN, *ANSWERED, *SHOWN)
EDITED = both("edit")
STREAMED = both("chat.appendStream", "chat.stopStream", "chat.update")
DOUBTFUL = {"note sending", "post", "note posted"}
"""Where a crash leaves open whether something was posted."""
READY = (Point("put", "after"), Point("turn_closed", "after"))
STEPS = {
    "editable": (*EVERYWHERE, *EDITED),
    # Between taking and showing the desk is alone, so that every step of that is tried with one platform only.
    "ephemeral": (*READY, *SHOWN),
    "unreadable": (*READY, *SHOWN, *EDITED),
    "slack, streamed": (*TAKEN, Point("say", "after"), Point("turn_closed", "after"), *SHOWN, *STREAMED),
    "slack, updated": (*both("chat.postMessage", "chat.update"), *both("note posted"), Point("say", "after")),
    # Slack does not come again with a command that was not taken, but tells whoever gave it.
    "slack, private": (*READY, *SHOWN),
    "slack over HTTP": (*TAKEN, *both("post")),
    "slack over HTTP, private": (Point("put", "after"), *both("post")),
    "discord": (*TAKEN, Point("turn_closed", "after"), *SHOWN, *both("edit")),
    # Nor does Discord; one that is not deferred in time is another matter.
    "discord, command": (Point("defer", "after"), *both("edit")),
    "discord, private": (*both("edit", "final edit"), Point("finish", "before")),
    "mattermost": (*TAKEN, Point("turn_closed", "after"), *SHOWN, *both("edit")),
    "mattermost, private": both("post", "edit", "final edit"),
}
SOME = {
    # What is before a step is after the one before it.
    "editable": tuple(point for point in EVERYWHERE if point.moment == "after" or point == TAKEN[0]),
    "discord, command": STEPS["discord, command"],
    "mattermost": (Point("post", "after"),),
}
"""Each step is tried on one platform each time; on others the steps at which that platform itself is spoken to."""
SPOKEN = {"post", "edit", "final edit", "ack", *(point.name for point in STREAMED), "chat.postMessage"}


def tried(kind: str, point: Point) -> bool:
    """Return whether a case is tried though there is little time."""
    if THOROUGH or kind in SOME:
        return THOROUGH or point in SOME[kind]
    real = kind in {"slack, streamed", "slack, private", "discord", "discord, private"}
    return real and point.name in SPOKEN and point.moment == "after"


CASES = [(kind, point) for kind, points in STEPS.items() for point in points if tried(kind, point)]


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
    record: RecordCheck

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

        left = await queue.open("nobody", datetime.now(UTC), sole=True)
        return Aftermath(row, left, turns, await verify_record(database))


def whole(messages: Sequence[Read]) -> bool:
    """Return whether these messages are a complete answer, and nothing else."""
    text = "\n".join(message.text for message in messages)
    return text.count(ANSWERS[BUILT]) == 1 and text.count("[1]") == 2 and not any(map(lost, messages))


def all_rules(messages: Sequence[Read]) -> bool:
    """Return whether these messages say every rule of the book once, in order, and nothing is under way."""
    said = re.sub(r"\s+", " ", " ".join(message.text for message in messages))
    once = all(said.count(rule) == 1 for rule in RULES)
    return once and sorted(RULES, key=said.index) == list(RULES) and not any(map(lost, messages))


def lost(message: Read) -> bool:
    """Return whether this says that an answer is under way: its id was lost, and nobody can ask for it."""
    return "stop" in message.buttons


@dataclass(frozen=True)
class After:
    """Our messages, once everything is done, and how many were ever posted for other questions."""

    asks: str
    answers: Sequence[Read]
    others: int


async def killed(scene: Scene, nurse: Nursery, home: Path, point: Point, question: str = BUILT) -> After:
    """Ask, die at the point, come back, and do whatever is left to do."""
    life, street = scene.life(home), scene.street
    async with nurse.child(replace(life, point=point), scene.heard) as doomed:
        await doomed.until(lambda: "ready" in doomed.told)
        asks = await scene.ask(question)
        await scene.kills(doomed, point)
        assert await doomed.end() == -signal.SIGKILL, f"it never came {point}"
    async with nurse.child(life, scene.heard) as child:
        await child.until(lambda: "ready" in child.told)
        await street.until(lambda: not street.pending)
        if not scene.follows:
            await child.until(lambda: child.over(scene.key(asks)))
            return After(asks, street.answer(asks), 0)
        await street.again(asks)
        # Questions of one conversation are answered one after another: when this is done, so is that before it.
        after = await scene.ask(MADE, thread=asks)
        await child.until(lambda: scene.key(after) in child.told["finished"])
    return After(asks, street.answer(asks), len(street.answer(after)))


@pytest.mark.parametrize(("kind", "point"), CASES, ids=[f"{kind}-{point}" for kind, point in CASES])
async def test_killed_at_any_step_it_answers_once(
    nurse: Nursery, filled: Path, tmp_path: Path, kind: str, point: Point
) -> None:
    """One whole answer; at most one, and the record says so, where nobody can tell what was posted."""
    home = Path(shutil.copytree(filled, tmp_path / "home"))
    async with SCENES[kind]() as scene:
        there = await killed(scene, nurse, home, point)
        after = await aftermath(home, scene.key(there.asks))

    assert (after.row.state, after.left, after.row.handle) == (DONE, (), "")
    assert (after.record.findings, after.record.answers > 0) == ((), True)
    kinds = [{entry.kind for entry in turn} for turn in after.turns]
    assert all(EntryKind.TURN_CLOSED in kind for kind in kinds if EntryKind.TURN_OPENED in kind)
    assert after.delivered == [after.row.outcome]
    posted = scene.posted - there.others
    if after.row.outcome == DeliveryOutcome.DELIVERED:
        final = [message for message in there.answers if not lost(message)]
        assert whole(final), there.answers
        assert len(final) == 1
        assert posted == len(there.answers) <= (1 if scene.certain else 2)
    else:
        assert after.row.outcome == DeliveryOutcome.UNCERTAIN
        assert not scene.certain
        assert point.name in DOUBTFUL
        assert posted <= 1
    assert set(scene.street.links) <= {f"{HOST}light.md", f"{HOST}pier.md"}
    assert scene.street.pings == []


TWO = (*both("final post"), Point("finish", "before"))
ONLY_TWO = (Point("final post", "before", 2), Point("final post", "after", 2), Point("finish", "before"))
FINAL = (*TWO, Point("final edit", "before"), Point("final edit", "after"))
LONG = [*((kind, point) for kind in ("editable, short", "unreadable, short") for point in FINAL)]
LONG += [("ephemeral, short", point) for point in ONLY_TWO]
LONG = LONG if THOROUGH else [(kind, point) for kind, point in LONG if kind == "editable, short" and point in TWO]


@pytest.mark.parametrize(("kind", "point"), LONG, ids=[f"{kind}-{point}" for kind, point in LONG])
async def test_killed_between_the_messages_of_a_long_answer_it_is_whole(
    nurse: Nursery, filled: Path, tmp_path: Path, kind: str, point: Point
) -> None:
    """None of them stands there twice; none is missing where it can be told what stands there."""
    home = Path(shutil.copytree(filled, tmp_path / "home"))
    async with SCENES[kind]() as scene:
        there = await killed(scene, nurse, home, point)
        after = await aftermath(home, scene.key(there.asks))

    assert (after.row.state, after.left) == (DONE, ())
    assert after.delivered == [after.row.outcome]
    if after.row.outcome == DeliveryOutcome.DELIVERED:
        assert whole(there.answers), there.answers
        assert scene.posted - there.others == len(there.answers) >= 2
    else:
        assert (after.row.outcome, scene.certain) == (DeliveryOutcome.UNCERTAIN, False)
        assert len({answer.text for answer in there.answers}) == len(there.answers)
    assert scene.street.refused == []


BETWEEN = (Point("final post", "after"), Point("finish", "before"))
BOOKS = [
    *(("slack, long", point) for point in (*BETWEEN, *both("final edit", "chat.stopStream"))),
    *(("slack, long updated", point) for point in BETWEEN),
    *(("discord, long", point) for point in BETWEEN),
    ("discord, long command", Point("final post", "after")),
    *(("mattermost, long", point) for point in BETWEEN),
]
BOOKS = BOOKS if THOROUGH else [(kind, point) for kind, point in BOOKS if point == BETWEEN[0]]


@pytest.fixture(scope="module")
def library(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home to copy, with a long book in it."""
    home = Path(shutil.copytree(filled, tmp_path_factory.mktemp("library") / "home"))
    asyncio.run(fill(home, BOOK))
    return home


@pytest.mark.parametrize(("kind", "point"), BOOKS, ids=[f"{kind}-{point}" for kind, point in BOOKS])
async def test_killed_anywhere_in_a_book_all_of_it_stands_there_once(
    nurse: Nursery, library: Path, tmp_path: Path, kind: str, point: Point
) -> None:
    """It takes several messages, however they come to be: by a live message, or by updates of the first."""
    home = Path(shutil.copytree(library, tmp_path / "home"))
    async with SCENES[kind]() as scene:
        there = await killed(scene, nurse, home, point, "Which rules has the harbour book?")
        after = await aftermath(home, scene.key(there.asks))

    assert after.delivered == [after.row.outcome] == [DeliveryOutcome.DELIVERED]
    assert (after.row.state, after.left) == (DONE, ())
    assert all_rules(there.answers), there.answers
    assert scene.posted - there.others == len(there.answers) >= 2


@pytest.mark.parametrize("kind", ["slack, updated", "discord"])
async def test_over_a_damaged_index_a_question_ends_as_failed_and_its_asker_is_told(
    nurse: Nursery, filled: Path, tmp_path: Path, kind: str
) -> None:
    """A panic over it ends nothing else: the next question is taken all the same."""
    home = Path(shutil.copytree(filled, tmp_path / "home"))
    damage_postings(home / "lexical", "handbook", BUILT)
    async with SCENES[kind]() as scene, nurse.child(scene.life(home), scene.heard) as child:
        await child.until(lambda: "ready" in child.told)
        asked = [await scene.ask(BUILT), await scene.ask(BUILT)]
        await child.until(lambda: all(scene.key(one) in child.told["finished"] for one in asked))
        answers = [scene.street.answer(one) for one in asked]
    after = [await aftermath(home, scene.key(one)) for one in asked]

    assert [[message.text for message in answer] for answer in answers] == [[translate("failed", "en")]] * 2
    closed = [entry.body for one in after for entry in one.turns[0] if entry.kind is EntryKind.TURN_CLOSED]
    assert [body["status"] for body in closed] == ["failed"] * 2
    assert all("footnote reindex" in body["failure"]["hint"] for body in closed)
    assert after[0].left == ()
