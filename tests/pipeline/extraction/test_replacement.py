"""Findings that may replace a withheld sentence: those that answer, in words that stand alone."""

from collections.abc import Mapping, Sequence

import pytest

from pipeline.extraction.replacement import find_answering, is_said, quote_alone
from pipeline.kit import no_reranking
from pipeline.stages.findings import SourcedFinding, collect_sentences
from storage.types import Hit
from tests.pipeline.world import hit

GUARD = hit(
    "The guard may sound the horn. That is loud. It wakes the whole quay. These calls are rare. They are logged. "
    "The gate has two locks. Therefore two keepers must be there. Visitors may borrow a lamp. For example, a class may "
    "borrow one lamp for each child.",
    key="guard.md",
)
LEAVING = hit(
    "Before the last day, the keeper has to:\n- hand in the lamp\n- sign the book. It is in the office.\n\n"
    "A keeper gets a badge.",
    key="leaving.md",
)
BARE = hit("- a red lamp\n- Sound the horn at noon.", key="bare.md", title="Rules", section="Forbidden")
PAY = hit(
    "The short-term policy pays 70 crowns a day. The long-term policy pays 60 crowns a day. Both end with the job.",
    key="pay.md",
)


def find(page: Hit, *parts: str) -> list[SourcedFinding]:
    """Return the sentences of a page that contain these words, as findings."""
    sentences = collect_sentences([page])
    found = [next(one for one in sentences if part in one.text) for part in parts]
    return [SourcedFinding(one.text, (one,)) for one in found]


def alone(page: Hit, part: str) -> list[tuple[str, str]]:
    (finding,) = find(page, part)
    return [(quote.text, quote.note) for quote in quote_alone(finding)]


@pytest.mark.parametrize(
    ("page", "part", "quoted"),
    [
        (GUARD, "Therefore", ["The gate has two locks. Therefore two keepers must be there."]),
        (
            GUARD,
            "For example",
            ["Visitors may borrow a lamp. For example, a class may borrow one lamp for each child."],
        ),
        (GUARD, "They are logged", []),
        (LEAVING, "hand in", ["Before the last day, the keeper has to:\n- hand in the lamp"]),
        (LEAVING, "badge", ["A keeper gets a badge."]),
        (BARE, "a red lamp", []),
    ],
)
def test_quotation_has_what_its_sentence_leans_on(page: Hit, part: str, quoted: list[str]) -> None:
    assert alone(page, part) == [(text, "") for text in quoted]


def test_sentence_in_a_list_without_a_lead_is_quoted_with_its_section() -> None:
    assert alone(BARE, "noon") == [("Sound the horn at noon.", "Rules › Forbidden")]


def test_sentences_of_one_item_are_quoted_together() -> None:
    page = hit("- Lend no lamp. For example, say that all are in use. That is enough.", key="lend.md", title="Lamps")
    assert alone(page, "enough") == [(page.passage.text[2:], "Lamps")]


def test_statement_of_the_model_comes_before_the_quotation() -> None:
    (quoted,) = find(GUARD, "horn")
    own = SourcedFinding("Guards are allowed to sound the horn.", quoted.evidence)
    assert [quote.text for quote in quote_alone(own)] == [own.text, quoted.text]
    leaning = SourcedFinding("However, guards are allowed to sound the horn.", quoted.evidence)
    assert [quote.text for quote in quote_alone(leaning)] == [quoted.text]


async def answering(question: str, findings: Sequence[SourcedFinding], odds: Mapping[str, float] | None) -> list[int]:
    async def rerank(_: str, texts: Sequence[str]) -> Sequence[float]:
        return [next(value for part, value in (odds or {}).items() if part in text) for text in texts]

    return [number for number, _ in await find_answering(question, findings, rerank if odds else no_reranking)]


@pytest.mark.parametrize(
    ("odds", "numbers"),
    [
        ((6.0, 7.0, -8.0), [2, 1]),
        ((1.0, 7.0, 3.0), [2, 3]),
        ((-3.0, -4.0, -6.0), [1, 2]),
        ((-9.5, -10.0, -11.0), []),
    ],
    ids=["surely not", "far behind the best", "near the best", "hopeless"],
)
async def test_findings_that_answer_come_best_first(odds: tuple[float, ...], numbers: list[int]) -> None:
    parts = ("locks", "lamp", "badge")
    findings = [*find(GUARD, "locks", "may borrow a lamp"), *find(LEAVING, "badge")]
    question = "How many locks has the gate?"
    assert await answering(question, findings, dict(zip(parts, odds, strict=True))) == numbers
    assert await answering(question, findings, None) == [1, 2, 3]


async def test_finding_about_the_opposite_does_not_answer() -> None:
    findings = find(PAY, "long-term", "short-term", "Both")
    assert await answering("How much does the short term policy pay?", findings, None) == [2, 3]
    assert await answering("What is a policy?", findings, None) == [1, 2, 3]


async def test_fragment_does_not_answer() -> None:
    assert await answering("Which lamp is forbidden?", find(BARE, "a red lamp"), {"lamp": 9.0}) == []


def test_same_words_in_other_order_are_a_repetition() -> None:
    said = ["The ferry to Skarholm leaves at 9.", "Dogs are not allowed on the ferry."]
    assert is_said("At 9 the ferry leaves to Skarholm.", said)
    assert not is_said("The ferry to Skarholm leaves at 8.", said)
    assert not is_said("Dogs are allowed on the ferry.", said)
