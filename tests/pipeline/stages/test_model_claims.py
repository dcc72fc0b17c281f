"""Claims of a model from its own knowledge: those that verification supports become findings."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pipeline.kit import Limits
from pipeline.replies.stage_replies import TimedClaim
from pipeline.stages.model_claims import verify_claims
from pipeline.stages.passage_retrieval import is_relevant
from pipeline.stages.turn_context import TurnContext
from pipeline.types import ClaimChecked, Support
from storage.types import CheckedClaim, Verdict
from tests.pipeline.scripted import ScriptedLLM
from tests.pipeline.world import Shelf, Stage, hit, question, reads_alike

SAID = "The pier of Skarholm is made of oak."
SUPPORTED = "Sentences: 1\nWho: the pier of Skarholm\nReasoning: Sentence 1 says so.\nVerdict: SUPPORTS"


async def verify_with(reply: str) -> CheckedClaim:
    """Verify a claim against two pages with a model that replies so."""
    talk = question("What is the pier of Skarholm made of?")
    shelf = Shelf([hit(SAID, key="pier.md"), hit("The pier of Skarholm has a kiosk.", key="kiosk.md")])
    stage = Stage(shelf, talk, Limits(), ScriptedLLM({"verify": reply}), reads_alike)
    await verify_claims(TurnContext(talk), [TimedClaim("The pier of Skarholm is of oak.")], stage.kit)
    (checked,) = [event.checked for event in stage.events if isinstance(event, ClaimChecked)]
    return checked


async def found(claim: str, reply: str) -> list[str]:
    """Return the findings from a claim that the model supports by this reply."""
    talk = question("What is the pier of Skarholm made of?")
    stage = Stage(Shelf([hit(SAID)]), talk, Limits(), ScriptedLLM({"verify": reply}), reads_alike)
    findings = await verify_claims(TurnContext(talk), [TimedClaim(claim)], stage.kit)
    return [finding.text for finding in findings]


@pytest.mark.parametrize(
    ("claim", "reply", "finding"),
    [
        ("The pier of Skarholm is of oak.", SUPPORTED, "The pier of Skarholm is of oak."),
        ("Skarholm has a landing stage of timber.", SUPPORTED, SAID),
        ("The pier of Skarholm was made of oak in 1921.", "Sentences: 1\nVerdict: SUPPORTS", SAID),
        ("The pier of Skarholm was made of oak in 1921.", SUPPORTED, ""),
    ],
)
async def test_verified_claim_is_kept_if_the_local_check_holds_it_too(claim: str, reply: str, finding: str) -> None:
    assert await found(claim, reply) == [finding] * bool(finding)


@pytest.mark.parametrize("verdict", [Verdict.SUPPORTS, Verdict.REFUTES])
async def test_verdict_cites_the_passages_of_its_sentences(verdict: Verdict) -> None:
    checked = await verify_with(f"Reasoning: So it says.\nSentences: 1\nVerdict: {verdict}")
    assert (len(checked.evidence), len(checked.looked_at)) == (1, 1)
    assert set(checked.evidence).isdisjoint(checked.looked_at)


async def test_undecided_verdict_cites_nothing() -> None:
    checked = await verify_with("Reasoning: No sentence says so.\nSentences: 1\nVerdict: NOT ENOUGH INFO")
    assert (checked.evidence, len(checked.looked_at)) == ((), 2)


@pytest.mark.parametrize(
    ("alike", "found", "relevant"),
    [(0.1, True, True), (0.1, False, False), (0.5, False, True)],
    ids=["shared words", "neither", "meaning"],
)
def test_evidence_shares_words_or_meaning_with_a_claim(alike: float, *, found: bool, relevant: bool) -> None:
    page = hit(SAID if found else "Guests sign the book at the front desk.")
    assert is_relevant("The pier of Skarholm is of oak.", replace(page, dense=alike)) is relevant
    assert is_relevant("The pier of Skarholm is of oak.", replace(hit("Die Mole.", language="de"), dense=alike))
    assert is_relevant(
        "The pier of Skarholm is of oak.", replace(hit("Die Mole ist für das Boot.", language=""), dense=alike)
    )


async def test_claim_without_relevant_evidence_is_not_sent_to_the_model() -> None:
    talk = question("Who won the marathon of Bergen?")
    shelf = Shelf([hit("Runners of the harbour office sign the book, which lies at the front desk beside the lamps.")])
    stage = Stage(shelf, talk, Limits(), model := ScriptedLLM({"verify": SUPPORTED}), reads_alike)
    claim = TimedClaim("Ane Moen, Berit Lie and Siri Dahl won three marathons in Bergen before the harbour froze.")
    assert await verify_claims(TurnContext(talk), [claim], stage.kit) == ()
    assert model.calls == []
    (checked,) = [event.checked for event in stage.events if isinstance(event, ClaimChecked)]
    assert checked.verdict is Verdict.NOT_ENOUGH_INFO


async def test_asker_texts_reach_the_support_check_of_claims() -> None:
    asked_of = list[Sequence[str]]()

    async def supports(*_: object, asked: Sequence[str] = ()) -> Support:
        asked_of.append(asked)
        return Support(0.5, holds=False, appealable=bool(asked))

    talk = question("Are 20 crowns enough for the ferry?")
    stage = Stage(Shelf([hit(SAID)]), talk, Limits(), ScriptedLLM({"verify": SUPPORTED}), supports)

    await verify_claims(TurnContext(talk), [TimedClaim("For 20 crowns the pier is of oak.")], stage.kit)
    assert asked_of == [(talk.question.text,)]
