"""Knowledge F1 and utility, computed by hand, and the feedback text."""

from dataclasses import replace

import pytest

from pipeline.kit import Limits
from pipeline.replies.cited_sentences import MarkedSentence
from pipeline.stages.augmentation.candidate_utility import knowledge_f1, rate, write_feedback
from pipeline.stages.augmentation.working_memory import Candidate, open_memory
from pipeline.stages.turn_context import prepare_context
from tests.pipeline.world import Shelf, Stage, hit, question, reads_alike


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
        # characters and their pairs, in scripts without spaces: 東京 東 京 | 東京 京都 東 京
        ("東京", "東京都", 6 / 7),
    ],
)
def test_knowledge_f1_compares_stems_of_content_words(reply: str, knowledge: str, value: float) -> None:
    assert knowledge_f1(reply, knowledge) == pytest.approx(value)


def test_feedback_names_words_that_no_note_has() -> None:
    notes = ("The bell was cast in 1887.",)
    assert "notes that it cites: Ghent, bronze." in write_feedback(
        "The bell was cast in Ghent of bronze, in Ghent.", notes
    )
    assert write_feedback("The bell.", notes).startswith("It says little")


CAST, PIER = (
    MarkedSentence("The bell was cast in 1887.", (1,), paragraph=False),
    MarkedSentence("The oak pier was lost in 1999.", (2,), paragraph=False),
)


@pytest.mark.parametrize(
    ("sentences", "feedback"), [((CAST, PIER), ""), ((PIER, CAST), f"do not say this: “{PIER.text}”")]
)
async def test_utility_is_knowledge_f1_times_the_passing_share(
    sentences: tuple[MarkedSentence, ...], feedback: str
) -> None:
    """Reply: bell cast 1887 oak pier lost 1999; notes: bell cast 1887 oak pier lost: 2 * 6 / (7 + 6), and half of it.

    The gate withholds the sentence with 1999. If the first sentence is withheld, the candidate does not pass.
    """
    hits = (hit("The bell was cast in 1887."), hit("The oak pier was lost.", key="pier.md"))
    stage = Stage(Shelf(hits), question("bell and oak pier"), Limits(policy="never"), None, reads_alike)
    memory = open_memory(await prepare_context(question("bell and oak pier"), stage.kit), 2)
    order = [1 + [note.text for note in memory.evidence].index(source.passage.text) for source in hits]
    written = tuple(replace(sentence, numbers=(order[sentence.numbers[0] - 1],)) for sentence in sentences)
    rated = await rate(replace(memory, candidates=(Candidate(written, memory.evidence),)), stage.kit)

    assert rated.candidates[0].utility == pytest.approx(12 / 13 / 2)
    assert (rated.candidates[0].feedback != "") == bool(feedback)
    assert feedback in rated.candidates[0].feedback
    assert rated.candidates[0].let_out
