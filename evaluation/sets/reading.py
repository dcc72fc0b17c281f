"""Reads any question set by the look of its path."""

import json
from collections.abc import Callable
from pathlib import Path

from evaluation.sets import clapnq, cranfield, plain, xquad
from evaluation.sets.types import QuestionSet, UnreadableSet


def read_set(path: Path) -> QuestionSet:
    """Read XQuAD or SQuAD JSON, CLAPNQ rows, a Cranfield folder, or our own plain form.

    Raises:
        UnreadableSet: the path is none of these, or not in the form it seems to be.
    """
    try:
        return _reader(path)(path)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise UnreadableSet(
            f"{path} cannot be read as a question set ({type(error).__name__}: {error}).",
            hint="The forms are described in evaluation/questions/README.md.",
        ) from error


def _reader(path: Path) -> Callable[[Path], QuestionSet]:
    if path.is_dir():
        return cranfield.read
    if path.suffix == ".jsonl":
        return clapnq.read
    return xquad.read if "data" in json.loads(path.read_text(encoding="utf-8")) else plain.read
