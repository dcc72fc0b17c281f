"""Grades of replies to gold cases: the reason if wrong, and the counts of relevant citations."""

import pytest

from bot.doctor.call_kinds import GoldCase, Grade, count_sources, find_foreign_numbers, find_missing_terms
from pipeline.replies.cited_sentences import split_sentences
from pipeline.replies.stage_replies import Bullet, CriterionScore, Feedback, TimedClaim
from pipeline.support.verdict_look import Verification
from storage.types import SearchQuery, Verdict
from tests.bot.doctor.gold import BY_KIND, cases


def grade(kind: str, name: str, graded: object) -> Grade:
    return BY_KIND[kind].judge(case(kind, name), graded)


def case(kind: str, name: str) -> GoldCase:
    return next(each for each in cases(BY_KIND[kind]) if each.name == name)


@pytest.mark.parametrize(("name", "graded", "wrong"), [
    ("a plain fact", None, "nothing is searched for"),
    ("a plain fact", SearchQuery("boiling point"), "“boiling point” lacks ethanol"),
    ("a plain fact", SearchQuery("ethanol boiling point", 2020), "its time is 2020 and not none"),
    ("last year", SearchQuery("Orrin Valley hill race", 2025), ""),
    ("the newest", SearchQuery("Tidewell app version"), "its time is none and not recent"),
    ("a false premise", SearchQuery("Curie Nobel Prize", 1911), ""),
    ("thanks", SearchQuery("thanks a lot"), "“thanks a lot” is searched for"),
    ("thanks", None, ""),
])  # fmt: skip
def test_query_is_graded_by_words_and_time(name: str, graded: SearchQuery | None, wrong: str) -> None:
    assert grade("query", name, graded) == Grade(wrong)


def test_bullets_are_graded_by_relevant_sentences() -> None:
    name = "general knowledge"
    stray = (Bullet("He named it penicillin.", (2, 3)), Bullet("He was knighted in 1944.", (4,)))

    assert grade("summarise", name, (Bullet("A mould kills bacteria.", (2, 3)),)) == Grade("", 2, 2)
    assert grade("summarise", name, stray) == Grade("[4] is irrelevant", 3, 2)
    assert grade("summarise", name, (Bullet("He named it.", (3,)),)) == Grade("[2] is missing", 1, 1)
    assert grade("summarise", name, ()) == Grade("[2] is missing")
    assert "1929 is not in the sentences" in grade("summarise", name, (Bullet("It was 1929.", (2, 3)),)).wrong
    assert grade("summarise", "nothing to the point", ()) == Grade()


def test_claims_are_graded_by_facts_and_subjects() -> None:
    each, two = (
        TimedClaim("The Lindgren Bridge was opened in 1956."),
        TimedClaim("The Lindgren Bridge spans 320 metres."),
    )
    name = "facts and an opinion"

    assert grade("split", name, (each, two)) == Grade()
    assert grade("split", name, (each,)).wrong.startswith("no claim states")
    assert "magnificent" in grade("split", name, (each, two, TimedClaim("The bridge is magnificent."))).wrong
    assert "It is red" in grade("split", name, (each, two, TimedClaim("It is red."))).wrong
    assert grade("split", "greetings alone", (each,)).wrong == "“The Lindgren Bridge was opened in 1956.” is not a fact"


def test_claim_is_graded_by_its_time() -> None:
    text = "Omar Reyes leads the lab of Tidewell as of 2026."

    assert grade("split", "now", (TimedClaim(text, "recent"),)) == Grade()
    assert grade("split", "now", (TimedClaim(text, None),)).wrong.startswith("no claim states, for its time")


def test_verdict_is_graded_with_its_sentences() -> None:
    name = "over two pages"
    right, partly = Verification(Verdict.SUPPORTS, (1, 3)), Verification(Verdict.SUPPORTS, (1, 2))

    assert grade("verify", name, right) == Grade("", 2, 2, (Verdict.SUPPORTS, Verdict.SUPPORTS))
    assert grade("verify", name, partly) == Grade("", 2, 1, (Verdict.SUPPORTS, Verdict.SUPPORTS))
    assert grade("verify", name, Verification(Verdict.REFUTES, (1,))) == Grade(
        "REFUTES and not SUPPORTS", verdicts=(Verdict.SUPPORTS, Verdict.REFUTES)
    )


@pytest.mark.parametrize(("name", "reply", "wrong"), [
    ("half of the question", "The rye loaf is made of flour, water, salt and sourdough [1].", ""),
    ("half of the question", "What it costs is not known [1].", "it says “cost”"),
    ("a comparison", "The Aure is 212 kilometres long [1]. The Mondo is longer.", "[2] is missing"),
    ("a comparison", "The Aure has 212 km [1]. The Mondo has 640 km [2]. Nice.", "“Nice.” cites nothing"),
    ("a number with its unit", "Water tank 3 holds 4,500 litres [1]. Tank 9 too [1].", "9 is not in the source of"),
    ("no note helps", "The lab manager is in building C [1].", "[1] is irrelevant"),
    ("a German question, English notes", "Staff may bring their dog on Fridays (Freitag) [1].", "it is in English"),
    ("a German question, English notes", "Freitags dürfen Mitarbeitende ihren Hund mitbringen [1].", ""),
])  # fmt: skip
def test_draft_is_graded_by_its_notes(name: str, reply: str, wrong: str) -> None:
    graded = grade("draft", name, split_sentences(reply, len(case("draft", name).facts["findings"])))

    assert graded.wrong.startswith(wrong)
    assert bool(graded.wrong) == bool(wrong)


def test_feedback_is_graded_by_the_faults_of_the_draft() -> None:
    names = ("relevant", "natural", "non-repetitive", "temporally correct")
    kind, flat = "feedback", Feedback(tuple(CriterionScore(name, "Good.", 95) for name in names))
    harsh = Feedback(tuple(CriterionScore(name, "Bad.", 40) for name in names))

    assert grade(kind, "nothing to do: one sentence", flat) == Grade()
    assert grade(kind, "nothing to do: one sentence", harsh).wrong.startswith("the critic denies that it is relevant")
    assert grade(kind, "it repeats itself", flat).wrong == "it finds nothing to fix about: non-repetitive"
    assert grade(kind, "it repeats itself", harsh) == Grade()


def test_refinement_is_wrong_if_it_adds_something() -> None:
    kind, name = "refine", "it repeats itself"

    assert grade(kind, name, split_sentences("It is made of sourdough [2].", 2)) == Grade("", 1, 1)
    assert "90" in grade(kind, name, split_sentences("It is made of 90 percent sourdough [1].", 2)).wrong
    assert grade(kind, name, ()).wrong == "it is empty"


def test_free_text_is_right_if_it_is_one_paragraph() -> None:
    assert not grade("generate", "a plain fact", "About 78 degrees.\n").wrong
    assert grade("generate", "a plain fact", "First.\n\nSecond.").wrong


def test_terms_match_in_any_case_and_numbers_in_any_grouping() -> None:
    assert find_missing_terms("The AURE is long", ["aure", "mondo|long", "sea|lake"]) == ["sea|lake"]
    assert find_foreign_numbers("4.500 Liter um 5:30", "4,500 litres at 5:30") == []
    assert find_foreign_numbers("45 and 4.2", "4,500 and 42") == ["45"]
    assert count_sources("One [1]. Two [3][12].") == 12
