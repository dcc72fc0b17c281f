"""Tests of words, counts, terms and stop words."""

import threading
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from storage.language.words import (
    content_terms,
    content_words,
    count_words,
    fold_spelling,
    load_word_lists,
    stop_words,
    terms,
    words,
)

WORDS = [
    ("It's well-known, isn't it?", ["It's", "well", "known", "isn't", "it"]),
    ("The U.S. and C++, C# or .NET", ["The", "U.S.", "and", "C++", "C#", "or", "NET"]),
    ("snake_case, 3rd 5G h2o", ["snake", "case", "3rd", "5G", "h2o"]),
    ("3.5 1,000 2016-05-01 v1.2.3 10:30", ["3.5", "1,000", "2016-05-01", "v1.2.3", "10", "30"]),
    ("an e-mail", ["an", "e-mail"]),
    ("東京タワーは333メートル。", ["東京タワーは", "333", "メートル"]),
    ("iPhone手机", ["iPhone", "手机"]),
    ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
    ("السَّلامُ عليكم", ["السَّلامُ", "عليكم"]),
    ("ภาษาไทย", ["ภาษาไทย"]),
    ("… — !", []),
]
COUNTS = [
    ("", 0),
    ("one two  three\nfour", 4),
    ("well-known café — yes", 4),
    ("漢字", 1),
    ("漢字漢", 2),
    ("漢字。", 2),
    ("東京 Tower 東京", 3),
    ("한국어 위키백과", 2),
    ("ไทย", 2),
]
SAME = [
    ("café", "cafe", ""),
    ("Häuser", "Haus", "de"),
    ("Straße", "STRASSE", "de"),
    ("canción", "canciones", "es"),
    ("running", "runs", "en"),
    ("company's", "companies", ""),
    ("Tolkien\u2019s", "Tolkien", "en"),
    ("l'homme", "hommes", "fr"),
    ("dell'acqua", "acqua", "it"),
    ("U.S.", "US", ""),
    ("e-mails", "email", ""),
    ("1,000,000", "1000000", ""),
    ("1.000.000", "1000000", "de"),
    ("3,5", "3.5", "de"),
    ("3,5", "3.5", ""),
    ("٣٫٥", "3.5", "ar"),
    ("１２３", "123", ""),
    ("v1.2.3", "1.2.3", ""),
    ("ﬁle", "file", ""),
    ("Ångström", "angstrom", ""),
    ("الكتاب", "كتاب", "ar"),
    ("السَّلام", "السلام", "ar"),
    ("книги", "книга", "ru"),
    ("ёлка", "елка", "ru"),
    ("Server", "Servers", "ar"),
    ("ＡＢＣ", "abc", ""),
    ("ガンダム", "ｶﾞﾝﾀﾞﾑ", "ja"),
]
DIFFERENT = [("C", "C++", ""), ("C#", "C++", ""), ("3.5", "35", ""), ("1.5", "15", "de"), ("2016", "2017", "")]


@pytest.mark.parametrize(("text", "expected"), WORDS)
def test_text_is_split_into_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(("text", "expected"), COUNTS)
def test_words_are_counted_with_two_unspaced_characters_as_one(text: str, expected: int) -> None:
    """Two characters without spaces between words are one word, rounded up."""
    assert count_words(text) == expected


@pytest.mark.parametrize(("one", "other", "language"), SAME)
def test_forms_of_one_word_share_a_term(one: str, other: str, language: str) -> None:
    assert terms(one, language) == terms(other, language)


@pytest.mark.parametrize(("one", "other", "language"), DIFFERENT)
def test_different_words_have_different_terms(one: str, other: str, language: str) -> None:
    assert terms(one, language) != terms(other, language)


def test_unspaced_run_becomes_pairs_and_characters() -> None:
    assert terms("北京大", "zh") == ["北京", "京大", "北", "京", "大"]
    assert terms("猫", "zh") == ["猫"]


def test_thai_vowels_stay_with_their_consonant() -> None:
    assert terms("ที่ดี") == ["ที่ดี"]


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("What is the capital of France?", "", ["capital", "France"]),
        ("Who in the US wrote IT?", "en", ["US", "wrote", "IT"]),
        ("WHO IS IT?", "en", []),
        ("Wie heißt die Hauptstadt?", "de", ["Hauptstadt"]),
        ("Qu'est-ce qu'il a dit à l'homme ?", "fr", ["dit", "l'homme"]),
        ("¿Dónde está Madrid?", "es", ["Madrid"]),
        ("什么是量子计算机？", "zh", ["是量子计算机"]),
        ("猫是什么", "", ["猫是"]),
        ("ما هي عاصمة مصر؟", "ar", ["عاصمة", "مصر"]),
        ("who", "xx", ["who"]),
    ],
)
def test_content_words_exclude_stop_words(text: str, language: str, expected: list[str]) -> None:
    assert content_words(text, language) == expected


def test_content_terms_leave_out_particles() -> None:
    assert content_terms("猫是什么", "zh") == ["猫是", "猫"]
    assert content_terms("The companies of France", "en") == ["compani", "franc"]


@pytest.mark.parametrize(
    "language", ["en", "de", "fr", "es", "it", "pt", "nl", "ru", "ar", "zh", "ja", "sv", "pl", "tr"]
)
def test_stop_words_are_folded(language: str) -> None:
    listed = stop_words(language)

    assert len(listed) > 40
    assert listed == {fold_spelling(word) for word in listed}


def test_stop_words_default_to_english_and_are_empty_for_unlisted_languages() -> None:
    """Without a language English is used; a language without a list has no stop words."""
    assert stop_words("") == stop_words("en")
    assert stop_words("xx") == frozenset()


def test_word_lists_are_read_only() -> None:
    with pytest.raises(TypeError):
        load_word_lists("function_words")["en"] = frozenset()


TEXTS = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(["the", "U.S.", "l'", "'s", "3.5", "1,000", "C++", "-", "e-", *"漢字かな", "ไทย", *"اـﷺ ß"])
    ).map("".join),
)
LANGUAGES = st.sampled_from(["", "en", "de", "fr", "ar", "ru", "zh", "ja", "th", "xx"])


@given(TEXTS, LANGUAGES)
@example("\u02bc", "")
def test_terms_can_be_joined_by_spaces(text: str, language: str) -> None:
    index_terms = terms(text, language)

    assert " ".join(index_terms).split() == index_terms


@given(TEXTS, LANGUAGES)
def test_terms_of_a_text_are_those_of_its_words(text: str, language: str) -> None:
    alone = [term for word in words(unicodedata.normalize("NFKC", text)) for term in terms(word, language)]

    assert terms(text, language) == terms(text, language) == alone


@given(TEXTS, LANGUAGES)
def test_content_terms_are_terms(text: str, language: str) -> None:
    assert set(content_terms(text.lower(), language)) <= set(terms(text.lower(), language))


@given(TEXTS)
def test_folding_is_idempotent(text: str) -> None:
    assert fold_spelling(fold_spelling(text)) == fold_spelling(text)


@given(TEXTS, TEXTS)
def test_word_counts_of_two_texts_add_up_within_one(one: str, other: str) -> None:
    assert 0 <= count_words(one) + count_words(other) - count_words(f"{one}\n{other}") <= 1


def test_terms_are_the_same_in_concurrent_threads() -> None:
    text = " ".join(f"running{n}s houses{n} walked{n}" for n in range(3000))
    expected, results = terms(text), []
    threads = [threading.Thread(target=lambda: results.append(terms(text))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results == [expected] * 4
