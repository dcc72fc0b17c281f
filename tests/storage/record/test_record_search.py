"""Tests of finding turns by their facts and words, and of grouping unanswered questions."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.database.engine import Database
from storage.record.audit_log import AuditLog
from storage.record.question_groups import group_questions
from storage.record.record_search import RecordFilter, RecordSearch, list_steps
from storage.record.turn_index import blank_turns, clear_turns, rebuild_index
from storage.types import EntryKind, LogEntry

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ADA = {"platform": "slack", "kind": "channel", "workspace": "T1", "channel": "C1", "user": "U1"}
NAMED = {"platform": "discord", "workspace": "S1", "channel": "9", "user": "7", "name": "Bo", "channel_name": "sales"}
CITED = {"corpus": "handbook", "document": "leave.md", "title": "Leave"}
NEAREST = {"document": {"corpus": "wiki", "key": "pay.md", "title": "Pay"}}


def opened(turn: str, question: str = "Why?", at: datetime = NOON, **asker: str) -> LogEntry:
    return LogEntry(turn, EntryKind.TURN_OPENED, {"asker": ADA | asker, "question": question, "task": "ask"}, at=at)


def closed(turn: str, status: str = "answered", at: datetime = NOON, **body: Any) -> LogEntry:
    return LogEntry(turn, EntryKind.TURN_CLOSED, {"status": status, **body}, at=at)


def thought(turn: str, what: str, by: str = "slack:T1/U1", **facts: str) -> LogEntry:
    return LogEntry(turn, EntryKind.FEEDBACK, {"what": what, "by": by, **facts})


def said(*verdicts: str) -> dict[str, Any]:
    return {"claims": [{"claim": {"text": "It is."}, "verdict": verdict} for verdict in verdicts]}


RECORD = (
    opened("leave", "How many days of leave do I get?"),
    closed("leave", text="27 days. [1]", citations=[CITED], sentences=[{}], seconds=2.0, **said("SUPPORTS")),
    opened("pay", "When is the pay day?", NOON + timedelta(days=1), user="U2"),
    closed("pay", "abstained", nearest=[NEAREST], text="I found nothing.", **said("REFUTES", "NOT ENOUGH INFO")),
    opened("refund", "Wie lange gilt die Rückgabe?", NOON + timedelta(days=2), **NAMED),
    closed("refund", text="Vierzehn Tage. [1]", citations=[CITED], usage={"prompt_tokens": 9, "cost": 0.5}, seconds=4),
    LogEntry("refund", EntryKind.DELIVERED, {"outcome": "delivered"}),
    LogEntry("refund", EntryKind.EDITED, {"retracted": True}),
    opened("open", "東京都の休暇は？", NOON + timedelta(days=3)),
    thought("leave", "up"),
    thought("leave", "down", comment="Wrong."),
    thought("leave", "up", "slack:T1/U2"),
    thought("leave", "share"),
)


@pytest.fixture
async def search(database: Database) -> RecordSearch:
    await AuditLog(database).append(*RECORD)
    return RecordSearch(database)


FILTERS: list[tuple[dict[str, Any], str]] = [
    ({}, "open refund pay leave"),
    ({"limit": 2}, "open refund"),
    ({"before": 5}, "pay leave"),
    ({"platform": "discord"}, "refund"),
    ({"workspace": "T1"}, "open pay leave"),
    ({"channel": "slack:T1/C1"}, "open pay leave"),
    ({"channel": "C1"}, "open pay leave"),
    ({"channel": "#Sales"}, "refund"),
    ({"channel": "%"}, ""),
    ({"asker": "slack:T1/U2"}, "pay"),
    ({"asker": "7"}, "refund"),
    ({"asker": "@bo"}, "refund"),
    ({"since": NOON + timedelta(days=1), "until": NOON + timedelta(days=2)}, "pay"),
    ({"status": "abstained"}, "pay"),
    ({"status": "unfinished"}, "open"),
    ({"status": "retracted"}, "refund"),
    ({"verdict": "SUPPORTS"}, "leave"),
    ({"verdict": "REFUTES"}, "pay"),
    ({"verdict": "NOT ENOUGH INFO"}, "pay"),
    ({"corpus": "wiki"}, "pay"),
    ({"document": "leave.md"}, "refund leave"),
    ({"document": "leave", "corpus": "handbook", "platform": "slack"}, "leave"),
    ({"rating": "up"}, "leave"),
    ({"rating": "any"}, "leave"),
    ({"words": "DAY"}, "pay leave"),
    ({"words": '"days of leave"'}, "leave"),
    ({"words": '"leave days"'}, ""),
    ({"words": "ruckg*"}, "refund"),
    ({"words": "tage vierzehn"}, "refund"),
    ({"words": "nothing"}, ""),
    ({"words": "* \" ' -- \x00 ("}, ""),
]


async def test_turns_are_found_by_each_filter(search: RecordSearch) -> None:
    for criteria, expected in FILTERS:
        summaries = await search.find(RecordFilter(**criteria))

        assert (criteria, " ".join(summary.turn_id for summary in summaries)) == (criteria, expected)
        if not {"limit", "before"} & set(criteria):
            assert await search.count(RecordFilter(**criteria)) == len(summaries)


async def test_any_typed_text_can_be_searched(search: RecordSearch) -> None:
    random = Random(7)
    parts = ["leave", "c++", "東京", "ह", "\ud800", *"\"*'-^:{)\\ ", "AND", "OR", "NOT", "NEAR(", "terms:", " "]
    for _ in range(150):
        typed = "".join(random.choice(parts) for _ in range(random.randrange(8)))
        assert len(await search.find(RecordFilter(words=typed))) <= 4


async def test_summary_has_asker_place_and_outcome(search: RecordSearch) -> None:
    leave, refund = (await search.find(RecordFilter(document="leave.md")))[::-1]

    assert (leave.asker, leave.channel, leave.up, leave.down, leave.supported) == (
        "slack:T1/U1",
        "slack:T1/C1",
        1,
        1,
        1,
    )
    assert (leave.at, leave.seconds, leave.sentences, leave.status) == (NOON, 2.0, 1, "answered")
    assert (refund.asker_name, refund.channel_name, refund.asker) == ("Bo", "sales", "discord:S1/7")
    assert (refund.outcome, refund.retracted, refund.tokens, refund.cost) == ("delivered", True, 9, 0.5)


async def test_words_of_unspaced_scripts_are_found_once_their_turn_is_closed(
    database: Database, search: RecordSearch
) -> None:
    await AuditLog(database).append(closed("open", "failed"))

    assert [turn.turn_id for turn in await search.find(RecordFilter(words="東京"))] == ["open"]
    assert [turn.turn_id for turn in await search.find(RecordFilter(words='"休暇"'))] == ["open"]


async def test_cited_documents_list_their_answers(search: RecordSearch) -> None:
    (cited,) = await search.cited_documents()

    assert (cited.corpus, cited.document, cited.title, cited.answers) == ("handbook", "leave.md", "Leave", 2)
    assert cited.last == NOON + timedelta(days=2)
    assert [turn.turn_id for turn in await search.citing("handbook", "leave.md")] == ["refund", "leave"]
    assert await search.citing("wiki", "pay.md") == ()  # it was found, and no answer cites it
    assert await search.cited_documents("wiki") == ()


async def test_feedback_is_listed_with_its_turn_newest_first(search: RecordSearch) -> None:
    ratings = await search.feedback(RecordFilter(limit=3))

    assert [(turn.turn_id, entry.body["what"]) for turn, entry in ratings] == [
        ("leave", "share"),
        ("leave", "up"),
        ("leave", "down"),
    ]
    assert len(await search.feedback(RecordFilter(before=ratings[-1][1].seq))) == 1


async def test_figures_are_counted_step_by_step(search: RecordSearch) -> None:
    first, second, third = await search.figures(NOON, NOON + timedelta(days=2, hours=12), "day")

    assert (first.turns, first.answered, first.up, first.down, first.seconds) == (1, 1, 1, 1, 2.0)
    assert (second.abstained, second.claims, second.supported) == (1, 2, 0)
    assert (third.turns, third.retracted, third.tokens, third.cost, third.slow_seconds) == (1, 1, 9, 0.5, 4.0)
    (month,) = await search.figures(NOON, NOON + timedelta(days=5), "month")
    assert (month.turns, month.askers, month.failed) == (4, 3, 1)


@given(
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(ZoneInfo("Europe/Berlin"))),  # noqa: DTZ001
    st.integers(1, 400),
    st.sampled_from(["day", "week", "month"]),
)
def test_steps_cover_a_stretch_of_time_without_gaps(since: datetime, days: int, step: Any) -> None:
    until = since + timedelta(days=days)
    steps = list(list_steps(since, until, step))

    assert (steps[0][0], steps[-1][1]) == (since, until)
    assert all(one[1] == other[0] and one[0] < one[1] for one, other in pairwise(steps))


async def test_rebuilt_index_is_the_same(database: Database, search: RecordSearch) -> None:
    before = await search.find(RecordFilter())
    await database.write(clear_turns)
    assert await search.find(RecordFilter()) == ()

    assert await rebuild_index(database) == 4
    assert await search.find(RecordFilter()) == before
    assert len(await search.find(RecordFilter(words="leave"))) == 1


async def test_blanked_turn_has_figures_but_no_texts_in_the_index(database: Database, search: RecordSearch) -> None:
    await database.write(lambda connection: blank_turns(connection, ["refund"]))
    (found,) = await search.find(RecordFilter(status="retracted"))

    assert (found.asker, found.asker_name, found.question, found.tokens) == ("", "", "", 9)
    assert found.erased
    assert await search.find(RecordFilter(status="erased")) == (found,)
    assert await search.find(RecordFilter(words="vierzehn")) == ()
    for kept in ("SELECT block FROM turn_words_data", "SELECT c0 FROM turn_words_content"):
        rows = await database.read(lambda connection, kept=kept: connection.exec_driver_sql(kept).scalars().all())
        assert b"vierzehn" not in b"".join(row if isinstance(row, bytes) else row.encode() for row in rows)

    for statement in ("DROP TRIGGER entries_keep_update", "UPDATE entries SET body = '' WHERE turn_id = 'refund'"):
        await database.write(lambda connection, one=statement: connection.exec_driver_sql(one))
    assert await rebuild_index(database) == 4
    assert await search.find(RecordFilter(status="retracted")) == (found,)


@pytest.mark.parametrize("body", ["", "[]", "null", '"x"', '{"asker": [], "question": 7, "claims": {}, "usage": [1]}'])
async def test_meaningless_body_is_indexed_as_empty(database: Database, body: str) -> None:
    statement = "INSERT INTO entries (turn_id, kind, at, body) VALUES (?, ?, '2026-03-01 12:00:00', ?)"
    kinds = [kind.value for kind in EntryKind]
    rows = [("t1", kind, body) for kind in kinds]
    await database.write(lambda connection: [connection.exec_driver_sql(statement, row) for row in rows])

    assert await rebuild_index(database) == 1
    (found,) = await RecordSearch(database).find(RecordFilter())
    assert (found.question, found.erased, found.status) == ("", not body, "erased" if not body else "unfinished")


ASKED = [
    "How many days of paid leave do I get?",
    "Where is the printer?",
    "How much paid leave do I get each year?",
    "paid leave days?",
    "Where's the printer on floor two?",
    "Who is the CEO?",
]


async def test_unanswered_questions_are_grouped_by_similarity(database: Database) -> None:
    log = AuditLog(database)
    for number, question in enumerate(ASKED):
        await log.append(opened(f"t{number}", question), closed(f"t{number}", "abstained"))

    groups = await RecordSearch(database).unanswered()

    assert [sorted(member.question for member in group.members) for group in groups] == [
        sorted(ASKED[place] for place in places) for places in ([0, 2, 3], [1, 4], [5])
    ]


@given(st.lists(st.text("ab cä東 ?", max_size=12), max_size=12))
def test_each_question_is_in_one_group(asked: list[str]) -> None:
    numbered = list(enumerate(asked))
    groups = group_questions(numbered, lambda one: one[1])

    assert sorted(member for group in groups for member in group.members) == numbered
    assert [len(group.members) for group in groups] == sorted((len(group.members) for group in groups), reverse=True)
