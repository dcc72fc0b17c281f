"""A model verifies labelled claims with the prompt that judges dialogues."""

import pytest

from bot.settings.tables.settings_tables import Settings
from evaluation import EvaluationError
from evaluation.claims.labelled_claims import LabelledClaim
from evaluation.claims.verifiers import ask_configured_judge, judge_by_model
from evaluation.simulated_model.scripted_llm import ScriptedLLM
from storage.types import Verdict

CLAIMS = tuple(
    LabelledClaim(str(number), "ours", text, ("The pier is 90 metres long.",), Verdict.SUPPORTS, "g", title="Pier")
    for number, text in enumerate(("The pier is 90 metres long.", "The pier is red.", "Nonsense is replied."))
)


async def test_judge_verdicts_are_read_and_unreadable_replies_are_undecided():
    prompts = []

    async def write(call):
        prompts.append(call.messages[-1].text if call.messages[-1].text.startswith("Today") else "again")
        claim = call.messages[-1].text
        if "90 metres long.\n" in claim.partition("Claim:")[2] + "\n":
            return "Reasoning: Said.\nSentences: 1\nVerdict: SUPPORTS"
        return "Reasoning: Not said.\nSentences: -\nVerdict: NOT ENOUGH INFO" if "red" in claim else "Hm."

    judged = await judge_by_model(CLAIMS, ScriptedLLM("m", write), 2)
    assert [(claim.claim, claim.judged.verdict) for claim in judged] == [
        (CLAIMS[0], Verdict.SUPPORTS),
        (CLAIMS[1], Verdict.NOT_ENOUGH_INFO),
        (CLAIMS[2], Verdict.NOT_ENOUGH_INFO),
    ]
    assert judged[2].judged.reasons[0].startswith("UnreadableReply")
    assert "From: Pier" in prompts[0]


async def test_judge_without_a_model_is_an_error():
    with pytest.raises(EvaluationError, match="No model is configured as judge"):
        await ask_configured_judge(CLAIMS, Settings())
