"""Our own form, for any set that has none of the others' forms: one JSON document, as `evaluation.sets.types` says.

{"name": "mine", "language": "en",
"texts": [{"id": "1", "title": "Leave", "text": "Everyone has 30 days of leave."}],
"questions": [{"id": "1", "text": "How many days off do I get?", "relevant": {"1": 1}, "answers": ["30 days"]}]}
"""

import json
from pathlib import Path

from evaluation.sets.types import Question, QuestionSet, Text


def read(path: Path) -> QuestionSet:
    """Read a file in the plain form."""
    found = json.loads(path.read_text(encoding="utf-8"))
    texts = tuple(Text(**text) for text in found["texts"])
    questions = tuple(
        Question(**{**question, "answers": tuple(question.get("answers", ()))}) for question in found["questions"]
    )
    return QuestionSet(found["name"], found["language"], texts, questions)
