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


def test_pages_become_headings_paragraphs_and_tables():
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


def test_scan_without_ocr_is_refused():
    with pytest.raises(UnreadableDocument, match="text recognition"):
        pdf.read_pdf(files.pdf([[]]))


@pytest.mark.parametrize("content", [b"%PDF-1.4 broken", b"no PDF at all"])
def test_broken_pdf_is_refused_quietly(content, capfd):
    with pytest.raises(UnreadableDocument, match="broken"):
        pdf.read_pdf(content)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (f"This is the gen{HYPHEN}", "eral rule.", "This is the general rule."),
        (f"A chat and a chat{HYPHEN}", "optimized model.", "A chat and a chat-optimized model."),
        (f"Chatbots: a chat and a chat{HYPHEN}", "bots team.", "Chatbots: a chat and a chatbots team."),
        ("He gave the well-", "known answer.", "He gave the well- known answer."),
    ],
)
def test_hyphenated_words_are_joined(first, second, expected):
    assert pdf_layout.read_layout([page(first, second)]) == [Block(expected)]


def test_paragraph_continues_on_the_next_page():
    pages = [page("The rule holds for all who"), page("work in the office.")]

    assert pdf_layout.read_layout(pages) == [Block("The rule holds for all who work in the office.")]


def test_lines_are_sorted_within_columns():
    left = page("Left one", "left two.", top=600.0)
    right = page("Right one", "right two.", left=320.0, top=600.0)
    over = [TextSegment(72, 700, 420, 712, "A title over both of the columns", 10, bold=False)]

    text = " ".join(item.text for item in pdf_layout.read_layout([[*left, *right, *over]]))

    assert text == "A title over both of the columns Left one left two. Right one right two."


def test_headings_do_not_continue_on_the_next_page():
    text = page("Text that is set as most of it is, and goes on for a line.", top=600.0)
    pages = [[*page(title, size=24.0), *text] for title in ("plans", "prices")]

    assert [item.text for item in pdf_layout.read_layout(pages) if isinstance(item, Heading)] == ["plans", "prices"]


def test_running_heads_and_page_numbers_are_removed():
    pages = [page(f"Handbook, page {n} of 4", f"Text of page {word}.", f"{n}") for n, word in enumerate("abcd", 1)]

    assert [item.text for item in pdf_layout.read_layout(pages)] == [f"Text of page {word}." for word in "abcd"]


def test_short_lines_are_not_joined():
    lines = page("Ann Smith", "Main Street 5", "Graz", top=500.0)
    text = page("A long line of text that shows how wide the page is set, from left to right", top=700.0)

    assert [item.text for item in pdf_layout.read_layout([[*text, *lines]])][1:] == [
        "Ann Smith",
        "Main Street 5",
        "Graz",
    ]


def test_bullet_is_joined_to_its_text():
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


def test_authors_are_read_by_column():
    rows = columns(("Ann Smith", "Bo Chen"), ("University of Graz", "Example Institute"), ("ann@x.org", "bo@y.org"))

    assert pdf_layout.read_layout([rows]) == [
        Block("Ann Smith, University of Graz, ann@x.org"),
        Block("Bo Chen, Example Institute, bo@y.org"),
    ]


def test_text_columns_drawn_by_line_are_not_a_table():
    left = ("Answers without sources", "cannot be checked by those", "who read them.")
    right = ("In this column we say why", "it was not enough for the", "people who asked.")

    text = " ".join(item.text for item in pdf_layout.read_layout([columns(*zip(left, right, strict=True))]))

    assert text == " ".join((*left, *right))


def test_separate_accents_are_joined_to_letters():
    drawn = [(72, 700, 10, "Sch"), (88.6, 700, 10, "\u00a8"), (88.6, 700, 10, "on, it\u00b4s")]

    assert pdf.read_pdf(files.pdf([drawn])).items == (Block("Sch\u00f6n, it\u00b4s"),)


def test_right_to_left_page_is_read_in_order():
    drawn = [
        (300, 700, 10, "dcba"),
        (300, 676, 10, "dc"),
        (500, 676, 10, "ba"),
        (300, 664, 10, "30"),
        (500, 664, 10, "cc"),
    ]

    items = pdf.read_pdf(files.pdf([drawn], letters="אבגד")).items

    assert items == (
        Block("אבגד"),
        Block("אב: גג; גד: 30", PassageKind.TABLE),
    )
