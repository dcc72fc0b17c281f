"""Measures of words against values by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.reports.word_measures import f1, knowledge_f1, rouge_l, score_words, split_words

REPLY = "The cat sat on a mat, quietly."
REFERENCE = "A cat quietly sat there."


def test_word_measures_by_hand():
    assert split_words(REPLY) == ("cat", "sat", "on", "mat", "quietly")
    # 3 of 5 and 3 of 4
    assert f1(REPLY, REFERENCE) == pytest.approx(2 * 3 / 9)
    assert knowledge_f1(REPLY, ("A cat quietly sat", "there.")) == pytest.approx(2 * 3 / 9)
    # cat sat, or cat quietly
    assert rouge_l(REPLY, REFERENCE) == pytest.approx(2 * 2 / 9)


def test_spaceless_scripts_count_characters():
    assert f1("猫は静か", "猫が静か") == pytest.approx(2 * 3 / 8)


@pytest.mark.parametrize("measure", [f1, rouge_l])
@pytest.mark.parametrize(("reply", "reference"), [("", ""), ("a", "the"), ("one", ""), ("", "one"), ("one", "two")])
def test_texts_without_common_words_score_zero(measure, reply, reference):
    assert measure(reply, reference) == 0


def test_repeated_words_count_by_the_smaller_number():
    assert f1("rain rain rain", "rain") == pytest.approx(2 / 4)


def test_scores_of_several_replies():
    scores = score_words([(REFERENCE, REFERENCE), ("We open at nine on Monday.", "We open at nine on Monday.")])
    assert scores is not None
    assert (scores.f1, scores.rouge_l) == (1.0, 1.0)
    assert (scores.bleu4, scores.chrf) == (pytest.approx(1.0), pytest.approx(1.0))
    assert scores.words == 5
    assert score_words([]) is None


def test_bleu_by_hand():
    # Six and five tokens; of its 1- to 4-grams 5/6, 3/5, 2/4, 1/3 are in the reference, which is shorter: no penalty.
    scores = score_words([("one two three four ten five", "one two three four five")])
    assert scores is not None
    assert scores.bleu4 == pytest.approx((5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25, abs=1e-4)


@given(st.text(max_size=40), st.text(max_size=40))
def test_measures_are_shares_and_symmetric(reply, reference):
    for measure in (f1, rouge_l):
        assert 0 <= measure(reply, reference) <= 1
        assert measure(reply, reference) == measure(reference, reply)
