"""The evidence and the notes of answer sentences."""

from datetime import UTC, datetime

from pipeline.replies import footnotes
from pipeline.replies.cited_sentences import MarkedSentence
from pipeline.stages.draft.answer_draft import SentenceAnnotator
from pipeline.stages.findings import SourcedFinding, collect_sentences
from pipeline.stages.turn_context import TurnContext
from storage.types import Hit
from tests.pipeline.world import hit, question

OLD = hit("The ferry costs 12 crowns.", key="old.md", title="Old fares", date=datetime(2021, 3, 1, tzinfo=UTC))
NEW = hit("The ferry costs 15 crowns.", key="new.md", title="New fares", date=datetime(2026, 1, 15, tzinfo=UTC))
PIER = hit("The pier is made of oak.", key="pier.md", title="Pier")


def notebook(spoken: str, *hits: Hit) -> SentenceAnnotator:
    findings = [SourcedFinding(source.passage.text, collect_sentences([source])) for source in hits]
    return SentenceAnnotator(TurnContext(question("Why?"), spoken), findings)


def annotate(book: SentenceAnnotator, *numbers: int) -> str:
    sentence = book.annotate(MarkedSentence("It is so.", numbers, paragraph=False))
    book.note_named(sentence)
    assert not sentence.evidence or any(footnotes.is_own_note(sentence.note, piece) for piece in sentence.evidence)
    return sentence.note


def test_sentence_in_the_askers_language_has_no_note() -> None:
    assert annotate(notebook("en", PIER), 1) == ""
    assert annotate(notebook("", PIER), 1) == ""


def test_disagreeing_sources_are_noted_with_their_dates() -> None:
    book = notebook("en", NEW, PIER, OLD)

    assert [annotate(book, number) for number in (1, 2, 3, 1)] == [
        "New fares, 2026-01-15", "", "Old fares, 2021-03-01", "New fares, 2026-01-15",
    ]  # fmt: skip


def test_foreign_source_is_noted_once() -> None:
    book = notebook("de", PIER, OLD)

    assert [annotate(book, number) for number in (1, 1, 2)] == ["Pier, English", "", "Old fares, English"]


def test_sentence_without_numbers_has_no_evidence_and_no_note() -> None:
    assert annotate(notebook("de", PIER)) == ""
