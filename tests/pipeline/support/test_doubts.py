"""Sentences that hold by rule and score and yet may not say what their passage says. The houses are invented."""

import pytest

from pipeline.support.rules import FindingOutcome, check_rules

HOUSE = (
    "From 3 May 2027 the breakfast allowance on study trips is 12 euros a day. A tent may cost up to 90 euros a night. "
    "Members pay a deposit or bring a sponsor. Dogs may not enter the kitchen. The gate is open until 2 pm. "
    "The night guard checks the cellar twice each shift. Most of the guests come from Vik. "
    "You may take the rowing boat when the wind is below force 4. The miller fed the fox in the yard. "
    "The prize is awarded every other year. Keys come from the house manager."
)


def doubts(sentence: str, passage: str = HOUSE, asked: tuple[str, ...] = ()) -> list[str]:
    told = check_rules(sentence, [passage], asked=asked)
    return [one.reason for one in told if one.outcome is FindingOutcome.CHANGED]


@pytest.mark.parametrize(
    "sentence",
    [
        "Until 3 May 2027 the breakfast allowance on study trips is 12 euros a day.",
        "A tent must cost up to 90 euros a night.",
        "A tent may cost at least 90 euros a night.",
        "A tent may cost up to 90 euros a month.",
        "The breakfast allowance is 12 euros a day for cooks only.",
        "The breakfast allowance is 12 euros a day, tax included.",
        "The penalty on study trips is 12 euros a day.",
        "The breakfast allowance on study trips is 12 euros a day because rooms are dear.",
        "Members pay a deposit plus bring a sponsor.",
        "No, dogs may not enter the kitchen.",
        "The gate is open from 2 pm.",
        "The night guard checks the cellar once each shift.",
        "All of the guests come from Vik.",
        "You may take the rowing boat.",
        "The fox fed the miller in the yard.",
        "The prize is awarded every year.",
        "Keys come from the house manager and the treasurer.",
        "The gate is open until 2 pm, even on holidays.",
    ],
)
def test_what_was_changed_is_doubtful(sentence: str) -> None:
    assert doubts(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "The breakfast allowance on study trips is 12 euros a day.",
        "A tent may cost at most 90 euros a night.",
        "A tent can cost up to €90 a night.",
        "Members either pay a deposit or bring a sponsor.",
        "The gate is open till 2 pm.",
        "The night guard checks the cellar two times each shift.",
        "Most guests come from Vik.",
        "Every two years, the prize is awarded.",
        "When the wind is below force 4, you may take the rowing boat.",
        "The fox was fed by the miller in the yard.",
    ],
)
def test_what_says_the_same_is_not(sentence: str) -> None:
    assert not doubts(sentence)


def test_a_limit_is_only_rounded() -> None:
    """A number said more roughly, as the passage bears it out, is no other limit."""
    assert not doubts("The firm sold more than 1,100 lamps.", "The firm sold 1,187 lamps.")


def test_what_was_asked_about_may_end_a_sentence() -> None:
    """The asker's own words are no addition of the writer's."""
    sentence = "The gate is open until 2 pm for couriers."

    assert doubts(sentence)
    assert not doubts(sentence, asked=("Until when is the gate open for couriers?",))
