"""Paraphrases that change the meaning, and that no model's approval lets pass."""

import pytest

from pipeline.support.rules import check_rules

MILL = (
    "The mill is not open to visitors on Mondays. Ada Lund repaired the wheel in 1931, while the roof was rebuilt by "
    "Per Holt in 1954. The wheel has 24 paddles and the small one has 18 paddles. The millstones are dressed twice a "
    "year by a mason from Vik. Flour may be kept for up to 8 months. The wheel turns slower than the small one. "
    "The keeper guards the cellar. The lake froze in 1942, and the mill stood still. "
    "Stones of Vik are turned every 24 months, except the Sater, which is turned every 18 months. "
    "The first miller was Jon Sater, a carpenter who drew the sluice after the plans of Olaf Moe. "
    "A flood took the only plan of the sluice. Changes to the sluice will require you to ask the council. "
    "The mill is 12 metres high. "
    "Fossum is a town of the valley, lying 40 km west of Cape Odden and 9 km north of Lauvik."
)


@pytest.mark.parametrize(
    ("sentence", "grave"),
    [
        ("The wheel of the mill was repaired by Per Holt.", True),
        ("The wheel of the mill has 18 of these paddles.", True),
        ("The keeper dresses the millstones two times each year.", True),
        ("The keeper has to see that flour is kept for 8 months.", True),
        ("It was in 1954 that the lake froze.", True),
        ("Whoever changes the sluice may ask the council.", True),
        ("The Sater is among the stones of Vik that are turned every 24 months.", True),
        ("On Mondays visitors can't see the mill.", False),
        ("It was Ada Lund who repaired the wheel, in 1931.", False),
        ("Per Holt rebuilt the roof in 1954.", False),
        ("There are 24 paddles on the wheel.", False),
        ("A mason from Vik dresses the millstones two times a year.", False),
        ("Flour may be kept for 8 months at most.", False),
        ("When the lake froze in 1942, the mill was still.", False),
        ("The Sater is turned every 18 months.", False),
        ("Jon Sater, a carpenter, drew the sluice.", False),
        ("The wheel, though, turns slower than the small one.", False),
        ("Fossum is 9 km north of Lauvik.", False),
    ],
)
def test_misread_sentence_is_quoted_instead(sentence: str, *, grave: bool) -> None:
    assert any(finding.grave for finding in check_rules(sentence, [MILL])) is grave


def test_value_of_the_question_is_left_to_the_model() -> None:
    findings = check_rules("It was in 1954 that the lake froze.", [MILL], asked=["Did the lake freeze in 1954?"])
    assert not any(finding.grave for finding in findings)
