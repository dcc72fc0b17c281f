"""Our own questions over a folder of documents or a dump; the form is described in `evaluation/questions/README.md`.

The other readers of this folder bring their texts with them; here the documents are a handbook's own files,
or a wiki's pages.
"""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.sets.types import UnreadableSet
from ingest.sources.dumps.wikipedia import WikipediaDump
from ingest.sources.folder import Folder
from ingest.types import Source

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class HandbookQuestion:
    """A question, what its answer must say, and the questions that were asked before it in its conversation."""

    text: str
    answer: tuple[str, ...]
    """Strings that must all stand in the quoted sentence; empty where no page holds the answer."""
    document: str = ""
    """The key of the page that holds it; empty where several do."""
    disagreement: tuple[str, ...] = ()
    """Strings of which each must stand in a sentence of its own, in this order."""
    kind: str = ""
    earlier: tuple[str, ...] = ()

    @property
    def answerable(self) -> bool:
        """Whether a page holds the answer."""
        return bool(self.answer)


@dataclass(frozen=True, slots=True)
class Handbook:
    """A corpus in a folder or a dump, and questions about it."""

    name: str
    place: Path
    questions: tuple[HandbookQuestion, ...]

    @property
    def source(self) -> Source:
        """Its documents."""
        return Folder(self.place) if self.place.is_dir() else WikipediaDump(self.place)


def read(path: Path) -> Handbook:
    """Read a file of questions or of conversations.

    Raises:
        UnreadableSet: it is not in that form, or its documents are not there.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        name, place = str(found["corpus"]), _place(found["dump"] if "dump" in found else found["folder"])
        asked = found.get("questions", ())
        told = [question for talk in found.get("conversations", ()) for question in _told(talk["turns"])]
        questions = (*(_question(row, ()) for row in asked), *told)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise UnreadableSet(
            f"{path} cannot be read as questions over a handbook ({type(error).__name__}: {error}).",
            hint="The form is described in evaluation/questions/README.md.",
        ) from error
    if not (place.is_file() if "dump" in found else place.is_dir()):
        raise UnreadableSet(
            f"The documents that {path.name} asks about are not in {place}.",
            hint="Set FOOTNOTE_DATA to the folder of data that holds them.",
        )
    return Handbook(name, place, questions)


def stands(strings: Sequence[str], text: str) -> bool:
    """Return whether all strings stand in a text as whole words, marks of emphasis, case and white space aside."""
    folded = _folded(text)
    return all(re.search(rf"(?<!\w){re.escape(_folded(string))}(?!\w)", folded) for string in strings)


def _place(name: str) -> Path:
    return ROOT / os.path.expandvars(name)


def _told(turns: Sequence[dict[str, Any]]) -> list[HandbookQuestion]:
    said = [str(turn["question"]) for turn in turns]
    return [_question(turn, tuple(said[:place])) for place, turn in enumerate(turns)]


def _question(row: dict[str, Any], earlier: tuple[str, ...]) -> HandbookQuestion:
    return HandbookQuestion(
        text=row["question"],
        answer=tuple(row["answer"]) if row.get("answerable", True) else (),
        document=row.get("document", ""),
        disagreement=tuple(row.get("disagreement", ())),
        kind=row.get("kind", ""),
        earlier=earlier,
    )


def _folded(text: str) -> str:
    return " ".join(re.sub(r"[*_`]", "", text).split()).casefold()
