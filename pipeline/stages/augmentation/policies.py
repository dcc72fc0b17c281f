"""Policies: choose the next act by the memory. Pure.

A policy decides when to look up more than the question itself: `never`, `always`, if the model asks for it
(`self-ask`), or by weights learned from recorded turns (`learned`). The other acts follow by the same rules for all.
"""

import json
import math
from dataclasses import astuple, dataclass
from functools import cache
from importlib import resources

from pipeline.kit import Limits
from pipeline.stages.augmentation.entity_linker import describe_hit, find_entity_names
from pipeline.stages.augmentation.working_memory import Act, WorkingMemory
from pipeline.stages.question_analysis import resolve_question, split_question
from pipeline.stages.turn_context import TurnContext
from storage.language.words import content_terms

EVEN_CHANCE = 0.5


def choose_act(memory: WorkingMemory, limits: Limits) -> Act:
    """Pick the next act; rounds are bounded, so `SEND` is always reached."""
    latest = memory.latest
    if memory.fault or not memory.wants_facts or (latest and latest.passed):
        return Act.SEND
    if latest is None:
        return _choose_first_act(memory, limits)
    if len(memory.candidates) >= limits.rounds or memory.repeats:
        return Act.SEND
    if latest.sentences or latest.notes != memory.evidence:
        return Act.DRAFT
    return Act.SEND if limits.policy == "never" or memory.consolidated else Act.ACQUIRE  # no note there helps


def _choose_first_act(memory: WorkingMemory, limits: Limits) -> Act:
    """Pick the act before the first draft. Here the policy decides whether more evidence is acquired first."""
    match limits.policy:
        case "self-ask":
            if memory.evidence and not memory.asked_itself:
                return Act.SELF_ASK
            wanted = memory.lacking or not memory.evidence
        case "learned":
            wanted = predict_gain(read_signs(memory.context, limits.looked_up)) >= EVEN_CHANCE
        case policy:
            wanted = policy == "always"
    if wanted != memory.explores and not memory.consolidated:
        return Act.ACQUIRE
    return Act.DRAFT if memory.evidence else Act.SEND


@dataclass(frozen=True, slots=True)
class PolicySigns:
    """The features that the learned policy decides by, computed from the hits for the question itself."""

    covered: float  # the share of the question's words in the passages read
    beyond: float  # how much greater that share is in an unread passage
    nearer: float  # how much nearer in meaning an unread passage is
    lead: float  # the best passage's lead over the best unread one, as a share of its score
    unlinked: float  # the share of the question's names that are in no title found
    parts: float  # whether it asks for two things
    borrowed: float  # whether it depends on earlier turns


def read_signs(context: TurnContext, read: int) -> PolicySigns:
    """Return the features of a turn that reads only its `read` nearest passages. Those of the web have no scores."""
    terms, hits = set(content_terms(context.search_query)), [hit for hit in context.nearest if hit.dense or hit.lexical]
    shared = [terms.intersection(content_terms(describe_hit(hit))) for hit in hits]
    shares, cosines = [len(terms_in_hit) / max(1, len(terms)) for terms_in_hit in shared], [hit.dense for hit in hits]
    titles = {term for hit in hits for term in content_terms(hit.document.title)}
    names = [set(content_terms(name)) for name in find_entity_names(context.search_query)]
    question = resolve_question(context.talk)
    best, other = (hits[0].score, hits[read].score) if len(hits) > read else (1.0, 0.0)
    return PolicySigns(
        covered=len(set[str]().union(*shared[:read])) / max(1, len(terms)),
        beyond=max(shares[read:], default=0.0) - max(shares[:read], default=0.0),
        nearer=max(cosines[read:], default=0.0) - max(cosines[:read], default=0.0),
        lead=(best - other) / best if best > 0 else 0.0,
        unlinked=sum(not name <= titles for name in names) / len(names) if names else 0.0,
        parts=float(len(split_question(question)) > 1),
        borrowed=float(bool(question.borrowed)),
    )


def predict_gain(signs: PolicySigns) -> float:
    """Return the probability that more evidence is worth its cost, by the learned weights."""
    bias, weights = _load_weights()
    return 1 / (1 + math.exp(-bias - sum(weight * sign for weight, sign in zip(weights, astuple(signs), strict=True))))


@cache
def _load_weights() -> tuple[float, tuple[float, ...]]:
    data = json.loads(resources.files(__package__).joinpath("policy_weights.json").read_text(encoding="utf-8"))
    return data["bias"], tuple(data["weights"][name] for name in PolicySigns.__dataclass_fields__)
