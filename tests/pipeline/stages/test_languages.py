"""The names of languages, and the language of a question."""

import pytest

from pipeline.stages.question_analysis import detect_asker_language
from pipeline.types import Conversation, Turn
from storage.language.detection import _LANGUAGES, _ONLY_LANGUAGE, english_name, own_name


@pytest.mark.parametrize("code", sorted({*_ONLY_LANGUAGE.values(), *sum(_LANGUAGES.values(), ()), "ja", "zh"}))
def test_detectable_languages_have_names(code: str) -> None:
    assert english_name(code)
    assert own_name(code)


def test_unknown_language_has_no_name() -> None:
    assert (english_name(""), own_name("xx"), english_name("de"), own_name("de")) == ("", "", "German", "Deutsch")


def test_asker_language_follows_the_question_or_earlier_turns() -> None:
    before = (Turn("user", "Wann öffnet das Büro am Montag?"), Turn("bot", "The office opens at nine on Mondays."))

    assert detect_asker_language(Conversation((*before, Turn("user", "Linz?")))) == "de"
    assert detect_asker_language(Conversation((*before, Turn("user", "And when does it close?")))) == "en"
    assert detect_asker_language(Conversation((*before, Turn("user", "Linz?", language="fr")))) == "fr"
    assert detect_asker_language(Conversation((Turn("user", "Linz?"),))) == ""
