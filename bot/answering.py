"""The use case: a question is put on record, a system answers it, and the answer is put on record before it leaves.

This is the only place that catches the error tree: whatever happens, the turn is closed with what happened.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from structlog.contextvars import bound_contextvars

from bot.access import readable
from bot.app import CHECKS, TEXT_CHECKS, App
from bot.failures import OURS, failed, said, unexpected
from bot.kits import Tools, equipped
from bot.turn_record import closing, interruption, opening, unanswered
from bot.turns import Answered, Asked, Failure
from bot.wording import verdict, wording
from pipeline.errors import PipelineError
from pipeline.kit import Supports, System
from pipeline.types import Answer, AnsweredSentence, Conversation, Event, Said, Status, Turn
from storage.errors import UnknownCorpus
from storage.language.detect import detect
from storage.types import Corpus, EntryKind, LogEntry

NEAREST = 3


async def answer(app: App, asked: Asked, tell: Callable[[Event], None]) -> Answered:
    """Answer a question within the asker's scope, and leave a record of how.

    Returns an answer in every case but these.

    Raises:
        UnknownCorpus: a corpus was named that the asker cannot read.
        UnknownSystem: a system was named that there is not.
        StorageError: the turn could not be put on record; nothing was answered.
        asyncio.CancelledError: the turn was cancelled; the record says so.
    """
    return await _taken(app, asked, tell, Task("ask", app.systems, app.supports, wording))


async def check(app: App, asked: Asked, tell: Callable[[Event], None]) -> Answered:
    """Check a claim as a question is answered; the verdict is the claim's in the answer, citations are its evidence.

    Raises as `answer` does.
    """
    return await _taken(app, asked, tell, Task("check", CHECKS, app.examines, verdict))


async def check_text(app: App, asked: Asked, tell: Callable[[Event], None]) -> Answered:
    """Check each statement of a text; every one is a claim of the answer with a verdict of its own.

    A text of one statement is checked as `check` does. Raises as `answer` does.
    """
    return await _taken(app, asked, tell, Task("check", TEXT_CHECKS, app.examines, verdict))


@dataclass(frozen=True, slots=True)
class Task:
    """What is done with what somebody wrote, and how its outcome is put into words."""

    name: str
    systems: Mapping[str, System]
    supports: Supports
    words: Callable[[Answer, Turn], str]


async def _taken(app: App, asked: Asked, tell: Callable[[Event], None], task: Task) -> Answered:
    system = asked.system or app.system
    if system not in task.systems:
        known = ", ".join(sorted(task.systems))
        raise UnknownSystem(f"There is no system “{system}”.", hint=f"There are: {known}.")
    catalogue = await app.manifest.catalogue()
    scope = _scope(app, asked, catalogue)
    question = Turn("user", asked.text, at=datetime.now(app.settings.zone), language=detect(asked.text[:2_000]))
    talk = Conversation((*asked.earlier, question))
    turn = _Turn(app, task, talk, scope, system, asked.id or secrets.token_hex(6), tell)
    read = {corpus.name: corpus.refreshed for corpus in catalogue if corpus.name in scope}
    ran = {"task": task.name, "system": system, "model": app.model, **app.versions}
    with bound_contextvars(turn=turn.id, **({"ticket": asked.ticket} if asked.ticket else {})):
        await app.audit.append(LogEntry(turn.id, EntryKind.TURN_OPENED, opening(asked, talk, read, ran)))
        return await _run(turn)


async def close_interrupted(app: App, turn_id: str) -> bool:
    """Close a turn that was opened and never closed; return whether there was one. Nobody may be running it.

    Raises:
        StorageError: the record cannot be read or written.
    """
    entries = await app.audit.turn(turn_id)
    kinds = {entry.kind for entry in entries}
    if EntryKind.TURN_OPENED not in kinds or EntryKind.TURN_CLOSED in kinds:
        return False
    await app.audit.append(interruption(turn_id, language=str(entries[0].body.get("language", ""))))
    return True


async def record_unanswered(app: App, asked: Asked, task: str, status: Status, failure: Failure) -> None:
    """Put a question on record that nothing was looked up for, with the reason: it was refused, stopped, or failed.

    Raises:
        StorageError: the record cannot be written.
    """
    language = detect(asked.text[:2_000])
    talk = Conversation((*asked.earlier, Turn("user", asked.text, language=language)))
    ran = {"task": task, "system": asked.system or app.system, "model": app.model, **app.versions}
    opened = LogEntry(asked.id, EntryKind.TURN_OPENED, opening(asked, talk, {}, ran))
    await app.audit.append(opened, unanswered(asked.id, status, failure))


class UnknownSystem(PipelineError):
    """A system was asked for by a name that there is not."""

    kind = "unknown_system"


@dataclass(frozen=True, slots=True)
class _Turn:
    """What one turn works with."""

    app: App
    task: Task
    talk: Conversation
    scope: tuple[str, ...]
    system: str
    id: str
    tell: Callable[[Event], None]


async def _run(turn: _Turn) -> Answered:
    started = time.monotonic()
    system, spoken = turn.task.systems[turn.system], list[AnsweredSentence]()
    tell = _noting(turn.tell, spoken)
    tools = equipped(turn.app, turn.talk, turn.scope, seed=turn.id, tell=tell, supports=turn.task.supports)
    limits, language = tools.kit.limits, turn.talk.question.language
    status, failure = Status.CANCELLED, None
    try:
        async with asyncio.timeout(limits.seconds):
            status = await system(turn.talk, tools.kit)
    except OURS as error:
        late = time.monotonic() >= tools.deadline
        status, failure = failed(error, language, seconds=limits.seconds, late=late)
    except Exception as error:
        status, failure = Status.FAILED, unexpected(error)
        raise
    finally:
        answered = _answered(turn, tools, status, failure, time.monotonic() - started)
        closed = closing(answered, tools.recorder.steps, tools.gate.withheld, spoken)
        await _to_the_end(turn.app.audit.append(*closed))
    return answered


async def _to_the_end(work: Coroutine[Any, Any, object]) -> None:
    """Wait until work has ended, however often this is cancelled; it is cancelled then."""
    task, cancelled = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    task.result()
    if cancelled:
        raise asyncio.CancelledError


def _noting(tell: Callable[[Event], None], spoken: list[AnsweredSentence]) -> Callable[[Event], None]:
    """Pass events on, and note the sentences that are shown before the answer is whole."""

    def told(event: Event) -> None:
        if isinstance(event, Said):
            spoken.append(event.sentence)
        tell(event)

    return told


def _answered(turn: _Turn, tools: Tools, status: Status, failure: Failure | None, seconds: float) -> Answered:
    recorder, question = tools.recorder, turn.talk.question
    done = tools.gate.answer(status, nearest=recorder.nearest(NEAREST), claims=recorder.claims)
    text = said(status, failure, question.language) if failure else turn.task.words(done, question)
    model = turn.app.model if recorder.usage.llm_calls else None
    return Answered(turn.id, done, text, turn.system, model, recorder.usage, seconds, failure)


def _scope(app: App, asked: Asked, catalogue: Sequence[Corpus]) -> tuple[str, ...]:
    """Return the corpora that this turn may read. To name one out of reach is an error, whatever keeps it so."""
    readers = app.settings.readers
    allowed = readable({corpus.name: readers.get(corpus.name, ()) for corpus in catalogue}, asked.asker)
    if asked.within is not None:
        allowed = tuple(name for name in allowed if name in asked.within)
    for name in asked.corpora:
        if name not in allowed:
            known = ", ".join(allowed) or "none yet: run `footnote ingest folder PATH --corpus NAME`"
            raise UnknownCorpus(f"There is no corpus “{name}” to read here.", hint=f"There are: {known}.")
    return tuple(name for name in allowed if not asked.corpora or name in asked.corpora)
