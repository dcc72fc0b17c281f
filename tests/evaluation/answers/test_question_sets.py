"""Reading questions from files, and the rules for a right quotation."""

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.answers.question_sets import ExamQuestion, UnreadableSet, has_all_strings, read_exam
from pipeline.types import CitedSentence
from storage.types import Evidence
from tests.pipeline.world import hit


def written(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def sentence(text: str, key: str = "leave.md") -> CitedSentence:
    found = hit(text, key=key)
    return CitedSentence(text, (Evidence(text, found.passage, found.document, (0, len(text))),))


def test_handbook_file_becomes_an_exam(tmp_path: Path) -> None:
    questions = [
        {"question": "How many days?", "answer": ["25", "days"], "document": "leave.md"},
        {"question": "How tall is it?", "answerable": False},
    ]
    path = written(tmp_path / "mine.json", {"corpus": "mine", "folder": str(tmp_path), "questions": questions})

    exam = read_exam(path)

    assert (exam.name, exam.corpus, exam.removable) == ("mine", "mine", False)
    assert [(question.text, question.answers, question.documents) for question in exam.questions] == [
        ("How many days?", (("25", "days"),), frozenset({"leave.md"})),
        ("How tall is it?", (), frozenset()),
    ]


def test_conversation_becomes_a_question_a_turn(tmp_path: Path) -> None:
    turns = [{"question": "When?", "answer": ["1911"]}, {"question": "And where?", "answer": ["Cobh"]}]
    path = written(tmp_path / "c.json", {"corpus": "c", "folder": str(tmp_path), "conversations": [{"turns": turns}]})

    exam = read_exam(path)

    assert [[turn.text for turn in question.talk.turns] for question in exam.questions] == [
        ["When?"],
        ["When?", "And where?"],
    ]


def test_question_set_includes_its_texts(tmp_path: Path) -> None:
    answers = [{"text": "25 days"}, {"text": "twenty-five"}]
    row = {"id": "q", "question": "How many days?", "answers": answers}
    article = {"title": "Leave", "paragraphs": [{"context": "Everyone has 25 days.", "qas": [row]}]}

    exam = read_exam(written(tmp_path / "xquad.en.json", {"data": [article]}))

    (question,) = exam.questions
    assert exam.removable
    assert (question.answers, question.group) == ((("25 days",), ("twenty-five",)), "Leave")
    assert len(question.documents) == 1


@pytest.mark.parametrize(
    "content", ["no json", '{"folder": "."}', '{"folder": 7, "corpus": "x", "questions": []}', "[]"]
)
def test_unknown_file_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "odd.json"
    path.write_text(content)

    with pytest.raises(UnreadableSet) as error:
        read_exam(path)

    assert "\n" not in str(error.value)
    assert error.value.hint


def test_missing_documents_are_refused_with_a_hint(tmp_path: Path) -> None:
    path = written(tmp_path / "m.json", {"corpus": "m", "folder": str(tmp_path / "gone"), "questions": []})

    with pytest.raises(UnreadableSet) as error:
        read_exam(path)

    assert "FOOTNOTE_DATA" in error.value.hint


@pytest.mark.parametrize(
    ("strings", "text", "right"),
    [
        (["25 days"], "You get **25  days** of leave.", True),
        (["25 DAYS"], "You get 25\ndays.", True),
        (["50 euros"], "It costs 150 euros.", False),
        (["£2,500"], "Up to £2,500.", True),
        (["25 days", "leave"], "25 days of holiday", False),
        ([], "anything", True),
    ],
)
def test_strings_match_whole_words(strings: list[str], text: str, *, right: bool) -> None:
    assert has_all_strings(strings, text) is right


def test_right_sentence_in_the_wrong_document_is_wrong() -> None:
    posed = ExamQuestion("How many days?", (("25 days",),), frozenset({"leave.md"}), "g")

    assert posed.answered_by(sentence("You get 25 days."))
    assert not posed.answered_by(sentence("You get 25 days.", "prison.md"))
    assert not posed.answered_by(sentence("You get 26 days."))


def test_disagreement_must_open_the_reply_in_order() -> None:
    posed = ExamQuestion("How much?", (("45",),), frozenset(), "g", disagreement=("45", "38"))
    new, old = sentence("It is 45."), sentence("It is 38.")

    assert posed.disagreement_shown([new, old])
    assert not posed.disagreement_shown([old, new])
    assert not posed.disagreement_shown([new])
