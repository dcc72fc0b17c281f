"""A question as the queue keeps it, and back: pure. Its handle is a secret that is kept apart."""

from dataclasses import replace
from functools import cache

from pydantic import TypeAdapter

from bot.desk.types import Question
from storage.queue import TAKEN_BACK
from storage.types import NewQuestion, QueuedQuestion


def kept(question: Question) -> NewQuestion:
    """Return what is put into the queue."""
    asker, place = question.asker, question.place
    body = _adapter().dump_python(replace(question, handle=""), mode="json")
    return NewQuestion(
        key=question.key,
        channel=place.channel_id,
        conversation=question.conversation,
        user=f"{place.platform}:{asker.workspace}/{asker.user}",
        message=question.message,
        body=body,
        handle=question.handle,
    )


def question_of(row: QueuedQuestion) -> Question:
    """Return the question that was put in, in the words that it has now.

    Raises:
        ValueError: The row was not written by `kept`.
    """
    return replace(_adapter().validate_python(row.body), handle=row.handle)


def wish_of(row: QueuedQuestion) -> tuple[str, str] | None:
    """Return who wants a question's answer gone, and why; None where nobody does."""
    wish = row.body.get(TAKEN_BACK)
    return (str(wish.get("by", "")), str(wish.get("why", ""))) if wish else None


@cache
def _adapter() -> TypeAdapter[Question]:
    return TypeAdapter(Question)
