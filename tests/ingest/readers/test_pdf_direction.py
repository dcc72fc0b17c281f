"""Right-to-left lines are read in order, whatever the order in the file."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.readers import pdf_direction
from ingest.readers.pdf_direction import PdfChar

WORDS = ("שלום", "עולם", "נוהל")


def lay_out(drawn, at=0, left=0.0):
    """Place characters from left to right, each 5 wide and 10 high."""
    return [PdfChar(at + n, c, left + 5 * n, 0.0, left + 5 * n + 5, 10.0) for n, c in enumerate(drawn)]


def read(chars, *, rtl=True):
    return [text for _, text in pdf_direction.read_cells(chars, 0.8, rtl=rtl)]


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        ("םלוע 30-ל םולש", "שלום ל-30 עולם"),
        ("moc.x@a", "moc.x@a"),
        (".)2.5 הסרג( Footnote תכרעמב", "במערכת Footnote (גרסה 2.5)."),
        ("(הסרג) םולש", "שלום (גרסה)"),
        ("Booking.com Ltd לש 25% דוע", "עוד 25% של Booking.com Ltd"),
        ("₪ 1,200 ,25 30", "30 25, 1,200 ₪"),
        ("1234-555-022 ىلع لصتا", "اتصل على 022-555-1234"),
        ("%25 نم", "من 25%"),
        ("\ufef9ا", "الإ"),
        ("0:30-8:00 םוי", "יום 0:30-8:00"),
        ("", ""),
    ],
)
def test_right_to_left_line_is_read_in_order(drawn, expected):
    assert "".join(read(lay_out(drawn))) == expected


def test_right_to_left_words_in_other_lines_are_reversed():
    drawn = "The word םלוע םולש means 2 things"

    assert read(lay_out(drawn), rtl=False) == ["The word שלום עולם means 2 things"]


def test_vowel_mark_is_joined_to_its_letter():
    letters, mark = lay_out("בא"), PdfChar(9, "\u05b8", 6.0, 0.0, 9.0, 13.0)

    assert read([*letters, mark]) == ["א\u05b8ב"]
    assert [len(row) for row in pdf_direction.split_rows([mark, *letters])] == [3]


def test_wide_gap_separates_cells():
    assert read([*lay_out("א", 0), *lay_out("ב", 1, left=40.0)]) == ["ב", "א"]


ATOMS = st.lists(st.sampled_from((*WORDS, "30", "2.5", "Footnote", "12/05")), min_size=1, max_size=8)


@given(ATOMS, st.randoms(use_true_random=False))
def test_file_order_does_not_matter(atoms, chance):
    words = [atom for at, atom in enumerate(atoms) if atom in WORDS or not at or atoms[at - 1] in WORDS]
    drawn = " ".join(word[::-1] if word in WORDS else word for word in reversed(words))
    chars = lay_out(drawn)
    random.Random(chance.random()).shuffle(chars)

    assert read(chars) == [" ".join(words)]
