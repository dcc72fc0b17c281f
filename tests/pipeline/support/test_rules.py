"""The findings of each rule, and their reasons. The company and its people are fictional."""

import time

import pytest

from pipeline.support.rules import FindingKind, FindingOutcome, RuleFinding, check_rules

GLASS = (
    "Mara Lindqvist (3 May 1951 – 12 June 2003) founded Ostrava Glass in Copenhagen in the spring of 1984. "
    "The Danish firm sold 1,250 lamps, each weighing 3 kg, for $4.5 million. "
    "It did not open its second workshop until 1990, when about 40% of its 212 employees lived in Malmö."
)
UNION = (
    "Erik Vold defeated Anna Berg in the final of 1987. The World Pottery Union has more than 500 members. "
    "Berg later married Vold in Oslo."
)


def find_faults(
    sentence: str, *passages: str, kind: FindingKind | None = None, context: tuple[str, ...] = ()
) -> list[RuleFinding]:
    """Return the unsupported findings, of one kind or of all kinds but wording."""
    findings = check_rules(sentence, passages or (GLASS,), context=context)
    missed = [rule for rule in findings if rule.outcome not in {FindingOutcome.FOUND, FindingOutcome.CHANGED}]
    return [rule for rule in missed if kind in {None, rule.kind}]


@pytest.mark.parametrize(
    "sentence",
    [
        "Mara Lindqvist founded Ostrava Glass in Copenhagen in 1984.",
        "Lindqvist was born in May 1951.",
        "Mara Lindqvist was born on May 3rd, 1951, and died in the 2000s.",
        "She founded the firm in the 1980s, in the twentieth century.",
        "The firm from Denmark sold one thousand two hundred and fifty lamps.",
        "The firm sold 1250 lamps of 3 kilograms for 4,500,000 dollars.",
        "Each lamp weighed about 6.6 pounds.",
        "The firm sold more than 1,200 lamps.",
        "Nearly 220 people worked there.",
        "Forty percent of the employees lived in Malmo.",
        "Ostrava Glass did not open its second workshop until 1990.",
    ],
)
def test_other_spellings_are_found(sentence: str) -> None:
    assert not find_faults(sentence)


@pytest.mark.parametrize(
    ("outcome", "instead", "reason"),
    [
        (FindingOutcome.CHANGED, "", "It says “must”, perhaps in another sense than the passages."),
        (FindingOutcome.DISPUTED, "", "It says “must”, which no passage mentions."),
        (FindingOutcome.CHANGED, "may", "It says “must”, but the passage says “may”."),
        (FindingOutcome.DISPUTED, "may", "It says “must”, but the passage says “may”."),
    ],
)
def test_reason_names_the_passage_wording_if_known(outcome: FindingOutcome, instead: str, reason: str) -> None:
    assert RuleFinding(FindingKind.WORDING, "must", outcome, instead).reason == reason


@pytest.mark.parametrize("outcome", FindingOutcome)
@pytest.mark.parametrize("elsewhere", [True, False])
def test_every_reason_is_a_sentence_with_both_values(outcome: FindingOutcome, *, elsewhere: bool) -> None:
    for said, instead in (("must", "may"), ("must", ""), ("", "may")):
        reason = RuleFinding(FindingKind.WORDING, said, outcome, instead, elsewhere=elsewhere and bool(instead)).reason
        one_sided = {FindingOutcome.FOUND, FindingOutcome.ASKED, FindingOutcome.ABSENT}
        assert (reason[0].isupper(), reason[-1], said in reason) == (True, ".", True)
        assert instead in reason or outcome in one_sided


@pytest.mark.parametrize(
    ("sentence", "kind", "said"),
    [
        ("Its 77 shops sold 1,250 lamps.", FindingKind.NUMBER, "77"),
        ("Her lamps weigh 7 kg there.", FindingKind.NUMBER, "7 kg"),
        ("Its shop in Malmö closed in 1996.", FindingKind.DATE, "1996"),
        ("Her niece was born on 12 May.", FindingKind.DATE, "12 May"),
        ("Visitors came on Mondays.", FindingKind.DATE, "Mondays"),
        ("Her work was shown in Ruritania.", FindingKind.NAME, "Ruritania"),
        ("Ruritania bought the firm.", FindingKind.NAME, "Ruritania"),
        ("Its chairman was Jonas Lindqvist.", FindingKind.NAME, "Jonas Lindqvist"),
    ],
)
def test_facts_that_no_passage_mentions_are_absent(sentence: str, kind: FindingKind, said: str) -> None:
    missing = find_faults(sentence, kind=kind)
    assert [(rule.said, rule.outcome) for rule in missing] == [(said, FindingOutcome.ABSENT)]
    assert missing[0].reason == f"It says “{said}”, which no passage mentions."


@pytest.mark.parametrize(
    ("sentence", "kind", "reason"),
    [
        ("The Danish firm sold 1,350 lamps.", FindingKind.NUMBER, "It says “1,350”, but the passage says “1,250”."),
        (
            "Mara Lindqvist founded Ostrava Glass in 1985.",
            FindingKind.DATE,
            "It says “1985”, but the passage says “1984”.",
        ),
        ("The Danish firm sold lamps weighing 3 lb.", FindingKind.UNIT, "It says “3 lb”, but the passage says “3 kg”."),
        (
            "Mara Lindqvist founded Ostrava Glass in Malmö.",
            FindingKind.NAME,
            "It says “Malmö”, but the passages say “Copenhagen”, perhaps of something else.",
        ),
        (
            "The Swedish firm sold 1,250 lamps.",
            FindingKind.NAME,
            "It says “Swedish”, but the passages say “Danish”, perhaps of something else.",
        ),
        (
            "The Danish firm never sold 1,250 lamps.",
            FindingKind.NEGATION,
            "It says “firm never sold”, but the passage says “firm sold”.",
        ),
        ("The Danish firm bought 1,250 lamps.", FindingKind.NEGATION, "It says “bought”, but the passage says “sold”."),
        ("The Danish firm sold 1,250 lamps for less.", None, None),
        ("Mara Lindqvist moved to Copenhagen in 1981.", None, None),
    ],
)
def test_another_value_in_the_same_place_contradicts(
    sentence: str, kind: FindingKind | None, reason: str | None
) -> None:
    reasons = [
        (rule.kind, rule.reason) for rule in find_faults(sentence) if rule.outcome is FindingOutcome.CONTRADICTED
    ]
    assert reasons == ([(kind, reason)] if kind else [])


DEFEATED = "Erik Vold defeated in 1987 the young potter Anna Berg."
DESCRIBED = "Anna Berg, a glazier, and Erik Vold, a harbour pilot, opened the yard in 1901."


@pytest.mark.parametrize(
    ("passage", "sentence", "contradicted"),
    [
        (UNION, "Anna Berg defeated Erik Vold in the final of 1987.", True),
        (UNION, "Erik Vold was defeated by Anna Berg in the final of 1987.", False),
        (UNION, "In the final of 1987, Erik Vold defeated Anna Berg.", False),
        (UNION, "Anna Berg was defeated by Erik Vold in the final of 1987.", False),
        (UNION, "Vold later married Berg in Oslo.", False),
        (UNION, "Berg defeated Vold in the final of 1987.", True),
        (DEFEATED, "Erik Vold defeated Anna Berg in 1987.", False),
        (DEFEATED, "Anna Berg was defeated by Erik Vold.", False),
        (DESCRIBED, "Anna Berg, a glazier, opened the yard with Erik Vold.", False),
        (DESCRIBED, "Vold, a pilot, opened the yard in 1901.", False),
        (DESCRIBED, "Erik Vold, an old pilot, opened the yard.", False),
    ],
)
def test_exchanged_names_are_contradicted(passage: str, sentence: str, *, contradicted: bool) -> None:
    assert any(rule.outcome is FindingOutcome.CONTRADICTED for rule in find_faults(sentence, passage)) is contradicted


@pytest.mark.parametrize(
    ("sentence", "passages", "context", "expected"),
    [
        ("Mara Lindqvist died on 3 May 2003.", (GLASS,), (), [FindingOutcome.ABSENT]),
        (
            "The ferry sank on 4 August 1921.",
            ("In 1921 there were two ferries. On August 4 the ferry sank.",),
            *((), []),
        ),
        ("Lindqvist opened a workshop.", ("She opened a second workshop in 1990.",), (), [FindingOutcome.UNNAMED]),
        ("Lindqvist opened a workshop.", ("She opened a second workshop in 1990.",), ("Mara Lindqvist",), []),
        (
            "Vold opened a workshop.",
            ("She opened a second workshop in 1990.",),
            *(("Mara Lindqvist",), [FindingOutcome.DISPUTED]),
        ),
        (
            "Vold opened a workshop.",
            ("Mara Lindqvist was a glazier. She opened a workshop.",),
            *((), [FindingOutcome.ABSENT]),
        ),
        ("Mara Lindqvist met Erik Vold in 1987.", (GLASS, UNION), (), []),
        ("Be at the quay half an hour before.", ("Be at the quay thirty minutes before.",), (), []),
    ],
)
def test_context_decides_about_names_dates_and_numbers(
    sentence: str, passages: tuple[str, ...], context: tuple[str, ...], expected: list[FindingOutcome]
) -> None:
    assert [rule.outcome for rule in find_faults(sentence, *passages, context=context)] == expected


@pytest.mark.parametrize(
    ("sentence", "passage", "absent"),
    [
        ("Die Firma verkaufte 1.250 Lampen im März 1984.", "Im März 1984 verkaufte die Firma 1250 Lampen.", []),
        ("Die Firma verkaufte im Mai 1984 Lampen.", "Im März 1984 verkaufte die Firma 1250 Lampen.", ["Mai 1984"]),
        ("Das Unternehmen verkaufte Lampen an Kunden.", "Im März 1984 verkaufte die Firma 1250 Lampen.", []),
        ("Der Gründer war Jonas Winkelried.", "Der Gründer der Firma war Max Huber.", ["Jonas Winkelried"]),
        ("L'usine a vendu 3,5 tonnes le 3 mai 1984.", "Le 3 mai 1984, l'usine vendait 3,5 tonnes de verre.", []),
        ("L'usine a vendu douze des lampes.", "Dans la ville, l'usine a vendu onze des lampes.", ["douze"]),
        ("La fábrica abrió el 3 de mayo de 1984.", "La fábrica se abrió el 3 de mayo de 1984 en Toledo.", []),
        ("La fábrica abrió en Sevilla.", "La fábrica se abrió el 3 de mayo de 1984 en Toledo.", ["Sevilla"]),
        ("工厂于1984年5月3日成立。", "该工厂成立于一九八四年五月三日。", []),
        ("工厂于1985年5月成立。", "该工厂成立于1984年5月3日。", ["1985年5月"]),
        ("تأسس المصنع عام ١٩٨٤.", "تأسس المصنع عام 1984 في المدينة.", []),
        ("कारखाना १९८४ में खुला।", "कारखाना 1985 में खुला।", ["1984"]),
    ],
)
def test_numbers_and_dates_are_found_in_other_languages(sentence: str, passage: str, absent: list[str]) -> None:
    assert [rule.said for rule in find_faults(sentence, passage)] == absent


@pytest.mark.parametrize(
    "sentence", ["", "   ", ".", "…", "[1]", "5", "Ω", "\N{COMBINING ACUTE ACCENT}", "'s", "A" * 5000]
)
@pytest.mark.parametrize("passage", ["", "\n", GLASS, "x" * 5000])
def test_any_text_can_be_checked(sentence: str, passage: str) -> None:
    assert isinstance(check_rules(sentence, [passage]), tuple)


def test_every_fact_is_absent_without_passages() -> None:
    assert [finding.outcome for finding in check_rules("It sold 12 lamps in Oslo in 1984.", ())] == [
        FindingOutcome.ABSENT
    ] * 3


def test_rules_check_a_sentence_within_milliseconds() -> None:
    passages = (GLASS, UNION, f"{GLASS} {UNION}")
    sentence = "Mara Lindqvist founded Ostrava Glass in Malmö in 1985 and sold 1,350 lamps."
    check_rules(sentence, passages)
    taken = []
    for _ in range(20):
        start = time.process_time()
        check_rules(sentence, passages)
        taken.append(time.process_time() - start)
    assert min(taken) < 0.005


@pytest.mark.parametrize("rate", ["a week", "per week", "every hour"])
def test_rate_for_another_period_is_contradicted(rate: str) -> None:
    passage = "The allowance on business trips is 45 euros a day."
    (one,) = find_faults(f"The allowance on business trips is 45 euros {rate}.", passage)
    assert (one.kind, one.outcome, one.instead) == (FindingKind.UNIT, FindingOutcome.CONTRADICTED, "45 euros a day")


@pytest.mark.parametrize("rate", ["per day", "each day", "", "/day", "a trip"])
def test_rate_for_the_same_or_no_period_is_not_contradicted(rate: str) -> None:
    assert not find_faults(
        f"The allowance on business trips is 45 euros {rate}.", "The allowance on business trips is 45 euros a day."
    )


FERRY = (
    "The ferry was built in 1911 and scrapped in 1938. A ticket costs 40 crowns. In 1930 it carried 3,000 islanders "
    "and 1,200 guests."
)


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("Two tickets cost 80 crowns.", "80"),
        ("Altogether 4,200 people travelled on it in 1930.", "4,200"),
        ("It sailed for 27 years.", "27 years"),
        ("Seven facts of it are known.", "Seven"),
    ],
)
def test_derivable_numbers_are_disputed(sentence: str, said: str) -> None:
    missed = {rule.said: rule.outcome for rule in find_faults(sentence, FERRY)}
    assert missed[said] is FindingOutcome.DISPUTED
    assert FindingOutcome.ABSENT not in missed.values()


def test_number_of_a_step_is_not_a_quantity() -> None:
    step = "2. Sorting: a member of the harbour crew sorts the mail. This takes place within 3 working days."
    findings = find_faults("A member of the harbour crew sorts the mail within 3 weeks.", step)
    assert not [rule for rule in findings if rule.instead == "2"]
    findings = find_faults("A member of the harbour crew sorts the mail within 2 days.", step)
    assert any(rule.outcome is not FindingOutcome.FOUND and rule.said == "2 days" for rule in findings)


@pytest.mark.parametrize(
    ("sentence", "passage", "own", "missed"),
    [
        ("9lanterns sells 25 lamps.", "9lanterns sells 25 lamps.", (), []),
        ("9lanterns’s shop sells 25 lamps.", "The shop sells 25 lamps.", ("9lanterns",), []),
        ("9lanterns sells 25 lamps.", "Oda sells 25 lamps.", (), ["9lanterns"]),
        ("8lanterns sells 25 lamps.", "9lanterns sells 25 lamps.", (), ["8lanterns"]),
        ("The shop sells 9 lamps.", "9lanterns, the shop, sells 25 lamps.", (), ["9"]),
        ("The shop sells 25 lamps.", "The shop sells 25lamps.", (), []),
        ("A lamp burns for 9 hours.", "A lamp burns for 8hours.", (), ["9 hours"]),
    ],
)
def test_digits_of_a_name_are_no_number(sentence: str, passage: str, own: tuple[str, ...], missed: list[str]) -> None:
    found = check_rules(sentence, [passage], own=own)
    outcomes = {FindingOutcome.ABSENT, FindingOutcome.CONTRADICTED}
    assert [finding.said for finding in found if finding.outcome in outcomes] == missed
