"""How dates and times of day are read, and which others they support."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.support.analysis.date_parser import find_dates, implies_date
from pipeline.support.analysis.tokenizer import tokenize
from pipeline.support.rules import FindingKind, FindingOutcome, check_rules

MONTHS = """
January February March April May June July August September October November December
Januar Februar März April Mai Juni Juli August September Oktober November Dezember
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
janvier février mars avril mai juin juillet août septembre octobre novembre décembre
"""
ENGLISH, GERMAN, SPANISH, FRENCH = (line.split() for line in MONTHS.strip().splitlines())
CHINESE = "〇一二三四五六七八九"
WRITINGS = [
    date.isoformat,
    lambda day: f"{day.day} {ENGLISH[day.month - 1]} {day.year}",
    lambda day: f"{ENGLISH[day.month - 1]} {day.day}, {day.year}",
    lambda day: f"{ENGLISH[day.month - 1][:3]} {day.day}, {day.year}",
    lambda day: f"the {day.day}th of {ENGLISH[day.month - 1]}, {day.year}",
    lambda day: f"{day.day}. {GERMAN[day.month - 1]} {day.year}",
    lambda day: f"{day.day} de {SPANISH[day.month - 1]} de {day.year}",
    lambda day: f"{day.day} {FRENCH[day.month - 1]} {day.year}",
    lambda day: f"{day.day:02}.{day.month:02}.{day.year}",
    lambda day: f"{day.day}/{day.month}/{day.year}",
    lambda day: f"{day.month}/{day.day}/{day.year}",
    lambda day: f"{day.year}年{day.month}月{day.day}日",
    lambda day: f"{''.join(CHINESE[int(digit)] for digit in str(day.year))}年{day.month}月{day.day}日",
]
DAYS = st.dates(date(1000, 1, 1), date(2099, 12, 31))


@given(DAYS, st.sampled_from(WRITINGS), st.sampled_from(WRITINGS))
def test_date_is_found_in_any_notation(day, one, other) -> None:
    findings = check_rules(f"The bridge fell on {other(day)}.", [f"On {one(day)} the old bridge fell into the river."])
    assert {finding.outcome for finding in findings if finding.kind is FindingKind.DATE} == {FindingOutcome.FOUND}


@given(DAYS, DAYS, st.sampled_from(WRITINGS[:8]), st.sampled_from(WRITINGS[:8]))
def test_different_date_is_not_found(day, another, one, other) -> None:
    if day == another:
        return
    findings = check_rules(
        f"The bridge fell on {other(another)}.", [f"On {one(day)} the old bridge fell into the river."]
    )
    assert FindingOutcome.FOUND not in {finding.outcome for finding in findings}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("in May 1984", [(1984, 5, None)]),
        ("on May 3", [(None, 5, 3)]),
        ("on Oct. 3, 1984", [(1984, 10, 3)]),
        ("3–5 May 1984", [(1984, 5, 3), (1984, 5, 5)]),
        ("May 3-5, 1984", [(1984, 5, 3), (1984, 5, 5)]),
        ("1914–18", [(1914, None, None), (1918, None, None)]),
        ("1914-1918", [(1914, None, None), (1918, None, None)]),
        ("44 BC", [(-44, None, None)]),
        ("AD 70", [(70, None, None)]),
        ("2,700 BCE", [(-2700, None, None)]),
        ("300–250 BC", [(-300, None, None), (-250, None, None)]),
        ("im Mai", [(None, 5, None)]),
        ("la mi-mai 1984", [(1984, 5, None)]),
        ("She may come, and we march on", []),
        ("1500 people", []),
        ("$1500", []),
        ("1500 km", []),
        ("set 3 records", []),
    ],
)
def test_dates_are_parsed_as_precisely_as_written(text: str, said: list[tuple[int | None, ...]]) -> None:
    assert [(date.year, date.month, date.day) for date in find_dates(tokenize(text))] == said


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("the 1980s", (1980, 1989)),
        ("the '80s", (1980, 1989)),
        ("the eighties", (1980, 1989)),
        ("the 1800s", (1800, 1899)),
        ("the 19th century", (1801, 1900)),
        ("the nineteenth century", (1801, 1900)),
        ("the twenty-first century", (2001, 2100)),
        ("the 5th century BC", (-500, -401)),
        ("im 19. Jahrhundert", (1801, 1900)),
        ("au XIXe siècle", (1801, 1900)),
        ("el siglo XIX", (1801, 1900)),
    ],
)
def test_decades_and_centuries_are_ranges_of_years(text: str, years: tuple[int, int]) -> None:
    assert [date.years for date in find_dates(tokenize(text))] == [years]


@pytest.mark.parametrize(
    ("source", "claim", "covered"),
    [
        ("3 May 1984", "May 1984", True),
        ("May 1984", "3 May 1984", False),
        ("3 May 1984", "1984", True),
        ("3 May 1984", "3 May", True),
        ("1984", "the 1980s", True),
        ("the 1980s", "1984", False),
        ("1873", "the 19th century", True),
        ("the 1870s", "the 19th century", True),
        ("the 19th century", "1873", False),
        ("1901", "the 19th century", False),
        ("Monday", "Monday", True),
        ("lunes", "Monday", True),
        ("Monday", "Tuesday", False),
        ("3/5/1984", "5 March 1984", True),
        ("3/5/1984", "3 May 1984", True),
        ("44 BC", "44 AD", False),
    ],
)
def test_date_implies_less_precise_dates(source: str, claim: str, covered: bool) -> None:  # noqa: FBT001
    (given_date,), (said_date,) = find_dates(tokenize(source)), find_dates(tokenize(claim))
    assert implies_date(given_date, said_date) is covered


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Children under 16 may not enter.", []),
        ("The ferry sailed on 16 May.", ["16 May"]),
        ("open until 16 may", ["16 may"]),
        ("Of the 12 march past only three.", []),
        ("It is due on the first of January 1990.", ["first of January 1990"]),
        ("The twelfth of May is a holiday.", ["twelfth of May"]),
        ("It was the first of many, and the second May was wet.", []),
    ],
)
def test_may_is_a_month_by_its_capital_and_days_may_be_words(text: str, said: list[str]) -> None:
    assert [date.said for date in find_dates(tokenize(text)) if date.day] == said


@pytest.mark.parametrize("text", ["The cable is 1500km long.", "It grew by 1500% since.", "It cost $1500 then."])
def test_number_with_unit_or_currency_is_not_a_year(text: str) -> None:
    assert find_dates(tokenize(text)) == ()


def outcomes(sentence: str, passage: str) -> set[FindingOutcome]:
    return {rule.outcome for rule in check_rules(sentence, [passage])}


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("Tours start at 2 pm.", "Tours start at 14:00."),
        ("Tours start at 2pm.", "Tours start at 14:00."),
        ("Nights run between 10 pm and 7 am.", "Nights, 22:00 to 7:00, are paid."),
        ("It stops at 1:45 pm.", "It stops at 13:45."),
        ("It starts at 9:15.", "It starts at 9:15 pm."),
        ("It starts at half past seven.", "It starts at 7:30."),
        ("It starts at a quarter to two.", "It starts at 13:45."),
        ("It stops at noon.", "It stops at 12:00."),
        ("It ends at midnight.", "It ends at 24:00."),
        ("Open 7-9 pm.", "Open 19:00 to 21:00."),
        ("It opens at 12:00.", "It opens at 12, not before."),
        ("It opens at two o'clock.", "It opens at 2 pm."),
        ("Der Laden schließt um 14 Uhr.", "Der Laden schließt um 14:00."),
    ],
)
def test_time_of_day_is_found_in_other_spellings(sentence: str, passage: str) -> None:
    assert outcomes(sentence, passage) == {FindingOutcome.FOUND}


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("It opens at 12:00.", "It stands in Quay Street 12 and opens early."),
        ("It starts at 9:15 pm.", "It starts at 9:15."),
        ("It starts at 9 pm.", "It starts at 9:15."),
        ("It stops at noon.", "It stops at 17:45."),
        ("It opens at 12 am.", "It opens at 12:00."),
    ],
)
def test_different_time_or_number_is_not_found(sentence: str, passage: str) -> None:
    assert FindingOutcome.FOUND not in outcomes(sentence, passage)


def test_scores_and_halves_are_not_times() -> None:
    assert outcomes("They won 3:2 and ate half of a cake.", "They won 3:2 and ate half of a cake.") == {
        FindingOutcome.FOUND
    }
