"""Read and write the file of a team's own questions. Edits that people make in it are kept."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from evaluation import EvaluationError
from evaluation.dialogues.run_folder import replace_file

ABOUT = (
    'Edit freely: fix a question or its answer, add some, set "use": false to skip a bad one. Your edits stay when '
    "more questions are made. `answer` lists strings that a right reply must all contain; without any, a right reply "
    "must cite the section."
)


@dataclass(frozen=True, slots=True)
class OwnQuestion:
    """A question in a file that people may edit."""

    question: str
    answer: tuple[str, ...] = ()  # strings that a right reply must all contain; if empty, it must cite the section
    corpus: str = ""
    document: str = ""
    section: str = ""
    passage: str = ""  # the text, for people who check the question
    kind: str = ""
    answerable: bool = True
    use: bool = True  # False for a bad question, which is kept so that it is not made again
    others: Mapping[str, Any] = field(default_factory=dict, hash=False)  # fields that people added

    @property
    def id(self) -> str:
        return hashlib.sha256(self.question.casefold().encode()).hexdigest()[:12]


_TEXTS = ("question", "corpus", "document", "section", "passage", "kind")
_TRUTHS = ("answerable", "use")
_NAMES = (*_TEXTS, "answer", *_TRUTHS)
_ALIKE = 0.8  # the least similarity of a misspelled field name


def read_questions(path: Path) -> tuple[OwnQuestion, ...]:
    """Return the questions of a file, or no questions if it is missing. Raises `EvaluationError` if it is damaged."""
    rows = enumerate(_read_file(path)["questions"], 1)
    return tuple(_read_row(row, f"{path}, question {number}") for number, row in rows)


def write_questions(path: Path, questions: Sequence[OwnQuestion]) -> None:
    """Write a file of questions atomically. Raises `OSError`."""
    document = {"about": ABOUT, **_read_file(path), "questions": [_write_row(question) for question in questions]}
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps(document, ensure_ascii=False, indent=1) + "\n")


def _read_file(path: Path) -> dict[str, Any]:
    if path.is_dir():
        raise EvaluationError(f"{path} is a folder.", hint="Name a file in it, such as questions.json.")
    if not path.exists():
        return {"questions": []}
    try:
        document = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise _refuse(str(path), f"it is not JSON ({error})") from error
    if not isinstance(document, dict) or not isinstance(document.get("questions"), list):
        raise _refuse(str(path), 'it has no list "questions"')
    return document


def _read_row(row: object, place: str) -> OwnQuestion:
    if not isinstance(row, dict):
        raise _refuse(place, "it is not an object in braces")
    others = {name: value for name, value in row.items() if name not in _NAMES}
    for name in others:
        if meant := get_close_matches(name.casefold(), _NAMES, 1, _ALIKE):
            raise _refuse(place, f'there is no field "{name}": "{meant[0]}" is meant')
    for names, kind, called in ((_TEXTS, str, "a string"), (_TRUTHS, bool, "true or false, without quotes")):
        for name in names:
            if name in row and not isinstance(row[name], kind):
                raise _refuse(place, f'"{name}" must be {called}')
    if not row.get("question", "").strip():
        raise _refuse(place, '"question" is empty')
    answer = [row["answer"]] if isinstance(row.get("answer"), str) else row.get("answer", [])
    if not isinstance(answer, list) or not all(isinstance(string, str) and string.strip() for string in answer):
        raise _refuse(place, '"answer" must be a string or a list of strings, none of them empty')
    known = {name: row[name] for name in (*_TEXTS, *_TRUTHS) if name in row}
    return OwnQuestion(**known, answer=tuple(answer), others=others)


def _write_row(question: OwnQuestion) -> dict[str, Any]:
    names = ("question", "answer", *_TEXTS[1:], *_TRUTHS)
    return {**{name: getattr(question, name) for name in names}, **question.others}


def _refuse(place: str, reason: str) -> EvaluationError:
    return EvaluationError(f"{place}, cannot be read: {reason}.", hint="Fix it: the file was not changed.")
