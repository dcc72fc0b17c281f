"""Answer a question: put it on record, let a system answer it, and put the answer on record before it leaves.

This is the only place that catches the error tree: whatever happens, the turn is closed with what happened.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from operator import attrgetter
from textwrap import shorten
from typing import Any

from structlog.contextvars import bound_contextvars

from bot.access import Asker, select_readable
from bot.answering.introduction import load_introduction
from bot.answering.pinned_answers import find_pinned
from bot.answering.turn_kit import TurnTools, build_kit
from bot.answering.turn_record import build_closing_entries, build_interruption, build_opening, build_unanswered
from bot.answering.turn_versions import read_versions
from bot.app import App
from bot.corpus_access import find_forgotten_documents, list_corpora
from bot.types import Failure, PinMark, TurnRequest, TurnResult
from bot.views.catalog import find_apology, render_answer_text, render_verdict_text, translate
from bot.views.introduction_view import render_introduction
from pipeline.errors import (
    BudgetExceeded,
    ModelRefused,
    NotAClaim,
    PipelineError,
    QuestionTooLong,
    QuestionWithoutWords,
)
from pipeline.kit import Effort, Supports, System, SystemEntry, lower_effort
from pipeline.systems import find_check, find_system, find_text_check
from pipeline.types import Answer, AnsweredSentence, Conversation, Event, SentencePassed, Status, Turn
from storage.errors import StorageError, UnknownCorpus, contain_panics
from storage.language.detection import detect_language
from storage.types import Corpus, DocumentId, EntryKind, Hit, LogEntry, SearchQuery

EXPECTED_ERRORS = (TimeoutError, PipelineError, StorageError)  # what a turn may end in without a fault of the code
_REFUSALS = (BudgetExceeded, ModelRefused, NotAClaim, QuestionTooLong, QuestionWithoutWords)
TOO_SLOW = "too_slow"
PINNED = "pinned"  # stands on record in the place of a system where an answer was pinned
MAX_NEAREST_PAGES = 3
ABANDONED_AFTER = timedelta(hours=2)  # no turn may take so long

log = logging.getLogger(__name__)


async def answer(app: App, request: TurnRequest, tell: Callable[[Event], None]) -> TurnResult:
    """Answer a question within the asker's scope, and leave a record of how.

    Returns an answer in every case but these.

    Raises:
        UnknownCorpus: a corpus was named that the asker cannot read.
        UnknownSystem: a system was named that there is not.
        StorageError: the turn could not be put on record; nothing was answered.
        asyncio.CancelledError: the turn was cancelled; the record says so.
    """
    return await _run_task(app, request, tell, _TaskSpec("ask", attrgetter("answer"), app.supports, render_answer_text))


async def check(app: App, request: TurnRequest, tell: Callable[[Event], None]) -> TurnResult:
    """Check a claim as a question is answered; the verdict is the claim's in the answer, citations are its evidence.

    Raises as `answer` does.
    """
    return await _run_task(app, request, tell, _TaskSpec("check", find_check, app.examines, render_verdict_text))


async def check_text(app: App, request: TurnRequest, tell: Callable[[Event], None]) -> TurnResult:
    """Check each statement of a text; every one is a claim of the answer with a verdict of its own.

    A text of one statement is checked as `check` does. Raises as `answer` does.
    """
    return await _run_task(app, request, tell, _TaskSpec("check", find_text_check, app.examines, render_verdict_text))


@dataclass(frozen=True, slots=True)
class _TaskSpec:
    """How a task is run: by which of a system's functions, checked by what, and put into words how."""

    name: str
    choose: Callable[[SystemEntry], System]  # what of a system does it
    supports: Supports
    words: Callable[[Answer, Turn], str]


async def _run_task(app: App, request: TurnRequest, tell: Callable[[Event], None], task: _TaskSpec) -> TurnResult:
    app = app.snapshot()
    entry = find_system(request.system or app.system, app.systems)
    catalogue = await list_corpora(app.settings, app.manifest)
    scope = _select_scope(app, request, catalogue)
    request = replace(request, earlier=await _recall_earlier(app, request))
    question = Turn("user", request.text, at=datetime.now(app.settings.zone), language=_detect_language(request))
    talk = Conversation((*request.earlier, question))
    tone = app.settings.tone if request.tone is None else request.tone
    # A check is as thorough whatever answers are.
    effort = _choose_effort(app, request.effort or app.settings.effort, entry) if task.name == "ask" else {}
    turn_id = request.id or secrets.token_hex(6)
    how = (tone, request.asker, effort.get("effort"))
    turn = _Turn(app, task, talk, scope, entry, turn_id, request.seed or turn_id, tell, *how)
    read = {corpus.name: corpus.refreshed for corpus in catalogue if corpus.name in scope}
    ran = {"task": task.name, "system": entry.name, "tone": tone, "model": app.model, **read_versions(app), **effort}
    with bound_contextvars(turn=turn.id, **({"ticket": request.ticket} if request.ticket else {})):
        await app.audit.append(LogEntry(turn.id, EntryKind.TURN_OPENED, build_opening(request, talk, read, ran)))
        return await _run_turn(turn)


def _choose_effort(app: App, wanted: Effort, entry: SystemEntry) -> Mapping[str, Any]:
    """Return the effort for the record, one less than is wanted where the model's server is slow or busy, and why."""
    pressure = app.load.decide(app.settings.model.slow_seconds) if entry.calls else None
    effort = lower_effort(wanted) if pressure else wanted
    if pressure is None or effort == wanted:
        return {"effort": wanted}
    figures = {name: round(value, 2) for name, value in asdict(pressure.figures).items()}
    return {"effort": effort, "lowered": {"from": wanted, "because": pressure.because, **figures}}


async def close_interrupted(app: App, turn_id: str) -> bool:
    """Close a turn that was opened and never closed; return whether there was one. Nobody may be running it.

    Raises:
        StorageError: the record cannot be read or written.
    """
    entries = {entry.kind: entry for entry in await app.audit.turn(turn_id)}
    if EntryKind.TURN_OPENED not in entries or EntryKind.TURN_CLOSED in entries:
        return False
    await app.audit.append(build_interruption(entries[EntryKind.TURN_OPENED]))
    return True


async def close_abandoned(app: App, now: datetime) -> None:
    """Close the turns that killed processes left open; this one has opened none yet.

    Where several processes share a database, only those that nobody can be running any more. A record that cannot be
    written now is for the next start.
    """
    try:
        left = await app.audit.unfinished(now - ABANDONED_AFTER if app.settings.database else None)
        if left:
            await app.audit.append(*map(build_interruption, left))
            log.info("turns closed that a process left open: %d", len(left))
    except StorageError as error:
        log.warning("turns that a process left open could not be closed", extra={"cause": str(error)})


async def record_unanswered(app: App, request: TurnRequest, task: str, status: Status, failure: Failure) -> None:
    """Put a question on record that nothing was looked up for, with the reason: it was refused, stopped, or failed.

    Raises:
        StorageError: the record cannot be written.
    """
    talk = Conversation((*request.earlier, Turn("user", request.text, language=_detect_language(request))))
    ran = {"task": task, "system": request.system or app.system, "model": app.model, **read_versions(app)}
    opened = LogEntry(request.id, EntryKind.TURN_OPENED, build_opening(request, talk, {}, ran))
    await app.audit.append(opened, build_unanswered(request.id, status, failure))


async def _recall_earlier(app: App, request: TurnRequest) -> tuple[Turn, ...]:
    """Return what was said earlier, without the turns that stand on what was forgotten since. Raises `StorageError`."""
    return drop_turns(request.earlier, await find_forgotten_documents(app.manifest, list_documents(request.earlier)))


def list_documents(turns: Iterable[Turn]) -> frozenset[DocumentId]:
    return frozenset(one for turn in turns for one in turn.documents)


def drop_turns(turns: Sequence[Turn], gone: Collection[DocumentId]) -> tuple[Turn, ...]:
    """Return turns without those that stand on any of these documents, nor the question before each; pure."""
    dropped = {number for number, turn in enumerate(turns) if not set(turn.documents).isdisjoint(gone)}
    asked = {number - 1 for number in dropped if number and turns[number - 1].speaker == "user"}
    return tuple(turn for number, turn in enumerate(turns) if number not in dropped | asked)


def _detect_language(request: TurnRequest) -> str:
    return detect_language(request.text[:2_000])


@dataclass(frozen=True, slots=True)
class _Turn:
    app: App
    task: _TaskSpec
    talk: Conversation
    scope: tuple[str, ...]
    system: SystemEntry
    id: str
    seed: str
    tell: Callable[[Event], None]
    tone: str
    asker: Asker
    effort: Effort | None


async def _run_turn(turn: _Turn) -> TurnResult:
    started = time.monotonic()
    system, spoken = turn.task.choose(turn.system), list[AnsweredSentence]()
    tell = _collect_spoken(turn.tell, spoken)
    effort = turn.effort or "normal"
    tools = build_kit(
        turn.app,
        turn.talk,
        turn.scope,
        seed=turn.seed,
        tell=tell,
        supports=turn.task.supports,
        tone=turn.tone,
        effort=effort,
    )
    limits, language = tools.kit.limits, turn.talk.question.language
    status, failure, pinned, said = Status.CANCELLED, None, None, ""
    try:
        with contain_panics():
            async with asyncio.timeout(limits.seconds):
                pinned = await _say_pinned(turn, tools)
                status = Status.ANSWERED if pinned else await system(turn.talk, tools.kit)
                said = await _introduce(turn, tools) if status is Status.CHATTED else ""
    except EXPECTED_ERRORS as error:
        late = time.monotonic() >= tools.deadline
        status, failure = classify_error(error, language, seconds=limits.seconds, late=late)
    except Exception as error:
        status, failure = Status.FAILED, describe_bug(error)
        raise
    finally:
        result = _build_result(turn, tools, status, failure, time.monotonic() - started)
        result = replace(result, text=said) if said else result
        result = replace(result, system=PINNED, pinned=pinned) if pinned else result
        closed = build_closing_entries(result, tools.recorder.steps, tools.gate.withheld, spoken)
        await _finish_uncancelled(turn.app.audit.append(*closed))
    return result


async def _say_pinned(turn: _Turn, tools: TurnTools) -> PinMark | None:
    """Say the answer that is pinned to the question, if each of its sentences passes the gate; return whose it is."""
    if turn.task.name != "ask":
        return None
    app, kit = turn.app, tools.kit
    find_forgotten = partial(find_forgotten_documents, app.manifest)
    standing = await find_pinned(app.examples, turn.talk, turn.scope, find_forgotten, app.manifest.recall)
    if standing is None:
        return None

    async def fetch(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        del query
        return standing.hits[:k]

    await tools.recorder.fetch(fetch, SearchQuery(turn.talk.question.text), len(standing.hits))
    before = ("", *(sentence.text for sentence in standing.sentences))
    judged = map(kit.judge, standing.sentences, before)
    if not all(await asyncio.gather(*judged)):
        return None
    said = [await kit.say(sentence) for sentence in standing.sentences]
    return standing.pinned.mark if any(said) else None


async def _introduce(turn: _Turn, tools: TurnTools) -> str:
    """Return who we are and what may be read there, for whoever asks that; empty for other small talk."""
    from pipeline.stages.question_analysis import SmallTalk, detect_small_talk  # its patterns are for those who answer

    question = turn.talk.question
    if detect_small_talk(question.text) is not SmallTalk.ABOUT:
        return ""
    found = await load_introduction(turn.app.manifest, turn.scope, question.language)

    async def fetch(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        del query
        return found.sources[:k]

    # On record are the pages that it names, so that it is shown nowhere that they may not be read.
    await tools.recorder.fetch(fetch, SearchQuery(question.text), len(found.sources))
    mention = turn.asker.kind == "channel"
    return render_introduction(found, question.language, turn.app.settings.zone, mention=mention)


async def _finish_uncancelled(work: Coroutine[Any, Any, object]) -> None:
    """Wait until work has ended, however often this is cancelled; the cancellation is raised then."""
    task, cancelled = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    task.result()
    if cancelled:
        raise asyncio.CancelledError


def _collect_spoken(tell: Callable[[Event], None], spoken: list[AnsweredSentence]) -> Callable[[Event], None]:
    """Pass events on, and note the sentences that are shown before the answer is whole."""

    def told(event: Event) -> None:
        if isinstance(event, SentencePassed):
            spoken.append(event.sentence)
        tell(event)

    return told


def _build_result(turn: _Turn, tools: TurnTools, status: Status, failure: Failure | None, seconds: float) -> TurnResult:
    recorder, question = tools.recorder, turn.talk.question
    done = tools.gate.answer(status, nearest=recorder.nearest(MAX_NEAREST_PAGES), claims=recorder.claims)
    text = render_failure(status, failure, question.language) if failure else turn.task.words(done, question)
    model = turn.app.model if recorder.usage.llm_calls else None
    remembered = list_documents(turn.talk.earlier)
    ran = (turn.system.name, model, recorder.usage, seconds)
    return TurnResult(turn.id, done, text, *ran, failure, remembered, effort=turn.effort)


def _select_scope(app: App, request: TurnRequest, catalogue: Sequence[Corpus]) -> tuple[str, ...]:
    """Return the corpora that a turn may read. Naming one out of reach is an error, whatever keeps it so."""
    readers = app.settings.visible_to
    allowed = select_readable({corpus.name: readers.get(corpus.name, ()) for corpus in catalogue}, request.asker)
    if request.within is not None:
        allowed = tuple(name for name in allowed if name in request.within)
    for name in request.corpora:
        if name not in allowed:
            known = ", ".join(allowed) or "none yet: run `footnote ingest folder PATH --corpus NAME`"
            raise UnknownCorpus(f"There is no corpus “{name}” to read here.", hint=f"There are: {known}.")
    return tuple(name for name in allowed if not request.corpora or name in request.corpora)


def classify_error(error: Exception, language: str, *, seconds: float, late: bool) -> tuple[Status, Failure]:
    """Return how a turn ended with one of `EXPECTED_ERRORS`, in the asker's language where we have words for it.

    A turn may take so many `seconds`; where it is `late`, an error of the budget is the clock's.
    """
    if isinstance(error, TimeoutError) or (late and isinstance(error, BudgetExceeded)):
        hint = f"The limit is {seconds:g} seconds: raise [limits] seconds, or ask again."
        return Status.FAILED, Failure(TOO_SLOW, find_apology(TOO_SLOW, language), hint)
    if not isinstance(error, PipelineError | StorageError):
        return Status.FAILED, describe_bug(error)
    status = Status.REFUSED if isinstance(error, _REFUSALS) else Status.FAILED
    sentence, detail = find_apology(error.kind, language), str(error)
    message = f"{sentence.rstrip('.。')}: {detail}" if sentence else detail
    return status, Failure(error.kind, message, error.hint)


def describe_bug(error: Exception) -> Failure:
    """Describe a fault of the code in short."""
    # A library's message may hold whole documents: its beginning says enough.
    return Failure("internal", shorten(f"{type(error).__name__}: {error}", 200, placeholder=" …"), "")


def render_failure(status: Status, failure: Failure, language: str) -> str:
    """Return what is said in the place of an answer: our own words where we have some, without what is technical.

    Whoever asked can do nothing about what failed, but ask again or tell somebody who can.
    """
    sentence = find_apology(failure.kind, language)
    if status is Status.REFUSED:
        return sentence or failure.message
    return join_sentences(sentence, translate("again_later", language)) if sentence else translate("failed", language)


def join_sentences(*sentences: str) -> str:
    """Return sentences one after another, with a blank between them where their writing has one."""
    return "".join(sentence if sentence.endswith("。") else f"{sentence} " for sentence in sentences).strip()
