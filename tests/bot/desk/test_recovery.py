"""Tests of what happens to a question at the start, by its row and the entries of its turn."""

from dataclasses import replace

import pytest

from bot.answering.turn_record import build_closing_entries, build_interruption, build_opening, read_turn_record
from bot.desk.jobs.completion import DeliveryResult, build_delivered_entry, build_stop_entry
from bot.desk.jobs.turn_runner import RecoveryAction, RecoveryStep, plan_recovery
from bot.types import DeliveryCapabilities, DeliveryOutcome, PostedMessages, TurnRequest, TurnResult
from pipeline.types import Answer, Conversation, Status, Turn, Usage
from storage.database.engine import to_json_value
from storage.types import EntryKind, LogEntry, QueuedQuestion
from tests.bot.desk.fake_desk import DAY, question

EDITS, BLIND, ONCE = (
    DeliveryCapabilities(),
    DeliveryCapabilities(edits=False, reads_back=False),
    DeliveryCapabilities(edits=False),
)
BLIND_EDITS = DeliveryCapabilities(reads_back=False)
OPENED = LogEntry(
    "t",
    EntryKind.TURN_OPENED,
    build_opening(TurnRequest("?", question().asker), Conversation((Turn("user", "?"),)), {}, {}),
)


def row(**changes):
    fields = dict.fromkeys(QueuedQuestion.__slots__, "")
    known = {"ticket": 1, "body": {}, "taken_at": DAY, "lease_until": None, "sending": False, "posted": ()}
    return replace(QueuedQuestion(**fields | known | {"turn_id": "t", "state": "running"}), **changes)


def closed(status=Status.ANSWERED):
    done = TurnResult("t", Answer(status), "text", "fake", None, Usage(), 0.1)
    return build_closing_entries(done, (), (), ())[-1]


def decide(a_row, ways, *entries, fits=True, reworded=False):
    stored = [replace(entry, body=to_json_value(entry.body)) for entry in entries]
    return plan_recovery(a_row, ways, stored, read_turn_record(stored), fits=fits, reworded=reworded)


RETRACTED = LogEntry("t", EntryKind.EDITED, {"retracted": True, "by": "u", "why": ""})
SENT = build_delivered_entry(
    "t", 1, question(), DeliveryResult(DeliveryOutcome.DELIVERED, PostedMessages(("p",)), None)
)


@pytest.mark.parametrize(
    ("changes", "ways", "entries", "act"),
    [
        ({"turn_id": ""}, EDITS, (), RecoveryAction.ASK),
        ({}, EDITS, (OPENED,), RecoveryAction.ASK),
        ({}, EDITS, (OPENED, build_interruption(OPENED)), RecoveryAction.ASK),
        ({}, EDITS, (OPENED, closed(Status.CANCELLED)), RecoveryAction.ASK),
        ({}, EDITS, (OPENED, closed()), RecoveryAction.SHOW),
        ({}, EDITS, (OPENED, closed(Status.ABSTAINED)), RecoveryAction.SHOW),
        ({"sending": True, "posted": ("p",)}, EDITS, (OPENED, closed()), RecoveryAction.SHOW),
        ({"sending": True, "posted": ("p",)}, ONCE, (OPENED, closed()), RecoveryAction.SHOWN),
        ({"sending": True}, ONCE, (OPENED, closed()), RecoveryAction.SHOW),
        ({"sending": True}, BLIND, (OPENED, closed()), RecoveryAction.DOUBT),
        ({"sending": True}, BLIND, (OPENED,), RecoveryAction.DOUBT),
        ({"sending": True, "posted": ("p",)}, BLIND_EDITS, (OPENED, closed()), RecoveryAction.DOUBT),
        ({"posted": ("p",)}, BLIND_EDITS, (OPENED, closed()), RecoveryAction.SHOW),
        ({"posted": ("p",)}, BLIND, (OPENED, closed()), RecoveryAction.SHOWN),
        ({}, BLIND_EDITS, (OPENED,), RecoveryAction.ASK),
        ({}, BLIND, (OPENED, closed()), RecoveryAction.SHOW),
        ({}, EDITS, (OPENED, build_stop_entry("t", by="u"), closed(Status.CANCELLED)), RecoveryAction.SAY_STOPPED),
        ({}, EDITS, (OPENED, closed(), SENT), RecoveryAction.SETTLE),
        ({}, EDITS, (OPENED, closed(), SENT, RETRACTED), RecoveryAction.REMOVE),
    ],
)
def test_recovery_action_follows_the_state_of_the_question_and_its_posts(changes, ways, entries, act):
    assert decide(row(**changes), ways, *entries).action is act


def test_question_is_answered_again_if_its_answer_does_not_fit_or_it_was_edited():
    assert decide(row(), EDITS, OPENED, closed(), fits=False).action is RecoveryAction.ASK
    assert decide(row(), EDITS, OPENED, closed(), reworded=True).action is RecoveryAction.ASK


def test_reworded_question_is_answered_again_after_delivery():
    assert decide(row(), EDITS, OPENED, closed(), SENT, reworded=True).action is RecoveryAction.ASK


def test_settled_question_keeps_its_outcome():
    silent = build_delivered_entry("t", 1, question(), DeliveryResult(DeliveryOutcome.SILENT, PostedMessages(), None))

    assert decide(row(), EDITS, OPENED, closed(), silent) == RecoveryStep(RecoveryAction.SETTLE, DeliveryOutcome.SILENT)
