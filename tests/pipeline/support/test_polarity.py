"""Real and apparent contradictions by negations and opposites."""

import pytest

from pipeline.support.rules import FindingKind, FindingOutcome, check_rules

AGAINST = {FindingOutcome.CONTRADICTED, FindingOutcome.DISPUTED}
DENIALS = {FindingKind.NEGATION, FindingKind.COMPARATIVE}


def denied(sentence: str, passage: str) -> list[FindingKind]:
    findings = check_rules(sentence, [passage])
    return [rule.kind for rule in findings if rule.kind in DENIALS and rule.outcome in AGAINST]


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("The ferry did not sail on Sunday.", "The ferry sailed on Sunday in the rain."),
        ("The ferry sailed on Sunday.", "The ferry did not sail on Sunday because of the storm."),
        ("The ferry doesn't carry cars.", "The ferry carries cars."),
        ("The ferry carries no cars.", "The ferry carries cars and people."),
        ("Nobody sailed on the ferry.", "Everybody sailed on the ferry."),
        ("The ferry failed to reach the island.", "The ferry reached the island at noon."),
        ("The harbour is never open in winter.", "The harbour is always open in winter."),
        ("The harbour opened in autumn.", "The harbour closed in autumn."),
        ("The harbour lies in the north of the island.", "The harbour lies in the south of the island."),
        ("Their match was won in the rain.", "Their match was lost in the rain."),
        ("The story is unknown to sailors.", "The story is known to sailors."),
        ("Supper is not part of the price of a cabin.", "Supper is part of the price."),
        ("Lamps are never allowed on deck.", "Below it is dark, but on deck lamps are allowed."),
        ("Smoking is not forbidden on the ferry.", "Smoking is forbidden on the ferry."),
        ("Die Fähre fährt nicht am Sonntag, sagt der Kapitän.", "Die Fähre fährt am Sonntag, sagt der Kapitän."),
        ("Le bateau ne part pas le dimanche, dit-on.", "Le bateau part le dimanche, dit-on sur le port."),
        ("El barco no sale los domingos con la marea.", "El barco sale los domingos con la marea."),
    ],
)
def test_denial_in_one_of_two_similar_sentences_contradicts(sentence: str, passage: str) -> None:
    assert FindingKind.NEGATION in denied(sentence, passage)


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("The ferry carries more than 500 people.", "The ferry carries less than 500 people."),
        ("The ferry needs at least three hands.", "The ferry needs at most three hands."),
        ("The ferry sailed before the storm.", "The ferry sailed after the storm."),
        ("It is the oldest ferry on the lake.", "It is the youngest ferry on the lake."),
        ("The ferry is larger than the barge.", "The ferry is smaller than the barge."),
        ("It was the first ferry on the lake.", "It was the last ferry on the lake."),
    ],
)
def test_comparative_opposites_contradict(sentence: str, passage: str) -> None:
    assert denied(sentence, passage) == [FindingKind.COMPARATIVE]


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("The ferry did not sail on Sunday.", "On Sunday the ferry didn't sail."),
        ("The ferry has never sailed on Sundays.", "The ferry has not sailed on Sundays."),
        ("The ferry carries cars.", "The ferry carries not only cars but also trains."),
        ("The ferry opened in 1990.", "The ferry did not open until 1990."),
        ("The ferry carries 500 people.", "The ferry carries no more than 500 people."),
        ("The crew did not lose the race.", "The crew won the race."),
        ("The ferry isn't unsafe.", "The ferry is safe."),
        ("The ferry sailed on Sunday.", "Though it was not the largest, the ferry sailed on Sunday."),
        ("The ferry is no barge.", "The ferry is not a barge."),
        ("The ferry sailed after the parade.", "The parade began before the ferry sailed."),
        ("It is not a Danish ferry.", "It is a Swedish ferry."),
        (
            "Sailors should take at most 20 lamps.",
            "Old hands take many, but sailors should not take more than 20 lamps.",
        ),
        ("Lamps are not allowed in Vik.", "Lamps are allowed on all islands, except in Vik."),
        ("Lamps are not allowed on decks under nine metres.", "On decks of more than nine metres lamps are allowed."),
        ("The ban on lamps and ropes was old.", "Old lamps and ropes were on deck."),
        ("It was No. 5 on the list.", "It was number 5 on the list."),
    ],
)
def test_equivalent_negations_do_not_contradict(sentence: str, passage: str) -> None:
    assert denied(sentence, passage) == []


def test_denial_reason_quotes_the_passage() -> None:
    (one,) = [
        finding
        for finding in check_rules("The ferry never sailed.", ["The ferry sailed."])
        if finding.kind is FindingKind.NEGATION
    ]
    assert one.reason == "It says “ferry never sailed”, but the passage says “ferry sailed”."


@pytest.mark.parametrize(
    ("sentence", "passage", "outcome"),
    [
        ("Cats may enter the cabin.", "Cats are not allowed in the cabin.", FindingOutcome.CONTRADICTED),
        ("Cats can enter the cabin.", "Cats are prohibited in the cabin.", FindingOutcome.CONTRADICTED),
        ("Cats are not allowed in the cabin.", "Cats may enter the cabin.", FindingOutcome.CONTRADICTED),
        ("Cats are allowed in the cabin.", "Cats cannot enter the cabin.", FindingOutcome.CONTRADICTED),
        ("Guests may see the cabin.", "Guests are not allowed in the cabin.", FindingOutcome.DISPUTED),
    ],
)
def test_permission_contradicts_its_denial(sentence: str, passage: str, outcome: FindingOutcome) -> None:
    outcomes = {finding.outcome for finding in check_rules(sentence, [passage]) if finding.kind is FindingKind.NEGATION}
    assert outcome in outcomes
    assert (FindingOutcome.CONTRADICTED in outcomes) == (outcome is FindingOutcome.CONTRADICTED)


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("Cats may not enter the cabin.", "Cats are not allowed in the cabin."),
        ("Dogs are allowed in the cabin at noon.", "Dogs may only enter the cabin at noon."),
        ("The crew sailed in May 2016.", "The whole crew sailed on the lake in May 2016."),
        ("Crews may sleep in the cabin.", "Sailors may sleep in the cabin."),
        ("Dogs may enter the cabin.", "Cats are not allowed in the cabin. Dogs may enter the cabin."),
        ("Guests must not smoke.", "Cats are not allowed in the cabin. Guests must not smoke in the harbour."),
    ],
)
def test_permissions_may_be_worded_differently(sentence: str, passage: str) -> None:
    assert denied(sentence, passage) == []
