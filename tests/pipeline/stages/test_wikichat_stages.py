"""Features of the seven-stage system only: feedback, refinement and JSON replies."""

import json
from functools import partial

import pytest

from pipeline.errors import ModelRefused, ModelUnavailable
from pipeline.systems import wikichat
from tests.pipeline import skarholm
from tests.pipeline.scripted import accept
from tests.pipeline.skarholm import BUILT, POOR, QUESTION, WRITTEN, turn_of
from tests.pipeline.world import answered

run = partial(skarholm.run, system=wikichat.answer)


async def test_structured_stages_use_json_if_supported() -> None:
    bullets = {"bullets": [{"text": "Skarholm lighthouse was built in 1887.", "sentences": [1]}]}
    claims = {"claims": [{"text": "Oda Hagen designed the lighthouse of Skarholm.", "time": "none"}]}
    look = {"who": "Oda Hagen", "how_many": "", "condition": "", "when": ""}
    verdict = {"sentences": [1], **look, "reasoning": "Sentence 1 says so.", "verdict": "SUPPORTS"}
    good = {"remark": "Good.", "score": 100}
    feedback = dict.fromkeys(("relevant", "natural", "non_repetitive", "temporally_correct"), good)
    outcome, llm = await run(
        QUESTION,
        {
            "query": json.dumps({"search": True, "query": "Skarholm lighthouse built", "time": "none"}),
            "summarise": lambda call: json.dumps(bullets if "1887" in turn_of(call) else {"bullets": []}),
            "split": json.dumps(claims),
            "verify": json.dumps(verdict),
            "draft": "Skarholm lighthouse was built in 1887 [1]. Oda Hagen designed the lighthouse of Skarholm [2].",
            "refine": json.dumps(feedback),
        },
        WRITTEN,
        schemas=True,
    )

    assert len(answered(outcome)) == 2
    assert {call.stage for call in llm.calls if call.schema} == {"query", "summarise", "split", "verify", "refine"}


async def test_refined_draft_replaces_the_draft() -> None:
    outcome, llm = await run(
        QUESTION, {**BUILT, "refine": [POOR, "In 1887 Skarholm lighthouse was built [1]."], "verify": accept(1)}
    )
    assert answered(outcome) == ["In 1887 Skarholm lighthouse was built."]
    assert "Skarholm lighthouse was built in 1887 [1]." in turn_of(llm.of("refine")[0])
    assert "- Relevant: Could be better. 40/100" in turn_of(llm.of("refine")[1])


@pytest.mark.parametrize(
    "refined",
    [
        [POOR, "Skarholm lighthouse was built in 1887."],
        [POOR, "Skarholm lighthouse was built in 1888 [1]."],
        [POOR, "The lighthouse of Skarholm stands beside four hundred golden palaces [1]."],
        [POOR, "NOTHING"],
        [POOR, ModelUnavailable("the server is away")],
        ["I like it."],
        [ModelRefused("no")],
    ],
)
async def test_failed_refinement_leaves_the_draft(refined: list) -> None:
    outcome, _ = await run(QUESTION, {**BUILT, "refine": refined})
    assert answered(outcome) == ["Skarholm lighthouse was built in 1887."]


async def test_retrieval_and_recall_run_concurrently() -> None:
    outcome, _ = await run(QUESTION, {**BUILT, "split": "- A keeper lives beside Skarholm lighthouse. | none"}, WRITTEN)
    usage = outcome.recorder.usage
    assert usage.llm_rounds == 5
    assert usage.llm_calls == 9
    assert (usage.prompt_tokens, usage.completion_tokens) == (900, 90)
