"""Negations inside exceptions, conditions and contrasts do not negate the sentence."""

import pytest

from pipeline.support.analysis.parsed_sentence import find_clauses, parse_sentence
from pipeline.support.rules import FindingOutcome, check_rules


def contradicted(sentence: str, passage: str) -> bool:
    """Return whether the passage contradicts the sentence."""
    return any(rule.outcome is FindingOutcome.CONTRADICTED for rule in check_rules(sentence, [passage]))


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("The fee is only paid back when the key is here.", "The fee is not paid back, unless the key is here."),
        ("Bicycles are not carried unless the deck is empty.", "Bicycles are only carried when the deck is empty."),
        (
            "If the pilot does not answer within an hour, the trip counts as cancelled.",
            "The pilot answers within an hour. A trip without an answer counts as cancelled.",
        ),
        (
            "Letters are sent to the harbour office rather than to the captain.",
            "Letters are sent to the harbour office, never to the captain.",
        ),
        (
            "You may fish from the ferry, though not in the harbour.",
            "You may fish from the ferry, except in the harbour.",
        ),
        ("Sealed lamps may be carried.", "Lamps may not be carried, except sealed ones."),
        ("The crew may swim on Sundays.", "The crew may not swim, except on Sundays."),
    ],
)
def test_reworded_exception_is_not_a_denial(sentence: str, passage: str) -> None:
    assert not contradicted(sentence, passage)


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("Lamps may be carried.", "Lamps may not be carried, except sealed ones."),
        ("The deposit is paid back.", "The deposit is not paid back, unless the key is returned."),
        ("If the bell rings, the gate does not open.", "If the bell rings, the gate opens."),
        ("If the bell does not ring, the gate opens.", "If the bell rings, the gate opens."),
        ("The gate is only opened at noon.", "The gate is not only opened at noon, but never opened before."),
    ],
)
def test_sentence_that_ignores_an_exception_is_contradicted(sentence: str, passage: str) -> None:
    assert contradicted(sentence, passage) is ("not only" not in passage)


def test_clauses_end_at_a_mark_or_relative_word() -> None:
    reading = parse_sentence("It sails daily, except in March, where ice lies, unless the ice melts.", "en")
    clauses = find_clauses(reading)
    assert [reading.text.low[at] for at in sorted(clauses.excepted)] == ["in", "march", "the", "ice", "melts"]
    assert [reading.text.low[at] for at in sorted(clauses.conditional)] == ["the", "ice", "melts"]
