"""The plain form that every question set is read into, and the error of one that cannot be."""

from collections.abc import Mapping
from dataclasses import dataclass

from evaluation.errors import EvaluationError


class UnreadableSet(EvaluationError):
    """A question set is not in the form that its reader expects."""

    kind = "unreadable_set"


@dataclass(frozen=True, slots=True)
class Text:
    """A document, or a paragraph of one, that questions are asked over."""

    id: str
    title: str
    text: str
    group: str = ""
    """What it was taken from, such as an article: cross-validation keeps groups whole."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, which texts are relevant to it and how much, and the strings that answer it."""

    id: str
    text: str
    relevant: Mapping[str, int]
    """Text id -> grade, 1 and up; empty when no text answers it."""
    answers: tuple[str, ...] = ()
    group: str = ""


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions over texts. `language` is ISO 639-1."""

    name: str
    language: str
    texts: tuple[Text, ...]
    questions: tuple[Question, ...]
