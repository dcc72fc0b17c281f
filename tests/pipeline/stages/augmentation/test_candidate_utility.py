"""Knowledge F1 by hand, and feedback in words."""

import pytest

from pipeline.stages.augmentation.candidate_utility import knowledge_f1, write_feedback


@pytest.mark.parametrize(
    ("reply", "knowledge", "value"),
    [
        # words of substance, stemmed: bell cast 1887 | bell cast 1887 ghent: 2 * 3 / (3 + 4)
        ("The bell was cast in 1887.", "The bells were cast in 1887 in Ghent.", 6 / 7),
        # bell bell | bell: a word counts as often as in both: 2 * 1 / (2 + 1)
        ("A bell, a bell!", "the bell", 2 / 3),
        # oak pier lost | bell cast 1887
        ("The oak pier was lost.", "The bell was cast in 1887.", 0.0),
        ("It is.", "The bell was cast in 1887.", 0.0),
        ("", "", 0.0),
        ("The bell was cast in 1887.", "The bell was cast in 1887.", 1.0),
        # characters and their pairs, where no spaces part words: 東京 東 京 | 東京 京都 東 京
        ("東京", "東京都", 6 / 7),
    ],
)
def test_knowledge_f1(reply: str, knowledge: str, value: float) -> None:
    assert knowledge_f1(reply, knowledge) == pytest.approx(value)


def test_feedback_names_the_words_that_no_note_has() -> None:
    notes = ("The bell was cast in 1887.",)
    assert "notes that it cites: Ghent, bronze." in write_feedback(
        "The bell was cast in Ghent of bronze, in Ghent.", notes
    )
    assert write_feedback("The bell.", notes).startswith("It says little")
