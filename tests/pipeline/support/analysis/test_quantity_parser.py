"""How numbers, units and bounds are read, in digits and words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.support.analysis.date_parser import find_dates
from pipeline.support.analysis.quantity_parser import Bound, Number, find_numbers
from pipeline.support.analysis.tokenizer import tokenize
from pipeline.support.rules import FindingKind, FindingOutcome, check_rules

LOW = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
HIGH = "twenty thirty forty fifty sixty seventy eighty ninety"
UNITS, TENS = LOW.split(), ["", "", *HIGH.split()]


def read(text: str, language: str = "en") -> tuple[Number, ...]:
    cut = tokenize(text)
    return find_numbers(cut, find_dates(cut), language)


def in_words(number: int) -> str:
    """Write a number below a billion in English words."""
    for size, name in ((1_000_000, "million"), (1_000, "thousand")):
        if number >= size:
            rest = f" {in_words(number % size)}" if number % size else ""
            return f"{in_words(number // size)} {name}{rest}"
    if number >= 100:
        return f"{UNITS[number // 100]} hundred" + (f" and {in_words(number % 100)}" if number % 100 else "")
    if number >= 20:
        return TENS[number // 10] + (f"-{UNITS[number % 10]}" if number % 10 else "")
    return UNITS[number]


def in_digits_from(number: int, zero: str) -> str:
    return "".join(chr(ord(zero) + int(digit)) for digit in str(number))


WRITINGS = [
    str,
    lambda number: f"{number:,}",
    lambda number: f"{number:,}".replace(",", "."),
    lambda number: f"{number:,}".replace(",", " "),
    lambda number: f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}"),
    lambda number: f"{number:,}".replace(",", "'"),
    lambda number: f"{number:,}".replace(",", "’"),
    in_words,
    lambda number: in_words(number).title(),
    lambda number: in_digits_from(number, "٠"),
    lambda number: in_digits_from(number, "०"),
    lambda number: in_digits_from(number, "０"),
]


@pytest.mark.parametrize("text", ["within 3 business days", "after 3 working days", "in 3 calendar days"])
def test_day_kinds_are_quantities(text: str) -> None:
    (number,) = read(text)
    assert (number.said, [unit.name for unit in number.units]) == (text.split(maxsplit=1)[1], ["d"])


@given(st.integers(2, 999_999_999), st.sampled_from(WRITINGS), st.sampled_from(WRITINGS))
def test_number_is_found_in_any_notation(number, one, other) -> None:
    passage = f"Once upon a time {one(number)} lamps stood in the yard of the mill."
    sentence = f"There were {other(number)} lamps in the yard."
    assert {finding.outcome for finding in check_rules(sentence, [passage])} == {FindingOutcome.FOUND}


@given(st.integers(2, 999_999), st.integers(2, 999_999), st.sampled_from(WRITINGS), st.sampled_from(WRITINGS))
def test_different_number_is_not_found(number, another, one, other) -> None:
    """Numbers with two readings are skipped: 1.234 may be 1234."""
    if number in {another, another * 1000, another / 1000} or {number, another} & {*range(1000, 2101)}:
        return
    passage = f"Once upon a time {one(number)} lamps stood in the yard of the mill."
    findings = check_rules(f"There were {other(another)} lamps in the yard.", [passage])
    assert [finding.outcome for finding in findings if finding.kind in {FindingKind.NUMBER, FindingKind.DATE}] != [
        FindingOutcome.FOUND
    ]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3.5 million", (3_500_000,)),
        ("1.1 million", (1_100_000,)),
        ("$3.2bn", (3_200_000_000,)),
        ("12k", (12_000,)),
        ("three dozen", (36,)),
        ("a hundred thousand", (100_000,)),
        ("two hundred and five", (205,)),
        ("twenty-first", (21,)),
        ("the 3rd", (3,)),
        ("two and a half", (2.5,)),
        ("3½ miles", (3.5,)),
        ("1/4", (0.25, 1)),
        ("two-thirds", (2 / 3,)),
        ("a third of it", (1 / 3,)),
        ("half a million", (500_000,)),
        ("12,34,567", (1_234_567,)),
        ("1.234,5", (1234.5,)),
        ("3万", (30_000,)),
        ("三百二十", (320,)),
        ("Louis XIV", (14,)),
        ("World War II", (2,)),
    ],
)
def test_number_values(text: str, values: tuple[float, ...]) -> None:
    (number,) = read(text)
    assert number.values == pytest.approx(values)


@pytest.mark.parametrize(
    ("text", "language", "values"),
    [
        ("3,5", "de", (3.5,)),
        ("1.250", "de", (1250, 1.25)),
        ("1,250", "en", (1250, 1.25)),
        ("vierzig Millionen", "de", (40_000_000,)),
        ("soixante-dix", "fr", (70,)),
        ("quatre-vingt-dix", "fr", (90,)),
        ("treinta y tres", "es", (33,)),
    ],
)
def test_numbers_are_read_in_the_language_of_the_text(text: str, language: str, values: tuple[float, ...]) -> None:
    assert read(text, language)[0].values == values


@pytest.mark.parametrize(
    "text", ["millions of lamps", "I think so", "in 1984", "on 3 May 1984", "the 1980s", "a one-off"]
)
def test_vague_amounts_and_dates_are_not_numbers(text: str) -> None:
    assert [number.values for number in read(text) if number.values != (1.0,)] == []


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("more than 500", Bound.OVER),
        ("at least $500", Bound.OVER),
        ("500+", Bound.OVER),
        ("no more than 500", Bound.UNDER),
        ("up to 500", Bound.UNDER),
        ("nearly 500", Bound.NEARLY),
        ("about the 500", Bound.ABOUT),
        ("c. 500", Bound.ABOUT),
        ("exactly 500", Bound.EXACTLY),
    ],
)
def test_words_before_a_number_bound_it(text: str, bound: Bound) -> None:
    assert [number.bound for number in read(text)] == [bound]


@pytest.mark.parametrize(
    ("said", "given", "found"),
    [
        ("about 1,200", "1,187", True),
        ("1,200", "1,187", False),
        ("about 1,150", "1,187", True),
        ("about 1,188", "1,187", False),
        ("more than 1,100", "1,187", True),
        ("more than 1,200", "1,187", False),
        ("less than 1,200", "1,187", True),
        ("nearly 1,200", "1,187", True),
        ("nearly 1,100", "1,187", False),
        ("over 1,300", "over 1,200", False),
        ("some 40", "38", True),
    ],
)
def test_rough_number_is_found_if_the_exact_one_fits(said: str, given: str, found: bool) -> None:  # noqa: FBT001
    findings = check_rules(f"The mill had {said} sheep.", [f"In the yard of the mill stood {given} sheep."])
    assert ({finding.outcome for finding in findings} == {FindingOutcome.FOUND}) is found


@pytest.mark.parametrize(
    ("said", "given", "found"),
    [
        ("5 km", "5 kilometres", True),
        ("5 miles", "8 km", True),
        ("5 miles", "5 km", False),
        ("10 pounds", "4.5 kg", True),
        ("10 pounds", "£10", True),
        ("212 °F", "100 °C", True),
        ("two weeks", "14 days", True),
        ("two weeks", "two months", False),
        ("$5", "€5", False),
        ("$5", "5 US dollars", True),
        ("5 million dollars", "5 billion dollars", False),
        ("50 percent", "50%", True),
        ("50%", "half", True),
        ("6 feet", "6 sheep", True),
        ("5-6 km", "from 5 to 6 kilometres", True),
    ],
)
def test_quantity_is_found_in_another_unit_only_if_equal(said: str, given: str, found: bool) -> None:  # noqa: FBT001
    """Quantities within 2% are equal; a passage number without a unit has any unit."""
    findings = check_rules(
        f"At the mill it was {said}, people say.", [f"In the old days {given} were usual in that country."]
    )
    assert ({finding.outcome for finding in findings} == {FindingOutcome.FOUND}) is found


@pytest.mark.parametrize(
    ("text", "said", "value"),
    [
        ("One third of it is gone.", "One third", 1 / 3),
        ("Two thirds of it are gone.", "Two thirds", 2 / 3),
        ("Three-quarters of it are gone.", "Three-quarters", 3 / 4),
        ("A third of it is gone.", "third", 1 / 3),
    ],
)
def test_fraction_in_words_is_one_number(text: str, said: str, value: float) -> None:
    assert [(number.said, number.values) for number in read(text)] == [(said, (pytest.approx(value),))]


@pytest.mark.parametrize(
    ("text", "said", "values"),
    [
        ("It is 5 square kilometres large.", "5 square kilometres", (5,)),
        ("It cost $2b again.", "$2b", (2e9,)),
        ("It lost 3t again.", "3t", (3e12,)),
        ("It has 5m again.", "5m", (5, 5e6)),
    ],
)
def test_unit_or_scale_belongs_to_its_number(text: str, said: str, values: tuple[float, ...]) -> None:
    (number,) = read(text)
    assert (number.said, number.values) == (said, values)


def test_number_also_given_without_unit_is_not_a_conversion() -> None:
    findings = check_rules("Visitors walk 5 km.", ["The lake has a shore of 5 miles.", "There were 5 boats."])
    assert [finding.outcome for finding in findings if finding.kind is FindingKind.UNIT] == []
    findings = check_rules("Visitors walk 5 km.", ["The lake has a shore of 5 miles."])
    assert [finding.instead for finding in findings if finding.kind is FindingKind.UNIT] == ["5 miles"]
