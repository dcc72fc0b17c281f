"""Which questions are rejected, the language of a question, and small talk."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import QuestionTooLong, QuestionWithoutWords
from pipeline.kit import Limits
from pipeline.stages.question_analysis import SmallTalk, detect_asker_language, detect_small_talk, validate_question
from pipeline.types import Conversation, Turn
from storage.language.detection import _LANGUAGES, _ONLY_LANGUAGE, english_name, own_name


def test_short_question_is_accepted() -> None:
    validate_question("Why?", Limits())


def test_too_long_question_is_refused() -> None:
    with pytest.raises(QuestionTooLong, match="11 characters; at most 10"):
        validate_question("x" * 11, Limits(question_characters=10))


@pytest.mark.parametrize("text", ["", " \n", "?!", "🤷"])
def test_question_without_words_is_refused(text: str) -> None:
    with pytest.raises(QuestionWithoutWords):
        validate_question(text, Limits())


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


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("hi", SmallTalk.GREETING),
        ("Hi there!", SmallTalk.GREETING),
        ("<@U0123> hello 👋", SmallTalk.GREETING),
        ("Good morning, team.", SmallTalk.GREETING),
        ("How are you?", SmallTalk.GREETING),
        ("Grüß Gott", SmallTalk.GREETING),
        ("Buenos días", SmallTalk.GREETING),
        ("你好吗？", SmallTalk.GREETING),
        ("こんにちは", SmallTalk.GREETING),
        ("안녕하세요!", SmallTalk.GREETING),
        ("नमस्ते", SmallTalk.GREETING),
        ("السلام عليكم", SmallTalk.GREETING),
        ("thanks!", SmallTalk.THANKS),
        ("Great, thank you so much, that helps", SmallTalk.THANKS),
        ("Vielen Dank!", SmallTalk.THANKS),
        ("谢谢你！", SmallTalk.THANKS),
        ("hi, thanks, bye", SmallTalk.THANKS),
        ("bye bye", SmallTalk.FAREWELL),
        ("See you later!", SmallTalk.FAREWELL),
        ("Who are you?", SmallTalk.ABOUT),
        ("help", SmallTalk.ABOUT),
        ("Hi Footnote, what can you do?", SmallTalk.ABOUT),
        ("<@U0123> Was kannst du?", SmallTalk.ABOUT),
        ("你是谁？", SmallTalk.ABOUT),
        ("Hi, are you a robot?", SmallTalk.ABOUT),
        ("Bist du ein Mensch?", SmallTalk.ABOUT),
        ("¿Eres un robot?", SmallTalk.ABOUT),
        ("Es-tu un robot ?", SmallTalk.ABOUT),
        ("Sei umano?", SmallTalk.ABOUT),
        ("Você é um robô?", SmallTalk.ABOUT),
        ("Ben je een mens?", SmallTalk.ABOUT),
        ("Ты робот?", SmallTalk.ABOUT),
        ("你是机器人吗？", SmallTalk.ABOUT),
        ("あなたは人間ですか？", SmallTalk.ABOUT),
        ("هل أنت إنسان؟", SmallTalk.ABOUT),
        ("thanks for your help", SmallTalk.THANKS),
    ],
)
def test_small_talk_kind_is_detected(text: str, kind: SmallTalk) -> None:
    assert detect_small_talk(text) is kind


@pytest.mark.parametrize(
    "text",
    [
        "hi, how many days of leave do I get?",
        "Thanks, and what about part-timers?",
        "hello world",
        "Who said thanks?",
        "Who are you allowed to bring?",
        "What can you do about a broken badge?",
        "Who can help me with my laptop?",
        "help me with expenses",
        "Are you a robot vendor?",
        "你好，公司有几天年假？",
        "ok",
        "great",
        "",
        "🙂",
        "<@U0123>",
        "hihi",
        "moineau",
    ],
)
def test_text_with_other_words_is_not_small_talk(text: str) -> None:
    assert detect_small_talk(text) is None


@given(st.text(max_size=200))
def test_small_talk_detection_accepts_any_text(text: str) -> None:
    assert detect_small_talk(text) in {None, *SmallTalk}


def test_almost_matching_repetition_is_rejected_in_time() -> None:
    started = time.process_time()
    assert detect_small_talk("bye bye " * 2_000 + "x") is None
    assert time.process_time() - started < 1
