"""Scripted conversations about an island: its pages, the model's lines at each stage, and turns of systems.

Both of WikiChat's systems take the same script: one generates a response and splits it, the other generates claims.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from pipeline.kit import Limits, System
from pipeline.llm.model import ModelCall
from pipeline.systems import wikichat, wikichat_fast
from pipeline.types import Conversation
from storage.types import Verdict
from tests.pipeline.scripted import Script, ScriptedLLM
from tests.pipeline.world import Outcome, Shelf, Stage, hit, question, reads_alike

SHELF = Shelf([
    hit(
        "Skarholm lighthouse was built in 1887. It stands on the northern point of Skarholm. A keeper lives beside it.",
        key="light.md", title="Skarholm lighthouse", date=datetime(2025, 5, 2, tzinfo=UTC),
    ),
    hit(
        "Oda Hagen designed the lighthouse of Skarholm. Oda Hagen was an engineer from Bergen.",
        key="hagen.md", title="Oda Hagen", date=datetime(2024, 1, 9, tzinfo=UTC),
    ),
    hit(
        "The ferry to Skarholm costs 12 crowns.",
        key="old.md", title="Ferry fares", date=datetime(2021, 3, 1, tzinfo=UTC),
    ),
    hit(
        "The ferry to Skarholm costs 15 crowns.",
        key="new.md", title="New ferry fares", date=datetime(2026, 1, 15, tzinfo=UTC),
    ),
    hit("In the storm of 1953 the pier of Skarholm was lost.", key="storm.md", title="Storms"),
    hit("The pier of Skarholm is made of oak.", key="pier.md", title="Pier"),
])  # fmt: skip
CRITERIA = ("Relevant", "Natural", "Non-repetitive", "Temporally correct")
PERFECT = "\n".join(f"{name}: As it should be. 100/100" for name in CRITERIA)
POOR = "\n".join(f"{name}: Could be better. 40/100" for name in CRITERIA)
SUPPORTS = "Sentences: 1\nWho: it\nReasoning: Sentence 1 says so.\nVerdict: SUPPORTS"
REFUTES = "Reasoning: Sentence 1 says otherwise.\nSentences: 1\nVerdict: REFUTES"
UNKNOWN = "Reasoning: Nothing says so.\nSentences: -\nVerdict: NOT ENOUGH INFO"
SILENT: Script = {
    "query": "Search: yes\nQuery: Skarholm\nTime: none",
    "summarise": "None",
    "generate": "I am not sure.",
    "split": "Nothing",
    "verify": UNKNOWN,
    "draft": "NOTHING",
    "refine": PERFECT,
}
BUILT = {
    "query": "Search: yes\nQuery: Skarholm lighthouse built\nTime: none",
    "summarise": lambda call: "- Skarholm lighthouse was built in 1887. [1]" if "1887" in turn_of(call) else "None",
    "draft": "Skarholm lighthouse was built in 1887 [1].",
}
QUESTION = "When was the lighthouse of Skarholm built?"
WRITTEN = Limits(query="always")


SCRAPS = (
    "Search: yes\n", "Query: Skarholm\n", "Search: no\n", "Time: 1887\n", "None", "- It grew. [1]\n", "{", "\n",
    "- Skarholm lighthouse was built in 1887. [1]\n", "- It was built in 1999. | 1999\n", SUPPORTS, REFUTES, POOR,
    "Skarholm lighthouse was built in 1887 [1]. ", "It was built in 1999 [1]. ", "NOTHING", "```json\n", "x" * 500,
)  # fmt: skip


def turn_of(call: ModelCall) -> str:
    return call.messages[-1].text


def by_source(**lines: str) -> Callable[[ModelCall], str]:
    """Return lines that depend on the page of the passages shown: `Ferry_fares` for the page “Ferry fares”.

    Their sentence numbers count from the first sentence of that page.
    """

    def line(call: ModelCall) -> str:
        shown = re.findall(r"^From: (.*)\n(\d+): ", turn_of(call), re.MULTILINE)
        bullets = (
            re.sub(r"\[(\d+)\]$", lambda mark, at=int(first): f"[{int(mark[1]) + at - 1}]", bullets, flags=re.MULTILINE)
            for place, first in shown
            for title, bullets in lines.items()
            if place.startswith(title.replace("_", " ") + " (")
        )
        return "\n".join(bullets) or "None"

    return line


def lines(script: Script, system: System) -> Script:
    """Return the script of a system: the claims are what the fast system generates."""
    whole = {**SILENT, **script}
    silent = whole["generate"] == "" or isinstance(whole["generate"], Exception)
    return whole if system is wikichat.answer or silent else {**whole, "generate": whole["split"]}


def set_up_turn(
    talk: Conversation | str, script: Script, limits: Limits | None = None, *, system: System, **options
) -> tuple[Stage, ScriptedLLM]:
    llm = ScriptedLLM(lines(script, system), **options)
    conversation = question(talk) if isinstance(talk, str) else talk
    stage = Stage(SHELF, conversation, limits or Limits(), llm, reads_alike)
    stage.kit = replace(stage.kit, quote=lambda _: False)  # interim quotes have their own tests
    return stage, llm


Run = Callable[..., Awaitable[tuple[Outcome, ScriptedLLM]]]
"""Takes a turn: a question or a conversation, a script, and optional limits."""
WIKICHATS: Mapping[str, System] = {"wikichat": wikichat.answer, "wikichat-fast": wikichat_fast.answer}


async def run(
    talk: Conversation | str, script: Script, limits: Limits | None = None, *, system: System, **options
) -> tuple[Outcome, ScriptedLLM]:
    stage, llm = set_up_turn(talk, script, limits, system=system, **options)
    conversation = question(talk) if isinstance(talk, str) else talk
    return stage.finish(await system(conversation, stage.kit)), llm


async def wait_until(happens: Callable[[], bool]) -> None:
    for _ in range(1_000):
        await asyncio.sleep(0)
        if happens():
            return
    raise AssertionError("it never happened")


def verdicts(outcome: Outcome) -> list[tuple[str, Verdict]]:
    return [(claim.claim.text, claim.verdict) for claim in outcome.answer.claims if claim.claim.origin == "model"]
