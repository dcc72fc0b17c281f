"""Asking, reporting and calibrating over a small corpus."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.answers.answer_scores import (
    ExamOutcome,
    ExamRun,
    abstention_curve,
    ask_exam,
    report_answers,
)
from evaluation.answers.question_sets import Exam, ExamQuestion
from ingest.refresh.corpus_refresh import refresh_corpus
from pipeline.types import Turn
from tests.fakes import PageSource
from tests.storage.stores import opened
from tools.training.answer_weights import JUDGED, SCORED, ExamExample, cross_validate, fit_regimes

ANIMALS = ("otter", "heron", "badger", "plover", "marten", "curlew", "weasel", "osprey", "beaver", "dunlin")
PAGES: Mapping[str, Mapping[str, str]] = {
    f"{animal}.md": {
        "title": animal.title(),
        "Care": f"The {animal} lives by the river. The {animal} eats {number} fish a day. It sleeps at noon.",
    }
    for number, animal in enumerate(ANIMALS, start=11)
}
QUESTIONS = tuple(
    ExamQuestion(f"How many fish does the {animal} eat?", ((f"{number} fish",),), frozenset({f"{animal}.md"}), animal)
    for number, animal in enumerate(ANIMALS, start=11)
)
EXAM = Exam("zoo", "zoo", PageSource(PAGES), QUESTIONS, removable=True)


async def asked(home: Path, exam: Exam = EXAM) -> tuple[list[ExamOutcome], list[ExamOutcome]]:
    with opened(home) as store:
        await refresh_corpus(exam.source, exam.corpus, store, progress=lambda _: None)
        return await ask_exam(exam, store), await ask_exam(exam, store, without_answers=True)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[ExamOutcome], list[ExamOutcome]]:
    return asyncio.run(asked(tmp_path_factory.mktemp("zoo")))


async def test_exam_outcomes_are_compared_with_the_answers(zoo: tuple[list[ExamOutcome], list[ExamOutcome]]) -> None:
    outcomes, _ = zoo

    assert all(outcome.right_first and outcome.right and outcome.verbatim for outcome in outcomes)
    assert [outcome.sentences[0].text for outcome in outcomes[:1]] == ["The otter eats 11 fish a day."]


async def test_questions_without_their_documents_get_no_right_answer_and_a_lower_chance(
    zoo: tuple[list[ExamOutcome], list[ExamOutcome]],
) -> None:
    outcomes, without = zoo

    for before, after in zip(outcomes, without, strict=True):
        keys = {hit.document.key for hit in after.considered.hits}
        assert not keys & after.posed.documents
        assert not after.right
        assert after.considered.chance < before.considered.chance


async def test_report_counts_answers_and_abstentions(zoo: tuple[list[ExamOutcome], list[ExamOutcome]]) -> None:
    report = report_answers(ExamRun(EXAM, *zoo))

    assert (report["answerable"], report["unanswerable"]) == (10, 10)
    assert report["if it never abstained"]["right in the first sentence"] == 1.0
    assert report["verbatim"] == 1.0
    assert report["both sides shown, in order"] is None
    assert report["caught at false abstentions of"]["0.05"] == 1.0


async def test_report_of_no_questions_is_empty() -> None:
    report = report_answers(ExamRun(replace(EXAM, questions=()), [], []))

    assert report["if it never abstained"]["right in the reply"] is None
    assert report["caught at false abstentions of"] == {}


async def test_conversations_carry_their_earlier_questions(tmp_path: Path) -> None:
    first = "How many fish does the heron eat?"
    posed = ExamQuestion(
        "And when does it sleep at noon?", (("noon",),), frozenset({"heron.md"}), "talk", earlier=(Turn("user", first),)
    )

    outcomes, _ = await asked(tmp_path, replace(EXAM, questions=(posed,)))

    assert outcomes[0].considered.ranked[0].candidate.hit.document.title == "Heron"


def test_abstention_curve_gives_right_abstentions_at_each_share_of_wrong_ones() -> None:
    known = [place / 10 for place in range(11)]

    assert abstention_curve(known, [0.0, 0.05, 0.5, 0.9])["0.10"] == 0.5


def examples(outcomes: list[ExamOutcome], without: list[ExamOutcome]) -> list[ExamExample]:
    return [
        *(ExamExample(outcome, answerable=True) for outcome in outcomes),
        *(ExamExample(outcome, answerable=False) for outcome in without),
    ]


async def test_calibration_weighs_the_features_of_a_regime(zoo: tuple[list[ExamOutcome], list[ExamOutcome]]) -> None:
    regimes = fit_regimes(examples(*zoo), abstain=0.1)

    assert regimes == fit_regimes(examples(*zoo), abstain=0.1)
    assert set(regimes) == {"trusted"}
    assert set(regimes["trusted"].score) == set(SCORED["trusted"])
    assert set(regimes["trusted"].answer) == set(JUDGED["trusted"])


async def test_calibration_abstains_from_the_requested_share(zoo: tuple[list[ExamOutcome], list[ExamOutcome]]) -> None:
    weights = fit_regimes(examples(*zoo), abstain=0.2)["trusted"]

    rescored = [example.rescore(weights) for example in examples(*zoo) if example.answerable]
    assert sum(example.outcome.considered.chance < 0.5 for example in rescored) == pytest.approx(2, abs=1)


async def test_crossvalidation_reports_by_corpus(zoo: tuple[list[ExamOutcome], list[ExamOutcome]]) -> None:
    """The figures are shares between 0 and 1, over questions that the weights were not fitted to."""
    report = cross_validate(examples(*zoo), abstain=0.1)

    assert set(report) == {"trusted"}
    assert set(report["trusted"]["zoo"]) == {
        "right first",
        "right in three",
        "falsely abstained",
        "unanswerable caught",
    }
    assert report["trusted"]["zoo"]["right first"] == 1.0
