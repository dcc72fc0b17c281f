"""Answer as LLM-Augmenter does: a loop around a fixed model, over an immutable working memory.

A policy picks the next act: ask the model whether the evidence is enough, acquire evidence, ask for a candidate, or
send. A candidate that is not good enough is drafted again with feedback in words, for a bounded number of rounds. Then
the best is sent. Nothing of a candidate is said before that, and every sentence passes the gate.
"""

import time
from dataclasses import asdict, replace

from pipeline.errors import PipelineError, SearchUnavailable
from pipeline.kit import Kit, SystemEntry
from pipeline.stages.augmentation.candidate_utility import ask_itself, propose, rate, send
from pipeline.stages.augmentation.knowledge_consolidator import consolidate
from pipeline.stages.augmentation.policies import choose_act, read_signs
from pipeline.stages.augmentation.working_memory import Act, WorkingMemory, open_memory
from pipeline.stages.question_analysis import detect_small_talk, validate_question
from pipeline.stages.quotation import show_interim_quote
from pipeline.stages.turn_context import add_web, prepare_context
from pipeline.types import Conversation, Status
from storage.types import Step


async def answer(talk: Conversation, kit: Kit) -> Status:
    """Answer the question. Raises a `PipelineError` if nothing can be said."""
    validate_question(talk.question.text, kit.limits)
    if detect_small_talk(talk.question.text):
        return Status.CHATTED
    context = await prepare_context(talk, kit)
    async with show_interim_quote(talk, context.found, kit):
        context = await add_web(context, kit)
        memory = decide_first(open_memory(context, kit.limits.looked_up), kit)
        while (act := choose_act(memory, kit.limits)) is not Act.SEND:
            memory = await perform(act, memory, kit)
    if await send(memory, kit):
        return Status.ANSWERED
    return Status.ABSTAINED if memory.wants_facts else Status.CHATTED


def decide_first(memory: WorkingMemory, kit: Kit) -> WorkingMemory:
    """Reverse the policy's first decision with the probability `explore`, and record the decision.

    If the model decides, or nothing was found to draft from, no decision is reversed or recorded.
    """
    began, limits = time.perf_counter(), kit.limits
    if limits.policy == "self-ask" or not memory.evidence:
        return memory
    memory = replace(memory, explores=limits.explore > 0 and kit.random.random() < limits.explore)
    facts = {
        "policy": limits.policy,
        "acquires": choose_act(memory, limits) is Act.ACQUIRE,
        "propensity": limits.explore if memory.explores else 1 - limits.explore,
        "signs": asdict(read_signs(memory.context, limits.looked_up)),
    }
    kit.note(Step("policy", {"facts": facts}, (time.perf_counter() - began) * 1000), began)
    return memory


async def perform(act: Act, memory: WorkingMemory, kit: Kit) -> WorkingMemory:
    """Return the memory after an act. If the act fails, the loop ends with the best candidate so far."""
    try:
        match act:
            case Act.SELF_ASK:
                return await ask_itself(memory, kit)
            case Act.ACQUIRE:
                return await consolidate(memory, kit)
            case _:
                memory = await propose(memory, kit)
                return await rate(memory, kit)
    except SearchUnavailable:
        raise  # an outage never looks like "I don't know"
    except PipelineError as fault:
        return replace(memory, fault=fault)


ENTRY = SystemEntry(
    "augmenter",
    "Drafts candidates over linked evidence until one is good enough, with feedback on each.",
    answer,
    calls=("query", "need", "answer", "criticism", "verify", "verdicts"),
)
