"""Measures of words, compared with values by hand."""

from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.reports.word_measures import NameIndex, bert_score, bleu4, drop_marks, f1, rouge_l, split_words

REPLY = "The cat sat on a mat, quietly."
REFERENCE = "A cat quietly sat there."


def test_f1_equals_the_value_computed_by_hand():
    assert split_words(REPLY) == ("cat", "sat", "on", "mat", "quietly")
    assert f1(REPLY, REFERENCE) == pytest.approx(2 * 3 / 9)  # 3 of 5 and 3 of 4
    assert f1("rain rain rain", "rain") == pytest.approx(2 / 4)  # repeated words count by the smaller number


def test_rouge_l_equals_the_value_computed_by_hand():
    assert rouge_l(REPLY, REFERENCE) == pytest.approx(2 * 2 / 12)  # "cat sat", of 7 and 5 words
    assert rouge_l("one two three", "one four three") == pytest.approx(2 * 2 / 6)  # words between do not matter
    assert rouge_l("", REFERENCE) == 0


def test_longest_names_are_found_in_order():
    index = NameIndex(["Old Pier", "The Old Pier Inn", "Brasker", "It"])

    assert index.find("It is in Brasker, by the old pier; the Old Pier Inn's roof.") == [
        "Brasker",
        "Old Pier",
        "The Old Pier Inn",
    ]
    assert NameIndex([]).find("Brasker") == []


@pytest.mark.skipif(bool(find_spec("bert_score")), reason="it is installed")
def test_bert_score_without_its_package_is_none():
    assert bert_score([(REPLY, REFERENCE)]) is None


def test_characters_of_spaceless_scripts_count_as_words():
    assert f1("猫は静か", "猫が静か") == pytest.approx(2 * 3 / 8)


@pytest.mark.parametrize(("reply", "reference"), [("", ""), ("a", "the"), ("one", ""), ("", "one"), ("one", "two")])
def test_f1_without_common_words_is_zero(reply, reference):
    assert f1(reply, reference) == 0


def test_citation_marks_are_no_words():
    assert drop_marks("Nine boats [1][12]. Two of 1999 [2, 3].") == "Nine boats. Two of 1999."
    assert drop_marks("See [2024] and [a].") == "See [2024] and [a]."


def test_bleu_equals_the_value_computed_by_hand():
    # Six and five tokens; of its 1- to 4-grams 5/6, 3/5, 2/4, 1/3 are in the reference, which is shorter: no penalty.
    score = bleu4([("one two three four ten five", "one two three four five")])
    assert score == pytest.approx((5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25, abs=1e-4)
    assert bleu4([(REFERENCE, REFERENCE), (REPLY, REPLY)]) == pytest.approx(1)


@given(st.text(max_size=40), st.text(max_size=40))
def test_f1_is_symmetric_and_between_0_and_1(reply, reference):
    assert 0 <= f1(reply, reference) <= 1
    assert f1(reply, reference) == f1(reference, reply)
