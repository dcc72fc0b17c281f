"""PDFs become paragraphs, headings and tables."""

from datetime import UTC, datetime

import pytest

from ingest.formats import pdf, pdf_layout
from ingest.formats.pdf_lines import HYPHEN, Segment
from ingest.formats.reading import Heading
from ingest.types import Block, UnreadableDocument
from storage.types import Kind
from tests.ingest import files


def page(*texts, size=10.0, left=72.0, top=700.0):
    """Lay texts out as lines of one page, each as wide as it is long."""
    return [
        Segment(left, top - 12 * n, left + 5 * len(text), top - 12 * n + size, text, size, bold=False)
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

    reading = pdf.read(content)

    assert reading.items == (
        Heading(1, "Travel policy"),
        Block(
            "Employees book their own trains and are paid back within ten days. Flights need the approval of a manager."
        ),
        Heading(2, "Rates"),
        Block("City: Graz; Hotel: 120", Kind.TABLE),
        Block("Questions go to the people team."),
    )
    assert reading.fallback_title == "Travel"
    assert reading.date == datetime(2024, 5, 6, 5, 8, 9, tzinfo=UTC)


def test_pages_without_text_ask_for_recognition():
    """A scan is pictures."""
    with pytest.raises(UnreadableDocument, match="text recognition"):
        pdf.read(files.pdf([[]]))


@pytest.mark.parametrize("content", [b"%PDF-1.4 broken", b"no PDF at all"])
def test_a_broken_file_says_so(content, capfd):
    """In plain words, and nothing is printed."""
    with pytest.raises(UnreadableDocument, match="broken"):
        pdf.read(content)
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
    assert pdf_layout.items([page(first, second)]) == [Block(said)]


def test_a_paragraph_goes_on_over_the_page():
    """If it did not end, and the next page goes on in lower case."""
    pages = [page("The rule holds for all who"), page("work in the office.")]

    assert pdf_layout.items(pages) == [Block("The rule holds for all who work in the office.")]


def test_what_stands_on_every_page_is_left_out():
    """Running heads change in nothing but numbers."""
    pages = [page(f"Handbook, page {n} of 4", f"Text of page {word}.", f"{n}") for n, word in enumerate("abcd", 1)]

    assert [item.text for item in pdf_layout.items(pages)] == [f"Text of page {word}." for word in "abcd"]


def test_short_lines_stay_lines():
    """An address is no paragraph: the next word would have fitted."""
    lines = page("Ann Smith", "Main Street 5", "Graz", top=500.0)
    text = page("A long line of text that shows how wide the page is set, from left to right", top=700.0)

    assert [item.text for item in pdf_layout.items([[*text, *lines]])][1:] == ["Ann Smith", "Main Street 5", "Graz"]


def test_numbers_and_bullets_belong_to_what_follows():
    """However far they stand from it."""
    bullet = Segment(72, 700, 76, 710, "•", 10, bold=False)
    text = Segment(108, 700, 300, 710, "A point of the list", 10, bold=False)

    assert pdf_layout.items([[bullet, text]]) == [Block("- A point of the list")]
