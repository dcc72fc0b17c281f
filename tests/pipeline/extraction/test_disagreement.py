"""Which sentences repeat and which contradict each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.extraction.disagreement import contradicts, repeats, statement

DISAGREE = [
    ("The office opens at 9:00.", "The office opens at 8:30."),
    ("The office is closed on Friday.", "The office is closed on Monday."),
    ("Probation lasts three months.", "Probation lasts six months."),
    ("Full-time employees receive 25 days of annual leave.", "Everyone gets 28 days of annual leave per year."),
    ("The firm was founded in 1911.", "The firm was founded in 1913."),
    ("Dogs are allowed in the office.", "Dogs are not allowed in the office."),
    ("Du hast 25 Tage Urlaub.", "Du hast 30 Tage Urlaub im Jahr."),
    ("公司提供15天年假。", "公司提供20天年假。"),
]
AGREE = [
    ("The fee is 20 euros.", "The fee is 20 euros and is paid by 5 May."),
    ("The office opens at 9:00.", "The office closes at 18:00 after a long day of work by everyone."),
    ("Bergen opened in 2004.", "From 1 June to 31 August the Bergen office closes at 15:00."),
    ("The office is in Ghent.", "The canteen is in Bruges."),
    ("You get 25 days.", ""),
    ("", ""),
]


@pytest.mark.parametrize(("one", "other"), DISAGREE)
def test_other_values_for_the_same_thing_are_a_disagreement(one: str, other: str) -> None:
    """Numbers, times, days, years, and a "not"; whichever sentence comes first."""
    assert contradicts(statement(one), statement(other))
    assert contradicts(statement(other), statement(one))


@pytest.mark.parametrize(("one", "other"), AGREE)
def test_saying_more_or_something_else_is_none(one: str, other: str) -> None:
    """Values must be of one sort, and what they are values of must be the same."""
    assert not contradicts(statement(one), statement(other))


def test_the_same_words_are_a_repetition() -> None:
    """Case and punctuation aside; with another value they are none."""
    said = statement("You get 25 days of leave")

    assert repeats(said, statement("You get 25 days of leave."))
    assert not repeats(said, statement("You get 26 days of leave."))
    assert not repeats(said, statement("You do not get 25 days of leave."))


@given(st.text(max_size=100), st.text(max_size=100))
def test_nothing_both_repeats_and_contradicts(one: str, other: str) -> None:
    """And nothing contradicts itself."""
    first, second = statement(one), statement(other)

    assert not (repeats(first, second) and contradicts(first, second))
    assert not contradicts(first, first)
    assert contradicts(first, second) == contradicts(second, first)
