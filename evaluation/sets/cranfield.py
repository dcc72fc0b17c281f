"""Cranfield: `.I .T .A .B .W` records, and judgements whose query numbers count the queries from 1."""

import re
from collections import defaultdict
from pathlib import Path

from evaluation.sets.types import Question, QuestionSet, Text

RELEVANT = {"1": 4, "2": 3, "3": 2, "4": 1}
"""The collection grades from 1 (a complete answer) to 4 (of minimum interest); 5 and -1 mean of no interest."""


def read(folder: Path) -> QuestionSet:
    """Read `cran.all.1400`, `cran.qry` and `cranqrel` from a folder."""
    texts = tuple(
        Text(key, _flat(fields.get("T", "")), _flat(fields.get("W", "")))
        for key, fields in _records(folder / "cran.all.1400")
    )
    grades = _judgements(folder / "cranqrel")
    asked = enumerate(_records(folder / "cran.qry"), start=1)
    questions = tuple(Question(str(number), _flat(fields["W"]), grades[number]) for number, (_, fields) in asked)
    return QuestionSet("cranfield", "en", texts, questions)


def _records(path: Path) -> list[tuple[str, dict[str, str]]]:
    parts = re.split(r"^\.I (\d+)\s*$", path.read_text(encoding="utf-8", errors="replace"), flags=re.MULTILINE)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [(str(int(key)), _fields(body)) for key, body in pairs]


def _fields(body: str) -> dict[str, str]:
    parts = re.split(r"^\.([A-Z])\s*$", body, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _judgements(path: Path) -> dict[int, dict[str, int]]:
    grades: dict[int, dict[str, int]] = defaultdict(dict)
    for line in path.read_text().splitlines():
        query, document, grade = line.split()
        if grade in RELEVANT:
            grades[int(query)][document] = RELEVANT[grade]
    return grades


def _flat(text: str) -> str:
    return " ".join(text.split())
