"""Sentences that rules and score support, but that may differ in meaning. The houses are fictional."""

import pytest

from pipeline.support.rules import FindingOutcome, check_rules

HOUSE = (
    "From 3 May 2027 the breakfast allowance on study trips is 12 euros a day. A tent may cost up to 90 euros a night. "
    "Members pay a deposit or bring a sponsor. Dogs may not enter the kitchen. The gate is open until 2 pm. "
    "The night guard checks the cellar twice each shift. Most of the guests come from Vik. "
    "You may take the rowing boat when the wind is below force 4. The miller fed the fox in the yard. "
    "The prize is awarded every other year. Keys come from the house manager."
)


def doubts(sentence: str, passage: str = HOUSE, asked: tuple[str, ...] = ()) -> list[str]:
    findings = check_rules(sentence, [passage], asked=asked)
    return [rule.reason for rule in findings if rule.outcome is not FindingOutcome.FOUND]


def against(sentence: str, passage: str, asked: str = "") -> list[str]:
    """Return why a sentence is certainly false."""
    sure = {FindingOutcome.ABSENT, FindingOutcome.CONTRADICTED}
    return [finding.reason for finding in check_rules(sentence, [passage], asked=[asked]) if finding.outcome in sure]


@pytest.mark.parametrize(
    "sentence",
    [
        "Until 3 May 2027 the breakfast allowance on study trips is 12 euros a day.",
        "A tent must cost up to 90 euros a night.",
        "A tent may cost at least 90 euros a night.",
        "A tent may cost up to 90 euros a month.",
        "The breakfast allowance is 12 euros a day for cooks only.",
        "The breakfast allowance is 12 euros a day, tax included.",
        "The penalty on study trips is 12 euros a day.",
        "The breakfast allowance on study trips is 12 euros a day because rooms are dear.",
        "Members pay a deposit plus bring a sponsor.",
        "No, dogs may not enter the kitchen.",
        "The gate is open from 2 pm.",
        "The night guard checks the cellar once each shift.",
        "All of the guests come from Vik.",
        "You may take the rowing boat.",
        "The fox fed the miller in the yard.",
        "The prize is awarded every year.",
        "Keys come from the house manager and the treasurer.",
        "The gate is open until 2 pm, even on holidays.",
    ],
)
def test_changed_sentences_are_doubtful(sentence: str) -> None:
    assert doubts(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "The breakfast allowance on study trips is 12 euros a day.",
        "A tent may cost at most 90 euros a night.",
        "A tent can cost up to €90 a night.",
        "Members either pay a deposit or bring a sponsor.",
        "The gate is open till 2 pm.",
        "The night guard checks the cellar two times each shift.",
        "Most guests come from Vik.",
        "Every two years, the prize is awarded.",
        "When the wind is below force 4, you may take the rowing boat.",
        "The fox was fed by the miller in the yard.",
    ],
)
def test_equivalent_sentences_are_not_doubtful(sentence: str) -> None:
    assert not doubts(sentence)


def miscopied(sentence: str, passage: str = HOUSE, asked: tuple[str, ...] = ()) -> bool:
    return any(finding.miscopied for finding in check_rules(sentence, [passage], asked=asked))


@pytest.mark.parametrize(
    ("sentence", "passage", "expected"),
    [
        ("The penalty on study trips is 12 euros a day.", HOUSE, True),
        ("Keys come from the house manager and the treasurer.", HOUSE, True),
        ("All of the guests come from Vik.", HOUSE, True),
        ("The fox fed the miller in the yard.", HOUSE, True),
        ("You may take the rowing boat.", HOUSE, True),
        ("The breakfast allowance is 12 euros a day, tax included.", HOUSE, True),
        ("The breakfast allowance on study trips is 12 euros a day.", HOUSE, False),
        ("Every two years, the prize is awarded.", HOUSE, False),
        ("Travelling scholars get 12 euros daily towards what they eat in the morning.", HOUSE, False),
        ("No, dogs may not enter the kitchen.", HOUSE, False),
        ("There are no boats on any lake in Vik.", "There are no boats on the lake in Vik.", False),
        (
            "Ida Lund is the night warden, so ask her about lost keys.",
            *("Role: Night warden; Name: Ida Lund; House: Mill; Ask about: Lost keys", False),
        ),
    ],
)
def test_only_changed_copies_are_miscopied(sentence: str, passage: str, *, expected: bool) -> None:
    assert miscopied(sentence, passage) is expected


def test_askers_words_in_a_copy_are_not_miscopied() -> None:
    sentence = "Keys come from the house manager for lodgers."
    assert miscopied(sentence)
    assert not miscopied(sentence, asked=("Where do lodgers get keys?",))


@pytest.mark.parametrize(
    ("sentence", "passage", "grave"),
    [
        ("Solveig Moe wrote nine plays.", "In her life Solveig Moe wrote only nine plays.", False),
        (
            "The kiosk is run by Vik Foods.",
            *("The kiosk is run by Vik Foods and takes coins unless the till is broken.", False),
        ),
        ("Wine is paid for at all dinners.", "Wine is paid for at such dinners only.", True),
    ],
)
def test_only_conditions_of_the_statement_are_missed(sentence: str, passage: str, *, grave: bool) -> None:
    assert any(finding.grave for finding in check_rules(sentence, [passage])) is grave


def test_rounded_limit_is_not_doubtful() -> None:
    assert not doubts("The firm sold more than 1,100 lamps.", "The firm sold 1,187 lamps.")


def test_askers_words_at_the_end_are_not_doubtful() -> None:
    sentence = "The gate is open until 2 pm for couriers."
    assert doubts(sentence)
    assert not doubts(sentence, asked=("Until when is the gate open for couriers?",))


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("A tent may cost at least 90 euros a night.", HOUSE),
        ("The night guard checks the cellar once each shift.", HOUSE),
        ("The gate is open from 2 pm.", HOUSE),
        (
            "The cook must ask for one change to the menu.",
            "Whoever is on duty writes it, and the cook may ask for one change.",
        ),
        ("Old tents are sold for good, and buyers get a voucher of 300 euros.", "Members may buy old tents for good."),
    ],
)
def test_grave_findings_are_surely_false(sentence: str, passage: str) -> None:
    assert against(sentence, passage)


@pytest.mark.parametrize(
    ("sentence", "passage", "asked"),
    [
        ("A canoe may cost up to 900 euros a year.", "The annual limit for canoes is 900 euros.", ""),
        (
            "A canoe may cost up to 900 euros a year.",
            "The limit for canoes is 900 euros.",
            "What may I spend each year?",
        ),
        ("The club was open for two weeks of a year.", "The club was open for two weeks.", ""),
        ("You should pour it slowly.", "It must be poured slowly.", ""),
        ("Members may not bring dogs.", "Members must not bring dogs.", ""),
        ("The mill ran for four centuries.", "The mill was built in 1402 and closed in 1811.", ""),
        ("The class takes 90 minutes.", "The course in the boat house lasts 1 hour 30 minutes.", ""),
        ("The class takes 1 hour and 30 minutes.", "The course in the boat house lasts 90 minutes.", ""),
        ("They row 5 miles on it, against the wind.", "The lake is some 8 km long.", ""),
        ("For two boats that makes 180 euros.", "A boat costs 90 euros.", ""),
        ("That makes 270 euros.", "A boat costs 90 euros.", "What do 3 boats cost?"),
        (
            "Your payments start in the same month if you order the canoe before the 18th.",
            (
                "If you order a canoe before the 18th your payments start that same month, but if you order on or "
                "after the 18th your payments start the following month."
            ),
            "",
        ),
    ],
)
def test_unclear_findings_do_not_decide(sentence: str, passage: str, asked: str) -> None:
    assert not against(sentence, passage, asked)
