"""Values of similar clauses must not be exchanged."""

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
        ("Vik was a market town by 1918 and is now a parish.", False),
        ("The old barge weighs 12 tonnes.", True),
        ("The old barge weighs 30 tonnes.", False),
        ("The ketch of 12 tonnes is lighter than the old barge.", False),
    ],
)
def test_value_given_for_another_clause_is_contradicted(sentence: str, wrong: bool) -> None:  # noqa: FBT001 - a table's column
    assert any(finding.outcome is FindingOutcome.CONTRADICTED for finding in check_rules(sentence, [VIK])) is wrong
