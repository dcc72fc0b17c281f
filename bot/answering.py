"""The use case: a question is put on record, a system answers it, and the answer is put on record before it leaves.

This is the only place that catches the error tree: whatever happens, the turn is closed with what happened.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random
from textwrap import shorten
from typing import Any

from bot.access import Asker, readable
from bot.app import SYSTEMS, App, settings_digest
from bot.versions import VERSION
from bot.wording import say
from pipeline.errors import PipelineError, SearchUnavailable
from pipeline.kit import Kit, Limits, Search
from pipeline.recording import Recorder
from pipeline.saying import Gate
from pipeline.small_talk import small_talk
from pipeline.supporting import stands_verbatim
from pipeline.types import Answer, AnsweredSentence, Conversation, Event, Status, Turn, Usage
from storage.errors import StorageError, UnknownCorpus
from storage.language.detect import detect
from storage.types import EntryKind, Hit, LogEntry, SearchQuery

NEAREST = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, who asks it, and what came before it."""

    text: str
    asker: Asker
    thread: str = ""
    earlier: tuple[Turn, ...] = ()
    corpora: tuple[str, ...] = ()
    """Which corpora to look in; empty for all that the asker may read."""
    system: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a turn failed or was refused: a kind for programs, a line for people, and what to do."""

    kind: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer as it is delivered, and what it took."""

    answer_id: str
    answer: Answer
    text: str
    """With footnote marks where it was answered; one of our own templates otherwise."""
    system: str
    model: str | None
    usage: Usage
    seconds: float
    failure: Failure | None = None


async def answer(app: App, asked: Asked, tell: Callable[[Event], None]) -> Answered:
    """Answer a question within the asker's scope, and leave a record of how.

    Returns an answer in every case but these.

    Raises:
        UnknownCorpus: a corpus was named that the asker cannot read.
        UnknownSystem: a system was named that there is not.
        StorageError: the turn could not be put on record; nothing was answered.
        asyncio.CancelledError: the turn was cancelled; the record says so.
    """
    system = asked.system or app.system
    if system not in SYSTEMS:
        raise UnknownSystem(system)
    scope = await _scope(app, asked)
    now = datetime.now(app.settings.zone)
    question = Turn("user", asked.text, at=now, language=detect(asked.text[:2_000]))
    answer_id = secrets.token_hex(6)
    opened = await _opening(app, asked, question, scope, system)
    await app.audit.append(LogEntry(answer_id, EntryKind.TURN_OPENED, opened))
    return await _run(app, Conversation((*asked.earlier, question)), scope, system, answer_id, tell)


class UnknownSystem(PipelineError):
    """A system was asked for by a name that there is not."""

    kind = "unknown_system"

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no system “{name}”.", hint=f"There are: {', '.join(sorted(SYSTEMS))}.")


async def _run(
    app: App,
    talk: Conversation,
    scope: tuple[str, ...],
    system: str,
    answer_id: str,
    tell: Callable[[Event], None],
) -> Answered:
    started = time.monotonic()
    recorder = Recorder(_searching(app, scope), tell=tell)
    gate = Gate(found=recorder.found, supports=stands_verbatim, tell=tell)
    kit = _kit(app, recorder, gate, tell, talk, answer_id)
    status, failure = Status.CANCELLED, None
    try:
        async with asyncio.timeout(kit.limits.seconds):
            status = await SYSTEMS[system](talk, kit)
    except TimeoutError:
        status, failure = Status.FAILED, _too_slow(talk, kit.limits)
    except (PipelineError, StorageError) as error:
        status = Status.FAILED if isinstance(error, SearchUnavailable | StorageError) else Status.REFUSED
        failure = Failure(error.kind, str(error), error.hint)
    except Exception as error:
        status, failure = (
            Status.FAILED,
            Failure("internal", shorten(f"{type(error).__name__}: {error}", 200, placeholder=" …"), ""),
        )
        raise
    finally:
        done = gate.answer(status, nearest=recorder.nearest(NEAREST))
        text = failure.message if failure else wording(done, talk.question)
        answered = Answered(answer_id, done, text, system, None, Usage(), time.monotonic() - started, failure)
        await asyncio.shield(_close(app, answered, recorder, gate))
    return answered


def wording(answer: Answer, question: Turn) -> str:
    """Return the text of an answer: its sentences with footnote marks, or our own words for its status; pure."""
    if answer.status is Status.ANSWERED:
        return "".join(map(_marked, answer.sentences)).strip()
    if answer.status is Status.CHATTED:
        kind = small_talk(question.text)
        return say(kind.value if kind else "greeting", question.language)
    if answer.status is Status.ABSTAINED:
        return say("abstained", question.language)
    return say("failed", question.language)


def _marked(sentence: AnsweredSentence) -> str:
    note = f"({sentence.note}) " if sentence.note else ""
    marks = "".join(f"[{number}]" for number in sentence.citations)
    before = "\n\n" if sentence.paragraph else " "
    return f"{before}{note}{sentence.text} {marks}"


def _kit(
    app: App, recorder: Recorder, gate: Gate, tell: Callable[[Event], None], talk: Conversation, answer_id: str
) -> Kit:
    limits = app.settings.limits
    return Kit(
        search=recorder.search,
        compare=app.passages.compare,
        supports=stands_verbatim,
        say=gate.say,
        tell=tell,
        limits=Limits(passages=limits.passages, sentences=limits.sentences, seconds=limits.seconds),
        now=talk.question.at or datetime.now(app.settings.zone),
        random=Random(answer_id),  # noqa: S311 - sampling, not secrets
    )


def _searching(app: App, scope: tuple[str, ...]) -> Search:
    async def search(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        try:
            return await app.passages.search(query.text, scope, k)
        except StorageError as error:
            raise SearchUnavailable(f"The documents cannot be searched: {error}", hint=error.hint) from error

    return search


async def _scope(app: App, asked: Asked) -> tuple[str, ...]:
    """Return the corpora that this turn may read."""
    there = [corpus.name for corpus in await app.manifest.corpora()]
    readers = app.settings.readers
    allowed = readable({name: readers.get(name, ()) for name in there}, asked.asker)
    for name in asked.corpora:
        if name not in allowed:
            known = ", ".join(allowed) or "none yet: run `footnote ingest folder PATH --corpus NAME`"
            raise UnknownCorpus(f"There is no corpus “{name}” to read here.", hint=f"There are: {known}.")
    return tuple(name for name in allowed if not asked.corpora or name in asked.corpora)


async def _opening(app: App, asked: Asked, question: Turn, scope: tuple[str, ...], system: str) -> Mapping[str, Any]:
    refreshed = {corpus.name: corpus.refreshed for corpus in await app.manifest.corpora()}
    return {
        "asker": asked.asker,
        "thread": asked.thread,
        "question": asked.text,
        "language": question.language,
        "earlier": [turn.text for turn in asked.earlier],
        "system": system,
        "model": None,
        "corpora": {name: refreshed[name] for name in scope},
        "version": VERSION,
        "settings": settings_digest(app.settings),
        "embedder": app.passages.embedder.name,
    }


async def _close(app: App, answered: Answered, recorder: Recorder, gate: Gate) -> None:
    steps = [
        LogEntry(
            answered.answer_id, EntryKind.STEP, {**step.facts, "stage": step.stage, "milliseconds": step.milliseconds}
        )
        for step in recorder.steps
    ]
    body = {
        "status": answered.answer.status,
        "text": answered.text,
        "sentences": answered.answer.sentences,
        "citations": answered.answer.citations,
        "claims": answered.answer.claims,
        "nearest": [
            {"passage_id": hit.passage.id, "title": hit.document.title, "url": hit.document.url}
            for hit in answered.answer.nearest
        ],
        "withheld": gate.withheld,
        "system": answered.system,
        "model": answered.model,
        "usage": answered.usage,
        "seconds": answered.seconds,
        "failure": answered.failure,
    }
    await app.audit.append(*steps, LogEntry(answered.answer_id, EntryKind.TURN_CLOSED, body))


def _too_slow(talk: Conversation, limits: Limits) -> Failure:
    return Failure(
        "too_slow",
        say("too_slow", talk.question.language),
        f"The limit is {limits.seconds:g} seconds: raise [limits] seconds, or ask again.",
    )
