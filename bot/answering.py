"""The use case: a question is put on record, a system answers it, and the answer is put on record before it leaves.

This is the only place that catches the error tree: whatever happens, the turn is closed with what happened.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from textwrap import shorten

from bot.access import readable
from bot.app import App
from bot.turn_record import closing, opening
from bot.turns import Answered, Asked, Failure
from bot.wording import say, wording
from pipeline import unconfigured
from pipeline.errors import PipelineError, SearchUnavailable
from pipeline.kit import Kit, Limits, Search
from pipeline.recording import Recorder
from pipeline.saying import Gate
from pipeline.supporting import verbatim
from pipeline.types import Conversation, Event, Status, Turn, Usage
from storage.errors import StorageError, UnknownCorpus
from storage.language.detect import detect
from storage.types import Corpus, EntryKind, Hit, LogEntry, SearchQuery

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
    system = asked.system or app.system
    if system not in app.systems:
        known = ", ".join(sorted(app.systems))
        raise UnknownSystem(f"There is no system “{system}”.", hint=f"There are: {known}.")
    catalogue = await app.manifest.catalogue()
    scope = _scope(app, asked, catalogue)
    now = datetime.now(app.settings.zone)
    question = Turn("user", asked.text, at=now, language=detect(asked.text[:2_000]))
    turn = _Turn(app, Conversation((*asked.earlier, question)), scope, system, secrets.token_hex(6), tell)
    read = {corpus.name: corpus.refreshed for corpus in catalogue if corpus.name in scope}
    opened = opening(asked.asker, asked.thread, turn.talk, system=system, corpora=read, versions=app.versions)
    await app.audit.append(LogEntry(turn.id, EntryKind.TURN_OPENED, opened))
    return await _run(turn)


class UnknownSystem(PipelineError):
    """A system was asked for by a name that there is not."""

    kind = "unknown_system"


@dataclass(frozen=True, slots=True)
class _Turn:
    """What one turn works with."""

    app: App
    talk: Conversation
    scope: tuple[str, ...]
    system: str
    id: str
    tell: Callable[[Event], None]


async def _run(turn: _Turn) -> Answered:
    started = time.monotonic()
    recorder = Recorder(_searching(turn), tell=turn.tell)
    gate = Gate(found=recorder.found, supports=verbatim, tell=turn.tell)
    kit = _kit(turn, recorder, gate)
    status, failure = Status.CANCELLED, None
    try:
        async with asyncio.timeout(kit.limits.seconds):
            status = await turn.app.systems[turn.system](turn.talk, kit)
    except TimeoutError:
        status, failure = Status.FAILED, _too_slow(turn.talk, kit.limits)
    except (PipelineError, StorageError) as error:
        status = Status.FAILED if isinstance(error, SearchUnavailable | StorageError) else Status.REFUSED
        failure = Failure(error.kind, str(error), error.hint)
    except Exception as error:
        status, failure = Status.FAILED, _unexpected(error)
        raise
    finally:
        done = gate.answer(status, nearest=recorder.nearest(NEAREST))
        text = failure.message if failure else wording(done, turn.talk.question)
        seconds = time.monotonic() - started
        answered = Answered(turn.id, done, text, turn.system, None, Usage(), seconds, failure)
        await asyncio.shield(turn.app.audit.append(*closing(answered, recorder.steps, gate.withheld)))
    return answered


def _kit(turn: _Turn, recorder: Recorder, gate: Gate) -> Kit:
    limits = turn.app.settings.limits
    return Kit(
        ask=unconfigured.ask,
        stream=unconfigured.stream,
        search=recorder.search,
        compare=turn.app.passages.compare,
        supports=verbatim,
        say=gate.say,
        tell=turn.tell,
        limits=Limits(passages=limits.passages, sentences=limits.sentences, seconds=limits.seconds),
        now=turn.talk.question.at or datetime.now(turn.app.settings.zone),
        random=Random(turn.id),  # noqa: S311 - sampling, not secrets
    )


def _searching(turn: _Turn) -> Search:
    async def search(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        try:
            return await turn.app.passages.search(query.text, turn.scope, k)
        except StorageError as error:
            raise SearchUnavailable(f"The documents cannot be searched: {error}", hint=error.hint) from error

    return search


def _scope(app: App, asked: Asked, catalogue: Sequence[Corpus]) -> tuple[str, ...]:
    """Return the corpora that this turn may read."""
    readers = app.settings.readers
    allowed = readable({corpus.name: readers.get(corpus.name, ()) for corpus in catalogue}, asked.asker)
    for name in asked.corpora:
        if name not in allowed:
            known = ", ".join(allowed) or "none yet: run `footnote ingest folder PATH --corpus NAME`"
            raise UnknownCorpus(f"There is no corpus “{name}” to read here.", hint=f"There are: {known}.")
    return tuple(name for name in allowed if not asked.corpora or name in asked.corpora)


def _unexpected(error: Exception) -> Failure:
    # A library's message may hold whole documents: its beginning says enough.
    return Failure("internal", shorten(f"{type(error).__name__}: {error}", 200, placeholder=" …"), "")


def _too_slow(talk: Conversation, limits: Limits) -> Failure:
    return Failure(
        "too_slow",
        say("too_slow", talk.question.language),
        f"The limit is {limits.seconds:g} seconds: raise [limits] seconds, or ask again.",
    )
