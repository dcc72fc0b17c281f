"""The figures of an examination, against values counted by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.doctor.call_kinds import Grade
from bot.doctor.examiner import CaseOutcome, RecordedCall
from bot.doctor.prompt_variants import (
    Figures,
    compute_figures,
    compute_percentile,
    estimate_turn_seconds,
    list_prompt_variants,
)
from pipeline.errors import ModelUnavailable
from pipeline.llm.model_settings import ModelSettings
from storage.types import Verdict

S, N = Verdict.SUPPORTS, Verdict.NOT_ENOUGH_INFO
DEAD = ModelUnavailable("gone", hint="wait")


def call(seconds: float = 1.0, error: str = "", **facts: object) -> RecordedCall:
    tokens = {"prompt_tokens": 1_000, "completion_tokens": 20, "written_tokens": 20}
    return RecordedCall(seconds, error, **(tokens | facts))


OUTCOMES = [
    CaseOutcome("right at once", (call(1, cost=0.5),), Grade("", 2, 1, (S, S))),
    CaseOutcome("wrong, at the second try", (call(2, "UnreadableReply", cut=True, completion_tokens=300,
     written_tokens=300), call(3, cost=0.25)), Grade("bad", 2, 2, (N, S))),
    CaseOutcome("never readable", (call(4, "UnreadableReply"), call(5, "UnreadableReply"))),
    CaseOutcome("no reply", (call(60, "ModelUnavailable", prompt_tokens=0, completion_tokens=0, tries=5),),
     fault=DEAD),
    CaseOutcome("trimmed, and without a schema", (call(0.1, "SchemaNotOffered"), call(0.1, "PromptTooLong",
     sent_tokens=4_000), call(6, tries=2, schema=True)), Grade("", 0, 0, (N, N))),
]  # fmt: skip


def test_figures_of_a_prompt_variant_equal_the_counts_made_by_hand() -> None:
    assert compute_figures(OUTCOMES) == Figures(
        cases=4, first=2, readable=3, right=2, cited=4, valid=3, verdicts={(S, S): 1, (N, S): 1, (N, N): 1},
        wrong={"wrong, at the second try": "bad"}, faults=(DEAD,), calls=7, seconds=4, slow_seconds=60,
        prompt_tokens=6_000, completion_tokens=400, estimated=False, cost=0.75, longest_sent=4_000, longest_reply=300,
        cut=1, retried=2, thought=0, trimmed=1, shortened=0, schema=1,
    )  # fmt: skip


def test_no_outcomes_give_empty_figures() -> None:
    assert compute_figures([]) == Figures()


@pytest.mark.parametrize(("recorded", "thought", "shortened"), [
    (call(thought=True), 1, 0),
    (call(completion_tokens=400, written_tokens=20), 1, 0),
    (call(completion_tokens=400, written_tokens=20, estimated=True), 0, 0),
    (call(completion_tokens=80, written_tokens=20), 0, 0),
    (call(sent_tokens=2_100), 0, 1),
    (call(sent_tokens=1_300), 0, 0),
    (call(sent_tokens=2_100, estimated=True), 0, 0),
])  # fmt: skip
def test_hidden_thoughts_and_shortened_prompts_are_detected(
    recorded: RecordedCall, thought: int, shortened: int
) -> None:
    computed = compute_figures([CaseOutcome("a case", (recorded,), Grade())])

    assert (computed.thought, computed.shortened) == (thought, shortened)


@given(st.lists(st.floats(0, 100), min_size=1), st.floats(0.01, 1))
def test_percentile_is_the_least_value_that_covers_the_share(values: list[float], share: float) -> None:
    computed = compute_percentile(values, share)

    assert sum(value <= computed for value in values) >= share * len(values) - 1e-9
    assert sum(value < computed for value in values) < share * len(values) + 1e-9


def test_turn_estimate_counts_parallel_calls_once() -> None:
    kinds = ("query", "summarise", "generate", "split", "verify", "draft", "feedback", "refine")
    computed = {
        kind: Figures(calls=1, seconds=value) for kind, value in zip(kinds, (1, 2, 3, 1, 2, 4, 1, 5), strict=True)
    }

    assert estimate_turn_seconds(computed) == 6 + 4 + 1 + 5
    assert estimate_turn_seconds({kind: computed[kind] for kind in kinds[:-2]}) == 6 + 4
    assert estimate_turn_seconds({kind: computed[kind] for kind in kinds if kind != "split"}) is None


def test_text_variant_has_all_kinds_of_calls_and_others_only_structured_calls() -> None:
    variants = list_prompt_variants(ModelSettings(), student=False, compare=True, stages=(), system="wikichat")
    text = next(variant for variant in variants if variant.name == "text")
    others = [variant for variant in variants if variant is not text and not variant.student]

    assert any(not kind.structured for kind in text.kinds)
    assert others
    assert all(kind.structured for variant in others for kind in variant.kinds)
