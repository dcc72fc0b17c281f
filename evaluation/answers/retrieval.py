"""Measure retrieval: recall, reciprocal rank and discounted gain of each retriever over question sets."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from bot.app import App
from evaluation.answers.question_sets import QuestionSet, SetQuestion, build_set_source, read_set
from evaluation.reports.printing import AsJson, print_report, render_table
from evaluation.workbench import open_corpus


def recall_at(ranking: Sequence[str], relevant: Mapping[str, int], k: int) -> float:
    """Return the share of the relevant texts that are in the first `k`."""
    return len({*ranking[:k]} & relevant.keys()) / len(relevant)


def reciprocal_rank(ranking: Sequence[str], relevant: Mapping[str, int]) -> float:
    """Return 1 divided by the place of the first relevant text; 0 if there is none."""
    return next((1 / place for place, key in enumerate(ranking, start=1) if key in relevant), 0.0)


def ndcg_at(ranking: Sequence[str], relevant: Mapping[str, int], k: int) -> float:
    """Return the normalised discounted cumulative gain at `k`. Each relevant text counts 1, whatever its grade."""
    gained = sum(1 / math.log2(place + 1) for place, key in enumerate(ranking[:k], start=1) if key in relevant)
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(k, len(relevant)) + 1))
    return gained / ideal


DEPTH = 50
SET_CORPUS = "set"
MEASURES = ("R@1", "R@3", "R@10", "MRR", "nDCG@10")


def retrieval(
    sets: Annotated[list[Path], typer.Argument(help="Question sets: see evaluation/answers/questions/README.md.")],
    as_json: AsJson = False,
) -> None:
    """Measure how well the dense, the lexical and the fused search find relevant texts.

    Example: footnote evaluate retrieval data/xquad.en.json data/cranfield
    """
    reports = [asyncio.run(measure_retrieval(read_set(path))) for path in sets]
    print_report({"sets": reports}, "\n\n".join(map(_render_retrieval, reports)), as_json=as_json)


async def measure_retrieval(questions: QuestionSet) -> dict[str, Any]:
    """Index a set in a temporary home, rank its texts for each answerable question, and return the figures."""
    answerable = [question for question in questions.questions if question.relevant]
    async with open_corpus(build_set_source(questions.texts, questions.language), SET_CORPUS) as app:
        rankings = [await _rankings(app, question.text) for question in answerable]
    return {
        "set": questions.name,
        "texts": len(questions.texts),
        "questions": len(answerable),
        "retrievers": {name: _scores([ranking[name] for ranking in rankings], answerable) for name in rankings[0]},
    }


async def _rankings(app: App, text: str) -> dict[str, list[str]]:
    store = app.passages
    hits = await store.search(text, [SET_CORPUS], DEPTH)
    candidates = await store.candidates(text, [SET_CORPUS], DEPTH)
    alone = {"dense": candidates.dense, "lexical": candidates.lexical}
    ranked = {name: _best_first(scores, candidates.listed) for name, scores in alone.items()}
    return {**ranked, "fused": list(dict.fromkeys(hit.document.key for hit in hits))}


def _best_first(scores: Mapping[str, float], joined: Mapping[str, Any]) -> list[str]:
    order = sorted(scores, key=lambda key: (-scores[key], key))
    return list(dict.fromkeys(joined[key][1].key for key in order))


def _scores(rankings: Sequence[Sequence[str]], asked: Sequence[SetQuestion]) -> dict[str, float]:
    pairs = [(ranking, question.relevant) for ranking, question in zip(rankings, asked, strict=True)]
    values = (
        *(fmean(recall_at(ranking, relevant, k) for ranking, relevant in pairs) for k in (1, 3, 10)),
        fmean(reciprocal_rank(ranking, relevant) for ranking, relevant in pairs),
        fmean(ndcg_at(ranking, relevant, 10) for ranking, relevant in pairs),
    )
    return {name: round(value, 4) for name, value in zip(MEASURES, values, strict=True)}


def _render_retrieval(report: Mapping[str, Any]) -> str:
    heading = f"**{report['set']}**: {report['texts']:,} texts, {report['questions']:,} questions"
    rows = ([name, *(f"{scores[m]:.3f}" for m in MEASURES)] for name, scores in report["retrievers"].items())
    return f"{heading}\n\n{render_table(['retriever', *MEASURES], rows)}"
