"""Tests that a turn is shown again according to its place, the user, and the corpora readable there now."""

import pytest

from bot.access import Asker, is_same_person, may_view_turn
from bot.answering.turn_record import read_turn_record
from bot.desk.authorized_turn import ACTION_FAILED, deny_unseen, find_last_action
from storage.types import EntryKind, LogEntry
from tests.bot.desk.fake_record import RecordedTurn, in_channel, in_dm

TERMINAL = Asker("terminal", "terminal")
SERVER = Asker("discord", "channel", "G1", "C1", "U1")
NOBODY = Asker("slack", "dm")


@pytest.mark.parametrize(
    ("asker", "by", "alone", "expected"),
    [
        (in_channel(), in_channel(user="U2"), False, True),
        (in_channel(), in_channel(user="U2"), True, False),
        (in_channel(), in_channel("C2"), True, True),
        (in_channel(), in_channel("C2", "U2"), False, False),
        (in_channel(), in_dm(), True, True),
        (in_channel(), in_dm("U2"), False, False),
        (in_dm(), in_channel(), False, True),
        (in_dm(), in_channel(user="U2"), False, False),
        (in_channel("C1"), Asker("slack", "channel", "T2", "C1", "U1"), False, False),
        (in_channel("C1"), Asker("discord", "channel", "T1", "C1", "U1"), False, False),
        (Asker("slack", "channel", "T1", "", "U1"), Asker("slack", "channel", "T1", "", "U2"), False, False),
        (SERVER, Asker("discord", "dm", "", "D1", "U1"), True, True),
        (SERVER, Asker("discord", "dm", "", "D1", "U2"), False, False),
        (in_dm("U2"), TERMINAL, True, True),
        (NOBODY, NOBODY, False, False),
        (TERMINAL, in_channel(), False, False),
    ],
)
def test_turn_is_visible_in_its_channel_and_to_its_asker(asker, by, alone, expected):
    assert may_view_turn(asker, by, alone=alone) is expected


def test_two_users_without_ids_do_not_count_as_the_same_person():
    assert not is_same_person(NOBODY, NOBODY)


@pytest.mark.parametrize(
    ("recorded", "here", "answer", "evidence"),
    [
        (RecordedTurn(cited=("alpha",), found=("beta",)), ("alpha", "beta"), True, True),
        (RecordedTurn(cited=("alpha",), found=("beta",)), ("alpha",), True, False),
        (RecordedTurn(cited=("alpha",), found=("beta",)), ("beta",), False, False),
        (RecordedTurn(cited=("alpha",), earlier=("gamma",)), ("alpha",), True, False),
        (RecordedTurn(cited=("alpha",), found=("beta",), task="check"), ("alpha",), False, False),
        (RecordedTurn(cited=()), (), True, True),
    ],
)
def test_answer_needs_cited_and_evidence_all_corpora(recorded, here, answer, evidence):
    turn = read_turn_record(recorded.entries(1))

    assert (turn.may_show_answer(here), turn.may_show_evidence(here)) == (answer, evidence)


def test_refusal_is_in_the_users_language():
    assert deny_unseen("").words == deny_unseen("en").words != deny_unseen("de").words


def test_last_state_of_an_action_is_read_from_feedback_entries_only():
    shared, failed = ({"what": "share", "state": state} for state in ("done", ACTION_FAILED))
    edited, rated = (
        LogEntry("t", EntryKind.EDITED, {"what": "share"}),
        LogEntry("t", EntryKind.FEEDBACK, {"what": "up"}),
    )

    assert find_last_action([edited, rated], "share") == {}
    assert find_last_action([LogEntry("t", EntryKind.FEEDBACK, shared), edited, rated], "share") == shared
    assert find_last_action([LogEntry("t", EntryKind.FEEDBACK, failed)], "share") == {}
