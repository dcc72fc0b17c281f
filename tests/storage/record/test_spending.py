"""Tests of the figures of turns, summed from the log."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.database.engine import Database
from storage.record.audit_log import AuditLog
from storage.record.turn_index import Spending, measure_spending
from storage.types import EntryKind, LogEntry, SpendingTotal

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ASKER = {"platform": "slack", "kind": "channel", "workspace": "T1", "channel": "C1", "user": "U1"}
USAGE = {"llm_calls": 3, "prompt_tokens": 100, "completion_tokens": 20, "cost": 0.5}


@pytest.fixture
def log(database: Database) -> AuditLog:
    return AuditLog(database, clock=lambda: NOON)


@pytest.fixture
def spending(database: Database) -> Spending:
    return Spending(database)


def opened(turn: str, **asker: str) -> LogEntry:
    return LogEntry(turn, EntryKind.TURN_OPENED, {"asker": ASKER | asker, "question": "Why?"})


def closed(turn: str, at: datetime | None = None, **usage: Any) -> LogEntry:
    return LogEntry(turn, EntryKind.TURN_CLOSED, {"status": "answered", "usage": USAGE | usage}, at=at)


async def test_turn_counts_when_it_is_closed(log: AuditLog, spending: Spending) -> None:
    await log.append(opened("a"))
    assert await spending.total(since=NOON) == SpendingTotal()

    await log.append(LogEntry("a", EntryKind.STEP, {}), closed("a"))
    await log.append(opened("b", channel="C2"), closed("b", cost=0.25), opened("c", user="U2"), closed("c"))

    assert await spending.total(since=NOON) == SpendingTotal(3, 360, 1.25)
    assert await spending.total(since=NOON, platform_user="slack:T1/U1") == SpendingTotal(2, 240, 0.75)
    assert await spending.total(since=NOON, channel="slack:T1/C1") == SpendingTotal(2, 240, 1.0)
    assert await spending.total(since=NOON, platform_user="slack:T1/U1", channel="slack:T1/C2") == SpendingTotal(
        1, 120, 0.25
    )
    assert await spending.total(since=NOON, platform_user="discord:T1/U1") == SpendingTotal()


async def test_earlier_spending_is_not_counted(log: AuditLog, spending: Spending) -> None:
    early = NOON - timedelta(seconds=1)
    await log.append(opened("a"), closed("a", at=early), opened("b"), closed("b"))

    assert (await spending.total(since=NOON)).turns == 1
    assert (await spending.total(since=early)).turns == 2


async def test_missing_figures_count_as_zero(log: AuditLog, spending: Spending) -> None:
    """A turn in the terminal has no channel, one without a model no usage, one at an unknown price no cost."""
    await log.append(
        opened("a", platform="terminal", workspace="", channel="", user=""),
        closed("a", cost=None),
        LogEntry("b", EntryKind.TURN_CLOSED, {"usage": None}),
        LogEntry("c", EntryKind.TURN_CLOSED, {}),
    )

    assert await spending.total(since=NOON) == SpendingTotal(3, 120, 0.0)


async def test_rejected_entries_cost_nothing(log: AuditLog, spending: Spending) -> None:
    with pytest.raises(TypeError):
        await log.append(opened("a"), closed("a"), opened("b", user=object()))  # type: ignore[arg-type]

    assert await spending.total(since=NOON) == SpendingTotal()


async def test_turn_closed_twice_is_counted_twice(log: AuditLog, spending: Spending) -> None:
    await log.append(opened("a"), closed("a"))
    await log.append(closed("a"))

    assert (await spending.total(since=NOON)).turns == 2


@given(st.fixed_dictionaries({}, optional={name: st.none() | st.integers(0, 10**6) for name in ("cost", *USAGE)}))
def test_any_usage_can_be_counted(usage: dict[str, Any]) -> None:
    counted = measure_spending({"usage": usage})

    assert counted["tokens"] == (usage.get("prompt_tokens") or 0) + (usage.get("completion_tokens") or 0)
    assert counted["cost"] == (usage.get("cost") or 0.0)


@pytest.mark.parametrize(
    ("asker", "channel", "user"),
    [
        (ASKER, "slack:T1/C1", "slack:T1/U1"),
        ({"platform": "discord", "workspace": "", "channel": "D1", "user": "7"}, "discord:/D1", "discord:/7"),
        ({"platform": "terminal", "workspace": "", "channel": "", "user": ""}, "", ""),
        ({}, "", ""),
    ],
)
async def test_spending_and_queue_name_users_and_channels_alike(
    database: Database, log: AuditLog, asker: dict[str, str], channel: str, user: str
) -> None:
    await log.append(LogEntry("a", EntryKind.TURN_OPENED, {"asker": asker}), closed("a"))

    rows = await database.read(lambda it: it.exec_driver_sql("SELECT channel, asker FROM spending").all())
    assert rows == [(channel, user)]
