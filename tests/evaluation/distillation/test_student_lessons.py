"""Lessons for a student: the teacher's replies in the student's format, without identities."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from bot.cli import entry_point
from bot.settings.tables.record_settings import DistillationSettings
from bot.settings.tables.settings_tables import Settings
from bot.wiring import build_records, open_record_database
from evaluation import EvaluationError
from evaluation.answers.question_sets import read_exam
from evaluation.answers.system_comparison import compare_systems
from evaluation.cli import distil
from evaluation.distillation.deidentification import (
    build_name_pattern,
    find_identities,
    find_own_names,
    remove_identities,
)
from evaluation.distillation.lesson_export import (
    BY_PAGE,
    BY_TALK,
    MANIFEST,
    SPLITS,
    collect_export,
    find_refusal,
    read_lessons,
    split_by_topic,
    write_export,
)
from evaluation.distillation.recorded_calls import RecordedTurn, read_turn
from evaluation.distillation.student_lessons import LeftOut, Lesson, make_lessons, read_lesson
from evaluation.workbench import EXAMPLE_QUESTIONS
from storage.record.record_search import TurnSummary
from storage.types import Document, EntryKind, LogEntry, Passage
from tests.handbook import copy_home

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
TEXT = "The ferry leaves at nine. Tickets cost 12 euros."
PASSAGE = Passage("p1", "handbook", "ferry.md", "", TEXT, 0, "h")
PASSAGES = {"p1": (PASSAGE, Document("handbook", "ferry.md", "Ferry"))}
FIRST, SECOND = "p1:0-25", "p1:26-48"
SUMMARY = TurnSummary(
    turn_id="t1", seq=1, at=NOW, task="ask", platform="slack", workspace="T1", channel="slack:T1/C1",
    channel_name="harbour", asker="slack:T1/U7", asker_name="Ada Lovelace", question="When does it leave?",
    status="answered", system="wikichat", model="m", outcome="", retracted=False, sentences=1, withheld=0, claims=0,
    supported=0, refuted=0, up=0, down=0, seconds=1.0, tokens=1, cost=0.0, erased=False,
)  # fmt: skip
FINDINGS = [
    {"text": "The ferry leaves at nine.", "evidence": [FIRST]},
    {"text": "Tickets cost 12 euros.", "evidence": [SECOND]},
]
DRAFTED = {"talk": 1, "findings": FINDINGS, "language": "English", "refused": "", "feedback": ""}


def step(template: str, reply: str, **facts: object) -> dict[str, object]:
    return {
        "template": template, "stage": template, "facts": facts, "reply": reply, "format": "text", "finish": "stop"
    }  # fmt: skip


def record_turn(*steps: dict[str, object], sentences: tuple[str, ...] = (), cites: str = "ferry.md", **about: object):
    """Return a turn as it is read from the record."""
    opened = {
        "asker": {"kind": about.pop("kind", "channel")},
        "question": about.pop("question", "When does it leave?"),
        "earlier": about.pop("earlier", []),
    }
    closed = {
        "status": "answered",
        "sentences": [{"text": text} for text in sentences],
        "citations": [{"corpus": "handbook", "document": cites}] if cites else [],
    }
    ratings = [{"what": "rated", "rating": rating, "by": by} for by, rating in about.pop("ratings", ())]
    summary = TurnSummary(**{**{name: getattr(SUMMARY, name) for name in TurnSummary.__slots__}, **about})
    search = {"query": "ferry", "hits": [["p1", 1.0, "handbook", "ferry.md"]]}
    bodies = (
        (EntryKind.TURN_OPENED, opened),
        *((EntryKind.STEP, call) for call in (search, *steps)),
        (EntryKind.TURN_CLOSED, closed),
        *((EntryKind.FEEDBACK, rating) for rating in ratings),
    )
    return read_turn(summary, [LogEntry(summary.turn_id, kind, body, NOW) for kind, body in bodies])


def list_lessons(turn: RecordedTurn) -> list[Lesson | LeftOut]:
    return list(make_lessons(turn, PASSAGES))


def single_lesson(turn: RecordedTurn) -> Lesson:
    (lesson,) = list_lessons(turn)
    assert isinstance(lesson, Lesson), lesson
    return lesson


VERIFIED = {"talk": 1, "sentences": [FIRST, SECOND]}


@pytest.mark.parametrize(
    ("call", "output"),
    [
        (step("query", "search: YES\nquery: “ferry times”\ntime: now", talk=1, reading=""),
         "Search: yes\nQuery: ferry times\nTime: recent"),
        (step("query", "Search: no", talk=1, reading=""), "Search: no"),
        (step("summarise", "* Leaves at nine [1]\n* Costs 12 euros (2)", query="ferry", sentences=[FIRST, SECOND]),
         "- Leaves at nine [1]\n- Costs 12 euros [2]"),
        (step("summarise", "None.", query="ferry", sentences=[FIRST]), "None"),
        (step("generate", " It leaves at ten. ", talk=1, reading=""), "It leaves at ten."),
        (step("split", "- The ferry leaves at ten. (recent)", talk=1, reply_text="It leaves at ten."),
         "- The ferry leaves at ten. | recent"),
        (step("claims", "Nothing", talk=1, reading=""), "Nothing"),
        (step("verify", "Sentences: 1\nWho: it\nReasoning: Nine is not ten.\nVerdict: REFUTES", claim="At ten.",
              **VERIFIED),
         "Sentences: 1\nWho: it\nHow many: -\nIf: -\nWhen: -\nVerdict: REFUTES"),
        (step("verdicts", "1. [1] who: it; if: -; SUPPORTS So it says.\n2. NOT ENOUGH INFO Nobody knows.",
              claims=["At nine.", "It is blue."], **VERIFIED),
         "1. [1] who: it; if: -; SUPPORTS\n2. who: -; if: -; NOT ENOUGH INFO"),
    ],
)  # fmt: skip
def test_lesson_output_has_the_student_format_without_reasoning(call, output):
    lesson = single_lesson(record_turn(call))
    assert lesson.output == output
    assert "for example" not in lesson.input.casefold()


def test_refined_draft_is_one_lesson_without_withheld_sentences():
    steps = (
        step("draft", "It leaves at nine [1]. It is blue [2].", **DRAFTED),
        step("feedback", "Relevant: Good. 50/100", talk=1, draft="…"),
        step("refine", "The ferry leaves at nine [1]. It is blue [2].", talk=1, draft="…"),
    )
    lesson = single_lesson(record_turn(*steps, sentences=("The ferry leaves at nine.",)))
    assert (lesson.template, lesson.output) == ("answer", "The ferry leaves at nine [1].")
    assert "Tickets cost 12 euros." in lesson.input
    assert lesson.quoted == {("handbook", "ferry.md")}


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (step("draft", "It is blue [2].", **DRAFTED), "no sentence of the draft passed"),
        (step("verify", "Hm.", claim="At nine.", **VERIFIED), "its reply cannot be read"),
        (
            step("verify", "Verdict: SUPPORTS", claim="At nine.", talk=1, sentences=["gone:0-3"]),
            "a passage has changed",
        ),
        (step("verdicts", "1. SUPPORTS [1]", claims=["At nine."], **VERIFIED), "does not show what the sentences say"),
        (step("verdicts", "2. SUPPORTS [1]", claims=["At nine.", "So."], **VERIFIED), "some of the claims"),
        (step("query", "Search: no", talk=1), "another version"),
        (step("criticism", "Supported: Yes. 90/100", talk=1), "not asked for it"),
    ],
)
def test_unusable_calls_are_skipped_with_a_reason(call, reason):
    (left,) = list_lessons(record_turn(call))
    assert isinstance(left, LeftOut)
    assert reason in left.reason


def test_earlier_turns_are_restored_in_order():
    lesson = single_lesson(
        record_turn(step("query", "Search: no", talk=3, reading=""), earlier=["Hello?", "Good morning."])
    )
    assert lesson.input.index("User: Hello?") < lesson.input.index("Good morning.") < lesson.input.index("When does it")
    (left,) = list_lessons(record_turn(step("query", "Search: no", talk=2, reading=""), earlier=["Hello?"]))
    assert "the speakers of" in left.reason


def test_erased_and_unclosed_turns_are_skipped():
    assert record_turn(erased=True) is None
    assert read_turn(SUMMARY, []) is None


CONSENT = DistillationSettings(places=("slack:T1/C1", "slack:T1/U7"), corpora=("handbook",))


@pytest.mark.parametrize(
    ("about", "refusal"),
    [
        ({}, ""),
        ({"kind": "dm", "channel": "slack:T1/D1"}, ""),
        ({"kind": "dm", "asker": "slack:T1/U8"}, "its place gave no consent"),
        ({"channel": "slack:T1/C2"}, "its place gave no consent"),
        ({"platform": "terminal", "channel": ""}, "its place gave no consent"),
        ({"down": 1}, "its answer was rated wrong or retracted"),
        ({"ratings": [("slack:T1/U1", 2)]}, "its answer was rated wrong or retracted"),
        ({"ratings": [("slack:T1/U1", 2), ("slack:T1/U1", 4)]}, ""),
        ({"retracted": True}, "its answer was rated wrong or retracted"),
        ({"status": "failed"}, "it failed"),
    ],
)
def test_turns_without_consent_are_refused(about, refusal):
    assert find_refusal(record_turn(**about), CONSENT) == refusal
    assert find_refusal(record_turn(**about), DistillationSettings())
    elsewhere = DistillationSettings(places=CONSENT.places, corpora=("encyclopedia",))
    assert find_refusal(record_turn(**about), elsewhere)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), max_size=40), st.integers(0, 3))
def test_topics_stay_in_one_split(asked, seed):
    """If documents join nearly all conversations, only a conversation stays in one split."""
    turns = [
        record_turn(cites=f"{page}.md", question=f"question {talk}", turn_id=f"t{place}")
        for place, (page, talk) in enumerate(asked)
    ]
    talks = {turn.question for turn in turns}
    if len(talks) == 1:
        with pytest.raises(EvaluationError, match="one conversation"):
            split_by_topic(turns, seed)
        return
    splits, joined = split_by_topic(turns, seed)
    assert (splits, joined) == split_by_topic(turns, seed)
    assert set(splits.values()) <= SPLITS.keys()
    held_out = {turn.question for turn in turns if splits[turn.summary.turn_id] != "train"}
    assert len(held_out) >= 0.05 * len(talks)
    assert held_out < talks or not talks
    keys = (lambda turn: turn.question, lambda turn: turn.cited)
    for key in keys if joined == BY_PAGE else keys[:1]:
        for turn in turns:
            same = {splits[other.summary.turn_id] for other in turns if key(other) == key(turn)}
            assert len(same) == 1


def test_splits_have_their_parts():
    turns = [record_turn(cites=f"{place}.md", question=f"q{place}", turn_id=f"t{place}") for place in range(100)]
    splits, joined = split_by_topic(turns, 1)
    assert [[*splits.values()].count(name) for name in SPLITS] == [80, 10, 10]
    assert joined == BY_PAGE


def test_conversations_are_held_out_although_a_page_joins_all():
    """One page that nearly everyone asks about would otherwise leave nothing to test a student with."""
    turns = [record_turn(cites="leave.md", question=f"q{place % 15}", turn_id=f"t{place}") for place in range(43)]
    splits, joined = split_by_topic(turns, 0)
    held_out = {turn.question for turn in turns if splits[turn.summary.turn_id] != "train"}
    assert joined == BY_TALK
    assert len(held_out) == 3
    assert {splits[turn.summary.turn_id] for turn in turns} == {*SPLITS}


NAMED = build_name_pattern(("Ada Lovelace", "harbour-watch"), ("U0123ABCD", "T1"))


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Ada Lovelace asked, and ADA LOVELACE asked again.", "NAME_1 asked, and NAME_1 asked again."),
        ("Thanks, Ada!", "Thanks, NAME_1!"),
        ("An adage of a lovelace.", "An adage of a lovelace."),
        ("<@U0123ABCD> and @grace in harbour-watch", "MENTION_1 and MENTION_2 in NAME_1"),
        ("Write to ada@example.com or +49 170 1234567.", "Write to EMAIL_1 or PHONE_1."),
        ("xoxb-123456789012-abc is U9876ZYXW's", "SECRET_1 is ID_1's"),
        ("Call 415-555-0100, (415) 555-0100 or 0871234567; ada (at) example.com, ada@example.", None),
        ("The key sk_live_abcdefghij opens it.", "The key SECRET_1 opens it."),
        ("On 2026-01-12 it cost 1 200 000 euros, [1].", "On 2026-01-12 it cost 1 200 000 euros, [1]."),
    ],
)
def test_identities_are_replaced_by_placeholders(text, clean):
    lesson = Lesson("t", "generate", "generate", "", text, text, {}, frozenset())
    cleaned = remove_identities(lesson, NAMED)
    clean = clean or "Call PHONE_1, PHONE_2 or PHONE_3; EMAIL_1, EMAIL_2"
    assert (cleaned.input, cleaned.output) == (clean, clean)
    assert not list(find_identities(cleaned.input, NAMED))


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ("I am Ada Lovelace. When does it leave?", {"Ada Lovelace"}),
        ("My name is Bartholomew; may I go?", {"Bartholomew"}),
        ("Wann fährt sie? Grüße, Jörg von Müller", {"Jörg von Müller"}),
        ("I am German, and this is London.", set()),
    ],
)
def test_self_introductions_are_detected(message, names):
    assert find_own_names([message]) == names
    lesson = Lesson("t", "query", "query", "", message, "", {}, frozenset())
    cleaned = remove_identities(lesson, build_name_pattern(find_own_names([message]), ()))
    assert not any(name in cleaned.input for name in names)


async def test_exported_lessons_of_real_turns_are_readable(handbook: Path, tmp_path: Path):
    home = copy_home(handbook, tmp_path / "home")
    await compare_systems(read_exam(EXAMPLE_QUESTIONS), 2, ("wikichat", "wikichat-fast"), home)
    with open_record_database(Settings(home=home)) as database:
        consent = DistillationSettings(places=("terminal",), corpora=("handbook",))
        export = await collect_export(build_records(database), consent, 0)
    manifest = write_export(export, tmp_path / "lessons", {})

    assert json.loads((tmp_path / "lessons" / MANIFEST).read_text("utf-8")) == manifest
    assert manifest["turns"] == 4
    assert manifest["splits"] in {BY_PAGE, BY_TALK}
    assert 0 < manifest["files"]["train"]["lessons"] < sum(file["lessons"] for file in manifest["files"].values())
    read = {split: read_lessons(tmp_path / "lessons" / f"{split}.jsonl") for split in SPLITS}
    exported = [lesson for lessons in read.values() for lesson in lessons]
    assert {lesson.template for lesson in exported} >= {"claims", "generate", "split", "verify", "verdicts", "answer"}
    for lesson in exported:
        read_lesson(lesson)
    assert {split: len(lessons) for split, lessons in read.items()} == {
        split: file["lessons"] for split, file in manifest["files"].items()
    }


def test_export_without_lessons_says_why(handbook: Path, tmp_path: Path):
    home, settings = copy_home(handbook, tmp_path / "home"), tmp_path / "footnote.toml"
    consent = '[distillation]\nplaces = ["terminal"]\ncorpora = ["handbook"]\n'
    settings.write_text(f'home = "{home}"\n{consent}', encoding="utf-8")
    asyncio.run(compare_systems(read_exam(EXAMPLE_QUESTIONS), 1, ("extractive",), home))
    ended = CliRunner().invoke(entry_point.app, ["--config", str(settings), "distil", "export", str(tmp_path / "out")])
    assert ended.exit_code == 1
    assert "The 1 turns that may be used have no lessons" in ended.output
    assert not (tmp_path / "out").exists()


def test_export_without_consent_names_the_setting(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(distil, ["export", str(tmp_path / "lessons")])
    assert ended.exit_code == 1
    assert "[distillation]" in ended.output
    assert not (tmp_path / "lessons").exists()
