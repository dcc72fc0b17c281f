"""A file of a team's own questions: making, editing and asking them, and the advice from the figures."""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bot.cli.entry_point import app
from evaluation import EvaluationError
from evaluation.answers.own.own_evaluation import (
    MADE_ARE_FOUND,
    OwnOutcome,
    advise,
    choose_variants,
    find_misplaced,
    is_right,
    render_outcomes,
    summarise,
)
from evaluation.answers.own.own_questions import QuestionMaking, own_questions_format
from evaluation.answers.own.question_file import OwnQuestion, read_questions, write_questions
from evaluation.workbench import open_home
from pipeline.errors import ModelUnavailable, UnreadableReply
from pipeline.llm.model import BudgetMeter, ModelCall, ModelReply, ReplyPiece
from storage.types import Document, Evidence, Passage
from tests.handbook import copy_home

PIER = OwnQuestion("How long is the pier?", ("90 metres",), "handbook", "pier.md", "Pier", "It is 90 metres long.")
HOW = OwnQuestion("How is it kept?", (), "handbook", "pier.md", "Pier")
NOBODY = OwnQuestion("Who painted it?", answerable=False)


def run(home: Path, *arguments: str) -> Result:
    (home / "footnote.toml").write_text(f'home = "{home}"\n', encoding="utf-8")
    return CliRunner().invoke(app, ["--config", str(home / "footnote.toml"), "evaluate", "mine", *arguments])


def test_questions_are_made_asked_and_keep_edits(handbook: Path, tmp_path: Path) -> None:
    home, file = copy_home(handbook, tmp_path / "home"), tmp_path / "mine" / "questions.json"
    made = run(home, str(file), "--count", "8", "--no-ask", "--seed", "3")
    assert made.exit_code == 0, made.output
    questions = read_questions(file)
    assert len(questions) == 8
    assert sum(not question.answerable for question in questions) == 2
    assert all(question.document and question.passage for question in questions if question.answerable)

    bad, *others = questions
    own = OwnQuestion("Who minds the bell?")
    write_questions(file, [OwnQuestion(bad.question, use=False), *others, own])
    assert run(home, str(file), "--count", "10", "--more", "--no-ask", "--seed", "3").exit_code == 0
    more = read_questions(file)
    assert more[:9] == (OwnQuestion(bad.question, use=False), *others, own)
    assert len({question.id for question in more}) == len(more) == 11

    write_questions(file, more[1:5])
    result = run(home, str(file), "--all", "--json")
    assert "not asked: augmenter" in result.stderr
    figures = json.loads(result.stdout)["systems"]
    assert [(figure["system"], figure["questions"], figure["failed"]) for figure in figures] == [("extractive", 4, 0)]
    assert figures[0]["right"]["value"] >= 0.5
    assert read_questions(file) == more[1:5]


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        ("{", "not JSON"),
        ("[]", "no list"),
        ('{"questions": [{}]}', "empty"),
        ('{"questions": [{"question": "Who?"}, {"question": " "}]}', "empty"),
        *(
            (f'{{"questions": [{{"question": "Who?", {field}}}]}}', message)
            for field, message in (
                ('"answerable": "no"', '"answerable" must be true or false'),
                ('"use": "false"', '"use" must be true or false'),
                ('"answer": 14', '"answer" must be a string or a list'),
                ('"answer": [""]', '"answer" must be a string or a list'),
                ('"document": null', '"document" must be a string'),
                ('"Anwser": ["x"]', 'no field "Anwser": "answer" is meant'),
                ('"answers": ["x"]', 'no field "answers": "answer" is meant'),
            )
        ),
    ],
)
def test_damaged_file_is_refused_unchanged(damaged: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "questions.json"
    file.write_text(damaged, encoding="utf-8")

    with pytest.raises(EvaluationError, match=f"cannot be read: .*{message}"):
        read_questions(file)
    assert file.read_text(encoding="utf-8") == damaged
    file.write_text('{"questions": [{"question": "Who?"}, {"question": "Who?", "use": 1}]}', encoding="utf-8")
    with pytest.raises(EvaluationError, match="question 2, cannot"):
        read_questions(file)
    assert read_questions(tmp_path / "none.json") == ()
    with pytest.raises(EvaluationError, match="is a folder"):
        read_questions(tmp_path)


def test_edits_in_the_question_file_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "questions.json"
    row = {"question": "How long?", "answer": "14 days", "note": ["ask Ann"], "use": False}
    file.write_text(json.dumps({"owner": "Ann", "questions": [row]}), encoding="utf-8")
    (question,) = read_questions(file)
    write_questions(file, [question, PIER])

    assert question.answer == ("14 days",)
    written = json.loads(file.read_text("utf-8"))
    assert (written["owner"], written["questions"][0]["note"], written["questions"][0]["answer"]) == (
        "Ann",
        ["ask Ann"],
        ["14 days"],
    )
    assert read_questions(file) == (question, PIER)


@pytest.mark.parametrize(
    ("question", "status", "text", "cited", "right"),
    [
        (PIER, "answered", "It has **90 metres**.", [], True),
        (PIER, "answered", "It has 190 metres.", [("handbook", "pier.md", "Pier")], False),
        (PIER, "abstained", "90 metres", [], False),
        (NOBODY, "abstained", "", [], True),
        (NOBODY, "answered", "Someone.", [], False),
        (HOW, "answered", "So.", [("handbook", "pier.md", "Pier")], True),
        (HOW, "answered", "So.", [("handbook", "pier.md", "Quay")], False),
        (replace(HOW, section=""), "answered", "So.", [("handbook", "pier.md", "Quay")], True),
        (replace(HOW, corpus=""), "answered", "So.", [("other", "pier.md", "Pier")], True),
        (HOW, "answered", "So.", [("other", "pier.md", "Pier")], False),
    ],
)
def test_reply_is_right_if_it_has_the_answers_strings_or_cites_its_passage(
    question: OwnQuestion, status: str, text: str, cited: list[tuple[str, str, str]], right: object
) -> None:
    assert is_right(question, status, text, cited) is right


def outcome(question: OwnQuestion, status: str, *, right: bool) -> OwnOutcome:
    return OwnOutcome(question, status, "It is long.", right, 0.5, 2.0, 100, 0.01)


def test_figures_lead_to_a_recommended_setting() -> None:
    good = [*[outcome(PIER, "answered", right=True)] * 14, outcome(NOBODY, "abstained", right=True)]
    poor = [*[outcome(PIER, "answered", right=False)] * 12, *[outcome(PIER, "abstained", right=False)] * 2]
    poor.append(outcome(NOBODY, "answered", right=False))
    outcomes = {"extractive": poor, "augmenter:policy=always,examples=3": good}

    figures = summarise(outcomes, 1)
    named = ("right", "wrong", "abstained_wrongly", "abstained_rightly")
    assert [[figure[name]["value"] for name in named] for figure in figures] == [
        [0.0, pytest.approx(12 / 14), pytest.approx(2 / 14), 0.0],
        [1.0, 0.0, 0.0, 1.0],
    ]
    advice = advise(outcomes, 1)
    assert 'system = "augmenter"\n    [limits]\n    policy = "always"\n    examples = 3' in advice
    assert "that may be chance" in advise({"extractive": good, "wikichat": good}, 1)
    assert advise({"extractive": good}, 1) == ""
    shown = render_outcomes(outcomes, 1, wrong=True)
    assert "extractive: How long is the pier?\n    expected: 90 metres\n    answered: It is long." in shown
    assert "expected: nothing answers it" in shown
    assert MADE_ARE_FOUND not in shown
    made = {"extractive": [outcome(replace(PIER, kind="rule: count"), "answered", right=True)]}
    assert MADE_ARE_FOUND in render_outcomes(made, 1, wrong=False)


SENTENCE = Evidence(
    "It is 90 metres long.",
    Passage("p", "handbook", "pier.md", "Pier", "It is 90 metres long.", 0, "h"),
    Document("handbook", "pier.md", "Pier"),
    (0, 21),
)


@pytest.mark.parametrize(
    ("reply", "made"),
    [
        ("Question: How far does the pier reach? | 90 metres | 1", [("How far does the pier reach?", ("90 metres",))]),
        ("Question: How long is it? | 95 metres | 1\nUnanswered: Who built the pier?", [("Who built the pier?", ())]),
        ("None.", []),
    ],
)
def test_model_questions_need_an_answer_in_the_passage(reply: str, made: list[Any]) -> None:
    questions = own_questions_format([SENTENCE]).from_text(reply)

    assert [(question.question, question.answer) for question in questions] == made
    assert [question.answerable for question in questions] == [bool(answer) for _, answer in made]


class Examiner:
    """A model that asks about the first words of each passage, and adds a question without an answer."""

    def __init__(self, patience: int = 1000) -> None:
        self.calls, self.patience = 0, patience

    def structured(self, _: str) -> bool:
        return False

    def busy(self) -> bool:
        return False

    async def complete(self, call: ModelCall, _: BudgetMeter) -> ModelReply:
        self.calls += 1
        if self.calls > self.patience:
            raise ModelUnavailable("The server went away.")
        (sentence,) = re.findall(r"(?m)^1: (.+?)[.]?$", call.messages[-1].text)
        lines = (
            f"Question: What is known of {sentence}? | {sentence} | 1",
            f"Question: What is said of {sentence}? | nothing of the kind | 1",
            f"Unanswered: Which zebra number {self.calls} painted it?",
        )
        return ModelReply("\n".join(lines), "examiner")

    def stream(self, call: ModelCall, spent: BudgetMeter) -> AsyncIterator[ReplyPiece | ModelReply]:
        raise NotImplementedError


async def test_model_makes_questions_and_few_near_misses(handbook: Path, tmp_path: Path) -> None:
    progress = list[tuple[int, int]]()
    async with open_home(copy_home(handbook, tmp_path)) as home:
        making = QuestionMaking(
            home, ["handbook"], 1, Examiner(), datetime(2026, 1, 1, tzinfo=UTC), lambda *at: progress.append(at)
        )
        questions = await making.make(20)
        assert [variant.label for variant in choose_variants(home, (), every=True)] == ["extractive"]
        misplaced = [
            replace(PIER, corpus="handbok"),
            PIER,
            replace(PIER, use=False),
            OwnQuestion("Who minds the bell?"),
        ]
        assert [line.rpartition(": ")[2] for line in await find_misplaced(home, misplaced, ["handbook"])] == [
            "no corpus “handbok” is asked",
            "there is no document “pier.md”",
        ]
        with pytest.raises(EvaluationError, match="needs a model"):
            choose_variants(home, ["wikichat"], every=True)

    kinds = Counter(question.kind for question in questions)
    assert kinds == {"model": 16, "model: near miss": 2, "absent": 2}
    assert all(
        question.document and question.answer[0] in question.passage for question in questions if question.answerable
    )
    assert progress[-1] == (18, 18)


@pytest.mark.parametrize(("patience", "least"), [(9, 1), (0, 0)])
async def test_questions_made_before_an_outage_are_kept(
    handbook: Path, tmp_path: Path, patience: int, least: int
) -> None:
    async with open_home(copy_home(handbook, tmp_path)) as home:
        making = QuestionMaking(home, ["handbook"], 1, Examiner(patience), datetime(2026, 1, 1, tzinfo=UTC))
        if not least:
            with pytest.raises(ModelUnavailable):
                await making.make(20)
            return
        questions = await making.make(20)
    assert least <= sum(question.kind == "model" for question in questions) <= patience


def test_reply_without_the_format_is_unreadable() -> None:
    with pytest.raises(UnreadableReply):
        own_questions_format([SENTENCE]).from_text("Here are some questions you might ask.")
    rows = {"questions": [{"question": "How long?", "answer": "90 metres", "sentence": 1}], "unanswered": ""}
    assert [question.question for question in own_questions_format([SENTENCE]).from_json(rows)] == ["How long?"]
