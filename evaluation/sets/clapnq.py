"""CLAPNQ: JSON lines, each a question with its passage; `answers` is empty where the passage does not answer."""

import json
from pathlib import Path

from evaluation.sets.types import Question, QuestionSet, Text


def read(path: Path) -> QuestionSet:
    """Read one file of rows. A row's passages are texts; they are relevant to their question if it is answered."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    texts: dict[str, Text] = {}
    questions = []
    for row in rows:
        keys = []
        for place, passage in enumerate(row["passages"]):
            key = f"{row['id']}-{place}"
            keys.append(key)
            texts[key] = Text(key, passage["title"], passage["text"], str(row["id"]))
        answers = tuple(answer["answer"] for answer in row["output"] if answer["answer"])
        questions.append(
            Question(str(row["id"]), row["input"], dict.fromkeys(keys, 1) if answers else {}, answers, str(row["id"]))
        )
    return QuestionSet(path.stem, "en", tuple(texts.values()), tuple(questions))
