"""Pages are cleaned of content that stores reject."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.page_cleanup import clean_page, clean_text, describe_error, to_utc
from ingest.types import Block, Page, Section

TEXTS = st.text(st.characters(exclude_categories=[]))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        ("at the end \ud83d", "at the end \ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ude00 in two halves", "😀 in two halves"),
        ("nul\x00, bell\x07, delete\x7f", "nul, bell, delete"),
        ("tab\tand\nline\r\n", "tab\tand\nline\r\n"),
    ],
)
def test_unstorable_characters_are_replaced(value, expected):
    assert clean_text(value) == expected


@given(TEXTS)
def test_cleaned_text_can_be_stored(text):
    cleaned = clean_text(text)

    assert "\x00" not in cleaned
    assert cleaned.encode().decode() == cleaned
    assert clean_text(cleaned) == cleaned


@given(TEXTS)
def test_every_part_of_a_page_is_cleaned(text):
    page = clean_page(Page(text, (Section((text,), (Block(text),)),), text, text, None, text, (text,)))

    paths = [heading for section in page.sections for heading in section.path]
    blocks = [block.text for section in page.sections for block in section.blocks]
    "".join([page.title, page.url, page.revision, page.language, *page.aliases, *paths, *blocks]).encode()
    assert "\n" not in page.aliases[0]


def test_entities_are_decoded_in_titles_only():
    page = clean_page(Page("Q&amp;A &#8211; Hours", (Section(("A",), (Block("Write &amp;."),)),)))

    assert (page.title, page.sections[0].blocks[0].text) == ("Q&A – Hours", "Write &amp;.")


def test_empty_blocks_and_sections_are_dropped():
    full, empty = Section(("A",), (Block("\x00"), Block("Text."))), Section(("B",), (Block("\x01\x02"),))

    assert clean_page(Page("T", (full, empty))).sections == (Section(("A",), (Block("Text."),)),)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (datetime(2024, 2, 3, 1, tzinfo=timezone(timedelta(hours=2))), datetime(2024, 2, 2, 23, tzinfo=UTC)),
        (datetime(2024, 2, 3), datetime(2024, 2, 3, tzinfo=UTC)),  # noqa: DTZ001 - a date without a zone is the case
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))), None),
        (datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-12))), None),
        (datetime(9999, 12, 31, 23, tzinfo=UTC), None),
    ],
)
def test_date_becomes_utc_or_none(value, expected):
    assert to_utc(value) == expected


@given(st.datetimes(timezones=st.timezones() | st.none()))
def test_converted_dates_are_valid_in_every_time_zone(moment):
    utc = to_utc(moment)

    for hours in (-14, 14) if utc else ():
        assert utc.astimezone(timezone(timedelta(hours=hours))) == utc


def test_unexpected_error_is_described_in_a_short_line():
    assert describe_error(ValueError("bad \ud800\nthing")) == "cannot be read: ValueError: bad \ufffd thing"
    assert describe_error(RecursionError()) == "cannot be read: RecursionError"
    assert len(describe_error(ValueError("x" * 1000))) == 200
