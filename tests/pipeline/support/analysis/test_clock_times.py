"""Times of day: equal in any spelling, and different from other numbers."""

import pytest

from pipeline.support.rules import FindingOutcome, check_rules


def outcomes(sentence: str, passage: str) -> set[FindingOutcome]:
    return {rule.outcome for rule in check_rules(sentence, [passage])}


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("Tours start at 2 pm.", "Tours start at 14:00."),
        ("Tours start at 2pm.", "Tours start at 14:00."),
        ("Nights run between 10 pm and 7 am.", "Nights, 22:00 to 7:00, are paid."),
        ("It stops at 1:45 pm.", "It stops at 13:45."),
        ("It starts at 9:15.", "It starts at 9:15 pm."),
        ("It starts at half past seven.", "It starts at 7:30."),
        ("It starts at a quarter to two.", "It starts at 13:45."),
        ("It stops at noon.", "It stops at 12:00."),
        ("It ends at midnight.", "It ends at 24:00."),
        ("Open 7-9 pm.", "Open 19:00 to 21:00."),
        ("It opens at 12:00.", "It opens at 12, not before."),
        ("It opens at two o'clock.", "It opens at 2 pm."),
        ("Der Laden schließt um 14 Uhr.", "Der Laden schließt um 14:00."),
    ],
)
def test_time_of_day_is_found_in_other_spellings(sentence: str, passage: str) -> None:
    assert outcomes(sentence, passage) == {FindingOutcome.FOUND}


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("It opens at 12:00.", "It stands in Quay Street 12 and opens early."),
        ("It starts at 9:15 pm.", "It starts at 9:15."),
        ("It starts at 9 pm.", "It starts at 9:15."),
        ("It stops at noon.", "It stops at 17:45."),
        ("It opens at 12 am.", "It opens at 12:00."),
    ],
)
def test_different_time_or_number_is_not_found(sentence: str, passage: str) -> None:
    assert FindingOutcome.FOUND not in outcomes(sentence, passage)


def test_scores_and_halves_are_not_times() -> None:
    assert outcomes("They won 3:2 and ate half of a cake.", "They won 3:2 and ate half of a cake.") == {
        FindingOutcome.FOUND
    }
