"""Tests that each night runs once, whichever process does it."""

from datetime import UTC, datetime, timedelta

from storage.database.refresh_log import NIGHT_LEASE, Leases, NightLog
from storage.types import NightRecord

DUE = datetime(2026, 3, 1, 3, tzinfo=UTC)
NEXT = DUE + timedelta(days=1)


def after(seconds):
    return DUE + timedelta(seconds=seconds)


async def test_night_runs_once_in_one_process(database):
    nights = NightLog(database)
    assert await nights.last() is None
    assert await nights.begin(DUE, after(1), "a", 60)
    assert not await nights.begin(DUE, after(2), "b", 60)
    assert await nights.last() is None

    await nights.end(DUE, after(50), "failed", ["handbook: 2 added", "wiki: not brought\nup to date"])

    assert not await nights.begin(DUE, after(90), "b", 60)
    assert await nights.last() == DUE
    assert await nights.recent() == (
        NightRecord(DUE, after(1), after(50), "a", "failed", ("handbook: 2 added", "wiki: not brought up to date")),
    )


async def test_next_night_waits_for_the_previous_one(database):
    nights = NightLog(database)
    await nights.begin(DUE, after(1), "a", 60)

    assert not await nights.begin(NEXT, after(2), "b", 60)

    await nights.end(DUE, after(3), "done", [])
    assert await nights.begin(NEXT, after(4), "b", 60)
    assert [night.due for night in await nights.recent()] == [NEXT, DUE]


async def test_night_of_a_dead_process_restarts_after_its_lease(database):
    nights, leases = NightLog(database), Leases(database)
    await nights.begin(DUE, after(1), "a", 60)
    await leases.renew(NIGHT_LEASE, "a", after(50), 60)

    assert not await nights.begin(DUE, after(70), "b", 60)
    assert await nights.begin(DUE, after(120), "b", 60)
    (night,) = await nights.recent()
    assert (night.owner, night.begun, night.ended) == ("b", after(120), None)

    await nights.end(DUE, after(125), "failed", ["by the one that was gone"], "a")
    await nights.end(DUE, after(130), "done", [], "b")
    await nights.end(DUE, after(140), "failed", ["late"])
    assert (await nights.recent())[0].outcome == "done"


async def test_nights_of_a_wrong_clock_are_forgotten(database):
    nights = NightLog(database)
    for due in (DUE, NEXT):
        await nights.begin(due, due, "a", 60)
        await nights.end(due, due, "done", [])

    assert await nights.undo(after(1)) == 1
    assert await nights.last() == DUE
    assert await nights.begin(NEXT, NEXT, "a", 60)
