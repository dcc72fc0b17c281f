"""The gold cases: well formed, unlike each other and the prompts' examples, and passed by the replies they expect."""

import json
from collections import Counter
from typing import Any

import pytest

from bot.doctor.call_kinds import CALL_KINDS, GOLD_FOLDER, CallKind, list_call_kinds, read_cases
from pipeline.prompts.prompt_templates import TEMPLATE_FOLDER as PROMPTS
from pipeline.prompts.prompt_templates import PromptMode
from pipeline.replies.reply_format import ReplyFormat
from pipeline.stages import STAGES
from storage.types import Verdict
from tests.bot.doctor.gold import BY_KIND, NOW, cases, right

FILES = sorted({kind.file for kind in CALL_KINDS})


def test_every_stage_has_cases() -> None:
    assert {kind.stage for kind in CALL_KINDS} == set(STAGES)
    assert sorted(path.stem for path in GOLD_FOLDER.glob("*.json")) == FILES
    assert all(len(read_cases(file, NOW.date())) >= 30 for file in FILES)


def test_verification_cases_have_ten_claims_of_each_verdict() -> None:
    assert set(Counter(case.expected["verdict"] for case in cases(BY_KIND["verify"])).values()) == {10}
    assert len(Verdict) == 3


@pytest.mark.parametrize("file", FILES)
def test_cases_are_distinct(file: str) -> None:
    read = read_cases(file, NOW.date())

    assert len({case.name for case in read}) == len(read)
    assert len({str(sorted(case.facts.items(), key=lambda fact: fact[0])) for case in read}) == len(read)


@pytest.mark.parametrize("file", FILES)
def test_no_case_is_an_example_of_the_prompts(file: str) -> None:
    shown = "\n".join(path.read_text(encoding="utf-8") for path in PROMPTS.glob("*.json"))
    text = (GOLD_FOLDER / f"{file}.json").read_text(encoding="utf-8")

    assert not [text_ for text_ in _texts(json.loads(text)) if len(text_) > 25 and text_ in shown]
    for name in ("Kestrel", "Ellery", "Tereshkova", "Larkspur", "Skarholm", "Bodensee", "Falk", "Skardal", "Lovelace"):
        assert name not in text


@pytest.mark.parametrize("kind", CALL_KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("student", [False, True])
def test_expected_reply_is_parsed_and_graded_right(kind: CallKind, *, student: bool) -> None:
    for case in cases(kind):
        reader = kind.reader(case, PromptMode(student=student))
        if isinstance(reader, ReplyFormat):
            reply = reader.from_text(right(kind, case, schema=False, student=student))
            if kind.structured:
                object_ = json.loads(right(kind, case, schema=True, student=student))
                assert kind.judge(case, reader.from_json(object_)).wrong == "", case.name
        else:
            reply = (*reader.feed(right(kind, case, schema=False)), *reader.close())
        assert kind.judge(case, reply).wrong == "", case.name


@pytest.mark.parametrize("name", ["summarise", "verify"])
def test_expected_sentence_numbers_exist(name: str) -> None:
    for case in cases(BY_KIND[name]):
        numbers, expected = range(1, len(case.facts["sentences"]) + 1), case.expected
        named = [*expected.get("must", expected.get("sentences", ())), *expected["may"]]

        assert len(set(named)) == len(named), case.name
        assert set(named) <= set(numbers), case.name


@pytest.mark.parametrize("name", ["draft", "refine"])
def test_expected_note_numbers_exist(name: str) -> None:
    for case in cases(BY_KIND[name]):
        count = len(case.facts["findings"]) if name == "draft" else 3
        assert set(case.expected["must"]) | set(case.expected["may"]) <= set(range(1, count + 1)), case.name


@pytest.mark.parametrize(("file", "keys"), [
    ("query", [{"search"}, {"search", "time", "terms"}]),
    ("summarise", [{"must", "may"}]),
    ("split", [{"claims", "avoid"}]),
    ("claims", [{"claims", "avoid"}]),
    ("verify", [{"verdict", "sentences", "may"}]),
    ("draft", [{"must", "may", "has", "avoid"}]),
    ("refine", [{"must", "may", "has", "avoid"}]),
])  # fmt: skip
def test_examination_cases_have_the_keys_that_their_grading_needs(file: str, keys: list[set[str]]) -> None:
    assert all(case.expected is None or set(case.expected) in keys for case in read_cases(file, NOW.date()))


def test_cases_have_dates_relative_to_the_given_day() -> None:
    for kind in CALL_KINDS:
        assert not [
            case.name for case in read_cases(kind.file, NOW.date()) if "{year" in str(case) or "{date" in str(case)
        ]


def test_examined_kinds_of_calls_depend_on_system_student_and_stages() -> None:
    seven, fast, web = (
        list_call_kinds(student=False, system=name) for name in ("wikichat", "wikichat-fast", "search-engine")
    )
    names = [kind.name for kind in list_call_kinds(student=False, system="wikichat", stages=("refine", "verify"))]

    assert {*seven, *fast, *web} == {*CALL_KINDS}
    assert {kind.name for kind in {*seven} & {*fast}} == {"query", "verify", "verdicts"}
    assert {*seven} - {*list_call_kinds(student=True, system="wikichat")} == {BY_KIND["feedback"], BY_KIND["refine"]}
    assert list_call_kinds(student=True, system="wikichat-fast") == fast
    assert names == ["verify", "verdicts", "feedback", "refine"]


def _texts(read: Any) -> list[str]:
    if isinstance(read, str):
        return [read]
    values = read.values() if isinstance(read, dict) else read if isinstance(read, list) else ()
    return [text for value in values for text in _texts(value)]
