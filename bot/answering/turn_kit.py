"""Build the tools of one turn: its kit, searches, gate and recorder, with one budget for all model calls.

A turn searches the corpora of its scope, and the web if that is in its scope. The manifest lists no web pages: their
corpus exists while a search engine is configured, and a page until it is forgotten.
"""

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random

from bot.access import find_forgotten_documents
from bot.answering.example_pool import load_demos
from bot.app import App
from ingest.types import SourceUnavailable
from pipeline.errors import QuestionTooLong, QuestionWithoutWords, SearchUnavailable
from pipeline.gate import Gate, Recorder, Verify
from pipeline.kit import Ask, Effort, Kit, Limits, Search, Stream, Supports, ask_unconfigured, stream_unconfigured
from pipeline.llm.model import BudgetMeter
from pipeline.prompts.demo_ranking import TurnDemos
from pipeline.stages.draft.sentence_judging import SentenceJudge
from pipeline.types import Conversation, Event, Support
from storage.errors import StorageError
from storage.language.words import words
from storage.manifest import Manifest
from storage.types import Document, Evidence, Hit, SearchQuery, is_web_corpus

FindDocument = Callable[[str, str], Awaitable[Document | None]]
"""Returns a document by its corpus and key; None if it no longer exists."""


@dataclass(frozen=True, slots=True)
class TurnTools:
    """The tools of one turn: its kit, and the gate and recorder, whose results are read at its end."""

    kit: Kit
    gate: Gate
    recorder: Recorder
    deadline: float  # on `time.monotonic()`


def build_kit(
    app: App,
    talk: Conversation,
    scope: tuple[str, ...],
    *,
    seed: str,
    tell: Callable[[Event], None],
    supports: Supports,
    tone: str = "",
    effort: Effort = "normal",
) -> TurnTools:
    """Return the tools for answering the last turn of a conversation. The turn's time starts now.

    Args:
        app: The application, under one snapshot of its settings.
        talk: The conversation; its last turn is the question.
        scope: The corpora that may be read.
        seed: Makes fences and samples repeatable.
        tell: Receives the turn's events.
        supports: The local check of a sentence against its evidence.
        tone: How the model is asked to word its text.
        effort: How much is searched and verified.
    """
    limits = app.settings.limits.kit(student=app.settings.model.student).at(effort)
    deadline = time.monotonic() + limits.seconds
    search, engine = build_search(app, scope), build_engine(app, scope)
    still_supports = require_existing(supports, build_find_document(app.manifest))
    recorder = Recorder(search, tell=tell, engine=engine)
    random = Random(seed)  # noqa: S311 - sampling, not secrets
    now = talk.question.at or datetime.now(app.settings.zone)
    ask: Ask = ask_unconfigured
    stream: Stream = stream_unconfigured
    verify: Verify | None = None
    seen = Conversation(talk.turns[-limits.turns :])
    compare = app.passages.compare
    find_forgotten = partial(find_forgotten_documents, app.manifest)
    demos = TurnDemos(partial(load_demos, app.examples, scope, find_forgotten), compare)
    if app.llm:
        from pipeline.prompts.prompter import Prompter  # imports jinja2

        spent, student = BudgetMeter(app.settings.limits.budget, deadline=deadline), limits.student
        prompter = Prompter(
            app.llm,
            spent,
            note=recorder.note,
            now=now,
            random=random,
            student=student,
            tone=tone,
            demos=lambda: demos.shown,
            sharing=app.settings.model.plain().shares_beginning,
        )
        ask, stream = prompter.ask, prompter.stream
        verify = SentenceJudge(stream, seen, student=student)
    gate = Gate(
        found=recorder.found,
        supports=still_supports,
        tell=tell,
        verify=verify,
        asked=tuple(turn.text for turn in seen.turns),
    )
    kit = Kit(
        ask=ask,
        stream=stream,
        search=recorder.search,
        corpora=sum(not is_web_corpus(name) for name in scope),
        engine=recorder.engine,
        compare=compare,
        demos=demos,
        rerank=app.rerank,
        supports=supports,
        say=gate.say,
        judge=gate.judge,
        prefers_quotation=gate.prefers_quotation,
        end_draft=gate.end_draft,
        tell=recorder.tell,
        limits=limits,
        now=now,
        random=random,
        run_in_thread=app.passages.threads.think.run,
        busy=app.llm.busy if app.llm else lambda: False,
        quote=gate.quote,
    )
    return TurnTools(kit, gate, recorder, deadline)


def build_search(app: App, scope: Sequence[str]) -> Search:
    """Return the search of one turn in the ingested corpora of its scope."""
    corpora = tuple(name for name in scope if not is_web_corpus(name))

    async def search(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        with _report_search_outage():
            return await app.passages.search(query.text, corpora, k)

    return snapshot_search(search)


def build_engine(app: App, scope: Sequence[str]) -> Search | None:
    """Return the web search of one turn, whose `k` counts pages; None if the web is not in its scope."""
    web, manifest = app.web, app.manifest
    if web is None or web.corpus not in scope:
        return None

    async def search(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        with _report_search_outage():
            return await web.search(query.text, k, await manifest.forgotten(web.corpus))

    return snapshot_search(search)


def snapshot_search(search: Search) -> Search:
    """Wrap a turn's search so that every document keeps the version of its first hit; other hits are dropped."""
    versions: dict[tuple[str, str], Document] = {}

    async def search_snapshot(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        hits = await search(query, k)
        for hit in hits:
            versions.setdefault((hit.document.corpus, hit.document.key), hit.document)
        return tuple(hit for hit in hits if versions[hit.document.corpus, hit.document.key] == hit.document)

    return search_snapshot


def build_find_document(manifest: Manifest) -> FindDocument:
    async def find(corpus: str, key: str) -> Document | None:
        with _report_search_outage():
            if not is_web_corpus(corpus):
                return await manifest.document(corpus, key)
            return None if key in await manifest.forgotten(corpus) else Document(corpus, key, "")

    return find


def require_existing(supports: Supports, find: FindDocument) -> Supports:
    """Wrap a check so that it also fails if a cited document no longer exists.

    A document that was updated during the turn may be cited in the version that the turn has seen.
    """

    async def check(sentence: str, evidence: Sequence[Evidence], *, asked: Sequence[str] = ()) -> Support:
        support = await supports(sentence, evidence, asked=asked)
        if not support.holds and not support.appealable:
            return support
        for corpus, key in dict.fromkeys((part.document.corpus, part.document.key) for part in evidence):
            if await find(corpus, key) is None:
                reason = "a document that it cites was removed meanwhile"
                return Support(support.score, holds=False, reasons=(reason,))
        return support

    return check


@contextmanager
def _report_search_outage() -> Iterator[None]:
    """Raise `SearchUnavailable` if the storage or the web engine fails: an outage must never look like "not found"."""
    try:
        yield
    except StorageError as error:
        raise SearchUnavailable(f"The documents cannot be searched: {error}", hint=error.hint) from error
    except SourceUnavailable as error:
        raise SearchUnavailable(f"The web cannot be searched: {error}", hint=error.hint) from error


def validate_query(text: str) -> str:
    """Return the query of a plain search. Raises `PipelineError`, as asking does, if it has no words or is too long."""
    if len(text) > (most := Limits().question_characters):
        message = f"The query has {len(text):,} characters; at most {most:,} are read."
        raise QuestionTooLong(message, hint="Search for a few words.")
    if not words(text):
        raise QuestionWithoutWords("There are no words in the query.", hint="Search for a few words.")
    return text
