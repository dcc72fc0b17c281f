"""Claims that a model makes by itself: what becomes a finding once it is verified."""

import pytest

from pipeline.kit import Limits
from pipeline.parsing.claims import TimedClaim
from pipeline.stages.recalling import verify
from pipeline.stages.scene import Scene
from tests.pipeline.scripted import ScriptedLLM
from tests.pipeline.world import Shelf, Stage, hit, question, reads_alike

SAID = "The pier of Skarholm is made of oak."
SUPPORTED = "Reasoning: Sentence 1 says so.\nSentences: 1\nVerdict: SUPPORTS"


async def found(claim: str) -> list[str]:
    """Return the findings that come of a claim which the model verifies, whatever it says."""
    talk = question("What is the pier of Skarholm made of?")
    stage = Stage(Shelf([hit(SAID)]), talk, Limits(), ScriptedLLM({"verify": SUPPORTED}), reads_alike)
    findings = await verify(Scene(talk), [TimedClaim(claim)], stage.kit)
    return [finding.text for finding in findings]


@pytest.mark.parametrize("claim", ["The pier of Skarholm is of oak.", "Skarholm has a landing stage of timber."])
async def test_a_verified_claim_is_a_finding_in_its_own_words(claim: str) -> None:
    """Where the local check holds, and where it doubts the meaning alone, of which the model is the judge."""
    assert await found(claim) == [claim]


async def test_a_number_that_the_evidence_lacks_is_not_passed_on() -> None:
    """Though the model supports the claim: the sentences that it names stand in the claim's place."""
    assert await found("The pier of Skarholm was made of oak in 1921.") == [SAID]
