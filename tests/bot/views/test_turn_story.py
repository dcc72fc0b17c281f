"""The story of a turn, from valid, invalid and erased entries."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.views.turn_story import build_story, list_passages
from storage.types import EntryKind, LogEntry
from tests.bot.fake_services import document, logged, passage

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KEYS = [
    "asker", "question", "hits", "claims", "claim", "evidence", "citations", "citation", "sentences", "withheld",
    "nearest", "passage", "usage", "by", "text", "lost", "now",
]  # fmt: skip
BODIES = st.dictionaries(
    st.sampled_from(KEYS), JSON | st.lists(st.dictionaries(st.sampled_from(KEYS), JSON)), max_size=6
)
AT = datetime(2026, 10, 5, tzinfo=UTC)


@given(st.lists(st.tuples(st.sampled_from(EntryKind), BODIES), max_size=5))
def test_story_is_built_from_invalid_entries(entries: list[tuple[EntryKind, dict[str, object]]]) -> None:
    logged = [LogEntry("t", kind, body, seq, AT) for seq, (kind, body) in enumerate(entries)]
    list_passages(logged)
    story = build_story(logged, {})
    assert (story is None) is not any(kind is EntryKind.TURN_OPENED for kind, _ in entries)


def test_story_has_titles_and_texts_of_found_passages() -> None:
    entries = [*logged()]
    hits = {"stage": "search", "query": "quay", "hits": [["p1", 1.25, "handbook", "a"], ["p2", 0.5, "handbook", "b"]]}
    entries[1] = LogEntry("abc123", EntryKind.STEP, hits, 2, AT)
    found = {"p2": (passage("Closed on Mondays.", 2), document(title="Hours"))}
    story = build_story(entries, found)
    assert story is not None
    assert list_passages(entries) == ({"p1", "p2"}, {("handbook", "a"), ("handbook", "b")})
    assert [(one.title, one.text, one.score) for one in story.steps[0].found] == [
        ("Harbour", passage().text, 1.25), ("Hours", "Closed on Mondays.", 0.5)
    ]  # fmt: skip
    assert (story.status, story.sources[0].number, story.erased) == ("answered", 1, False)


def test_erased_turn_is_marked() -> None:
    entries = [LogEntry(one.turn_id, one.kind, {}, one.seq, one.at) for one in logged()]
    story = build_story(entries, {})
    assert story is not None
    assert (story.erased, story.status, story.question) == (True, "erased", "")


@pytest.mark.parametrize(("kind", "body", "title"), [
    (EntryKind.EDITED, {"retracted": True, "by": "slack:T1/U1"}, "Taken back"),
    (EntryKind.FEEDBACK, {"what": "down", "comment": "No."}, "Found not helpful"),
    (EntryKind.FEEDBACK, {"what": ["?"]}, "Feedback"), (EntryKind.DELIVERED, {}, "Delivered"),
])  # fmt: skip
def test_events_have_titles(kind: EntryKind, body: dict[str, object], title: str) -> None:
    story = build_story([*logged(), LogEntry("abc123", kind, body, 4, AT)], {})
    assert story is not None
    assert story.events[-1].title == title


def test_recheck_event_describes_the_change() -> None:
    lost = {"text": "It opens at ten.", "title": "Hours", "now": "It opens at nine.", "removed": False}
    story = build_story([*logged(), LogEntry("abc123", EntryKind.RECHECK, {"lost": [lost]}, 4, AT)], {})
    assert story
    text = "“It opens at ten.” no longer holds: “Hours” has changed. It now says: “It opens at nine.”"
    assert (story.events[-1].title, story.events[-1].text) == ("Checked again", text)
