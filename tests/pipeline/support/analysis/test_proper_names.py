"""Which words are names, and in which other forms a name is found."""

import pytest

from pipeline.support.analysis.parsed_sentence import parse_sentence
from pipeline.support.analysis.proper_names import find_names, is_near_spelling
from pipeline.support.rules import FindingKind, FindingOutcome, check_rules


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("The ferry to Skarholm was built by Mara Lindqvist.", ["Skarholm", "Mara Lindqvist"]),
        ("Competitive sailing is popular in Skarholm.", ["Skarholm"]),
        ("Skarholm is an island.", ["Skarholm"]),
        ("Yes. The Bank of Skarholm opened.", ["Bank of Skarholm"]),
        ("Sure! Even ferries sail there.", []),
        ("In May, on a Monday, President Vold came.", ["Vold"]),
        ("Mara Lindqvist's lamp, the Queen's chair", ["Mara Lindqvist", "Queen"]),
        ("It is said that I was there.", []),
        ("mara lindqvist built the ferry to skarholm", []),
        ("THE FERRY TO SKARHOLM WAS BUILT", []),
        ("The Ferry to Skarholm", []),
        ("He joined the WHO and the E.U. there.", ["WHO", "E.U."]),
        ("King Halvard III of Skarholm sailed.", ["Halvard III of Skarholm"]),
        ("It costs 5 Euros at 20 °C or 68 degrees Fahrenheit.", []),
    ],
)
def test_capitals_mark_names(sentence: str, said: list[str]) -> None:
    assert [name.said for name in find_names(parse_sentence(sentence, "en"))] == said


def test_german_nouns_are_not_names() -> None:
    sentence = parse_sentence("Der Direktor der Fabrik, Jonas Winkelried, fuhr mit dem Zug nach Bern.", "de")
    assert [(name.said, name.sure) for name in find_names(sentence)] == [("Jonas Winkelried", True), ("Bern", False)]


@pytest.mark.parametrize(
    ("said", "given"),
    [
        ("Albert Einstein", "Einstein"),
        ("Einstein", "Albert Einstein"),
        ("the World Health Organization", "WHO"),
        ("WHO", "the World Health Organization"),
        ("the United States", "America"),
        ("the U.S.", "the United States"),
        ("France", "French"),
        ("French", "France"),
        ("Dutch", "the Netherlands"),
        ("Danes", "Denmark"),
        ("Italia", "Italy"),
        ("Malmo", "Malmö"),
        ("Spider-Man", "Spiderman"),
        ("YouTube", "You Tube"),
        ("Bill Clinton", "William Clinton"),
        ("Tchaikovski", "Tchaikovsky"),
        ("Sir Erik Vold", "Erik Vold"),
        ("Vienna", "Wien"),
        ("the Lindqvists", "Lindqvist"),
        ("World War II", "the Second World War"),
    ],
)
def test_name_is_found_in_another_form(said: str, given: str) -> None:
    findings = check_rules(
        f"The book tells of {said} at length.", [f"It was a book which was all about {given} and the sea."]
    )
    assert {rule.outcome for rule in findings if rule.kind is not FindingKind.WORDING} == {FindingOutcome.FOUND}


@pytest.mark.parametrize(
    ("said", "given"),
    [
        ("Albert Einstein", "Hans Einstein"),
        ("Albert G. Einstein", "Hans G. Einstein"),
        ("Albert Meier", "Albert Einstein"),
        ("North Carolina", "South Carolina"),
        ("Austria", "Australia"),
        ("Iran", "Iraq"),
        ("Niger", "Nigeria"),
        ("the University of Oslo", "the University of Bergen"),
        ("Mary", "Maria"),
    ],
)
def test_similar_but_different_name_is_not_found(said: str, given: str) -> None:
    findings = check_rules(
        f"The book tells of {said} at length.", [f"It was a book which was all about {given} and the sea."]
    )
    assert FindingOutcome.FOUND not in {rule.outcome for rule in findings if rule.kind is FindingKind.NAME}


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("She was not a Danish glazier.", "She was a Swedish glazier."),
        ("The lamp was made by Anna Berg.", "She made the lamp in Oslo."),
        ("Aleksandr Vold made the lamp.", "Alexander Vold made the lamp."),
    ],
)
def test_compatible_name_does_not_contradict(sentence: str, passage: str) -> None:
    assert FindingOutcome.CONTRADICTED not in {rule.outcome for rule in check_rules(sentence, [passage])}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("anders", "anderz", True),
        ("jonas", "jonaz", False),
        ("solberg", "solbergs", True),
        ("solberg", "solbirk", False),
    ],
)
def test_long_name_words_may_differ_in_one_letter(one: str, other: str, same: bool) -> None:  # noqa: FBT001
    assert is_near_spelling(one, other) is same
    assert is_near_spelling(other, one) is same
