"""Measure answers: how often the extractive system quotes the right sentence, and how well it abstains.

Questions go through the system's own steps and the gate. Only the decision to abstain is made afterwards, so that any
threshold can be tried.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Annotated, Any

import numpy as np
import typer

from bot.cli.command_context import find_cli_state
from bot.settings.settings_reader import load_settings
from evaluation.answers.question_sets import Exam, ExamQuestion, read_exam
from evaluation.answers.reference_sets import REFERENCE_FORMS, read_reference_set
from evaluation.answers.reply_scores import ask_set, expand_searches, report_replies, sample_questions
from evaluation.reports.libraries import import_measures
from evaluation.reports.printing import AsJson, compute_mean, compute_share, print_report, render_table, round_figure
from evaluation.workbench import open_corpus, open_reranker, run_turn
from pipeline.extraction.answer_ranking import ANSWER_THRESHOLD
from pipeline.kit import Kit, Rerank, no_reranking
from pipeline.stages.quotation import RankedQuotes
from pipeline.support.support_check import check_verbatim, write_rows
from pipeline.systems.extractive import consider
from pipeline.types import Answer, CitedSentence, Conversation, Status
from storage.passages import CANDIDATES, PassageStore
from storage.search.candidate_search import fuse_scores
from storage.types import Hit, PassageKind, SearchQuery


@dataclass(frozen=True, slots=True)
class ExamOutcome:
    """The outcome of one question."""

    posed: ExamQuestion
    considered: RankedQuotes
    sentences: tuple[CitedSentence, ...]  # the best quotes
    answer: Answer  # after the gate

    @property
    def right_first(self) -> bool:
        return any(map(self.posed.answered_by, self.sentences[:1]))

    @property
    def right(self) -> bool:
        return self.posed.answered_by(*self.sentences)

    @property
    def verbatim(self) -> bool:
        """Return whether each sentence is verbatim in a passage that it cites; table rows also match as prose."""
        texts = {citation.number: citation.passage_text for citation in self.answer.citations}
        forms = {number: f"{text}\n{write_rows(text, PassageKind.TABLE)}" for number, text in texts.items()}
        return all(
            any(sentence.text in forms[number] for number in sentence.citations) for sentence in self.answer.sentences
        )


@asynccontextmanager
async def open_exam(exam: Exam, home: Path | None) -> AsyncIterator[PassageStore]:
    """Index the documents of an exam, in a named home or a temporary one, and yield their passage store."""
    async with open_corpus(exam.source, exam.corpus, home) as app:
        yield app.passages


async def ask_exam(
    exam: Exam, store: PassageStore, rerank: Rerank = no_reranking, *, without_answers: bool = False
) -> list[ExamOutcome]:
    """Ask every question of an exam; with `without_answers`, the documents that answer a question are hidden."""
    questions = [posed for posed in exam.questions if posed.documents or not without_answers]
    return [
        await ask_question(posed, store, exam.corpus, posed.documents if without_answers else frozenset(), rerank)
        for posed in questions
    ]


async def ask_question(
    posed: ExamQuestion, store: PassageStore, corpus: str, left_out: frozenset[str], rerank: Rerank
) -> ExamOutcome:
    """Ask a question of a system that quotes instead of abstaining; the documents in `left_out` are hidden."""

    async def search(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        if not left_out:
            return await store.search(query.text, [corpus], k)
        return await _search_without(store, corpus, query.text, k, left_out)

    quotes: list[tuple[RankedQuotes, tuple[CitedSentence, ...]]] = []

    async def never_abstain(talk: Conversation, kit: Kit) -> Status:
        considered = await consider(talk, kit)
        sentences = considered.select(kit.limits.sentences)
        quotes.append((considered, sentences))
        for sentence in sentences:
            await kit.say(sentence)
        return Status.ANSWERED

    answer = await run_turn(
        never_abstain,
        posed.talk,
        search=search,
        compare=store.compare,
        rerank=rerank,
        supports=check_verbatim,
        now=datetime.now(UTC),
        random=Random(0),
    )
    return ExamOutcome(posed, *quotes[0], answer)


async def _search_without(
    store: PassageStore, corpus: str, text: str, k: int, left_out: frozenset[str]
) -> tuple[Hit, ...]:
    """Search as the store does, but without some documents."""
    count = max(CANDIDATES, k)
    candidates = await store.candidates(text, [corpus], 2 * count)
    rows = candidates.listed
    allowed = {key for key, (_, document) in rows.items() if document.key not in left_out}
    dense, lexical = _best_scores(candidates.dense, allowed, count), _best_scores(candidates.lexical, allowed, count)
    ranking = fuse_scores(dense, lexical, asked=count, trust=candidates.trust)[:k]
    known = candidates.trust
    return tuple(
        Hit(*rows[key], score, dense.get(key, 0.0), lexical.get(key, 0.0), known[key]) for key, score in ranking
    )


def _best_scores(scores: Mapping[str, float], allowed: set[str], count: int) -> dict[str, float]:
    best = sorted((key for key in scores if key in allowed), key=lambda key: (-scores[key], key))
    return {key: scores[key] for key in best[:count]}


FALSE_ABSTENTIONS = (0.02, 0.05, 0.1, 0.15, 0.2)


@dataclass(frozen=True, slots=True)
class ExamRun:
    """The outcomes of an exam, with and without the documents that answer its questions."""

    exam: Exam
    outcomes: Sequence[ExamOutcome]
    without: Sequence[ExamOutcome]


def answers(
    context: typer.Context,
    exams: Annotated[list[Path], typer.Argument(help="Question sets and question files, or the files of --set.")],
    reference: Annotated[
        str, typer.Option("--set", help=f"The reference set that the files are: {', '.join(REFERENCE_FORMS)}.")
    ] = "",
    system: Annotated[
        list[str] | None, typer.Option(help="With --set: a system, by every search, or wikichat:search=gold.")
    ] = None,
    model: Annotated[str, typer.Option(help="With --set: a model of the server, or scripted or simulated.")] = "",
    limit: Annotated[int, typer.Option(min=0, help="With --set: at most this many random replies; 0 for all.")] = 0,
    as_json: AsJson = False,
    wrong: Annotated[bool, typer.Option(help="List wrong answers and wrong abstentions.")] = False,
    home: Annotated[Path | None, typer.Option(help="Keep the indexes here, one folder for each exam.")] = None,
) -> None:
    """Measure how often the right sentence is quoted, and how well the system abstains.

    With --set, systems reply to published conversations instead, and are compared with people: Knowledge F1, F1,
    ROUGE-L, entity coverage, and BERTScore if it is installed, with random, dense, lexical, hybrid and gold passages.

    Example: footnote evaluate answers --set dstc11 logs.json labels.json knowledge.json --limit 100
    """
    if reference:
        import_measures("scipy.stats")  # before the work
        questions = sample_questions(read_reference_set(reference, exams), limit)
        configured = load_settings(find_cli_state(context).config).model
        chosen = configured.model_copy(update={"name": model}) if model else configured
        replies = asyncio.run(ask_set(questions, expand_searches(system or ["extractive"]), chosen, home))
        document, text = report_replies(replies, questions, chosen.name)
        print_report(document, text, as_json=as_json)
        return
    if system or model or limit:
        raise typer.BadParameter("--system, --model and --limit need --set.")
    runs = [asyncio.run(_run_exam(read_exam(path), home)) for path in exams]
    reports = [report_answers(run) for run in runs]
    mistakes = [filter(None, map(_describe_mistake, run.outcomes)) if wrong else () for run in runs]
    parts = (
        "\n".join((_render_answers(report), *listed, "")) for report, listed in zip(reports, mistakes, strict=True)
    )
    print_report({"exams": reports}, "\n".join(parts), as_json=as_json)


async def _run_exam(exam: Exam, home: Path | None) -> ExamRun:
    async with open_exam(exam, home and home / exam.name) as store:
        rerank = open_reranker()
        outcomes = await ask_exam(exam, store, rerank)
        without = await ask_exam(exam, store, rerank, without_answers=True) if exam.removable else ()
        return ExamRun(exam, outcomes, without)


def report_answers(asked: ExamRun) -> dict[str, Any]:
    """Return the figures of one exam. A share of nothing is None."""
    known = [outcome for outcome in asked.outcomes if outcome.posed.answers]
    unknown = [*(outcome for outcome in asked.outcomes if not outcome.posed.answers), *asked.without]
    disputed = [outcome for outcome in known if outcome.posed.disagreement]
    return {
        "exam": asked.exam.name,
        "answerable": len(known),
        "unanswerable": len(unknown),
        "if it never abstained": {
            "right in the first sentence": compute_share(outcome.right_first for outcome in known),
            "right in the reply": compute_share(outcome.right for outcome in known),
            "sentences a reply": round_figure(compute_mean(len(outcome.sentences) for outcome in known), 2),
        },
        "as it is": {
            "right in the reply": compute_share(outcome.right and _is_answered(outcome) for outcome in known),
            "right in the reply, of those held out": compute_share(
                outcome.right and _is_answered(outcome) for outcome in known if outcome.posed.held
            ),
            "abstains though answerable": compute_share(not _is_answered(outcome) for outcome in known),
            "abstains where unanswerable": compute_share(not _is_answered(outcome) for outcome in unknown),
        },
        "both sides shown, in order": compute_share(
            outcome.posed.disagreement_shown(outcome.sentences) for outcome in disputed
        ),
        "verbatim": compute_share(outcome.verbatim for outcome in asked.outcomes),
        "caught at false abstentions of": abstention_curve(
            [outcome.considered.chance for outcome in known], [outcome.considered.chance for outcome in unknown]
        ),
    }


def abstention_curve(known: Sequence[float], unknown: Sequence[float]) -> dict[str, float]:
    """Return the share of unanswerable questions that get an abstention, by the share of answerable ones that do.

    `known` are the chances that the system gives to its answers to answerable questions, `unknown` to the others.
    """
    if not known or not unknown:
        return {}
    thresholds = {share: float(np.quantile(known, share)) for share in FALSE_ABSTENTIONS}
    return {
        f"{share:.2f}": round(fmean(chance < threshold for chance in unknown), 4)
        for share, threshold in thresholds.items()
    }


def _is_answered(outcome: ExamOutcome) -> bool:
    return outcome.considered.chance >= ANSWER_THRESHOLD


def _render_answers(report: dict[str, Any]) -> str:
    never, real = report["if it never abstained"], report["as it is"]
    caught = report["caught at false abstentions of"]
    rows = [
        *((f"{name}, never abstaining", value) for name, value in never.items()),
        *real.items(),
        ("both sides of a disagreement, newer first", report["both sides shown, in order"]),
        ("replies verbatim in what they cite", report["verbatim"]),
        *((f"caught at false abstentions of {name}", value) for name, value in caught.items()),
    ]
    heading = f"**{report['exam']}**: {report['answerable']:,} answerable, {report['unanswerable']:,} unanswerable"
    return f"{heading}\n\n{render_table(['measure', ''], (row for row in rows if row[1] is not None))}"


def _describe_mistake(outcome: ExamOutcome) -> str:
    posed, chance = outcome.posed, outcome.considered.chance
    reply = outcome.sentences[0].text if outcome.sentences else ""
    if not posed.answers:
        kind = "answered" if _is_answered(outcome) else ""
    elif not outcome.right:
        kind = "wrong" if _is_answered(outcome) else "abstained, would be wrong"
    else:
        kind = "" if _is_answered(outcome) else "abstained, would be right"
    return f"{kind} ({chance:.2f}): {posed.text} -> {' '.join(reply.split())[:120]}" if kind else ""
