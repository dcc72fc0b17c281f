"""Repeated and contradictory sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.extraction.quote_selection import is_contradiction, is_repetition, parse_statement

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
def test_different_values_for_the_same_thing_contradict(one: str, other: str) -> None:
    assert is_contradiction(parse_statement(one), parse_statement(other))
    assert is_contradiction(parse_statement(other), parse_statement(one))


@pytest.mark.parametrize(("one", "other"), AGREE)
def test_additional_or_unrelated_statements_do_not_contradict(one: str, other: str) -> None:
    assert not is_contradiction(parse_statement(one), parse_statement(other))


def test_same_words_and_values_are_a_repetition() -> None:
    statement = parse_statement("You get 25 days of leave")

    assert is_repetition(statement, parse_statement("You get 25 days of leave."))
    assert not is_repetition(statement, parse_statement("You get 26 days of leave."))
    assert not is_repetition(statement, parse_statement("You do not get 25 days of leave."))


@given(st.text(max_size=100), st.text(max_size=100))
def test_no_statement_both_repeats_and_contradicts(one: str, other: str) -> None:
    first, second = parse_statement(one), parse_statement(other)

    assert not (is_repetition(first, second) and is_contradiction(first, second))
    assert not is_contradiction(first, first)
    assert is_contradiction(first, second) == is_contradiction(second, first)
