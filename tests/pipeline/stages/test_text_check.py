"""The check of a whole text: which sentences are claims, and the verdict on each."""

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
def test_only_statements_are_extracted_from_a_text(text, expected):
    assert tuple(statement.removeprefix("- ") for statement in extract_statements(text)) == tuple(
        item.removeprefix("- ") for item in expected
    )


@pytest.mark.parametrize("text", ["", "🎉", "Is it oak?", "Is it oak? Was it built in 1887?", "Yes. No."])
def test_text_without_statements_is_refused(text):
    with pytest.raises(NotAClaim) as caught:
        extract_statements(text)

    assert caught.value.hint


async def test_each_statement_gets_its_own_verdict_in_order():
    outcome = await checked(
        "Skarholm lighthouse was built in 1887. Kangaroos sleep standing. The pier of Skarholm is made of oak."
    )

    verdicts = [(claim.claim.text, claim.claim.origin, claim.verdict) for claim in claims(outcome)]
    assert [origin for _, origin, _ in verdicts] == ["user"] * 3
    assert [verdict for *_, verdict in verdicts] == [Verdict.SUPPORTS, Verdict.NOT_ENOUGH_INFO, Verdict.SUPPORTS]
    assert claims(outcome)[2].evidence == (PIER.passage.id,)
    assert outcome.answer.status is Status.ANSWERED
    assert {citation.quote for citation in outcome.answer.citations} >= {"The pier of Skarholm is made of oak."}


async def test_limit_bounds_the_statements_checked():
    assert len(claims(await checked(BOTH, limits=Limits(claims=1)))) == 1
    assert len(claims(await checked(BOTH, limits=Limits(claims=0)))) == 1


@pytest.mark.parametrize("claim", ["Skarholm lighthouse was built in 1887.", "Kangaroos sleep standing."])
async def test_text_of_one_statement_is_checked_like_a_claim(claim):
    alone, outcome = await checked(claim, claim_check.check_claim_by_rules), await checked(claim)

    assert (outcome.answer, outcome.events) == (alone.answer, alone.events)


async def test_model_verifies_each_statement_separately():
    llm = ScriptedLLM({"verify": "Reasoning: It says so.\nSentences: 1\nVerdict: REFUTES"})
    outcome = await checked(BOTH, claim_check.check_text_by_model, llm)

    assert [claim.verdict for claim in claims(outcome)] == [Verdict.REFUTES] * 2
