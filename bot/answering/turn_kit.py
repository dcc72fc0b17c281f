"""Build what a system works with in one turn: its kit, gate and recorder, with one budget for all model calls."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random

from bot.answering.example_pool import load_demos
from bot.answering.turn_search import build_engine, build_find_document, build_search, require_existing, snapshot_search
from bot.app import App
from bot.corpus_access import find_forgotten_documents
from pipeline.gate import Gate, Recorder, Verify
from pipeline.kit import Ask, Effort, Kit, Stream, Supports, ask_unconfigured, stream_unconfigured
from pipeline.model import BudgetMeter
from pipeline.stages.draft.sentence_judging import SentenceJudge
from pipeline.stages.examples.demo_ranking import TurnDemos
from pipeline.types import Conversation, Event
from storage.types import is_web_corpus


@dataclass(frozen=True, slots=True)
class TurnTools:
    """One turn's kit, and its gate and recorder, which are read when it has ended."""

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
    engine = build_engine(app.web, app.manifest, scope)
    recorder = Recorder(
        snapshot_search(build_search(app.passages, scope)), tell=tell, engine=engine and snapshot_search(engine)
    )
    random = Random(seed)  # noqa: S311 - sampling, not secrets
    now = talk.question.at or datetime.now(app.settings.zone)
    ask: Ask = ask_unconfigured
    stream: Stream = stream_unconfigured
    verify: Verify | None = None
    seen = Conversation(talk.turns[-limits.turns :])
    compare = app.passages.compare
    demos = TurnDemos(
        partial(load_demos, app.examples, scope, partial(find_forgotten_documents, app.manifest)), compare
    )
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
    still_there = require_existing(supports, build_find_document(app.manifest))
    asked = tuple(turn.text for turn in seen.turns)
    gate = Gate(found=recorder.found, supports=still_there, tell=tell, verify=verify, asked=asked)
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
