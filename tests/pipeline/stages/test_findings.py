"""Findings: what is the same, what disagrees, and what comes first."""

from datetime import UTC, datetime

from pipeline.stages.passage_retrieval import (
    SourcedFinding,
    collect_sentences,
    deduplicate_findings,
    find_disagreeing,
    order_rivals_by_date,
)
from tests.pipeline.world import hit

OLD = hit("The ferry to Skarholm costs 12 crowns.", key="old.md", date=datetime(2021, 1, 1, tzinfo=UTC))
NEW = hit("The ferry to Skarholm costs 15 crowns.", key="new.md", date=datetime(2026, 1, 1))  # noqa: DTZ001 - as some have it
UNDATED = hit("The ferry to Skarholm costs 9 crowns.", key="undated.md")
PIER = hit("The pier is made of oak. It is long.", key="pier.md")


def finding(found, text: str = "") -> SourcedFinding:
    evidence = collect_sentences([found])[:1]
    return SourcedFinding(text or evidence[0].text, evidence)


def test_sentences_are_shown_once_a_passage() -> None:
    """Also when several pieces of evidence stand in it; each is what stands at its span."""
    sentences = collect_sentences([PIER, *collect_sentences([PIER]), OLD])

    assert [one.text for one in sentences] == ["The pier is made of oak.", "It is long.", OLD.passage.text]
    assert all(one.passage.text[slice(*one.span)] == one.text for one in sentences)


def test_the_same_words_of_the_same_passage_are_one_finding() -> None:
    """Of two passages they are two, as both can be cited."""
    one, same, other = (
        finding(OLD),
        finding(OLD, "the ferry to Skarholm  costs 12 crowns."),
        finding(NEW, OLD.passage.text),
    )

    assert deduplicate_findings([one, same, other]) == (one, other)


def test_of_those_that_disagree_the_newer_comes_first() -> None:
    """They share their places among themselves; what nobody dated is last of them, and the others stay."""
    findings = [finding(UNDATED), finding(PIER), finding(OLD), finding(NEW)]

    assert find_disagreeing(findings) == (0, 2, 3)
    assert order_rivals_by_date(findings) == (findings[3], findings[1], findings[2], findings[0])


def test_one_document_does_not_disagree_with_itself() -> None:
    """It has its reasons for two numbers."""
    assert find_disagreeing([finding(OLD), finding(OLD, "The ferry to Skarholm costs 13 crowns.")]) == ()
