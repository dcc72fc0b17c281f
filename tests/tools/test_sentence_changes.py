"""Each kind of change, over sentences of our own."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.alterations import sentence_changes, word_changes
from tools.alterations.sentence_changes import ChangeProposer, has_value
from tools.alterations.word_changes import NEIGHBOURS

ABBEY = "Ada Quill sold the abbey to Tom Reed for £3,200 on 3 May 1950."


def texts(change: ChangeProposer, text: str, seed: int = 1) -> set[str]:
    return {found.text for found in change(text, Random(seed))}


@pytest.mark.parametrize(
    ("value", "text", "found"),
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
def test_value_is_a_whole_token(value: str, text: str, *, found: bool) -> None:
    """Parts of other numbers and words are other values; case makes no difference."""
    assert has_value(value, text) is found


def test_numbers_exclude_years_and_dates() -> None:
    """One is no number here; neither are parts of codes, ranges and spaced thousands."""
    text = (
        "On 3 May 1950 one of twenty-two men paid 3,200.5 for 7 F-16s, 5–6 apples, 19 000 pins and 80s songs in 1951."
    )

    assert [(number.said, number.value) for number in sentence_changes.find_numbers(text)] == [
        ("twenty-two", 22),
        ("3,200.5", 3200.5),
        ("7", 7),
    ]


@given(st.integers(0, 10**7), st.integers(0, 2**32))
def test_changed_number_differs(number: int, seed: int) -> None:
    """Written as the old one was, and no rounding of it."""
    text = f"The mill ground {number:,} sacks."

    for found in sentence_changes.change_number(text, Random(seed)):
        value = float(found.new.replace(",", ""))
        assert value == int(value)
        assert abs(value - number) >= max(1, number // 10)
        assert found.new in found.absent


def test_changed_number_keeps_its_format() -> None:
    """Words, capitals, decimals and commas."""
    assert all(text.split()[0][0].isupper() for text in texts(sentence_changes.change_number, "Twelve geese flew."))
    assert texts(sentence_changes.change_number, "It is 2.5 deep.") == {
        f"It is {2.5 * (1 + by):.1f} deep." for by in (0.12, -0.12, 0.25, -0.25, 0.4, -0.4, 0.7, -0.7)
    }
    assert "The mill ground 14,336 sacks." in texts(sentence_changes.change_number, "The mill ground 12,800 sacks.")


def test_changed_number_is_absent_in_every_spelling() -> None:
    """Thirteen is 13."""
    found = {change.new: change.absent for change in sentence_changes.change_number("There are 12 geese.", Random(0))}

    assert {"13", "thirteen"} <= {*found["13"]}


def test_numbers_are_respelled() -> None:
    """In words, in digits, with and without commas; amounts of money and percentages stay."""
    assert texts(sentence_changes.respell_number, "There are 12 geese.") == {"There are twelve geese."}
    assert texts(sentence_changes.respell_number, "There are Forty-Two geese.") == {"There are 42 geese."}
    assert texts(sentence_changes.respell_number, "There are 1,200 geese.") == {"There are 1200 geese."}
    assert texts(sentence_changes.respell_number, "There are 12000 geese.") == {"There are 12,000 geese."}
    assert texts(sentence_changes.respell_number, "It costs $12 or 12%.") == set()


def test_units_are_changed_within_their_kind() -> None:
    """And in the form that they had."""
    lengths, times = ("m", "cm", "mm", "mi", "ft"), ("second", "hour", "day", "week", "month", "year", "decade")
    assert texts(sentence_changes.change_unit, "It is 5 km long.") == {f"It is 5 {unit} long." for unit in lengths}
    assert texts(sentence_changes.change_unit, "It is five kilometers long.") >= {
        "It is five meters long.",
        "It is five miles long.",
    }
    assert texts(sentence_changes.change_unit, "It cost $5.") == {"It cost £5.", "It cost €5."}
    assert texts(sentence_changes.change_unit, "It cost 5 million dollars.") >= {"It cost 5 billion dollars."}
    assert texts(sentence_changes.change_unit, "In the 1980s, at 5 m/s and 3 m² in 5 minute steps.") == {
        f"In the 1980s, at 5 m/s and 3 m² in 5 {unit} steps." for unit in times
    }


def test_units_are_respelled() -> None:
    """Written out, or abbreviated; percent too."""
    assert texts(sentence_changes.respell_unit, "It is 5 km long.") == {"It is 5 kilometres long."}
    assert texts(sentence_changes.respell_unit, "It is 5km long.") == {"It is 5 kilometres long."}
    assert texts(sentence_changes.respell_unit, "It is 5 kilometers long.") == {"It is 5 km long."}
    assert texts(sentence_changes.respell_unit, "It rose by 5%.") == {"It rose by 5 percent."}
    assert texts(sentence_changes.respell_unit, "It rose by 5 per cent.") == {"It rose by 5%."}
    assert texts(sentence_changes.respell_unit, "It took 5 days.") == set()


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
    """In whichever order they stand."""
    (date,) = sentence_changes.find_dates(text)

    parts = [text[slice(*part)] if part else "" for part in (date.day, date.month, date.year)]
    assert parts == [day, month, year]


def test_a_date_needs_more_than_a_month() -> None:
    """Nor is it made of other words."""
    assert sentence_changes.find_dates("He may. May he? March on! Maybe 5.") == []


def test_only_recognisable_years_are_moved() -> None:
    """Not numbers that look like them; decades by tens."""
    assert "It closed in 1951." in texts(sentence_changes.move_year, "It closed in 1950.")
    assert "It closed (1949)." in texts(sentence_changes.move_year, "It closed (1950).")
    assert texts(sentence_changes.move_year, "It closed in the 1950s.") == {
        f"It closed in the {year}s." for year in (1920, 1930, 1940, 1960, 1970, 1980)
    }
    assert texts(sentence_changes.move_year, "It weighs 1950 tonnes.") == set()


@given(st.integers(0, 2**32))
def test_parts_of_a_date_are_moved_separately(seed: int) -> None:
    """The new part is another than the old, and is to be absent."""
    for change, old in (
        (sentence_changes.move_year, "1950"),
        (sentence_changes.move_month, "May"),
        (sentence_changes.move_day, "3"),
    ):
        found = next(change(ABBEY, Random(seed)))
        assert found.old == old != found.new
        assert found.new in found.absent
        assert found.text == ABBEY.replace(f" {old}", f" {found.new}", 1) or old == "3"


def test_dates_are_reordered() -> None:
    """With their commas, and back again."""
    assert texts(sentence_changes.reorder_date, "On 3 May 1950 it closed.") == {"On May 3, 1950 it closed."}
    assert texts(sentence_changes.reorder_date, "On May 3, 1950 it closed.") == {"On 3 May 1950 it closed."}
    assert texts(sentence_changes.reorder_date, "On May 3 it closed.") == {"On 3 May it closed."}
    assert texts(sentence_changes.reorder_date, "In May 1950 it closed.") == set()


def test_names_are_found_with_their_kind() -> None:
    """No word that merely opens the sentence, no month, no code."""
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
    """For one of as many words, or for its last word; never for themselves."""
    pool = word_changes.find_names("So Bea Moss, Ada Quill and Jo Lund met in Drum.")
    swapped = word_changes.build_name_swapper(pool)

    found = set().union(*(texts(swapped, "So Ada Quill met him.", seed) for seed in range(30)))

    assert found == {f"So {name} met him." for name in ("Bea Moss", "Jo Lund", "Ada Moss", "Ada Lund")}
    assert texts(swapped, "It lies in Ardmore.") == {"It lies in Drum."}
    assert texts(word_changes.build_name_swapper([]), "It lies in Ardmore.") == set()


def test_roles_are_swapped() -> None:
    """Who did it, and whence; not what is the same both ways."""
    assert texts(word_changes.swap_roles, "Later Ada Quill succeeded Tom Reed.") == {
        "Later Tom Reed succeeded Ada Quill."
    }
    assert texts(word_changes.swap_roles, "Ada Quill was taught by Tom Reed, who left.") == {
        "Tom Reed was taught by Ada Quill, who left."
    }
    assert texts(word_changes.swap_roles, "They moved from Drum to Ardmore in haste.") == {
        "They moved from Ardmore to Drum in haste."
    }
    assert texts(word_changes.swap_roles, "Ada Quill met Tom Reed.") == set()
    assert texts(word_changes.swap_roles, "All towns from Drum to Ardmore joined.") == set()
    assert texts(word_changes.swap_roles, "Ada Quill founded Drum for Geese.") == set()


def test_negation_is_added_once() -> None:
    """After a helping verb, and never to a sentence that denies something."""
    found = set().union(*(texts(word_changes.add_negation, "The mill is old.", seed) for seed in range(9)))

    assert found == {"The mill is not old.", "The mill is never old."}
    assert texts(word_changes.add_negation, "The mill is not old.") == set()
    assert texts(word_changes.add_negation, "The mill is old without it.") == set()
    assert texts(word_changes.add_negation, "The mill burned.") == set()


def test_negation_is_removed() -> None:
    """Also where it is contracted; "not only" denies nothing."""
    assert texts(word_changes.remove_negation, "The mill is not old.") == {"The mill is old."}
    assert texts(word_changes.remove_negation, "The mill isn't old.") == {"The mill is old."}
    assert texts(word_changes.remove_negation, "The mill can’t turn.") == {"The mill can turn."}
    assert texts(word_changes.remove_negation, "The mill is not only old.") == set()
    assert texts(word_changes.remove_negation, "Whether old or not it turns.") == set()


def test_comparisons_are_reversed() -> None:
    """With their capitals, and only as whole words."""
    assert texts(word_changes.reverse_comparison, "First it rose.") == {"Last it rose.", "First it fell."}
    assert texts(word_changes.reverse_comparison, "It holds more than ten.") >= {
        "It holds less than ten.",
        "It holds fewer than ten.",
    }
    assert texts(word_changes.reverse_comparison, "It has a furthermore.") == set()


def test_openings_are_dropped() -> None:
    """Dates and linking words, with a comma; nothing else."""
    assert texts(word_changes.drop_opening, "In 1950, it closed.") == {"It closed."}
    assert texts(word_changes.drop_opening, "On 3 May 1950, it closed.") == {"It closed."}
    assert texts(word_changes.drop_opening, "On May 3, 1950, it closed.") == {"It closed."}
    assert texts(word_changes.drop_opening, "However, it closed.") == {"It closed."}
    assert texts(word_changes.drop_opening, "In the novel, it closed.") == set()
    assert texts(word_changes.drop_article, "The mill closed.") == {"Mill closed."}
    assert texts(word_changes.drop_article, "Then it closed.") == set()


def test_wordings_are_contracted_and_retyped() -> None:
    """Either way."""
    assert texts(word_changes.toggle_contraction, "It is not old.") == {"It isn't old."}
    assert texts(word_changes.toggle_contraction, "It isn't old.") == {"It is not old."}
    assert texts(word_changes.retype_marks, "It’s “old” – very.") == {'It\'s "old" - very.'}
    assert texts(word_changes.retype_marks, "It's old.") == {"It’s old."}
    assert texts(word_changes.retype_marks, "It is old.") == set()


@pytest.mark.parametrize(
    ("kind", "sentence", "found"),
    [
        ("number of the same passage", "The mill has 12 sails.", {"The mill has 40 sails."}),
        ("date of the same passage", "It closed in 1950.", {"It closed in 1931."}),
        ("name of the same passage", "Later Ada Quill sold it.", {"Later Tom Reed sold it."}),
        ("name of the same passage", "Later Quill sold it.", set()),
    ],
)
def test_values_are_taken_from_the_passage(kind: str, sentence: str, found: set[str]) -> None:
    """Of the same kind, and none that the sentence has already or that may mean the same."""
    passage = f"{sentence} Its 40 neighbours, by Tom Reed and seven others, stood since 1931."

    assert {change.text for change in NEIGHBOURS[kind](sentence, passage, Random(1))} == found
