"""XQuAD and SQuAD: JSON of articles, paragraphs, questions with their answers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluation.sets.types import Question, QuestionSet, Text


def read(path: Path) -> QuestionSet:
    """Read a file in SQuAD's form. Paragraphs are the texts; the language is the middle of `xquad.LANGUAGE.json`."""
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    paragraphs = list(_paragraphs(articles))
    texts = tuple(Text(key, "", paragraph["context"], group) for key, group, paragraph in paragraphs)
    questions = tuple(
        Question(str(asked["id"]), asked["question"], {key: 1}, tuple(a["text"] for a in asked["answers"]), group)
        for key, group, paragraph in paragraphs
        for asked in paragraph["qas"]
    )
    parts = path.name.split(".")
    return QuestionSet(path.stem, parts[1] if len(parts) > 2 else "", texts, questions)


def _paragraphs(articles: list[dict[str, Any]]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for number, article in enumerate(articles):
        for place, paragraph in enumerate(article["paragraphs"]):
            yield f"{number}-{place}", str(article.get("title", number)), paragraph
