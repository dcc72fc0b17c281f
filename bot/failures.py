"""What a turn's errors mean: how it ended, in a kind for programs, and in words for whoever asked. Pure."""

from textwrap import shorten

from bot.turns import Failure
from bot.wording import apology
from bot.words import say
from pipeline.errors import (
    BudgetExceeded,
    ModelRefused,
    NotAClaim,
    PipelineError,
    QuestionTooLong,
    QuestionWithoutWords,
)
from pipeline.types import Status
from storage.errors import StorageError

OURS = (TimeoutError, PipelineError, StorageError)
"""What a turn may end in without a fault of the code."""
_REFUSALS = (BudgetExceeded, ModelRefused, NotAClaim, QuestionTooLong, QuestionWithoutWords)
TOO_SLOW = "too_slow"


def failed(error: Exception, language: str, *, seconds: float, late: bool) -> tuple[Status, Failure]:
    """Say how a turn ended with one of `OURS`, in the asker's language where we have words for it.

    Args:
        error: What ended it.
        language: The asker's.
        seconds: How long a turn may take.
        late: Whether that time is over: an error of the budget is then the clock's.
    """
    if isinstance(error, TimeoutError) or (late and isinstance(error, BudgetExceeded)):
        hint = f"The limit is {seconds:g} seconds: raise [limits] seconds, or ask again."
        return Status.FAILED, Failure(TOO_SLOW, apology(TOO_SLOW, language), hint)
    if not isinstance(error, PipelineError | StorageError):
        return Status.FAILED, unexpected(error)
    status = Status.REFUSED if isinstance(error, _REFUSALS) else Status.FAILED
    sentence, detail = apology(error.kind, language), str(error)
    message = f"{sentence.rstrip('.。')}: {detail}" if sentence else detail
    return status, Failure(error.kind, message, error.hint)


def unexpected(error: Exception) -> Failure:
    """Say what a fault of the code is, shortly."""
    # A library's message may hold whole documents: its beginning says enough.
    return Failure("internal", shorten(f"{type(error).__name__}: {error}", 200, placeholder=" …"), "")


def said(status: Status, failure: Failure, language: str) -> str:
    """Return what is said in the place of an answer: our own words where we have some, without what is technical.

    Whoever asked can do nothing about what failed, but ask again or tell somebody who can.
    """
    sentence = apology(failure.kind, language)
    if status is Status.REFUSED:
        return sentence or failure.message
    return joined(sentence, say("again_later", language)) if sentence else say("failed", language)


def joined(*sentences: str) -> str:
    """Return sentences one after another, with a blank between them where their writing has one."""
    return "".join(sentence if sentence.endswith("。") else f"{sentence} " for sentence in sentences).strip()
