"""Which questions are not taken up."""

import pytest

from pipeline.errors import QuestionTooLong, QuestionWithoutWords
from pipeline.kit import Limits
from pipeline.stages.question_analysis import validate_question


def test_a_question_of_words_is_taken_up() -> None:
    validate_question("Why?", Limits())


def test_a_question_that_is_too_long_is_refused() -> None:
    with pytest.raises(QuestionTooLong, match="11 characters; at most 10"):
        validate_question("x" * 11, Limits(question_characters=10))


@pytest.mark.parametrize("text", ["", " \n", "?!", "🤷"])
def test_a_question_without_words_is_refused(text: str) -> None:
    with pytest.raises(QuestionWithoutWords):
        validate_question(text, Limits())
