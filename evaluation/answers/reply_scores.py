"""Compare the replies of systems with those of people, and with the knowledge that these are based on.

Entity coverage compares the names of a reply with those of the person's, by exact match with the names of the set's
texts, as IKA does (its gold replies have 100%).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count, islice, product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from rich.console import Console

from bot.answering.question_answering import answer
from bot.app import App
from bot.cli.terminal_output import show_progress
from bot.settings.tables.model_values import ModelValues
from bot.types import TurnRequest
from evaluation import EvaluationError
from evaluation.answers.question_sets import Exam, ExamQuestion
from evaluation.answers.system_comparison import ScriptedConversation, falsify, open_scripted_model
from evaluation.dialogues.models.stand_ins import STAND_INS, open_simulated
from evaluation.reports.printing import format_interval, render_table
from evaluation.reports.significance import Interval, estimate_share
from evaluation.reports.word_measures import NameIndex, bert_score, f1, rouge_l
from evaluation.system_variants import SEARCHES, SystemVariant, parse_variant
from evaluation.workbench import TERMINAL, gather_limited, open_corpus
from pipeline.llm.model import LLM

AT_ONCE = 4  # concurrent turns
RANDOM_TEXTS = 50  # as many as each index offers to the hybrid search
BERT_SCORE = "BERTScore"
NO_BERT_SCORE = "BERTScore is not measured: bert-score is not installed, or its model cannot be loaded."


@dataclass(frozen=True, slots=True)
class SetReply:
    """A system's reply to a turn of a set."""

    posed: ExamQuestion
    text: str  # without citations; empty if the system abstained
    cites_gold: bool  # whether it cites a text that the person used
    fault: str = ""  # why there is no reply, or why the model has no part in it


def expand_searches(labels: Iterable[str]) -> tuple[SystemVariant, ...]:
    """Return the variants of systems. One whose label has no search is asked with every search."""
    every = [
        [label] if "search=" in label else [f"{label}{',' if ':' in label else ':'}search={name}" for name in SEARCHES]
        for label in labels
    ]
    return tuple(parse_variant(label) for listed in every for label in dict.fromkeys(listed))


def sample_questions(exam: Exam, limit: int) -> Exam:
    """Return a set with at most `limit` random questions, in their order; 0 keeps all."""
    if not 0 < limit < len(exam.questions):
        return exam
    places = Random(0).sample(range(len(exam.questions)), limit)
    return replace(exam, questions=tuple(exam.questions[place] for place in sorted(places)))


async def ask_set(
    exam: Exam, variants: Sequence[SystemVariant], model: ModelValues, home: Path | None = None
) -> dict[str, list[SetReply]]:
    """Let each variant reply to each turn of a set, over an index in a named home or a temporary one.

    The model is a stand-in if it has the name of one. Raises `EvaluationError` if none is configured.
    """
    asking = next((variant.label for variant in variants if variant.asks_model), "")
    if asking and not (model.configured or model.name in STAND_INS):
        hint = f"Set [model], or use a stand-in: --model {' or '.join(STAND_INS)}."
        raise EvaluationError(f"{asking} needs a model, and none is configured.", hint=hint)
    own: dict[str, Any] = {} if model.name in STAND_INS else {"model": model}
    keys, done = [document.key for document in exam.source.documents({})], count(1)
    pairs = [*product(variants, exam.questions)]
    async with open_corpus(exam.source, exam.corpus, home, **own) as app:
        with show_progress(Console(stderr=True), label=exam.name, unit="replies") as progress:

            async def ask(variant: SystemVariant, posed: ExamQuestion) -> SetReply:
                drawn = Random(posed.text).sample(keys, min(RANDOM_TEXTS, len(keys)))
                varied = variant.apply(app, drawn, posed.documents)
                llm = _open_stand_in(model.name, posed) if variant.asks_model else None
                reply = await _ask(replace(varied, llm=llm or varied.llm), variant.name, posed)
                progress(next(done), len(pairs))
                return reply

            replies = iter(await gather_limited(AT_ONCE, ask, *zip(*pairs, strict=True)))
    return {variant.label: [*islice(replies, len(exam.questions))] for variant in variants}


def _open_stand_in(name: str, posed: ExamQuestion) -> LLM | None:
    if name == "simulated":
        return open_simulated(0)
    known = ScriptedConversation(ExamQuestion(posed.text, (), frozenset(), ""), (), (falsify(""),))
    return open_scripted_model(known) if name in STAND_INS else None


async def _ask(app: App, system: str, posed: ExamQuestion) -> SetReply:
    request = TurnRequest(posed.text, TERMINAL, earlier=posed.earlier, system=system, seed=posed.text)
    done = await answer(app, request, lambda _: None)
    text = " ".join(sentence.text for sentence in done.answer.sentences)
    cites_gold = any(cited.document in posed.documents for cited in done.answer.citations)
    return SetReply(posed, text, cites_gold, done.fault.message if done.fault else "")


def measure_replies(
    replies: Sequence[SetReply], names: Iterable[str], bert: Callable[..., list[float] | None] = bert_score
) -> dict[str, Interval | None]:
    """Return the measures of a system, each with its 95% interval over conversations; None for a share of nothing."""
    index = NameIndex(names)
    counted = [_count(reply, index) for reply in replies]
    answered = [place for place, reply in enumerate(replies) if reply.text]
    if scores := bert([(replies[place].text, replies[place].posed.reply) for place in answered]) if answered else None:
        by_place = dict(zip(answered, scores, strict=True))
        counted = [{**counts, BERT_SCORE: (by_place.get(place, 0.0), 1)} for place, counts in enumerate(counted)]
    measures = dict[str, Interval | None]()
    for name in counted[0]:
        sums: dict[str, Any] = defaultdict(lambda: np.zeros(2))
        for reply, counts in zip(replies, counted, strict=True):
            sums[reply.posed.group] += counts[name]
        parts, wholes = np.array([*sums.values()]).T
        measures[name] = estimate_share(parts, wholes, proportion=name in {"answered", "cites gold"})
    return measures


def _count(reply: SetReply, index: NameIndex) -> dict[str, tuple[float, float]]:
    """Return the part and the whole that a reply adds to each measure."""
    text, posed = reply.text, reply.posed
    named, expected = {*index.find(text)}, {*index.find(posed.reply)}
    common, knowledge, overlap = len(named & expected), f1(text, " ".join(posed.knowledge)), f1(text, posed.reply)
    return {
        "answered": (bool(text), 1),
        "cites gold": (reply.cites_gold, 1),
        "KF1": (knowledge, 1),
        "KF1 if answered": (knowledge, bool(text)),
        "F1": (overlap, 1),
        "F1 if answered": (overlap, bool(text)),
        "ROUGE-L": (rouge_l(text, posed.reply), 1),
        "entity precision": (common, len(named)),
        "entity recall": (common, len(expected)),
        "entity F1": (2 * common, len(named) + len(expected)),
    }


def report_replies(
    replies: Mapping[str, Sequence[SetReply]], exam: Exam, model: str = ""
) -> tuple[dict[str, Any], str]:
    """Return the figures of all variants, as a document and as a table with notes, such as of rules for a model."""
    measured = {label: measure_replies(listed, exam.names) for label, listed in replies.items()}
    systems = {
        label: {name: asdict(interval) if interval else None for name, interval in row.items()}
        for label, row in measured.items()
    }
    names = list(dict.fromkeys(name for row in systems.values() for name in row))
    rows = ([label, *(format_interval(row.get(name), ".3f") for name in names)] for label, row in systems.items())
    faults = Counter((label, reply.fault) for label, listed in replies.items() for reply in listed if reply.fault)
    notes = [f"{label}: {times} times: {fault}" for (label, fault), times in faults.items()]
    ruled = model in STAND_INS and any(parse_variant(label).asks_model for label in replies)
    notes += [f"Rules replace the model: {STAND_INS[model]}."] if ruled else []
    notes += [] if BERT_SCORE in names else [NO_BERT_SCORE]
    heading = f"**{exam.name}**: {len(exam.questions):,} replies, {exam.source.expected():,} texts"
    document = {"set": exam.name, "replies": len(exam.questions), "systems": systems, "notes": notes}
    return document, "\n\n".join((heading, render_table(("system", *names), rows), "\n".join(notes)))
