"""Sentences about table rows: facts of one row, and facts mixed from two."""

import pytest

from pipeline.support.analysis.table_parser import write_row
from pipeline.support.rules import FindingOutcome, check_rules
from pipeline.support.support_check import find_verbatim_passage
from storage.types import PassageKind
from tests.pipeline.world import hit

KEEPERS = (
    "Post: Head keeper; Name: Runa Falk; Island: Skarholm; Ask about: Lamps, lenses\n"
    "Post: Boatswain; Name: Teo Marsh; Island: Lundey; Ask about: Boats, lost oars\n"
    "Post: Cook; Name: Ada Quist; Island: Skarholm; Ask about: Supper"
)
FARES = (
    "Distance: Up to 10 km; Fare: 4 crowns; Open: 7:30 to 18:30\n"
    "Distance: Up to 25 km; Fare: 9 crowns; Open: 8:00 to 18:00\n"
    "Distance: More than 25 km; Fare: 15 crowns; Open: 9:00 to 12:00"
)


def against(sentence: str, *passages: str) -> list[str]:
    """Return the reasons against a sentence."""
    findings = check_rules(sentence, passages)
    return [rule.reason for rule in findings if rule.outcome in {FindingOutcome.ABSENT, FindingOutcome.CONTRADICTED}]


@pytest.mark.parametrize(
    "sentence",
    [
        "Teo Marsh is the boatswain and lives on Lundey.",
        "On Skarholm, Runa Falk is the one to ask about lenses.",
        "If an oar is lost, ask Marsh on Lundey.",
        "Skarholm has two people: Runa Falk and Ada Quist.",
        "The islands have three people: Runa Falk, Teo Marsh and Ada Quist.",
        "Lamps are Runa Falk's business, while Teo Marsh sees to boats.",
        "Ada Quist does not look after boats.",
    ],
)
def test_facts_of_one_row_are_not_contradicted(sentence: str) -> None:
    assert against(sentence, KEEPERS) == []


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("The cook Ada Quist is on Lundey.", "It says “Lundey”, but the passage says “Skarholm”."),
    ],
)
def test_joined_cells_of_two_rows_are_contradicted(sentence: str, reason: str) -> None:
    assert reason in against(sentence, KEEPERS)


def test_joined_numbers_of_two_rows_are_contradicted() -> None:
    assert against("The fare is 9 crowns for up to 10 km.", FARES)
    assert against("A fare of 4 crowns holds from 8:00 to 18:00.", FARES)
    assert not against("The fare is 9 crowns for up to 25 km.", FARES)
    assert not against("The fare is 15 crowns for more than 25 km.", FARES)


def test_rows_of_two_passages_form_one_table() -> None:
    first, _, rest = KEEPERS.partition("\n")
    assert against("Ask Runa Falk about lost oars.", first, rest)


def test_ordinal_is_not_compared_with_another_rows_quantity() -> None:
    rows = "Gale: Storm; First answer: 15 minutes\nGale: Swell; First answer: 1 hour"
    assert against("The first answer to a Storm comes within 15 minutes.", rows) == []
    assert not any(
        "1 hour" in reason for reason in against("The first answer to a Storm comes within 30 minutes.", rows)
    )


def test_prose_that_joins_two_cells_supports_it() -> None:
    prose = "Runa Falk has put the lost oars of Lundey behind her door."
    assert not against("Runa Falk put the lost oars behind her door.", KEEPERS, prose)


@pytest.mark.parametrize(
    ("sentence", "wrong"),
    [
        ("In Vik the guild pays 9 crowns and you pay at least 4 crowns.", False),
        ("In Vik they pay 9 crowns, you 4.", False),
    ],
)
def test_row_number_needs_its_own_label(sentence: str, wrong: bool) -> None:  # noqa: FBT001 - a table's column
    row = "Island: Vik; The guild pays: 9 crowns; You pay at least: 4 crowns"
    assert (
        bool(against(sentence, f"{row}\nIsland: Lundey; The guild pays: 7 crowns; You pay at least: 3 crowns")) is wrong
    )


def test_rows_below_a_line_of_prose_are_a_table() -> None:
    assert against("Ask Runa Falk about lost oars.", f"These are the people to ask:\n{KEEPERS}\nAll others are guests.")


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        ("Pump: B; Price (euros): 349; Warranty (years): 5", "Pump B | Price (euros): 349 | Warranty (years): 5"),
        ("Post: Cook; Name: Ada Quist; Island: Skarholm", "Cook | Name: Ada Quist | Island: Skarholm"),
        ("Post: Keeper; Ask about: Lamps, lenses; Amount: 4", "Keeper | Ask about: Lamps, lenses | Amount: 4"),
        ("Fare: Adults; Skarholm: 4 crowns; Lundey: 9 crowns", "Adults | Skarholm: 4 crowns | Lundey: 9 crowns"),
        ("These are the fares:", "These are the fares:"),
        ("Yes; No", "Yes; No"),
        ("What is wrong? The lamp; Who helps: Runa", "What is wrong? The lamp; Who helps: Runa"),
    ],
)
def test_row_is_shown_with_its_labels(row: str, shown: str) -> None:
    page = hit(f"{row}\nPost: Smith; Name: Tor Vik", kind=PassageKind.TABLE).passage
    assert write_row(row) == shown
    assert find_verbatim_passage(shown, [page]) == page.id
    assert not find_verbatim_passage(f"{shown} | Tor Vik", [page])
