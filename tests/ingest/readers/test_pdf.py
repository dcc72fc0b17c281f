"""PDFs become paragraphs, headings and tables."""

from datetime import UTC, datetime

import pytest

from ingest.readers import pdf, pdf_layout
from ingest.readers.parsed_document import Heading
from ingest.readers.pdf_layout import HYPHEN, TextSegment
from ingest.types import Block, UnreadableDocument
from storage.types import PassageKind
from tests.ingest import files


def page(*texts, size=10.0, left=72.0, top=700.0):
    """Lay texts out as lines of one page, each as wide as it is long."""
    return [
        TextSegment(left, top - 12 * n, left + 5 * len(text), top - 12 * n + size, text, size, bold=False)
        for n, text in enumerate(texts)
    ]


def test_a_file_is_read_from_its_pages():
    """Lines join to paragraphs, larger ones are headings, gaps make tables, page numbers go."""
    content = files.pdf(
        [
            [
                (72, 720, 18, "Travel policy"),
                (72, 690, 10, "Employees book their own trains and are paid back within"),
                (72, 678, 10, "ten days. Flights need the approval of a manager."),
                (72, 640, 14, "Rates"),
                (72, 616, 10, "City"),
                (250, 616, 10, "Hotel"),
                (72, 604, 10, "Graz"),
                (250, 604, 10, "120"),
                (300, 30, 10, "1"),
            ],
            [(72, 720, 10, "Questions go to the people team."), (300, 30, 10, "2")],
        ],
        title="Travel",
        modified="D:20240506070809+02'00'",
    )

    reading = pdf.read_pdf(content)

    assert reading.items == (
        Heading(1, "Travel policy"),
        Block(
            "Employees book their own trains and are paid back within ten days. Flights need the approval of a manager."
        ),
        Heading(2, "Rates"),
        Block("City: Graz; Hotel: 120", PassageKind.TABLE),
        Block("Questions go to the people team."),
    )
    assert reading.fallback_title == "Travel"
    assert reading.date == datetime(2024, 5, 6, 5, 8, 9, tzinfo=UTC)


def test_pages_without_text_ask_for_recognition():
    """A scan is pictures."""
    with pytest.raises(UnreadableDocument, match="text recognition"):
        pdf.read_pdf(files.pdf([[]]))


@pytest.mark.parametrize("content", [b"%PDF-1.4 broken", b"no PDF at all"])
def test_a_broken_file_says_so(content, capfd):
    """In plain words, and nothing is printed."""
    with pytest.raises(UnreadableDocument, match="broken"):
        pdf.read_pdf(content)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (f"This is the gen{HYPHEN}", "eral rule.", "This is the general rule."),
        (f"A chat and a chat{HYPHEN}", "optimized model.", "A chat and a chat-optimized model."),
        (f"Chatbots: a chat and a chat{HYPHEN}", "bots team.", "Chatbots: a chat and a chatbots team."),
        ("He gave the well-", "known answer.", "He gave the well- known answer."),
    ],
)
def test_parted_words_are_mended(first, second, said):
    """With a hyphen only where the first half is a word of its own and the whole is not."""
    assert pdf_layout.read_layout([page(first, second)]) == [Block(said)]


def test_a_paragraph_goes_on_over_the_page():
    """If it did not end, and the next page goes on in lower case."""
    pages = [page("The rule holds for all who"), page("work in the office.")]

    assert pdf_layout.read_layout(pages) == [Block("The rule holds for all who work in the office.")]


def test_lines_are_read_from_top_to_bottom_whenever_they_are_drawn():
    """But columns one after the other, as the file has them."""
    left = page("Left one", "left two.", top=600.0)
    right = page("Right one", "right two.", left=320.0, top=600.0)
    over = [TextSegment(72, 700, 420, 712, "Over both of the columns there stands a title", 10, bold=False)]

    said = " ".join(item.text for item in pdf_layout.read_layout([[*left, *right, *over]]))

    assert said == "Over both of the columns there stands a title Left one left two. Right one right two."


def test_no_heading_goes_on_over_the_page():
    """Slides have a title each, be it written small."""
    text = page("Text that is set as most of it is, and goes on for a line.", top=600.0)
    pages = [[*page(title, size=24.0), *text] for title in ("plans", "prices")]

    assert [item.text for item in pdf_layout.read_layout(pages) if isinstance(item, Heading)] == ["plans", "prices"]


def test_what_stands_on_every_page_is_left_out():
    """Running heads change in nothing but numbers."""
    pages = [page(f"Handbook, page {n} of 4", f"Text of page {word}.", f"{n}") for n, word in enumerate("abcd", 1)]

    assert [item.text for item in pdf_layout.read_layout(pages)] == [f"Text of page {word}." for word in "abcd"]


def test_short_lines_stay_lines():
    """An address is no paragraph: the next word would have fitted."""
    lines = page("Ann Smith", "Main Street 5", "Graz", top=500.0)
    text = page("A long line of text that shows how wide the page is set, from left to right", top=700.0)

    assert [item.text for item in pdf_layout.read_layout([[*text, *lines]])][1:] == [
        "Ann Smith",
        "Main Street 5",
        "Graz",
    ]


def test_numbers_and_bullets_belong_to_what_follows():
    """However far they stand from it."""
    bullet = TextSegment(72, 700, 76, 710, "•", 10, bold=False)
    text = TextSegment(108, 700, 300, 710, "A point of the list", 10, bold=False)

    assert pdf_layout.read_layout([[bullet, text]]) == [Block("- A point of the list")]


def columns(*rows, top=600.0):
    return [
        segment
        for n, row in enumerate(rows)
        for at, text in enumerate(row)
        for segment in page(text, left=72.0 + 250 * at, top=top - 12 * n)
    ]


def test_authors_beside_each_other_are_read_one_after_the_other():
    """A column each, not rows of names, houses and addresses."""
    rows = columns(("Ann Smith", "Bo Chen"), ("University of Graz", "Example Institute"), ("ann@x.org", "bo@y.org"))

    assert pdf_layout.read_layout([rows]) == [
        Block("Ann Smith, University of Graz, ann@x.org"),
        Block("Bo Chen, Example Institute, bo@y.org"),
    ]


def test_columns_that_were_drawn_line_by_line_are_no_table():
    left = ("Answers without sources", "cannot be checked by those", "who read them.")
    right = ("In this column we say why", "it was not enough for the", "people who asked.")

    said = " ".join(item.text for item in pdf_layout.read_layout([columns(*zip(left, right, strict=True))]))

    assert said == " ".join((*left, *right))


def test_accents_that_are_drawn_over_letters_belong_to_them():
    """As TeX sets them; an accent beside a letter is an apostrophe."""
    drawn = [(72, 700, 10, "Sch"), (88.6, 700, 10, "\u00a8"), (88.6, 700, 10, "on, it\u00b4s")]

    assert pdf.read_pdf(files.pdf([drawn])).items == (Block("Sch\u00f6n, it\u00b4s"),)


def test_a_page_from_right_to_left_is_read_so():
    """The visual order of Hebrew, letter by letter; its columns begin on the right."""
    shown = [
        (300, 700, 10, "dcba"),
        (300, 676, 10, "dc"),
        (500, 676, 10, "ba"),
        (300, 664, 10, "30"),
        (500, 664, 10, "cc"),
    ]

    items = pdf.read_pdf(files.pdf([shown], letters="אבגד")).items

    assert items == (
        Block("אבגד"),
        Block("אב: גג; גד: 30", PassageKind.TABLE),
    )
