"""What becomes of a question by what its row and its turn's entries say."""

from dataclasses import replace

import pytest

from bot.desk.recalling import recalled
from bot.desk.recording import Showed, delivered, retracted, stopping
from bot.desk.resuming import Act, Next, after_restart
from bot.desk.types import Outcome, Posted, Ways
from bot.turn_record import closing, interruption, opening
from bot.turns import Answered, Asked
from pipeline.types import Answer, Conversation, Status, Turn, Usage
from storage.storable import storable
from storage.types import EntryKind, LogEntry, QueuedQuestion
from tests.bot.desk.desked import DAY, question

EDITS, BLIND, ONCE = Ways(), Ways(edits=False, reads_back=False), Ways(edits=False)
BLIND_EDITS = Ways(reads_back=False)
OPENED = LogEntry(
    "t", EntryKind.TURN_OPENED, opening(Asked("?", question().asker), Conversation((Turn("user", "?"),)), {}, {})
)


def row(**changes):
    """Return a running question that has a turn."""
    fields = dict.fromkeys(QueuedQuestion.__slots__, "")
    known = {"ticket": 1, "body": {}, "taken_at": DAY, "lease_until": None, "sending": False, "posted": ()}
    return replace(QueuedQuestion(**fields | known | {"turn_id": "t", "state": "running"}), **changes)


def closed(status=Status.ANSWERED):
    """Return how a turn ended."""
    done = Answered("t", Answer(status), "text", "fake", None, Usage(), 0.1)
    return closing(done, (), (), ())[-1]


def decide(a_row, ways, *entries, fits=True, reworded=False):
    """Decide by entries as JSON brings them back."""
    stored = [replace(entry, body=storable(entry.body)) for entry in entries]
    return after_restart(a_row, ways, stored, recalled(stored), fits=fits, reworded=reworded)


SENT = delivered("t", 1, question(), Showed(Outcome.DELIVERED, Posted(("p",)), None))


@pytest.mark.parametrize(
    ("changes", "ways", "entries", "act"),
    [
        ({"turn_id": ""}, EDITS, (), Act.ASK),
        ({}, EDITS, (OPENED,), Act.ASK),
        ({}, EDITS, (OPENED, interruption("t", language="en")), Act.ASK),
        ({}, EDITS, (OPENED, closed(Status.CANCELLED)), Act.ASK),
        ({}, EDITS, (OPENED, closed()), Act.SHOW),
        ({}, EDITS, (OPENED, closed(Status.ABSTAINED)), Act.SHOW),
        ({"sending": True, "posted": ("p",)}, EDITS, (OPENED, closed()), Act.SHOW),
        ({"sending": True, "posted": ("p",)}, ONCE, (OPENED, closed()), Act.SHOWN),
        ({"sending": True}, ONCE, (OPENED, closed()), Act.SHOW),
        ({"sending": True}, BLIND, (OPENED, closed()), Act.DOUBT),
        ({"sending": True}, BLIND, (OPENED,), Act.DOUBT),
        ({"sending": True, "posted": ("p",)}, BLIND_EDITS, (OPENED, closed()), Act.DOUBT),
        ({"posted": ("p",)}, BLIND_EDITS, (OPENED, closed()), Act.SHOW),
        ({"posted": ("p",)}, BLIND, (OPENED, closed()), Act.SHOWN),
        ({}, BLIND_EDITS, (OPENED,), Act.ASK),
        ({}, BLIND, (OPENED, closed()), Act.SHOW),
        ({}, EDITS, (OPENED, stopping("t", by="u"), closed(Status.CANCELLED)), Act.SAY_STOPPED),
        ({}, EDITS, (OPENED, closed(), SENT), Act.SETTLE),
        ({}, EDITS, (OPENED, closed(), SENT, retracted("t", (), by="u", why="")), Act.REMOVE),
    ],
)
def test_every_state_has_its_next_step(changes, ways, entries, act):
    """For each state that a process can leave, what is done next."""
    assert decide(row(**changes), ways, *entries).act is act


def test_an_answer_that_does_not_fit_any_more_is_made_anew():
    """What cites a corpus that cannot be read there any more, or answers other words, is not shown again."""
    assert decide(row(), EDITS, OPENED, closed(), fits=False).act is Act.ASK
    assert decide(row(), EDITS, OPENED, closed(), reworded=True).act is Act.ASK


def test_a_delivered_answer_to_other_words_is_not_the_end():
    """A question that was edited while its answer was on its way is asked again, also after a crash."""
    assert decide(row(), EDITS, OPENED, closed(), SENT, reworded=True).act is Act.ASK


def test_what_is_settled_keeps_its_outcome():
    """A question whose end is in the record ends the same way in the queue."""
    silent = delivered("t", 1, question(), Showed(Outcome.SILENT, Posted(), None))

    assert decide(row(), EDITS, OPENED, closed(), silent) == Next(Act.SETTLE, Outcome.SILENT)
