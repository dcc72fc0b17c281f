"""Lines that run from right to left are read as they are written, wherever the file has their characters."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.readers import pdf_direction
from ingest.readers.pdf_direction import PdfChar

WORDS = ("שלום", "עולם", "נוהל")


def drawn(shown, at=0, left=0.0):
    """Lay out what is seen from left to right, each character 5 wide and 10 high."""
    return [PdfChar(at + n, c, left + 5 * n, 0.0, left + 5 * n + 5, 10.0) for n, c in enumerate(shown)]


def read(chars, *, rtl=True):
    return [text for _, text in pdf_direction.read_cells(chars, 0.8, rtl=rtl)]


@pytest.mark.parametrize(
    ("shown", "said"),
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
def test_a_line_is_read_from_right_to_left(shown, said):
    """Words of other letters and numbers keep their direction; brackets open before what they enclose."""
    assert "".join(read(drawn(shown))) == said


def test_words_in_a_line_from_left_to_right_are_turned():
    shown = "The word םלוע םולש means 2 things"

    assert read(drawn(shown), rtl=False) == ["The word שלום עולם means 2 things"]


def test_a_mark_belongs_to_the_letter_that_it_stands_at():
    """Also where the file has it first."""
    letters, mark = drawn("בא"), PdfChar(9, "\u05b8", 6.0, 0.0, 9.0, 13.0)

    assert read([*letters, mark]) == ["א\u05b8ב"]
    assert [len(row) for row in pdf_direction.split_rows([mark, *letters])] == [3]


def test_what_stands_far_apart_is_a_cell_of_its_own():
    assert read([*drawn("א", 0), *drawn("ב", 1, left=40.0)]) == ["ב", "א"]


ATOMS = st.lists(st.sampled_from((*WORDS, "30", "2.5", "Footnote", "12/05")), min_size=1, max_size=8)


@given(ATOMS, st.randoms(use_true_random=False))
def test_the_order_of_the_file_does_not_matter(atoms, chance):
    """As every line is sorted by where its characters stand."""
    words = [one for at, one in enumerate(atoms) if one in WORDS or not at or atoms[at - 1] in WORDS]
    shown = " ".join(one[::-1] if one in WORDS else one for one in reversed(words))
    chars = drawn(shown)
    random.Random(chance.random()).shuffle(chars)

    assert read(chars) == [" ".join(words)]
