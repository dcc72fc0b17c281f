"""Tests of the overrides that admins set for a channel by command."""

from datetime import UTC, datetime
from typing import Any

import pytest

from storage.database.engine import Database
from storage.record.admin_choices import ChannelOverrides
from storage.record.audit_log import AuditLog
from storage.types import EntryKind, LogEntry

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLACE = "slack:T1/C1"
ADMIN = "slack:T1/U1"


@pytest.fixture
def overrides(database: Database) -> ChannelOverrides:
    return ChannelOverrides(database, clock=lambda: NOON)


async def test_override_applies_to_its_channel_until_removed(overrides: ChannelOverrides) -> None:
    assert await overrides.of(PLACE) == {}
    await overrides.set(PLACE, "corpora", ["a", "b"], by=ADMIN, was=None)
    await overrides.set(PLACE, "answer", "every", by=ADMIN, was="mention")
    await overrides.set("slack:T1/C2", "answer", "mention", by=ADMIN, was="every")
    await overrides.set(PLACE, "corpora", [], by=ADMIN, was=["a", "b"])
    assert await overrides.of(PLACE) == {"corpora": [], "answer": "every"}

    await overrides.set(PLACE, "answer", None, by=ADMIN, was="every")
    await overrides.set(PLACE, "never set", None, by=ADMIN, was=None)

    assert await overrides.of(PLACE) == {"corpora": []}
    assert await overrides.of("slack:T1/C2") == {"answer": "mention"}


async def test_every_change_is_recorded_under_the_channel(database: Database, overrides: ChannelOverrides) -> None:
    await overrides.set(PLACE, "answer", "every", by=ADMIN, was="mention")
    await overrides.set(PLACE, "answer", None, by="slack:T1/U2", was="every")

    assert await AuditLog(database).turn(PLACE) == (
        LogEntry(PLACE, EntryKind.SETTING, {"key": "answer", "was": "mention", "now": "every", "by": ADMIN}, 1, NOON),
        LogEntry(
            PLACE, EntryKind.SETTING, {"key": "answer", "was": "every", "now": None, "by": "slack:T1/U2"}, 2, NOON
        ),
    )


@pytest.mark.parametrize(("value", "was"), [(object(), None), (True, object())])
async def test_unrecordable_setting_is_not_set(
    database: Database, overrides: ChannelOverrides, value: Any, was: Any
) -> None:
    with pytest.raises(TypeError):
        await overrides.set(PLACE, "key", value, by=ADMIN, was=was)

    assert (await overrides.of(PLACE), await AuditLog(database).turn(PLACE)) == ({}, ())
