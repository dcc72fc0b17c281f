"""Which questions no system takes up: those that nobody wrote by hand, and those without a word."""

from pipeline.errors import QuestionTooLong, QuestionWithoutWords
from pipeline.kit import Limits
from storage.language.words import words


def refuse_unreadable(text: str, limits: Limits) -> None:
    """Return if a question can be taken up.

    Raises:
        QuestionTooLong: it has more characters than the limits allow.
        QuestionWithoutWords: nothing in it can be looked up.
    """
    if len(text) > limits.question_characters:
        raise QuestionTooLong(
            f"The question has {len(text):,} characters; at most {limits.question_characters:,} are read.",
            hint="Ask in a few sentences.",
        )
    if not words(text):
        raise QuestionWithoutWords("There are no words in the question.", hint="Ask in words.")
