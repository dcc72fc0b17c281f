"""The questions that a newcomer is shown are answered rightly, without a model."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.answers.answer_scores import ask_exam, open_exam
from evaluation.answers.question_sets import ExamQuestion, read_exam
from evaluation.workbench import EXAMPLE_QUESTIONS, open_reranker
from pipeline.extraction.answer_ranking import ANSWER_THRESHOLD
from tests.handbook import copy_home

ROOT = Path(__file__).parents[2]
PLACES = [
    *(ROOT / name for name in ("README.md", "compose.yaml", "examples/demo.py", "bot/cli/entry_point.py")),
    *(ROOT / "docs" / name for name in ("slack.md", "discord.md", "adding-a-system.md")),
    *(ROOT / "bot" / "views" / "words" / name for name in ("slack_asking.json", "discord_asking.json")),
]
ANSWERS = {
    "How many days of leave do I get?": "27 days",
    "May I bring my dog to the office?": "Cobh and in Bergen",
    "What is the meal allowance on business trips?": "45 euros",
}


def find_shown_questions(path: Path) -> Iterator[str]:
    """Yield what a page asks in English of the handbook: questions in quotes, and those that end a line of chat."""
    for match in re.finditer(r"(?:How|What|May|Who|When|Where) [\w ,']+\?", path.read_text(encoding="utf-8")):
        if re.search(r"leave|dog|allowance", match[0]):
            yield match[0]


@pytest.mark.parametrize("path", PLACES, ids=lambda path: path.name)
def test_documented_questions_have_known_answers(path: Path) -> None:
    found = set(find_shown_questions(path))

    assert found
    assert found <= ANSWERS.keys()


async def test_documented_questions_are_answered(handbook: Path, tmp_path: Path) -> None:
    asked = tuple(ExamQuestion(text, ((answer,),), frozenset(), text) for text, answer in ANSWERS.items())
    exam = replace(read_exam(EXAMPLE_QUESTIONS), questions=asked)
    async with open_exam(exam, copy_home(handbook, tmp_path)) as store:
        outcomes = await ask_exam(exam, store, open_reranker())

    assert [one.posed.text for one in outcomes if not one.right] == []
    assert [outcome.posed.text for outcome in outcomes if outcome.considered.chance < ANSWER_THRESHOLD] == []
