"""The answer type of a question, and the sentences that contain one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.extraction.candidates import AnswerType, classify_question, has_answer_type, has_count, is_unpriced


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How many days of leave do I get?", AnswerType.NUMBER),
        ("What does a hotel in Oslo cost?", AnswerType.NUMBER),
        ("What is the referral bonus?", AnswerType.NUMBER),
        ("Wie viele Tage Urlaub habe ich?", AnswerType.NUMBER),
        ("公司有多少天年假？", AnswerType.NUMBER),
        ("When did the office open?", AnswerType.DATE),
        ("¿Cuándo abrió la oficina?", AnswerType.DATE),
        ("متى فتح المكتب؟", AnswerType.DATE),
        ("Who approves the budget?", AnswerType.PERSON),
        ("谁是经理？", AnswerType.PERSON),
        ("Where is the office?", AnswerType.PLACE),
        ("What is Old Margaret?", None),
        ("Whoever painted it was good", None),
    ],
)
def test_question_words_decide_the_answer_type(question: str, kind: AnswerType | None) -> None:
    assert classify_question(question) is kind


@pytest.mark.parametrize(
    ("sentence", "kind", "offered"),
    [
        ("You get 25 days.", AnswerType.NUMBER, True),
        ("You get twenty days.", AnswerType.NUMBER, True),
        ("You get the 3 days.", AnswerType.NUMBER, False),
        ("You get days.", AnswerType.NUMBER, False),
        ("It opened in May.", AnswerType.DATE, True),
        ("It opened early.", AnswerType.DATE, False),
        ("It is led by Ada Lovelace.", AnswerType.PERSON, True),
        ("It is led by Anna.", AnswerType.PERSON, False),
        ("It is shut from Monday, 1 June to August.", AnswerType.PLACE, False),
        ("It is led by a woman.", AnswerType.PERSON, False),
    ],
)
def test_answer_type_needs_a_value_that_the_question_lacks(sentence: str, kind: AnswerType, *, offered: bool) -> None:
    assert has_answer_type(sentence, kind, "What did Anna get for the 3 days?") is offered


@pytest.mark.parametrize(
    ("sentence", "question", "language", "counted"),
    [
        ("All have 38 days of leave.", "How many days of leave?", "en", True),
        ("There are 25 paid days.", "How many days?", "en", True),
        ("It takes 4 weeks.", "How many days?", "en", False),
        ("Some days are long.", "How many days?", "en", False),
        ("Es gibt 30 Tage.", "Wie viele Tage?", "de", True),
        ("公司提供15天年假", "公司有多少天年假？", "zh", True),
        ("It has 3 days.", "What is it?", "en", False),
    ],
)
def test_has_count_needs_a_number_of_the_counted_thing(
    sentence: str, question: str, language: str, *, counted: bool
) -> None:
    assert has_count(sentence, question, language) is counted


@pytest.mark.parametrize(
    ("sentence", "question", "unpriced"),
    [
        ("There are 40 places in the yard.", "How much is parking?", True),
        ("There are 40 places in the yard.", "How many places are there?", False),
        ("A place costs 3 euros a day.", "What is the parking fee?", False),
        ("You have 20 weeks at full salary.", "How much are we paid on parental leave?", False),
        ("The first 2 hours are free.", "What does parking cost?", False),
        ("Grade 8: 4% matched", "How much does the company pay into it?", False),
        ("Parking is not possible.", "What does parking cost?", False),
    ],
)
def test_sentence_with_other_numbers_is_unpriced(sentence: str, question: str, *, unpriced: bool) -> None:
    assert is_unpriced(sentence, question) is unpriced


@given(st.text(max_size=80), st.text(max_size=80), st.sampled_from(list(AnswerType)))
def test_any_text_can_be_classified(sentence: str, question: str, kind: AnswerType) -> None:
    assert classify_question(question) in {None, *AnswerType}
    assert isinstance(has_answer_type(sentence, kind, question), bool)
    assert isinstance(has_count(sentence, question, ""), bool)
