"""How the bot introduces itself."""

from datetime import UTC, datetime

import pytest

from bot.answering.introduction import Introduction, render_introduction, suggest_questions
from bot.views.catalog import list_languages, translate
from pipeline.stages.question_analysis import SmallTalk, detect_small_talk
from storage.database.document_versions import StoredVersion
from storage.language.detection import detect_language
from storage.types import CorpusInfo, Document, Passage

TEXT = "Whoever works full time has 27 days of leave in a year, and three more in Hamburg."


def version(title: str, *sections: str, language: str = "en", text: str = TEXT) -> StoredVersion:
    of = Document("handbook", f"{title}.md", title, language=language)
    cut = (Passage(f"{title} {one}", "handbook", of.key, one, text, place, "h") for place, one in enumerate(sections))
    return StoredVersion(1, of, tuple(cut))


@pytest.mark.parametrize("language", list_languages())
def test_introduction_question_is_recognised_in_every_language(language: str) -> None:
    question = translate("intro_question", language)

    assert detect_small_talk(question) is SmallTalk.ABOUT
    assert detect_language(question) == language


@pytest.mark.parametrize("question", [
    "What do you know?", "hi, help please", "which documents can you read", "Was kann ich dich fragen?",
    "何が読めますか",
])  # fmt: skip
def test_questions_about_the_bot_are_recognised(question: str) -> None:
    assert detect_small_talk(question) is SmallTalk.ABOUT


@pytest.mark.parametrize("question", ["What do you know about leave?", "How do I ask for leave?", "help desk hours"])
def test_other_questions_are_not_about_the_bot(question: str) -> None:
    assert detect_small_talk(question) is None


def test_suggested_questions_come_from_headings() -> None:
    listed = suggest_questions(
        [
            version("Urlaub", "Übertrag", language="de"),
            version("Annual leave", "Overview", "People › Carrying days over"),
            version("Pets", "Overview", "See also", "FAQ"),
            version("Short", "Something", text="Soon."),
            version("Expenses", "Receipts", "How do I get my money back?"),
        ],
        "en",
    )

    assert [one.text for one in listed] == [
        "How do I get my money back?",
        "What does “Annual leave” say about “Carrying days over”?",
        "What does “Urlaub” say about “Übertrag”?",
    ]
    assert listed[0].source.passage.section == "How do I get my money back?"


def test_introduction_lists_corpora_and_questions() -> None:
    questions = suggest_questions([version("Annual leave", "Carrying days over")], "en")
    corpora = (CorpusInfo("handbook", 1_204, 9_000, datetime(2026, 3, 1, tzinfo=UTC)), CorpusInfo("new", 3, 4, None))
    shown = render_introduction(Introduction(corpora, questions), "en", UTC)

    assert "• handbook (documents: 1,204, as of 2026-03-01)\n• new (documents: 3)" in shown
    assert shown.endswith("• What does “Annual leave” say about “Carrying days over”?")
    assert translate("intro_mention", "en") not in shown
    assert translate("intro_nothing", "en") in render_introduction(Introduction(), "en", UTC, mention=True)
