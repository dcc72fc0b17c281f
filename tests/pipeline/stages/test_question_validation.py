"""Which questions are rejected."""

import pytest

from pipeline.errors import QuestionTooLong, QuestionWithoutWords
from pipeline.kit import Limits
from pipeline.stages.question_analysis import validate_question


def test_short_question_is_accepted() -> None:
    validate_question("Why?", Limits())


def test_too_long_question_is_refused() -> None:
    with pytest.raises(QuestionTooLong, match="11 characters; at most 10"):
        validate_question("x" * 11, Limits(question_characters=10))


@pytest.mark.parametrize("text", ["", " \n", "?!", "🤷"])
def test_question_without_words_is_refused(text: str) -> None:
    with pytest.raises(QuestionWithoutWords):
        validate_question(text, Limits())
