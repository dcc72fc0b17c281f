"""Measure retrieval: recall and reciprocal rank of each retriever over question sets."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from bot.app import App
from evaluation.answers.question_sets import Exam, ExamQuestion, read_exam
from evaluation.reports.printing import AsJson, print_report, render_table
from evaluation.system_variants import open_search
from evaluation.workbench import open_corpus


def recall_at(ranking: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the share of the relevant texts that are in the first `k`."""
    return len({*ranking[:k]}.intersection(relevant)) / len(relevant)


def reciprocal_rank(ranking: Sequence[str], relevant: Collection[str]) -> float:
    """Return 1 divided by the place of the first relevant text; 0 if there is none."""
    return next((1 / place for place, key in enumerate(ranking, start=1) if key in relevant), 0.0)


DEPTH = 50
MEASURES = ("R@1", "R@3", "R@10", "MRR")


def retrieval(
    sets: Annotated[list[Path], typer.Argument(help="Question sets: see evaluation/answers/questions/README.md.")],
    as_json: AsJson = False,
) -> None:
    """Measure how well the dense, the lexical and the fused search find relevant texts.

    Example: footnote evaluate retrieval data/xquad.en.json
    """
    reports = [asyncio.run(measure_retrieval(read_exam(path))) for path in sets]
    print_report({"sets": reports}, "\n\n".join(map(_render_retrieval, reports)), as_json=as_json)


async def measure_retrieval(exam: Exam) -> dict[str, Any]:
    """Index a set in a temporary home, rank its texts for each answerable question, and return the figures."""
    answerable = [posed for posed in exam.questions if posed.documents]
    async with open_corpus(exam.source, exam.corpus) as app:
        rankings = [await _rankings(app, exam.corpus, posed.text) for posed in answerable]
    return {
        "set": exam.name,
        "texts": exam.source.expected(),
        "questions": len(answerable),
        "retrievers": {name: _scores([ranking[name] for ranking in rankings], answerable) for name in rankings[0]},
    }


async def _rankings(app: App, corpus: str, text: str) -> dict[str, list[str]]:
    """Return the documents that each search finds, best first."""
    stores = {"dense": open_search(app, "dense"), "lexical": open_search(app, "lexical"), "fused": app.passages}
    hits_by_search = {name: await store.search(text, [corpus], DEPTH) for name, store in stores.items()}
    return {name: list(dict.fromkeys(hit.document.key for hit in hits)) for name, hits in hits_by_search.items()}


def _scores(rankings: Sequence[Sequence[str]], asked: Sequence[ExamQuestion]) -> dict[str, float]:
    pairs = [(ranking, posed.documents) for ranking, posed in zip(rankings, asked, strict=True)]
    values = (
        *(fmean(recall_at(ranking, relevant, k) for ranking, relevant in pairs) for k in (1, 3, 10)),
        fmean(reciprocal_rank(ranking, relevant) for ranking, relevant in pairs),
    )
    return {name: round(value, 4) for name, value in zip(MEASURES, values, strict=True)}


def _render_retrieval(report: Mapping[str, Any]) -> str:
    heading = f"**{report['set']}**: {report['texts']:,} texts, {report['questions']:,} questions"
    rows = ([name, *(f"{scores[m]:.3f}" for m in MEASURES)] for name, scores in report["retrievers"].items())
    return f"{heading}\n\n{render_table(['retriever', *MEASURES], rows)}"
