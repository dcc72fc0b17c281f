"""Tests of language detection on written sentences and on real questions if the data set is present."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.language.detection import detect_language

DATA = Path(os.environ.get("FOOTNOTE_DATA", Path(__file__).parents[4] / "shared" / "data"))

QUESTIONS = [
    ("en", "Who wrote this book?"),
    ("en", "How long is parental leave?"),
    ("en", "IS THE OFFICE OPEN ON MONDAY?"),
    ("de", "Wer hat dieses Buch geschrieben?"),
    ("de", "Wie heißt die Hauptstadt der US-Regierung?"),
    ("fr", "Qui est le président ?"),
    ("es", "¿Quién escribió este libro?"),
    ("it", "Chi ha scritto il libro?"),
    ("pt", "Quem escreveu este livro?"),
    ("nl", "Wie heeft dit boek geschreven?"),
    ("sv", "Vem skrev den här boken?"),
    ("pl", "Kto napisał tę książkę?"),
    ("tr", "Bu kitabı kim yazdı?"),
    ("fi", "Kuka kirjoitti tämän kirjan?"),
    ("cs", "Kdo napsal tuto knihu?"),
    ("hu", "Ki írta ezt a könyvet?"),
    ("ro", "Cine a scris această carte?"),
    ("id", "Siapa yang menulis buku ini?"),
    ("vi", "Ai đã viết cuốn sách này?"),
    ("ru", "Кто написал эту книгу?"),
    ("uk", "Хто написав цю книгу?"),
    ("bg", "Кой е написал тази книга?"),
    ("el", "Ποιος έγραψε αυτό το βιβλίο;"),
    ("ar", "من كتب هذا الكتاب؟"),
    ("fa", "چه کسی این کتاب را نوشت؟"),
    ("ur", "یہ کتاب کس نے لکھی؟"),
    ("he", "מי כתב את הספר?"),
    ("hi", "यह किताब किसने लिखी?"),
    ("ko", "누가 이 책을 썼습니까?"),
    ("ja", "この本は誰が書きましたか？"),
    ("ja", "東京タワーの高さは？"),
    ("zh", "谁写了这本书？"),
    ("zh", "iPhone 和 Android 哪个更好？"),
    ("th", "ใครเขียนหนังสือเล่มนี้"),
]


@pytest.mark.parametrize(("language", "question"), QUESTIONS)
def test_language_of_short_questions_is_detected(language: str, question: str) -> None:
    assert detect_language(question) == language


@pytest.mark.parametrize("text", ["", "   ", "12345", "😀👍", "Michael Jackson", "La La Land", "PostgreSQL", "?!"])
def test_language_of_ambiguous_text_is_unknown(text: str) -> None:
    assert detect_language(text) == ""


@given(st.text())
def test_detected_language_is_a_two_letter_code_or_empty(text: str) -> None:
    code = detect_language(text)

    assert code == "" or (len(code) == 2 and code.isalpha() and code.islower())


@pytest.mark.parametrize("language", ["en", "de", "es", "zh", "ar"])
def test_languages_of_real_questions_are_detected(language: str) -> None:
    """At least 98 of 100 are detected."""
    path = DATA / "retrieval_qa" / "xquad" / f"xquad.{language}.json"
    if not path.exists():
        pytest.skip(f"{path.name} is not here: set FOOTNOTE_DATA to the folder of data sets")
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    questions = [
        qa["question"] for article in articles for paragraph in article["paragraphs"] for qa in paragraph["qas"]
    ]

    assert sum(detect_language(question) == language for question in questions) >= 0.98 * len(questions)
