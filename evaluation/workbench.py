"""Open a home with documents in it, and run one turn of any system; for all measurements.

A turn has the real prompts, recorder and gate. The measurement supplies the search and the model.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from bot.access import Asker
from bot.app import App
from bot.settings.tables.settings_tables import Settings
from bot.wiring import open_app
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.types import ChangedDocument, DocumentSource, Listing, Page, RefreshReport
from pipeline.gate import Gate, Recorder
from pipeline.kit import (
    Compare,
    Kit,
    Limits,
    Rerank,
    Search,
    Supports,
    System,
    ask_unconfigured,
    no_reranking,
    stream_unconfigured,
)
from pipeline.llm.model import LLM, BudgetMeter
from pipeline.llm.server_load import LoadWatch
from pipeline.prompts.prompter import Prompter
from pipeline.stages.concurrency import gather_all
from pipeline.stages.draft.sentence_judging import SentenceJudge
from pipeline.support.support_check import SupportChecker
from pipeline.types import Answer, Conversation, Status
from storage.indexes.cross_encoder import open_cross_encoder
from storage.indexes.embedding import TokenStates
from storage.indexes.packaged_embedder import open_minilm
from storage.types import DenseMode

T = TypeVar("T")
TERMINAL = Asker(platform="terminal", kind="terminal")
EXAMPLE_QUESTIONS = Path(__file__).parent / "answers" / "questions" / "example_handbook.json"


@dataclass(frozen=True)
class PageSource:
    """A source of documents, given as pages with their keys and fingerprints."""

    count: int
    pages: Callable[[], Iterable[tuple[str, str, Page]]]
    reference = False

    def expected(self) -> int | None:
        return self.count

    def documents(self, known: Mapping[str, str], since: str = "") -> Listing:
        del known, since
        return Listing(ChangedDocument(key, stamp, 1, partial(_identity, page)) for key, stamp, page in self.pages())


@asynccontextmanager
async def open_home(home: Path | None = None, **settings: Any) -> AsyncIterator[App]:
    """Open a named home or a temporary one. Slow models do not lower the effort of turns in it."""
    with tempfile.TemporaryDirectory() as scratch:
        async with open_app(Settings(home=home or Path(scratch), **settings)) as app:
            yield replace(app, load=LoadWatch())


@asynccontextmanager
async def open_corpus(
    source: DocumentSource, name: str, /, home: Path | None = None, *, dense: DenseMode | None = None, **settings: Any
) -> AsyncIterator[App]:
    """Open a home that contains the documents of a source."""
    async with open_home(home, **settings) as app:
        await refresh_quietly(source, name, app, dense)
        yield app


async def refresh_quietly(
    source: DocumentSource, corpus: str, app: App, dense: DenseMode | None = None
) -> RefreshReport:
    """Refresh a corpus of an open home without reporting progress."""
    return await refresh_corpus(source, corpus, app.passages, progress=lambda _: None, dense=dense)


def _identity(page: Page) -> Page:
    return page


def open_checker() -> SupportChecker:
    """Return the gate's support check. It blocks the event loop while it runs."""
    reader = open_minilm()

    async def read(texts: Sequence[str]) -> tuple[TokenStates, ...]:
        return reader.read(texts)

    return SupportChecker(read)


def open_reranker() -> Rerank:
    """Return the cross-encoder. It blocks the event loop while it runs."""
    encoder = open_cross_encoder()

    async def score(question: str, texts: Sequence[str]) -> Sequence[float]:
        return encoder.score(question, texts)

    return score


async def run_turn(
    system: System,
    talk: Conversation,
    *,
    search: Search,
    compare: Compare,
    rerank: Rerank = no_reranking,
    supports: Supports,
    now: datetime,
    random: Random,
    llm: LLM | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> Answer:
    """Run a system on a conversation. Raises `PipelineError`."""
    recorder = Recorder(search, report=_ignore)
    ask, stream, verify = ask_unconfigured, stream_unconfigured, None
    seen = Conversation(talk.turns[-limits.turns :])
    if llm:
        prompter = Prompter(llm, BudgetMeter(), note=recorder.note, now=now, random=random, student=limits.student)
        ask, stream = prompter.ask, prompter.stream
        verify = SentenceJudge(stream, seen, gather=0)
    questions = tuple(turn.text for turn in seen.turns)
    gate = Gate(found=recorder.found, supports=supports, tell=_ignore, verify=verify, asked=questions)
    kit = Kit(
        ask=ask,
        stream=stream,
        search=recorder.search,
        compare=compare,
        rerank=rerank,
        supports=supports,
        say=gate.say,
        judge=gate.judge,
        replaced_by=gate.replaced_by,
        end_draft=gate.end_draft,
        tell=recorder.tell,
        limits=limits,
        now=now,
        random=random,
    )
    status: Status = await system(talk, kit)
    return gate.answer(status, nearest=recorder.nearest(3), claims=recorder.claims)


async def gather_limited(limit: int, work: Callable[..., Awaitable[T]], *items: Iterable[Any]) -> tuple[T, ...]:
    """Call `work` with one item of each of `items`, at most `limit` calls at a time; results are in order."""
    free = asyncio.Semaphore(limit)

    async def run(*values: Any) -> T:
        async with free:
            return await work(*values)

    return await gather_all(map(run, *items))


def _ignore(_: object) -> None:
    """Ignore progress."""
