"""The next action by the content of the working memory, and the end of every loop."""

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import ModelUnavailable
from pipeline.kit import Limits, Policy
from pipeline.replies.cited_sentences import MarkedSentence
from pipeline.stages.augmentation.policies import EVEN_CHANCE, PolicySigns, choose_act, predict_gain, read_signs
from pipeline.stages.augmentation.working_memory import Act, Candidate, WorkingMemory, open_memory
from pipeline.stages.turn_context import TurnContext
from storage.types import SearchQuery
from tests.pipeline.world import hit, question

HITS = (hit("The bell of Skarholm was cast in 1887."), hit("The quay is long.", key="q.md", title="Quay"))
CONTEXT = TurnContext(question("When was the bell cast?"), search_query="When was the bell cast?", nearest=HITS)
MEMORY = open_memory(CONTEXT, 1)
SENTENCE = MarkedSentence("The bell was cast in 1887.", (1,), paragraph=False)
GOOD = Candidate((SENTENCE,), MEMORY.evidence, 0.9)
POOR = replace(GOOD, utility=0.1, feedback="Say what the notes say.")
OTHER, THIRD = (replace(POOR, sentences=(SENTENCE,) * count) for count in (2, 3))
EMPTY = replace(GOOD, sentences=(), utility=0.0)


@pytest.mark.parametrize(
    ("policy", "memory", "act"),
    [
        ("never", MEMORY, Act.DRAFT),
        ("never", replace(MEMORY, evidence=()), Act.SEND),
        ("always", MEMORY, Act.ACQUIRE),
        ("always", replace(MEMORY, consolidated=True), Act.DRAFT),
        ("always", replace(MEMORY, consolidated=True, evidence=()), Act.SEND),
        ("self-ask", MEMORY, Act.SELF_ASK),
        ("self-ask", replace(MEMORY, evidence=()), Act.ACQUIRE),  # nothing was found: there is nothing to ask about
        ("self-ask", replace(MEMORY, asked_itself=True), Act.DRAFT),
        ("self-ask", replace(MEMORY, asked_itself=True, lacking=SearchQuery("bell")), Act.ACQUIRE),
        ("always", replace(MEMORY, wants_facts=False), Act.SEND),
        ("always", replace(MEMORY, fault=ModelUnavailable("away")), Act.SEND),
        ("never", replace(MEMORY, candidates=(GOOD,)), Act.SEND),
        ("never", replace(MEMORY, candidates=(POOR,)), Act.DRAFT),
        ("never", replace(MEMORY, candidates=(POOR, OTHER)), Act.DRAFT),
        ("never", replace(MEMORY, candidates=(POOR, OTHER, THIRD)), Act.SEND),
        ("never", replace(MEMORY, candidates=(POOR, POOR)), Act.SEND),
        ("never", replace(MEMORY, candidates=(EMPTY,)), Act.SEND),
        ("learned", replace(MEMORY, candidates=(EMPTY,)), Act.ACQUIRE),
        ("learned", replace(MEMORY, candidates=(EMPTY,), consolidated=True), Act.SEND),
        ("learned", replace(MEMORY, candidates=(EMPTY,), consolidated=True, evidence=()), Act.DRAFT),
    ],
)
def test_next_act_of_the_augmenter_follows_from_policy_and_memory(
    policy: Policy, memory: WorkingMemory, act: Act
) -> None:
    assert choose_act(memory, Limits(policy=policy)) is act


@given(st.sampled_from(get_args(Policy)), st.integers(1, 5), st.lists(st.sampled_from([POOR, EMPTY, GOOD]), min_size=9))
def test_every_policy_ends_within_its_bounds(policy: Policy, rounds: int, written: list[Candidate]) -> None:
    memory, acts = MEMORY, list[Act]()
    while (act := choose_act(memory, Limits(policy=policy, rounds=rounds))) is not Act.SEND:
        acts.append(act)
        if act is Act.DRAFT:
            candidate = replace(written[len(memory.candidates)], notes=memory.evidence)
            memory = replace(memory, candidates=(*memory.candidates, candidate))
        elif act is Act.SELF_ASK:
            memory = replace(memory, asked_itself=True)
        else:
            memory = replace(memory, consolidated=True, evidence=open_memory(CONTEXT, 2).evidence)
    assert (acts.count(Act.DRAFT) <= rounds, acts.count(Act.ACQUIRE) <= 1, acts.count(Act.SELF_ASK) <= 1) == (True,) * 3


def test_policy_features_are_computed_from_the_found_passages() -> None:
    other = replace(HITS[1], dense=0.7, score=0.5)
    assert read_signs(replace(CONTEXT, nearest=(HITS[0], other)), 1) == PolicySigns(
        covered=1.0, beyond=-1.0, nearer=pytest.approx(0.2), lead=0.5, unlinked=0.0, parts=0.0, borrowed=0.0
    )
    assert read_signs(replace(CONTEXT, nearest=()), 1).covered == 0.0


def test_learned_policy_acquires_more_if_unread_passages_fit_better() -> None:
    clear = PolicySigns(covered=1, beyond=-1, nearer=-0.3, lead=0.9, unlinked=0, parts=0, borrowed=0)
    vague = PolicySigns(covered=0.3, beyond=0.3, nearer=0.2, lead=0.05, unlinked=1, parts=1, borrowed=1)
    assert predict_gain(clear) < EVEN_CHANCE <= predict_gain(vague)
    assert 0 <= predict_gain(clear) < predict_gain(vague) <= 1
