"""What the bot says in its own words: every occasion in every language."""

import json
import re
from importlib import resources

import pytest

from bot.types import Failure
from bot.views.catalog import find_apology, render_answer_text, render_failure, render_left_out, translate
from pipeline.errors import BudgetExceeded, ModelRefused, ModelUnavailable, UnreadableReply
from pipeline.types import Answer, Status, Turn

SUBJECTS = {
    file.name: json.loads(file.read_text(encoding="utf-8"))
    for file in (resources.files("bot.views") / "words").iterdir()
    if file.name.endswith(".json")
}
TABLE = SUBJECTS["answers.json"]
BLANKS = re.compile(r"{\w+}")


@pytest.mark.parametrize("language", TABLE)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_language_has_every_sentence(subject: str, language: str) -> None:
    table = SUBJECTS[subject]
    assert len(table) == 11
    assert table[language].keys() == table["en"].keys()
    assert all(table[language].values())
    for occasion, english in table["en"].items():
        assert sorted(BLANKS.findall(table[language][occasion])) == sorted(BLANKS.findall(english))


def test_message_ids_are_unique() -> None:
    occasions = [occasion for table in SUBJECTS.values() for occasion in table["en"]]
    assert len(occasions) == len(set(occasions))


@pytest.mark.parametrize("language", TABLE)
def test_withheld_statements_are_counted(language: str) -> None:
    text = render_left_out(2, 7, language)
    assert "2" in text
    assert "7" in text


@pytest.mark.parametrize("error", [BudgetExceeded, ModelRefused, ModelUnavailable, UnreadableReply])
def test_model_failures_are_reported_in_the_language_of_the_asker(error: type[BudgetExceeded]) -> None:
    assert find_apology(error.kind, "de") == TABLE["de"][error.kind]
    assert find_apology(error.kind, "tlh") == TABLE["en"][error.kind]
    assert find_apology("question_too_long", "de") == ""


def test_cancelled_turn_has_no_text() -> None:
    assert render_answer_text(Answer(Status.CANCELLED), Turn("user", "Why?", language="de")) == ""
    assert render_answer_text(Answer(Status.FAILED), Turn("user", "Why?", language="de")) == translate("failed", "de")


@pytest.mark.parametrize("language", ["en", "de", "tlh"])
def test_abstention_counts_withheld_statements(language: str) -> None:
    question = Turn("user", "Why?", language=language)
    unconfirmed = f"{translate('unconfirmed', language)}\n\n{render_left_out(2, 2, language)}"

    assert render_answer_text(Answer(Status.ABSTAINED), question) == translate("abstained", language)
    assert render_answer_text(Answer(Status.ABSTAINED, withheld=2), question) == unconfirmed


@pytest.mark.parametrize("language", TABLE)
def test_failure_text_says_what_to_do(language: str) -> None:
    again = translate("again_later", language)
    for kind in ("too_slow", "model_unavailable", "unreadable_reply", "internal"):
        assert render_failure(Status.FAILED, Failure(kind, "x", ""), language).endswith(again)
    assert translate("unrecorded", language).endswith(again)
    assert again not in render_failure(Status.REFUSED, Failure("model_refused", "x", ""), language)
    for occasion in ("acting_unavailable", "acting_unrecorded", "ask_failed", "channel_paused"):
        assert len(re.findall(r"[.。]", translate(occasion, language))) > 1
