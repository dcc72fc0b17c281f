"""What a system works with in one turn: a kit, the gate it speaks through, and the recorder that notes what it does.

All of it is new for each turn, with one budget for all that is asked of a model.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from random import Random

from bot.app import App
from bot.steadiness import There, standing, steady
from pipeline import unconfigured
from pipeline.errors import SearchUnavailable
from pipeline.kit import Ask, Kit, Limits, Search, Stream, Supports
from pipeline.model import Spent
from pipeline.recording import Recorder
from pipeline.saying import Gate, SecondOpinion
from pipeline.stages.verifying import second_opinion
from pipeline.types import Conversation, Event
from storage.errors import StorageError
from storage.types import Document, Hit, SearchQuery


@dataclass(frozen=True, slots=True)
class Tools:
    """One turn's kit, and what is asked when it has ended: what was done, and what may be said."""

    kit: Kit
    gate: Gate
    recorder: Recorder
    deadline: float
    """On `time.monotonic()`."""


@dataclass(frozen=True, slots=True)
class _Model:
    """One turn's ways to the model; all say that there is none where none is configured."""

    ask: Ask = unconfigured.ask
    stream: Stream = unconfigured.stream
    verify: SecondOpinion | None = None
    busy: Callable[[], bool] = lambda: False


def equipped(
    app: App,
    talk: Conversation,
    scope: tuple[str, ...],
    *,
    seed: str,
    tell: Callable[[Event], None],
    supports: Supports,
) -> Tools:
    """Return what a system works with to answer the last turn of a conversation; its time begins now.

    Args:
        app: What is opened.
        talk: The conversation.
        scope: The corpora that may be read.
        seed: Makes fences and samples the same again.
        tell: Hears what happens.
        supports: The local check.
    """
    limits = app.settings.limits.kit(student=app.settings.model.student)
    deadline = time.monotonic() + limits.seconds
    recorder = Recorder(steady(_searching(app, scope)), tell=tell)
    random = Random(seed)  # noqa: S311 - sampling, not secrets
    now = talk.question.at or datetime.now(app.settings.zone)
    spent = Spent(app.settings.limits.budget, deadline=deadline)
    model = _model(app, talk, recorder, spent, limits, now, random)
    still = standing(supports, _there(app))
    gate = Gate(found=recorder.found, supports=still, tell=tell, verify=model.verify)
    kit = Kit(
        ask=model.ask,
        stream=model.stream,
        search=recorder.search,
        compare=app.passages.compare,
        supports=supports,
        say=gate.say,
        tell=recorder.tell,
        limits=limits,
        now=now,
        random=random,
        beside=app.passages.threads.think.run,
        busy=model.busy,
        quote=gate.quote,
    )
    return Tools(kit, gate, recorder, deadline)


def _model(
    app: App, talk: Conversation, recorder: Recorder, spent: Spent, limits: Limits, now: datetime, random: Random
) -> _Model:
    if not app.llm:
        return _Model()
    from pipeline.asking import Prompter  # imports jinja2

    student = limits.student
    prompter = Prompter(app.llm, spent, note=recorder.note, now=now, random=random, student=student)
    verify = second_opinion(prompter.ask, talk, turns=limits.turns, student=student)
    return _Model(prompter.ask, prompter.stream, verify, app.llm.busy)


def _searching(app: App, scope: tuple[str, ...]) -> Search:
    async def search(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        with _said_aloud():
            return await app.passages.search(query.text, scope, k)

    return search


def _there(app: App) -> There:
    async def there(corpus: str, key: str) -> Document | None:
        with _said_aloud():
            return await app.manifest.document(corpus, key)

    return there


@contextmanager
def _said_aloud() -> Iterator[None]:
    """Let an outage of the storage be said, so that it never looks like "I don't know"."""
    try:
        yield
    except StorageError as error:
        raise SearchUnavailable(f"The documents cannot be searched: {error}", hint=error.hint) from error
