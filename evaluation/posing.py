"""Questions of any form made one: what is asked, over which documents, and what makes a quoted sentence right.

A set of `evaluation.sets` brings its texts and asks for any of its answers; a handbook is a folder or a dump
and asks for all of the strings at once.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluation.retrieval import SetSource
from evaluation.sets import handbooks
from evaluation.sets.reading import read_set
from ingest.types import Source
from pipeline.types import CitedSentence, Conversation, Turn


@dataclass(frozen=True, slots=True)
class Posed:
    """A question that an evaluation asks."""

    text: str
    answers: tuple[tuple[str, ...], ...]
    """Each a set of strings that must all stand in one sentence; none where nothing answers the question."""
    documents: frozenset[str]
    """Keys of the documents that a right sentence may stand in; empty for any."""
    group: str
    """Questions of one group are never both fitted to and measured on."""
    earlier: tuple[str, ...] = ()
    disagreement: tuple[str, ...] = ()

    @property
    def talk(self) -> Conversation:
        """The question at the end of its conversation."""
        return Conversation(tuple(Turn("user", text) for text in (*self.earlier, self.text)))

    def answered_by(self, sentence: CitedSentence) -> bool:
        """Return whether a sentence says the answer, and stands where it should."""
        place = sentence.evidence[0].document.key
        stands = any(handbooks.stands(strings, sentence.text) for strings in self.answers)
        return stands and (not self.documents or place in self.documents)

    def disagreement_shown(self, sentences: Sequence[CitedSentence]) -> bool:
        """Return whether the reply opens with the sentences that disagree, in the right order."""
        pairs = zip(self.disagreement, sentences, strict=False)
        return len(sentences) >= len(self.disagreement) and all(
            handbooks.stands([string], sentence.text) for string, sentence in pairs
        )


@dataclass(frozen=True)
class Exam:
    """Documents, and questions about them."""

    name: str
    corpus: str
    source: Source
    questions: tuple[Posed, ...]
    removable: bool
    """Whether each question's own documents are all that answers it, so that without them nothing does."""


def read_exam(path: Path) -> Exam:
    """Read a question set or a file of questions over a handbook.

    Raises:
        UnreadableSet: it is in neither form.
    """
    return _handbook(path) if _is_handbook(path) else _set(path)


def _is_handbook(path: Path) -> bool:
    if path.suffix != ".json" or not path.is_file():
        return False
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return isinstance(found, dict) and not found.keys().isdisjoint({"folder", "dump"})


def _handbook(path: Path) -> Exam:
    handbook = handbooks.read(path)
    questions = tuple(
        Posed(
            text=question.text,
            answers=(question.answer,) if question.answerable else (),
            documents=frozenset({question.document} if question.document else ()),
            group=f"{handbook.name}:{question.document or question.text}",
            earlier=question.earlier,
            disagreement=question.disagreement,
        )
        for question in handbook.questions
    )
    return Exam(path.stem, handbook.name, handbook.source, questions, removable=False)


def _set(path: Path) -> Exam:
    found = read_set(path)
    questions = tuple(
        Posed(
            text=question.text,
            answers=tuple((answer,) for answer in question.answers) if question.relevant else (),
            documents=frozenset(question.relevant),
            group=question.group or question.id,
        )
        for question in found.questions
    )
    return Exam(found.name, found.name, SetSource(found.texts, found.language), questions, removable=True)
