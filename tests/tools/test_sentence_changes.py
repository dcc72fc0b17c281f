"""Each kind of change to a sentence."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.alterations import word_changes
from tools.alterations.sentence_changes import (
    ChangeProposer,
    change_number,
    change_unit,
    find_dates,
    find_numbers,
    has_value,
    move_day,
    move_month,
    move_year,
    reorder_date,
    respell_number,
    respell_unit,
)
from tools.alterations.word_changes import (
    NEIGHBOURS,
    add_negation,
    drop_article,
    drop_opening,
    remove_negation,
    retype_marks,
    reverse_comparison,
    swap_roles,
    toggle_contraction,
)

ABBEY = "Ada Quill sold the abbey to Tom Reed for £3,200 on 3 May 1950."


def texts(change: ChangeProposer, text: str, seeds: int = 1) -> set[str]:
    return {changed.text for seed in range(seeds) for changed in change(text, Random(seed))}


@pytest.mark.parametrize(
    ("value", "text", "present"),
    [
        ("5", "There are 5.", True),
        ("5", "There are 50, 15, 1.5 and 5.2.", False),
        ("5", "Run F-5 now", False),
        ("more", "More of it", True),
        ("more", "moreover", False),
        ("$", "It costs $5", True),
        ("300", "1,300 or 300,000", False),
    ],
)
def test_has_value_is_true_only_for_whole_words(value: str, text: str, *, present: bool) -> None:
    assert has_value(value, text) is present


@pytest.mark.parametrize(
    ("change", "text", "changed"),
    [
        (
            change_number,
            "It is 2.5 deep.",
            {f"It is {value} deep." for value in ["2.8", "2.2", "3.1", "1.9", "3.5", "1.5", "4.2", "0.8"]},
        ),
        (respell_number, "There are 12 geese.", {"There are twelve geese."}),
        (respell_number, "There are Forty-Two geese.", {"There are 42 geese."}),
        (respell_number, "There are 1,200 geese.", {"There are 1200 geese."}),
        (respell_number, "There are 12000 geese.", {"There are 12,000 geese."}),
        (respell_number, "It costs $12 or 12%.", set()),
        (change_unit, "It is 5 km long.", {f"It is 5 {unit} long." for unit in ("m", "cm", "mm", "mi", "ft")}),
        (change_unit, "It cost $5.", {"It cost £5.", "It cost €5."}),
        (
            change_unit,
            "In the 1980s, at 5 m/s and 3 m² in 5 minute steps.",
            {
                f"In the 1980s, at 5 m/s and 3 m² in 5 {unit} steps."
                for unit in ("second", "hour", "day", "week", "month", "year", "decade")
            },
        ),
        (respell_unit, "It is 5 km long.", {"It is 5 kilometres long."}),
        (respell_unit, "It is 5km long.", {"It is 5 kilometres long."}),
        (respell_unit, "It is 5 kilometers long.", {"It is 5 km long."}),
        (respell_unit, "It rose by 5%.", {"It rose by 5 percent."}),
        (respell_unit, "It rose by 5 per cent.", {"It rose by 5%."}),
        (respell_unit, "It took 5 days.", set()),
        (
            move_year,
            "It closed in the 1950s.",
            {f"It closed in the {year}s." for year in (1920, 1930, 1940, 1960, 1970, 1980)},
        ),
        (move_year, "It weighs 1950 tonnes.", set()),
        (reorder_date, "On 3 May 1950 it closed.", {"On May 3, 1950 it closed."}),
        (reorder_date, "On May 3, 1950 it closed.", {"On 3 May 1950 it closed."}),
        (reorder_date, "On May 3 it closed.", {"On 3 May it closed."}),
        (reorder_date, "In May 1950 it closed.", set()),
        (swap_roles, "Later Ada Quill succeeded Tom Reed.", {"Later Tom Reed succeeded Ada Quill."}),
        (swap_roles, "Ada Quill was taught by Tom Reed, who left.", {"Tom Reed was taught by Ada Quill, who left."}),
        (swap_roles, "They moved from Drum to Ardmore in haste.", {"They moved from Ardmore to Drum in haste."}),
        (swap_roles, "Ada Quill met Tom Reed.", set()),
        (swap_roles, "All towns from Drum to Ardmore joined.", set()),
        (swap_roles, "Ada Quill founded Drum for Geese.", set()),
        (add_negation, "The mill is old.", {"The mill is not old.", "The mill is never old."}),
        (add_negation, "The mill is not old.", set()),
        (add_negation, "The mill is old without it.", set()),
        (add_negation, "The mill burned.", set()),
        (remove_negation, "The mill is not old.", {"The mill is old."}),
        (remove_negation, "The mill isn't old.", {"The mill is old."}),
        (remove_negation, "The mill can’t turn.", {"The mill can turn."}),
        (remove_negation, "The mill is not only old.", set()),
        (remove_negation, "Whether old or not it turns.", set()),
        (reverse_comparison, "First it rose.", {"Last it rose.", "First it fell."}),
        (reverse_comparison, "It has a furthermore.", set()),
        (drop_opening, "In 1950, it closed.", {"It closed."}),
        (drop_opening, "On 3 May 1950, it closed.", {"It closed."}),
        (drop_opening, "On May 3, 1950, it closed.", {"It closed."}),
        (drop_opening, "However, it closed.", {"It closed."}),
        (drop_opening, "In the novel, it closed.", set()),
        (drop_article, "The mill closed.", {"Mill closed."}),
        (drop_article, "Then it closed.", set()),
        (toggle_contraction, "It is not old.", {"It isn't old."}),
        (toggle_contraction, "It isn't old.", {"It is not old."}),
        (retype_marks, "It’s “old” – very.", {'It\'s "old" - very.'}),
        (retype_marks, "It's old.", {"It’s old."}),
        (retype_marks, "It is old.", set()),
    ],
)
def test_change_proposes_exactly_the_expected_variants(change: ChangeProposer, text: str, changed: set[str]) -> None:
    assert texts(change, text, seeds=9) == changed


@pytest.mark.parametrize(
    ("change", "text", "changed"),
    [
        (change_number, "The mill ground 12,800 sacks.", {"The mill ground 14,336 sacks."}),
        (change_unit, "It is five kilometers long.", {"It is five meters long.", "It is five miles long."}),
        (change_unit, "It cost 5 million dollars.", {"It cost 5 billion dollars."}),
        (move_year, "It closed in 1950.", {"It closed in 1951."}),
        (move_year, "It closed (1950).", {"It closed (1949)."}),
        (reverse_comparison, "It holds more than ten.", {"It holds less than ten.", "It holds fewer than ten."}),
    ],
)
def test_change_proposes_the_expected_variants_among_others(
    change: ChangeProposer, text: str, changed: set[str]
) -> None:
    assert changed <= texts(change, text)


def test_numbers_exclude_one_years_dates_codes_and_ranges() -> None:
    text = (
        "On 3 May 1950 one of twenty-two men paid 3,200.5 for 7 F-16s, 5–6 apples, 19 000 pins and 80s songs in 1951."
    )

    assert [(number.text, number.value) for number in find_numbers(text)] == [
        ("twenty-two", 22),
        ("3,200.5", 3200.5),
        ("7", 7),
    ]


@given(st.integers(0, 10**7), st.integers(0, 2**32))
def test_changed_number_differs_by_a_tenth(number: int, seed: int) -> None:
    for changed in change_number(f"The mill ground {number:,} sacks.", Random(seed)):
        value = float(changed.new.replace(",", ""))
        assert value == int(value)
        assert abs(value - number) >= max(1, number // 10)
        assert changed.new in changed.absent


def test_changed_number_is_absent_in_every_spelling() -> None:
    assert all(text[0].isupper() for text in texts(change_number, "Twelve geese flew."))

    absent = {change.new: change.absent for change in change_number("There are 12 geese.", Random(0))}

    assert {"13", "thirteen"} <= {*absent["13"]}


@pytest.mark.parametrize(
    ("text", "day", "month", "year"),
    [
        ("on 3 May 1950.", "3", "May", "1950"),
        ("on May 3, 1950, he", "3", "May", "1950"),
        ("on May 3 he", "3", "May", ""),
        ("on 31 May he", "31", "May", ""),
        ("in May 1950", "", "May", "1950"),
    ],
)
def test_dates_are_found_with_their_parts(text: str, day: str, month: str, year: str) -> None:
    (date,) = find_dates(text)

    parts = [text[slice(*part)] if part else "" for part in (date.day, date.month, date.year)]
    assert parts == [day, month, year]


def test_month_alone_is_not_a_date() -> None:
    assert find_dates("He may. May he? March on! Maybe 5.") == []


@given(st.integers(0, 2**32))
def test_parts_of_a_date_change_separately(seed: int) -> None:
    for change, old in ((move_year, "1950"), (move_month, "May"), (move_day, "3")):
        changed = next(change(ABBEY, Random(seed)))
        assert changed.old == old != changed.new
        assert changed.new in changed.absent
        assert changed.text == ABBEY.replace(f" {old}", f" {changed.new}", 1) or old == "3"


def test_names_are_found_with_their_kind() -> None:
    text = "The River Brask and J. K. Quill's boat left the University of Drum in Ardmore in May for a Danish port."

    assert [(name.text, name.kind) for name in word_changes.find_names(text)] == [
        ("River Brask", "place"),
        ("J. K. Quill", "person"),
        ("University of Drum", "organisation"),
        ("Ardmore", "place"),
        ("Danish", "adjective"),
    ]
    assert word_changes.find_names("Geese fly. He said I do.") == []


def test_names_are_replaced_by_names_of_their_kind() -> None:
    pool = word_changes.find_names("So Bea Moss, Ada Quill and Jo Lund met in Drum.")
    swap_name = word_changes.build_name_swapper(pool)

    assert texts(swap_name, "So Ada Quill met him.", seeds=30) == {
        f"So {name} met him." for name in ("Bea Moss", "Jo Lund", "Ada Moss", "Ada Lund")
    }
    assert texts(swap_name, "It lies in Ardmore.") == {"It lies in Drum."}
    assert texts(word_changes.build_name_swapper([]), "It lies in Ardmore.") == set()


@pytest.mark.parametrize(
    ("kind", "sentence", "changed"),
    [
        ("number of the same passage", "The mill has 12 sails.", {"The mill has 40 sails."}),
        ("date of the same passage", "It closed in 1950.", {"It closed in 1931."}),
        ("name of the same passage", "Later Ada Quill sold it.", {"Later Tom Reed sold it."}),
        ("name of the same passage", "Later Quill sold it.", set()),
    ],
)
def test_nearby_values_are_of_the_same_kind(kind: str, sentence: str, changed: set[str]) -> None:
    passage = f"{sentence} Its 40 neighbours, by Tom Reed and seven others, stood since 1931."

    assert {change.text for change in NEIGHBOURS[kind](sentence, passage, Random(1))} == changed
