"""Fact-checking a whole text: which of its sentences are claims, and that each gets a verdict of its own."""

import pytest

from pipeline.errors import NotAClaim
from pipeline.kit import Limits
from pipeline.stages import claim_check
from pipeline.stages.claim_check import extract_statements
from pipeline.types import ClaimChecked, Status
from storage.types import Verdict
from tests.pipeline.scripted import ScriptedLLM
from tests.pipeline.world import Outcome, Shelf, Stage, hit, question, reads_alike

LIGHT = hit("Skarholm lighthouse was built in 1887. A keeper lives beside it.", key="light.md", title="Skarholm light")
PIER = hit("The pier of Skarholm is made of oak.", key="pier.md", title="Pier")
BOTH = "Skarholm lighthouse was built in 1887. The pier of Skarholm is made of oak."


async def checked(text, system=claim_check.check_text_by_rules, llm=None, shelf=None, limits=None) -> Outcome:
    stage = Stage(shelf or Shelf([LIGHT, PIER]), question(text), limits or Limits(), llm, reads_alike)
    return stage.finish(await system(question(text), stage.kit))


def claims(outcome):
    return [event.checked for event in outcome.events if isinstance(event, ClaimChecked)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Good morning! The pier is oak. Is it? Yes.", ("The pier is oak.",)),
        ("The pier is oak. The pier is oak.", ("The pier is oak.",)),
        ("- The pier is oak.\n- It was built in 1887.", ("- The pier is oak.", "- It was built in 1887.")),
        ("The pier is oak", ("The pier is oak",)),
    ],
)
def test_statements_are_extracted_and_the_rest_is_skipped(text, expected):
    """Greetings, questions and interjections state nothing."""
    assert tuple(statement.removeprefix("- ") for statement in extract_statements(text)) == tuple(
        item.removeprefix("- ") for item in expected
    )


@pytest.mark.parametrize("text", ["", "🎉", "Is it oak?", "Is it oak? Was it built in 1887?", "Yes. No."])
def test_a_text_that_states_nothing_is_refused(text):
    with pytest.raises(NotAClaim) as caught:
        extract_statements(text)

    assert caught.value.hint


async def test_each_statement_has_its_verdict_and_its_evidence_in_order():
    outcome = await checked(
        "Skarholm lighthouse was built in 1887. Kangaroos sleep standing. The pier of Skarholm is made of oak."
    )

    verdicts = [(claim.claim.text, claim.claim.origin, claim.verdict) for claim in claims(outcome)]
    assert [origin for _, origin, _ in verdicts] == ["user"] * 3
    assert [verdict for *_, verdict in verdicts] == [Verdict.SUPPORTS, Verdict.NOT_ENOUGH_INFO, Verdict.SUPPORTS]
    assert claims(outcome)[2].evidence == (PIER.passage.id,)
    assert outcome.answer.status is Status.ANSWERED
    assert {citation.quote for citation in outcome.answer.citations} >= {"The pier of Skarholm is made of oak."}


async def test_no_more_are_checked_than_the_limit_says():
    """The first ones; one at least, for a limit of none means those of a model."""
    assert len(claims(await checked(BOTH, limits=Limits(claims=1)))) == 1
    assert len(claims(await checked(BOTH, limits=Limits(claims=0)))) == 1


@pytest.mark.parametrize("claim", ["Skarholm lighthouse was built in 1887.", "Kangaroos sleep standing."])
async def test_one_statement_is_checked_exactly_as_by_itself(claim):
    """Events, verdict, evidence and answer."""
    alone, outcome = await checked(claim, claim_check.check_claim_by_rules), await checked(claim)

    assert (outcome.answer, outcome.events) == (alone.answer, alone.events)


async def test_a_model_is_asked_about_each_statement_by_itself():
    llm = ScriptedLLM({"verify": "Reasoning: It says so.\nSentences: 1\nVerdict: REFUTES"})
    outcome = await checked(BOTH, claim_check.check_text_by_model, llm)

    assert [claim.verdict for claim in claims(outcome)] == [Verdict.REFUTES] * 2
