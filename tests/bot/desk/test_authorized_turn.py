"""Who may see a turn again is decided by where it was answered, who looks, and what may be read there now."""

import pytest

from bot.access import Asker, is_same_person, may_view_turn
from bot.answering.turn_record import read_turn_record
from bot.desk.authorized_turn import ACTION_FAILED, deny_unseen, find_last_action
from storage.types import EntryKind, LogEntry
from tests.bot.desk.acted import Told, in_channel, in_dm

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
def test_who_stands_where_a_turn_was_answered_or_asked_may_be_told(asker, by, alone, expected):
    """Everybody in its channel, unless it was for the asker alone; elsewhere the asker; at the terminal its owner."""
    assert may_view_turn(asker, by, alone=alone) is expected


def test_nobody_is_the_same_person_as_nobody():
    """Two of whom it is not known who they are may be two."""
    assert not is_same_person(NOBODY, NOBODY)


@pytest.mark.parametrize(
    ("told", "here", "answer", "evidence"),
    [
        (Told(cited=("alpha",), found=("beta",)), ("alpha", "beta"), True, True),
        (Told(cited=("alpha",), found=("beta",)), ("alpha",), True, False),
        (Told(cited=("alpha",), found=("beta",)), ("beta",), False, False),
        (Told(cited=("alpha",), earlier=("gamma",)), ("alpha",), True, False),
        (Told(cited=("alpha",), found=("beta",), task="check"), ("alpha",), False, False),
        (Told(cited=()), (), True, True),
    ],
)
def test_an_answer_needs_what_it_cites_and_evidence_all_it_was_made_from(told, here, answer, evidence):
    """What was found or said earlier counts for the evidence, and for the reasons of a fact-check."""
    turn = read_turn_record(told.entries(1))

    assert (turn.may_show_answer(here), turn.may_show_evidence(here)) == (answer, evidence)


def test_what_may_not_be_seen_is_refused_in_the_language_of_whoever_looks():
    """And in English where that is not known: never in the question's."""
    assert deny_unseen("").words == deny_unseen("en").words != deny_unseen("de").words


def test_what_was_done_once_is_known_by_its_feedback_alone():
    """An entry of another kind may have a field of the same name."""
    shared, failed = ({"what": "share", "state": state} for state in ("done", ACTION_FAILED))
    edited, rated = (
        LogEntry("t", EntryKind.EDITED, {"what": "share"}),
        LogEntry("t", EntryKind.FEEDBACK, {"what": "up"}),
    )

    assert find_last_action([edited, rated], "share") == {}
    assert find_last_action([LogEntry("t", EntryKind.FEEDBACK, shared), edited, rated], "share") == shared
    assert find_last_action([LogEntry("t", EntryKind.FEEDBACK, failed)], "share") == {}
