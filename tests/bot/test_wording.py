"""What the bot says in its own words: every occasion in every language."""

import json
from importlib import resources

import pytest

from bot.wording import apology, left_out, say, wording
from pipeline.errors import BudgetExceeded, ModelRefused, ModelUnavailable, UnreadableReply
from pipeline.types import Answer, Status, Turn

TABLE = json.loads(resources.files("bot").joinpath("wording.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", TABLE)
def test_every_language_has_a_sentence_for_every_occasion(language: str) -> None:
    """One of its own, with the numbers where there are some."""
    assert len(TABLE) == 11
    assert TABLE[language].keys() == TABLE["en"].keys()
    assert all(TABLE[language].values())
    assert language == "en" or not set(TABLE[language].values()) & set(TABLE["en"].values())
    told = left_out(2, 7, language)
    assert "2" in told
    assert "7" in told


@pytest.mark.parametrize("error", [BudgetExceeded, ModelRefused, ModelUnavailable, UnreadableReply])
def test_what_a_model_can_do_wrong_is_said_in_the_asker_s_language(error: type[BudgetExceeded]) -> None:
    """In English where the language has no words of ours; what is no fault of a model's has its own message."""
    assert apology(error.kind, "de") == TABLE["de"][error.kind]
    assert apology(error.kind, "tlh") == TABLE["en"][error.kind]
    assert apology("question_too_long", "de") == ""


def test_a_cancelled_turn_says_nothing() -> None:
    """Nobody listens any more; a failed one without a reason says that it failed."""
    assert wording(Answer(Status.CANCELLED), Turn("user", "Why?", language="de")) == ""
    assert wording(Answer(Status.FAILED), Turn("user", "Why?", language="de")) == say("failed", "de")


@pytest.mark.parametrize("language", ["en", "de", "tlh"])
def test_an_abstention_says_what_was_withheld(language: str) -> None:
    """How many statements, in the asker's language; nothing where there were none."""
    question = Turn("user", "Why?", language=language)
    nothing = say("abstained", language)

    assert wording(Answer(Status.ABSTAINED), question) == nothing
    assert wording(Answer(Status.ABSTAINED, withheld=2), question) == f"{nothing}\n\n{left_out(2, 2, language)}"
