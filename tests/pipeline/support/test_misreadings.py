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


def is_grave(sentence: str, asked: tuple[str, ...] = ()) -> bool:
    return any(finding.grave for finding in check_rules(sentence, [MILL], asked=asked))


@pytest.mark.parametrize(
    "sentence",
    [
        "Visitors come on Mondays to see the open mill.",
        "The wheel of the mill was repaired by Per Holt.",
        "Ada Lund was the one by whom the roof was rebuilt.",
        "The wheel of the mill has 18 of these paddles.",
        "The keeper dresses the millstones two times each year.",
        "The keeper has to see that flour is kept for 8 months.",
        "It was in 1954 that the lake froze.",
        "One of the plans of the sluice was taken by a flood.",
        "Whoever changes the sluice may ask the council.",
        "Ada Lund wore shoes of size 44.",
    ],
)
def test_misread_sentence_is_quoted_instead(sentence: str) -> None:
    assert is_grave(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "On Mondays visitors can't see the mill.",
        "It was Ada Lund who repaired the wheel, in 1931.",
        "Per Holt rebuilt the roof in 1954.",
        "There are 24 paddles on the wheel.",
        "A mason from Vik dresses the millstones two times a year.",
        "Flour may be kept for 8 months at most.",
        "When the lake froze in 1942, the mill was still.",
        "The Sater is turned every 18 months.",
        "Jon Sater, a carpenter, drew the sluice.",
        "The wheel, though, turns slower than the small one.",
        "Fossum is 9 km north of Lauvik.",
    ],
)
def test_paraphrase_is_not_misread(sentence: str) -> None:
    assert not is_grave(sentence)


def test_value_of_the_question_is_left_to_the_model() -> None:
    sentence = "It was in 1954 that the lake froze."
    assert not is_grave(sentence, ("Did the lake freeze in 1954?",))
