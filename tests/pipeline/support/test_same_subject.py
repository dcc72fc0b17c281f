"""A different value contradicts a sentence only if it belongs to the same attribute of the same subject."""

import pytest

from pipeline.support.rules import FindingOutcome, check_rules

TABLE = (
    "Pump: Pump A; Price: 199 euros; Warranty: 2 years; Weight: 4 kg\n"
    "Pump: Pump B; Price: 349 euros; Warranty: 5 years; Weight: 7 kg\n"
    "Pump: Garden pump; Price: 89 euros; Warranty: 1 year; Weight: 3 kg"
)
SEALS = "Every pump is tested for an hour. Spare seals for Pump B cost 12 euros."
NEWEST = "Pump C is our newest pump. It was first sold in May 2023. Pump C costs 500 euros. It has 5 years of warranty."
BERGEN = "A hotel in Bergen may cost up to 190 euros a night. A repair costs $80 an hour."
TENTS = "A tent may cost up to 90 euros a night, except in Lund, where the limit is 130 euros."
WORKSHOP = "The workshop in Vik opened in 1998 and is led by Ines Falk. It has 31 people, who mended 296 pumps in 2024."
LICENCE = "Paragraph 1.F.3 limits the warranty. See page 3."


def refutes(claim: str, *passages: str, titles: tuple[str, ...] = ("Pumps",)) -> bool:
    findings = check_rules(claim, passages, context=titles)
    return any(rule.outcome is FindingOutcome.CONTRADICTED and not rule.elsewhere for rule in findings)


def misses(claim: str, *passages: str) -> list[str]:
    missed = {FindingOutcome.ABSENT, FindingOutcome.CONTRADICTED, FindingOutcome.DISPUTED}
    return [finding.reason for finding in check_rules(claim, passages) if finding.outcome in missed]


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("Pump A costs 349 euros.", TABLE),
        ("The garden pump weighs 7 kg.", TABLE),
        ("Pump C costs 450 euros.", NEWEST),
        ("A hotel in Bergen may cost up to 250 euros a night.", BERGEN),
        ("A repair costs 80 euros an hour.", BERGEN),
        ("A tent may cost at least 90 euros a night.", TENTS),
        ("The workshop in Vik opened in 1989.", WORKSHOP),
        ("The workshop in Vik is led by Teo Marsh.", WORKSHOP),
        ("Copies are kept for 30 days.", "All is copied every night, and the copies are kept for 90 days."),
    ],
)
def test_different_value_of_the_same_subject_refutes(claim: str, passage: str) -> None:
    assert refutes(claim, passage)


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("Pump A costs 199 euros.", TABLE),
        ("Pump A costs 199 euros.", SEALS),
        ("Pump A costs 199 euros.", NEWEST),
        ("Pump D costs 199 euros.", TABLE),
        ("Pump D costs 300 euros.", f"{TABLE}\n\n{SEALS}"),
        ("Pump B costs 349 euros.", SEALS),
        ("Pump A was first sold in May 2021.", NEWEST),
        ("A hotel in Paris may cost up to 150 euros a night.", BERGEN),
        ("A hotel in Paris may cost up to 190 euros a night.", BERGEN),
        ("The workshop in Oslo opened in 2001.", WORKSHOP),
        ("The book has a 3 year warranty.", LICENCE),
        ("The third bell receives 60 euros for the week.", "The first bell receives 300 euros for the week."),
        ("Erik has four daughters.", "Erik has three sons and Paul has five daughters."),
        ("A member may borrow five books.", "A premium member may borrow nine books."),
        ("A ticket costs 9 euros.", "A ticket costs 5 euros for children."),
        ("Auk 8 was launched in May 1968.", "Auk 8 was built on 2 March and rolled to its launch pad on 9 April."),
        ("Each parent has 20 weeks of leave.", "After the loss of a pregnancy each parent has 15 days of leave."),
    ],
)
def test_value_of_another_subject_does_not_refute(claim: str, passage: str) -> None:
    assert not refutes(claim, passage)


@pytest.mark.parametrize(
    ("claim", "passage", "agrees"),
    [
        ("The workshop in Vik has fewer than 50 people.", WORKSHOP, True),
        ("The workshop in Vik has fewer than 30 people.", WORKSHOP, False),
        ("It mended over 200 pumps in 2024.", WORKSHOP, True),
        ("It mended fewer than 200 pumps in 2024.", WORKSHOP, False),
        ("Pump C costs more than 300 euros.", NEWEST, True),
        ("Pump C costs up to 600 euros.", NEWEST, False),
        ("Pump B is under warranty for more than four years.", TABLE, True),
    ],
)
def test_more_or_fewer_than_is_checked_against_the_number_of_the_passage(
    claim: str, passage: str, *, agrees: bool
) -> None:
    assert (misses(claim, passage) == []) is agrees


@pytest.mark.parametrize("claim", ["The book has a 3 year warranty.", "It has a warranty of 3 years."])
@pytest.mark.parametrize("passage", [LICENCE, "The warranty of pump B, which weighs 3 kg, is long."])
def test_paragraph_numbers_and_other_measures_are_not_quantities(claim: str, passage: str) -> None:
    assert any("3 year" in reason for reason in misses(claim, passage))


def test_least_and_most_are_distinguished() -> None:
    findings = check_rules("Vik is the most densely populated island.", ["Vik is the least densely populated island."])
    assert any(rule.binding for rule in findings) or any(
        rule.outcome is FindingOutcome.CONTRADICTED for rule in findings
    )


def test_letters_distinguish_things_and_articles_do_not() -> None:
    assert any("“A”" in reason for reason in misses("Pump A was first sold in May 2023.", NEWEST))
    assert misses("Pump A costs 199 euros.", TABLE) == []


def test_reasons_name_the_currency() -> None:
    assert misses("A repair costs $90 an hour.", BERGEN) == ["It says “$90”, but the passage says “$80”."]
    assert misses("A repair costs C$80 an hour.", BERGEN) == ["It says “C$80”, but the passage says “$80”."]
