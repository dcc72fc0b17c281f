"""One turn of any system for an evaluation: real prompts, recorder and gate over whatever library and model it brings.

Unlike `asking`, which takes the extractive system apart to see what it thought, this runs a system as the bot does and
keeps what came of it, whatever that was.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random

from pipeline import unconfigured
from pipeline.asking import Prompter
from pipeline.errors import PipelineError
from pipeline.kit import Compare, Kit, Limits, Search, Supports, System
from pipeline.model import LLM, Spent
from pipeline.recording import Recorder
from pipeline.saying import Gate, Withheld
from pipeline.stages.verifying import second_opinion
from pipeline.supporting import Checker
from pipeline.types import Answer, Conversation, Event, Status
from storage.embedding.states import TokenStates, open_states
from storage.types import Hit, Step


def open_check(home: Path) -> Checker:
    """Return the check that stands at the gate, its model kept in `home`; it holds the event loop while it reads."""
    reader = open_states(home)

    async def read(texts: Sequence[str]) -> tuple[TokenStates, ...]:
        return reader.read(texts)

    return Checker(read)


@dataclass(frozen=True, slots=True)
class Library:
    """What a turn reads in: search and likeness of passages, and the check of sentences against them."""

    search: Search
    compare: Compare
    supports: Supports


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of a turn."""

    answer: Answer
    withheld: tuple[Withheld, ...]
    steps: tuple[Step, ...]
    found: tuple[Hit, ...]
    failure: PipelineError | None = None


async def take(
    system: System,
    talk: Conversation,
    library: Library,
    *,
    now: datetime,
    random: Random,
    llm: LLM | None = None,
    spent: Spent | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    tell: Callable[[Event], None] = lambda _: None,
) -> Taken:
    """Run a system on a conversation; a failure of the pipeline's own is part of what came of it."""
    recorder = Recorder(library.search, tell=tell)
    ask, stream, verify = unconfigured.ask, unconfigured.stream, None
    if llm:
        prompter = Prompter(
            llm, spent or Spent(), note=recorder.note, now=now, random=random, student=limits.student
        )  # fmt: skip
        ask, stream = prompter.ask, prompter.stream
        verify = second_opinion(ask, talk, turns=limits.turns, student=limits.student)
    gate = Gate(found=recorder.found, supports=library.supports, tell=tell, verify=verify)
    kit = Kit(
        ask=ask,
        stream=stream,
        search=recorder.search,
        compare=library.compare,
        supports=library.supports,
        say=gate.say,
        tell=recorder.tell,
        limits=limits,
        now=now,
        random=random,
    )
    try:
        status, failure = await system(talk, kit), None
    except PipelineError as error:
        status, failure = Status.FAILED, error
    answer = gate.answer(status, nearest=recorder.nearest(3), claims=recorder.claims)
    return Taken(answer, gate.withheld, recorder.steps, tuple(recorder.found.values()), failure)
