"""Retrieval quality of each retriever over any question set, through the store that answers questions."""

import asyncio
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from bot.app import App, open_app
from bot.settings import Settings
from evaluation.ranking import ndcg, recall, reciprocal_rank
from evaluation.sets.reading import read_set
from evaluation.sets.types import Question, QuestionSet, Text
from ingest.refreshing import refresh
from ingest.types import Block, Found, Listing, Page, Section

DEPTH = 50
CORPUS = "set"
MEASURES = ("R@1", "R@3", "R@10", "MRR", "nDCG@10")


@dataclass(frozen=True)
class SetSource:
    """A question set's texts as a source of documents."""

    texts: tuple[Text, ...]
    language: str

    @property
    def reference(self) -> bool:
        """Rank as the team's own."""
        return False

    def expected(self) -> int | None:
        """Count them."""
        return len(self.texts)

    def documents(self, known: Mapping[str, str], since: str = "") -> Listing:
        """Hand out each text as a page of one section."""
        del known, since
        return Listing(self._pages())

    def _pages(self) -> Iterator[Found]:
        for text in self.texts:
            page = Page(text.title, (Section((), (Block(text.text),)),), language=self.language)
            yield Found(text.id, text.id, len(text.text), partial(_same, page))


def retrieval(
    sets: Annotated[list[Path], typer.Argument(help="Question sets: see evaluation/questions/README.md.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure how well relevant texts are found: by meaning, by words, and fused.

    Example: footnote evaluate retrieval data/xquad.en.json data/cranfield
    """
    reports = [asyncio.run(measure(read_set(path))) for path in sets]
    if as_json:
        print(json.dumps({"schema": 1, "sets": reports}))
    else:
        print("\n\n".join(map(_table, reports)))


async def measure(questions: QuestionSet) -> dict[str, Any]:
    """Index a set in a home of its own and rank its texts for each of its answerable questions."""
    with tempfile.TemporaryDirectory() as home:
        async with open_app(Settings(home=Path(home))) as app:
            source = SetSource(questions.texts, questions.language)
            await refresh(source, CORPUS, app.passages, progress=lambda _: None)
            asked = [question for question in questions.questions if question.relevant]
            rankings = [await _rankings(app, question.text) for question in asked]
    return {
        "set": questions.name,
        "texts": len(questions.texts),
        "questions": len(asked),
        "retrievers": {name: _scores([ranking[name] for ranking in rankings], asked) for name in rankings[0]},
    }


async def _rankings(app: App, text: str) -> dict[str, list[str]]:
    """Return each retriever's ranking of text ids."""
    store = app.passages
    hits = await store.search(text, [CORPUS], DEPTH)
    vector = store.embedder.embed([text])[0]
    alone = {"dense": store.dense.search(CORPUS, vector, DEPTH), "lexical": store.lexical.search(text, [CORPUS], DEPTH)}
    joined = await store.manifest.join({*alone["dense"], *alone["lexical"]}, [CORPUS])
    ranked = {name: _best_first(scores, joined) for name, scores in alone.items()}
    return {**ranked, "fused": list(dict.fromkeys(hit.document.key for hit in hits))}


def _best_first(scores: Mapping[str, float], joined: Mapping[str, Any]) -> list[str]:
    order = sorted(scores, key=lambda key: (-scores[key], key))
    return list(dict.fromkeys(joined[key][1].key for key in order))


def _scores(rankings: Sequence[Sequence[str]], asked: Sequence[Question]) -> dict[str, float]:
    pairs = [(ranking, question.relevant) for ranking, question in zip(rankings, asked, strict=True)]
    values = (
        fmean(recall(ranking, relevant, 1) for ranking, relevant in pairs),
        fmean(recall(ranking, relevant, 3) for ranking, relevant in pairs),
        fmean(recall(ranking, relevant, 10) for ranking, relevant in pairs),
        fmean(reciprocal_rank(ranking, relevant) for ranking, relevant in pairs),
        fmean(ndcg(ranking, relevant, 10) for ranking, relevant in pairs),
    )
    return {name: round(value, 4) for name, value in zip(MEASURES, values, strict=True)}


def _table(report: Mapping[str, Any]) -> str:
    lines = [
        f"**{report['set']}**: {report['texts']:,} texts, {report['questions']:,} questions",
        "",
        f"| retriever | {' | '.join(MEASURES)} |",
        f"|---|{'---|' * len(MEASURES)}",
    ]
    rows = report["retrievers"].items()
    return "\n".join(
        [*lines, *(f"| {name} | {' | '.join(f'{scores[m]:.3f}' for m in MEASURES)} |" for name, scores in rows)]
    )


def _same(page: Page) -> Page:
    return page
