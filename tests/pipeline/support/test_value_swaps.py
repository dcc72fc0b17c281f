"""Values of similar clauses, and of a rule and its exception, must not be exchanged."""

import pytest

from pipeline.support.rules import FindingOutcome, check_rules

VIK = (
    "Vik gained a harbour in 1904, became a market town under the abbey in 1918 and a parish on 17 June 1944. "
    "The ketch weighs 12 tonnes, the old barge weighs 30 tonnes, and the cutter 9 tonnes."
)


@pytest.mark.parametrize(
    ("sentence", "wrong"),
    [
        ("Vik became a parish in 1918.", True),
        ("Vik became a parish in June 1944.", False),
        ("In 1918 Vik became a market town.", False),
        ("Vik gained its harbour in 1904.", False),
        ("The old barge weighs 12 tonnes.", True),
        ("The old barge weighs 30 tonnes.", False),
        ("The ketch of 12 tonnes is lighter than the old barge.", False),
    ],
)
def test_passage_is_quoted_instead_of_a_value_of_another_clause(sentence: str, *, wrong: bool) -> None:
    assert any(finding.grave for finding in check_rules(sentence, [VIK])) is wrong


BERTH = "Within any rolling season, a boat can have up to two weeks (10 days) of free berth."


@pytest.mark.parametrize(
    ("sentence", "changed"),
    [
        ("A boat has as many as ten days of free berth in any rolling season.", False),
        ("A boat has as many as two weeks of free berth in any rolling season.", False),
        ("A boat has more than ten days of free berth in any rolling season.", True),
    ],
)
def test_number_in_brackets_restates_the_one_before_it(sentence: str, *, changed: bool) -> None:
    assert any(finding.instead for finding in check_rules(sentence, [BERTH])) is changed


def test_capitalised_verb_is_not_another_name() -> None:
    rules = check_rules("In Lundbook, the limit of an order has to be set to 20.", ["Set the limit of an order to 20"])
    assert not any(finding.instead for finding in rules)


ROOMS = (
    "A room costs 80 crowns a night, except in Lundey and Vik, where it costs 120 crowns. Supper is served at eight. "
    "Lamps are cleaned every three weeks, except the great one, which is cleaned every 2 days."
)


def contradicted(sentence: str, passage: str = ROOMS, context: tuple[str, ...] = ()) -> list[str]:
    """Return the reasons of all contradictions."""
    findings = check_rules(sentence, [passage], context=context)
    return [rule.reason for rule in findings if rule.outcome is FindingOutcome.CONTRADICTED]


@pytest.mark.parametrize(
    "sentence",
    [
        "Rooms cost 80 crowns a night.",
        "In Lundey and Vik a room costs 120 crowns a night.",
        "Rooms cost 80 crowns, or 120 crowns in Vik.",
        "Rooms cost between 80 and 120 crowns a night, depending on the island.",
        "In Vik rooms cost more than the usual 80 crowns.",
        "The great lamp is cleaned every 2 days.",
        "The lamps are cleaned every three weeks.",
    ],
)
def test_numbers_of_rule_and_exception_in_place_are_not_contradicted(sentence: str) -> None:
    assert contradicted(sentence) == []


@pytest.mark.parametrize(
    ("sentence", "denied"),
    [
        ("You get one more lamp for every year on the island.", True),
        ("You get one more lamp for every five years on the island.", False),
        ("You get one more lamp after 5 years, for each 5 years on the island.", False),
        ("You get one more lamp for a number of years on the island.", False),
    ],
)
def test_dropped_count_of_a_period_is_contradicted(sentence: str, denied: bool) -> None:  # noqa: FBT001 - a table's column
    assert bool(contradicted(sentence, "You get one more lamp for every five years on the island.")) is denied


CABINS = "Guests may use the sauna up to three times a week, except in the annex, where the stove is broken."


@pytest.mark.parametrize(
    ("sentence", "denied"),
    [
        ("Guests may use the sauna up to three times a week.", False),
        ("Guests in the annex may not use the sauna.", False),
        ("Guests may use the sauna up to three times a week; the annex has a broken stove.", False),
        ("Only guests in the annex may not use the sauna three times a week.", False),
        ("Guests and the annex have a sauna.", False),
    ],
)
def test_rule_applied_to_its_exception_is_contradicted(sentence: str, denied: bool) -> None:  # noqa: FBT001 - a table's column
    assert bool(contradicted(sentence, CABINS)) is denied


@pytest.mark.parametrize(
    ("sentence", "denied"),
    [
        ("A ticket lasts six months.", False),
        ("For pilots a ticket lasts three months.", False),
    ],
)
def test_number_without_unit_takes_the_previous_unit(sentence: str, denied: bool) -> None:  # noqa: FBT001 - a table's column
    passage = "A ticket lasts six months, except for pilots, for whom it lasts three. There are three ferries."
    assert bool(contradicted(sentence, passage)) is denied
