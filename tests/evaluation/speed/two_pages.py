"""An exam about two short pages, which are indexed quickly."""

from evaluation.answers.question_sets import Exam, ExamQuestion
from tests.fakes import PageSource

PAGES = {
    "light": {"title": "Lighthouse", "": "The lighthouse was built in 1887. A keeper lives beside it."},
    "pier": {"title": "Pier", "": "The pier is made of oak. It was lost in the storm of 1953."},
}
QUESTIONS = tuple(
    ExamQuestion(text, (), frozenset(), text)
    for text in ("When was the lighthouse built?", "What is the pier made of?")
)
EXAM = Exam("two pages", "handbook", PageSource(PAGES), QUESTIONS, removable=False)
