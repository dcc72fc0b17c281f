"""Test of the queue against a small model, under random sequences of operations by two processes."""

import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from storage.database.queue import Queue
from storage.types import NewQuestion, QueuedQuestion
from tests.storage.stores import open_empty_database
from tests.thorough import sample

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
OWNERS = ("one", "two")
PLACES = ("slack:T1/C1", "slack:T1/C2")
MESSAGES = ("p1", "p2", "p3")

TICKETS = st.integers(1, 4)
OPERATIONS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("abcd"), st.sampled_from(PLACES)),
    st.tuples(st.just("claim"), TICKETS, st.sampled_from(OWNERS), st.booleans()),
    st.tuples(st.just("renew"), st.sampled_from(OWNERS)),
    st.tuples(st.just("release"), TICKETS),
    st.tuples(st.just("finish"), TICKETS),
    st.tuples(st.just("reopen"), TICKETS),
    st.tuples(st.just("note"), TICKETS, st.lists(st.sampled_from(MESSAGES), unique=True)),
    st.tuples(st.just("wait"), st.integers(1, 3)),
)


@dataclass
class Model:
    """The expected state of the queue."""

    now: datetime = NOON
    rows: dict[int, QueuedQuestion] = field(default_factory=dict)
    reworded: Counter[str] = field(default_factory=Counter)
    """How often a question of a place was asked in other words once it had been answered."""

    @property
    def until(self) -> datetime:
        return self.now + timedelta(minutes=2)

    def put(self, key: str, place: str) -> tuple[int, bool]:
        for row in self.rows.values():
            if row.key == key:
                return row.ticket, False
        ticket = len(self.rows) + 1
        new = asked(key, place)
        about = (ticket, key, place, new.conversation, new.user, key, new.body, "secret")
        self.rows[ticket] = QueuedQuestion(*about, "waiting", "", self.now, "", False, (), "", None)  # noqa: FBT003
        return ticket, True

    def free(self, row: QueuedQuestion, owner: str, *, sole: bool) -> bool:
        """Return whether an owner may claim a row."""
        if row.state != "running":
            return row.state == "waiting"
        return row.owner != owner and (sole or (row.lease_until is not None and row.lease_until < self.now))

    def change(self, ticket: int, *states: str, **values: Any) -> bool:
        row = self.rows.get(ticket)
        if row is None or row.state not in states:
            return False
        self.rows[ticket] = replace(row, **values)
        return True


def asked(key: str, place: str) -> NewQuestion:
    return NewQuestion(key, place, f"{place}/1", "slack:T1/U1", key, {"text": key}, "secret")


@settings(max_examples=sample(25))
@given(st.lists(OPERATIONS, min_size=5, max_size=30))
async def test_queue_behaves_like_the_model(operations: list[tuple[Any, ...]]) -> None:
    model = Model()
    with tempfile.TemporaryDirectory() as folder, open_empty_database(Path(folder)) as database:
        queue = Queue(database, clock=lambda: model.now)
        for name, *arguments in operations:
            await STEPS[name](queue, model, *arguments)
        await agree(queue, model)


async def put(queue: Queue, model: Model, key: str, place: str) -> None:
    row, new = await queue.put(asked(key, place))
    assert (row.ticket, new) == model.put(key, place)


async def claim(queue: Queue, model: Model, ticket: int, owner: str, sole: bool) -> None:  # noqa: FBT001
    row = model.rows.get(ticket)
    expected = row is not None and model.free(row, owner, sole=sole)
    assert expected == await queue.claim(ticket, owner, model.until, now=model.now, sole=sole)
    if expected:
        model.change(ticket, "waiting", "running", state="running", owner=owner, lease_until=model.until)


async def renew(queue: Queue, model: Model, owner: str) -> None:
    own = {row.ticket for row in model.rows.values() if row.owner == owner}
    assert own == await queue.renew(owner, model.until)
    for ticket in own:
        model.change(ticket, "running", lease_until=model.until)


async def release(queue: Queue, model: Model, ticket: int) -> None:
    await queue.release(ticket)
    model.change(ticket, "running", state="waiting", owner="", lease_until=None)


async def finish(queue: Queue, model: Model, ticket: int) -> None:
    await queue.finish(ticket, "delivered")
    done = {"state": "done", "outcome": "delivered", "handle": "", "owner": "", "lease_until": None}
    model.change(ticket, "waiting", "running", "done", **done)


async def reopen(queue: Queue, model: Model, ticket: int) -> None:
    again = {"state": "waiting", "outcome": "", "turn_id": "", "sending": False, "body": {"text": "again"}}
    done = model.change(ticket, "done", **again)
    assert done == await queue.reopen(ticket, "again")
    if done:
        model.reworded[model.rows[ticket].channel] += 1


async def note(queue: Queue, model: Model, ticket: int, posted: list[str]) -> None:
    await queue.note(ticket, turn_id="t", sending=True, posted=posted)
    model.change(ticket, "waiting", "running", "done", turn_id="t", sending=True, posted=tuple(posted))


async def wait(_queue: Queue, model: Model, minutes: int) -> None:
    model.now += timedelta(minutes=minutes)


STEPS: dict[str, Any] = {step.__name__: step for step in (put, claim, renew, release, finish, reopen, note, wait)}


async def agree(queue: Queue, model: Model) -> None:
    """Compare every query of the queue with the model."""
    rows = list(model.rows.values())
    assert [await queue.get(ticket) for ticket in range(1, 6)] == [model.rows.get(ticket) for ticket in range(1, 6)]
    for owner in OWNERS:
        for sole in (False, True):
            free = tuple(row for row in rows if model.free(row, owner, sole=sole))
            assert await queue.open(owner, model.now, sole=sole) == free
    for place in PLACES:
        here = [row for row in rows if row.channel == place]
        assert await queue.conversation(f"{place}/1", limit=9) == tuple(here)
        assert await queue.recent(place, limit=2) == tuple(here[-2:][::-1])
        assert await queue.asked(since=NOON, channel=place) == len(here) + model.reworded[place]
        for message in MESSAGES:
            shown = [row for row in here if message in row.posted]
            assert await queue.by_message(place, message) == (shown[-1] if shown else None)
