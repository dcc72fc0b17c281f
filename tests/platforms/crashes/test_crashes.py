"""kill -9 at every step between a question and its answer: the next process leaves one whole answer."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.types import DeliveryOutcome
from bot.views.catalog import translate
from storage.database.queue import DONE
from storage.types import EntryKind
from tests.platforms.crashes.bot_processes import ForkServer
from tests.platforms.crashes.crash_points import Point
from tests.platforms.crashes.scenes import RULES_QUESTION, scene_of
from tests.platforms.example_app import ANSWERS, BUILT, HOST, RULES
from tests.platforms.workspace import Read
from tests.storage.stores import damage_postings
from tests.thorough import THOROUGH


def both(*names: str) -> tuple[Point, ...]:
    """Return the points before and after the first time of each step."""
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
STREAMED = both("chat.appendStream", "chat.stopStream", "chat.update")
DOUBTFUL = {"note sending", "post", "note posted"}
"""Where a crash leaves open whether something was posted."""
STEPS = {
    # Between taking and showing only the desk acts: each of those steps is tried on one platform.
    "mattermost": (*TAKEN, *ANSWERED, *SHOWN, *both("edit")),
    "mattermost, private": both("post", "edit", "final edit"),
    "slack, streamed": (*TAKEN, Point("say", "after"), Point("turn_closed", "after"), *SHOWN, *STREAMED),
    "slack, updated": (*both("chat.postMessage", "chat.update"), *both("note posted"), Point("say", "after")),
    # Slack does not send a command again that was not taken, but informs its user.
    "slack, private": (Point("put", "after"), Point("turn_closed", "after"), *SHOWN),
    "slack over HTTP": (*TAKEN, *both("post")),
    "slack over HTTP, private": (Point("put", "after"), *both("post")),
    "discord": (*TAKEN, Point("turn_closed", "after"), *SHOWN, *both("edit")),
    # Nor does Discord.
    "discord, command": (Point("defer", "after"), *both("edit")),
    "discord, private": (*both("edit", "final edit"), Point("finish", "before")),
}
CALLS = {"post", "edit", "final edit", "ack", "defer", *(point.name for point in STREAMED), "chat.postMessage"}


def is_tried(kind: str, point: Point) -> bool:
    """Return whether a case is tried each time: every step on Mattermost, others' own calls."""
    if THOROUGH or kind == "mattermost":
        # The point before a step is that after the step before it.
        return THOROUGH or point.moment == "after" or point == TAKEN[0]
    has_time = kind in {"slack, streamed", "slack, private", "discord", "discord, command", "discord, private"}
    return has_time and point.name in CALLS and point.moment == "after"


CASES = [(kind, point) for kind, points in STEPS.items() for point in points if is_tried(kind, point)]
BETWEEN = (Point("final post", "after"), Point("finish", "before"))
LONG_CASES = [
    *(("slack, long", point) for point in (*BETWEEN, *both("final edit", "chat.stopStream"))),
    *(("slack, long updated", point) for point in BETWEEN),
    *(("discord, long", point) for point in BETWEEN),
    ("discord, long command", Point("final post", "after")),
    *(("mattermost, long", point) for point in BETWEEN),
]
LONG_CASES = LONG_CASES if THOROUGH else [case for case in LONG_CASES if case[1] == BETWEEN[0]]


def is_in_progress(message: Read) -> bool:
    return "stop" in message.buttons


def is_whole(messages: Sequence[Read]) -> bool:
    """Return whether these messages are a complete answer, and nothing else."""
    text = "\n".join(message.text for message in messages)
    return text.count(ANSWERS[BUILT]) == 1 and text.count("[1]") == 2 and not any(map(is_in_progress, messages))


def has_all_rules(messages: Sequence[Read]) -> bool:
    """Return whether these messages contain every rule of the book once, in order."""
    text = re.sub(r"\s+", " ", " ".join(message.text for message in messages))
    return all(text.count(rule) == 1 for rule in RULES) and sorted(RULES, key=text.index) == list(RULES)


@pytest.mark.parametrize(("kind", "point"), CASES, ids=[f"{kind}-{point}" for kind, point in CASES])
async def test_crash_at_any_step_leaves_one_answer(
    forks: ForkServer, filled: Path, tmp_path: Path, kind: str, point: Point
) -> None:
    async with scene_of(kind, forks, filled, tmp_path) as scene:
        await scene.crash(point)
        await scene.recover()
        after = await scene.aftermath()
        answer = scene.answer

        assert (after.row.state, after.still_open, after.row.handle) == (DONE, (), "")
        assert (after.record.findings, after.record.answers > 0) == ((), True)
        kinds = [{entry.kind for entry in turn} for turn in after.turns]
        assert all(EntryKind.TURN_CLOSED in kind for kind in kinds if EntryKind.TURN_OPENED in kind)
        assert after.outcomes == [after.row.outcome]
        if after.row.outcome == DeliveryOutcome.DELIVERED:
            final = [message for message in answer if not is_in_progress(message)]
            assert is_whole(final), answer
            assert len(final) == 1
            assert scene.posted == len(answer) <= (1 if scene.scenario.is_certain else 2)
        else:
            assert after.row.outcome == DeliveryOutcome.UNCERTAIN
            assert not scene.scenario.is_certain
            assert point.name in DOUBTFUL
            assert scene.posted <= 1
        assert set(scene.workspace.links) <= {f"{HOST}light.md", f"{HOST}pier.md"}
        assert scene.workspace.pings == []


@pytest.mark.parametrize(("kind", "point"), LONG_CASES, ids=[f"{kind}-{point}" for kind, point in LONG_CASES])
async def test_crash_while_posting_a_long_answer_leaves_all_of_it_once(
    forks: ForkServer, library: Path, tmp_path: Path, kind: str, point: Point
) -> None:
    async with scene_of(kind, forks, library, tmp_path) as scene:
        await scene.crash(point, RULES_QUESTION)
        await scene.recover()
        after = await scene.aftermath()

        assert after.outcomes == [after.row.outcome] == [DeliveryOutcome.DELIVERED]
        assert (after.row.state, after.still_open) == (DONE, ())
        assert has_all_rules(scene.answer), scene.answer
        assert not any(map(is_in_progress, scene.answer))
        assert scene.posted == len(scene.answer) >= 2


@pytest.mark.parametrize("kind", ["slack, updated", "discord"])
async def test_damaged_index_ends_the_question_as_failed(
    forks: ForkServer, filled: Path, tmp_path: Path, kind: str
) -> None:
    """A panic in the index ends nothing else: the next question is taken."""
    async with scene_of(kind, forks, filled, tmp_path) as scene:
        damage_postings(scene.home / "lexical", "handbook", BUILT)
        async with scene.start(scene.spec) as process:
            await process.until_ready()
            asked = [await scene.ask(BUILT), await scene.ask(BUILT)]
            keys = [scene.workspace.question_key(one) for one in asked]
            await process.until(lambda: set(keys) <= set(process.reports["finished"]))
        after = [await scene.aftermath(one) for one in asked]
        answers = [[message.text for message in scene.workspace.answer(one)] for one in asked]

        assert answers == [[translate("failed", "en")]] * 2
        closed = [entry.body for one in after for entry in one.turns[0] if entry.kind is EntryKind.TURN_CLOSED]
        assert [body["status"] for body in closed] == ["failed"] * 2
        assert all("footnote reindex" in body["failure"]["hint"] for body in closed)
        assert after[0].still_open == ()
