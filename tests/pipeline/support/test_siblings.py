"""Sentences that take who, which or when from another sentence, item or clause of the passage than their statement."""

import pytest

from pipeline.support.rules import FindingOutcome, check_rules

LEAVE = (
    "Members of the boat club take ten days of mourning leave for the death of an immediate relative, and five days "
    "for the death of an extended relative. Primary keepers get 16 weeks of leave. Secondary keepers get 6 weeks. "
    "The night guard checks the cellar. The day guard locks the gate. Only members of the crew can see the ledger. "
    "Borrowers pay a fine of 3 crowns. Paddles are stored in the loft and sails are stored in the shed. "
    "You forfeit your share in the club if you resign before June. Ask the cook for her support before you write to "
    "the council. The old radar is gradually being replaced by Fjordview. The raft is hired out at weekends. "
    "The club lends each new rower one paddle and two lamps. Before leaving, a guest of the club returns the keys to "
    "the steward. We use Gullnet to store raw films for the crew and our Havbase to publish posters. Berths are open "
    "to rowers who have passed the test.\nThe harbour pays for:\n- Oars - up to 60 euros\n- Lamps - up to 60 euros\n"
    "- Sails - up to 90 euros"
)
SHORT = "The harbour pays 60% of your wages for 12 weeks, and then you can ask the council for more of it."


def grave(sentence: str, passage: str = LEAVE, context: tuple[str, ...] = ()) -> bool:
    """Return whether a sentence is quoted instead, or refused."""
    refused = {FindingOutcome.ABSENT, FindingOutcome.CONTRADICTED}
    findings = check_rules(sentence, [passage], context=context)
    return any(finding.grave or finding.outcome in refused for finding in findings)


@pytest.mark.parametrize(
    "sentence",
    [
        "You take ten days of mourning leave when an extended relative dies.",
        "The day guard checks the cellar.",
        "Secondary keepers get 16 weeks of leave.",
        "Everyone in the club can see the ledger of the crew.",
        "Lenders pay a fine of 3 crowns.",
        "The sail is hired out at weekends.",
        "Each new rower is given two paddles and a lamp.",
        "The steward returns the keys to the guest before leaving.",
        "If you resign before June, you keep your share in the club.",
        "Write to the council first, then ask the cook for her support.",
        "Fjordview is gradually being replaced by the old radar.",
        "Raw films for the crew are stored in Havbase, and Gullnet is used to publish posters.",
        "The harbour pays up to 60 euros for oars and up to 90 euros for lamps.",
        "Berths are open to all rowers from their first day.",
    ],
)
def test_sibling_is_not_left_to_the_model(sentence: str) -> None:
    assert grave(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "When an immediate relative dies, you take ten days of mourning leave.",
        "For an extended relative you take five days.",
        "The guard at night checks the cellar, and the one by day locks the gate.",
        "Primary keepers can be away for 16 weeks.",
        "The ledger can be seen by crew members only.",
        "At weekends you can hire the raft.",
        "Each new rower is given a paddle and two lamps.",
        "A guest of the club returns the keys to the steward before leaving.",
        "Before you write to the council, ask the cook for her support.",
        "Fjordview is gradually replacing the old radar.",
        "Raw films for the crew are stored in Gullnet, and Havbase is used to publish posters.",
    ],
)
def test_same_thing_in_other_words_is_left_to_the_model(sentence: str) -> None:
    assert not grave(sentence)


def test_opposite_of_the_pages_heading_is_not_left_to_the_model() -> None:
    section = ("Short-term sickness",)
    assert grave("In long-term sickness the harbour pays 60% of your wages.", SHORT, section)
    assert not grave("In short-term sickness the harbour pays 60% of your wages.", SHORT, section)


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("The harbour pays the full fee of the course.", "The harbour pays 100% of the fee of the course."),
        ("The harbour pays all of the fee of the course.", "The harbour pays 100% of the fee of the course."),
        ("Half of the fee is paid by the harbour.", "The harbour pays 50% of the fee."),
        ("The crew landed on the Moon in 1969.", "In 1969 the crew made a lunar landing."),
        ("Brigadier Amelia Stone led the mission.", "Brig. Amelia Stone led the mission in Vik."),
        ("The Department of Health pays for it.", "The Dept. of Health pays for it."),
        ("Write to Human Resources about leave.", "Write to HR about leave."),
        (
            "You shouldn't row at night, but you can borrow a lamp.",
            "Instead of rowing in the dark, you can borrow a lamp.",
        ),
        ("Guests may use the desk of a crew member who is away.", "Guests can work at the desks of crew who are away."),
        ("The harbour gives the old nets away for free.", "The harbour gives old nets away at no charge to anyone."),
        ("Nobody but the crew can open the vault.", "The vault can be opened by the crew alone."),
        ("A new rower's coach asks the crew for help.", "The learner's coach asks the crew for help."),
        ("The bell is rung by Vik and is heard at nine.", "The bell rung by Vik, heard at nine, calls the crew."),
        ("Fares you miss are paid when you come back.", "Any fares that you miss will be paid when you return home."),
        (
            "The fee can be paid all at once or in parts.",
            "It can be paid in one sum or in parts. The fee is due in May.",
        ),
        ("If you do not row you do not need a coat.", "If you are a guest and will NOT row, you do not need a coat."),
        (
            "You cannot join this season, because rowers who come after May 1 cannot join the season.",
            "Rowers who come after May 1 cannot join this season.",
        ),
        (
            "Your coat comes 7 days after the harbour has paid.",
            "Your order is read by the harbour, and once approved, it pays. Your coat comes 7 days after that.",
        ),
        (
            "You get your share over time instead of all of it at once.",
            "Instead of all of your share, you get it over time.",
        ),
        (
            "Avoid trips for which you should pay or that might make you late.",
            "Do not take other boats. Avoid trips, paid or free, that might make you late.",
        ),
        (
            "The council reads your letter in May and then lets you know.",
            "The council reads your letter in May, after which it lets you know.",
        ),
        (
            "Trips are dry until the council says otherwise.",
            "Though trips are dry until the council says otherwise, there may be trips at dusk when wine is poured.",
        ),
        (
            "Guests keep their oars for 7 years.",
            "Guests keep their oars for 7 years, as nobody new gets anything else.",
        ),
        ("You row in pairs so that nobody is left alone.", "You row in pairs, so nobody is left alone."),
        ("A trip is a time of at least 4 weeks in a boat.", "A trip is a time of 4 weeks or more in a boat."),
        ("A fee below 45% needs the council.", "A fee of less than a 45% share needs the council."),
    ],
)
def test_other_wording_is_left_to_the_model(sentence: str, passage: str) -> None:
    assert not grave(sentence, passage)


def test_askers_own_period_is_not_taken_for_one_of_another_item() -> None:
    passage = "You can row for:\n* From 2 to 5 years - from 4 weeks to 6 months\n* Over 5 years - up to 12 months"
    sentence, asked = "After three years you can row for from 4 weeks to 6 months.", ["I have been here three years."]
    assert not any(finding.grave for finding in check_rules(sentence, [passage], asked=asked))
