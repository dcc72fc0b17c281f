"""The views of one turn from beginning to end, for the tests of platforms."""

from dataclasses import replace
from datetime import UTC, datetime

from bot.views.turn_view import Button, ButtonAction, ClaimCard, ShownSource, View
from pipeline.types import AnsweredSentence

SENTENCES = tuple(AnsweredSentence(f"Sentence {n} of the answer.", (n,), paragraph=n == 3) for n in range(1, 5))
SOURCES = tuple(
    ShownSource(n, f"Page {n}", "Part", datetime(2026, 3, n, tzinfo=UTC), f"https://e.org/{n}") for n in range(1, 5)
)
STOP = (Button(ButtonAction.STOP, "Stop", 7),)
BEGUN = View(7, "en", "Looking into it …", buttons=STOP)
_QUOTE = ShownSource(0, "Page 1", url="https://e.org/1", quote="<!here> *Open*.")
_CLAIMS = (ClaimCard(1, "checking"), ClaimCard(2, "checking"))
_CHECKED = (ClaimCard(1, "supported", "It is open.", ("Page 1",)), ClaimCard(2, "unknown"))
WAY = (
    BEGUN,
    replace(BEGUN, status="Searching …"),
    replace(BEGUN, status="Found …", quote=_QUOTE, quote_label="Meanwhile:"),
    replace(BEGUN, status="Looking …", quote=_QUOTE, quote_label="Meanwhile:", claims=_CLAIMS),
    replace(BEGUN, status="Checking …", claims=_CHECKED),
    *(replace(BEGUN, status="Writing …", claims=_CHECKED, sentences=SENTENCES[:n]) for n in range(1, 5)),
)
"""The views of a turn, in order."""
FINAL = View(
    7,
    "en",
    collapsed="Statements checked: 2, confirmed: 1.",
    sentences=SENTENCES,
    left_out="1 of 5 statements was left out.",
    sources=SOURCES,
    buttons=tuple(
        Button(action, action.value, 7)
        for action in (ButtonAction.EVIDENCE, ButtonAction.UP, ButtonAction.DOWN, ButtonAction.RETRACT)
    ),
    done=True,
)
LONG = replace(FINAL, sentences=tuple(AnsweredSentence("word " * 150 + f"{n}.", (1 + n % 4,)) for n in range(16)))
"""An answer that takes several messages."""
