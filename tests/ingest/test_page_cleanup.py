"""What no store takes is mended in every page, whichever source it comes from."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.page_cleanup import clean_page, clean_text, describe_error, to_utc
from ingest.types import Block, Page, Section

TEXTS = st.text(st.characters(exclude_categories=[]))


@pytest.mark.parametrize(
    ("said", "held"),
    [
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        ("at the end \ud83d", "at the end \ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ude00 in two halves", "😀 in two halves"),
        ("nul\x00, bell\x07, delete\x7f", "nul, bell, delete"),
        ("tab\tand\nline\r\n", "tab\tand\nline\r\n"),
    ],
)
def test_characters_that_no_text_holds(said, held):
    """Halves of pairs are replaced, control characters dropped, white space stays."""
    assert clean_text(said) == held


@given(TEXTS)
def test_every_text_can_be_stored(said):
    """As UTF-8, without NUL; twice cleaned is once cleaned."""
    held = clean_text(said)

    assert "\x00" not in held
    assert held.encode().decode() == held
    assert clean_text(held) == held


@given(TEXTS)
def test_every_part_of_a_page_is_cleaned(said):
    """Title, sections, address, revision, language and aliases; an alias is one line."""
    page = clean_page(Page(said, (Section((said,), (Block(said),)),), said, said, None, said, (said,)))

    paths = [heading for section in page.sections for heading in section.path]
    blocks = [block.text for section in page.sections for block in section.blocks]
    "".join([page.title, page.url, page.revision, page.language, *page.aliases, *paths, *blocks]).encode()
    assert "\n" not in page.aliases[0]


def test_entities_of_a_title_are_decoded():
    """Feeds, wikis and front matter write titles as markup; a text that shows entities keeps them."""
    page = clean_page(Page("Q&amp;A &#8211; Hours", (Section(("A",), (Block("Write &amp;."),)),)))

    assert (page.title, page.sections[0].blocks[0].text) == ("Q&A – Hours", "Write &amp;.")


def test_a_block_of_nothing_else_is_dropped():
    """And a section that held nothing else."""
    full, empty = Section(("A",), (Block("\x00"), Block("Text."))), Section(("B",), (Block("\x01\x02"),))

    assert clean_page(Page("T", (full, empty))).sections == (Section(("A",), (Block("Text."),)),)


@pytest.mark.parametrize(
    ("said", "held"),
    [
        (None, None),
        (datetime(2024, 2, 3, 1, tzinfo=timezone(timedelta(hours=2))), datetime(2024, 2, 2, 23, tzinfo=UTC)),
        (datetime(2024, 2, 3), datetime(2024, 2, 3, tzinfo=UTC)),  # noqa: DTZ001 - a date without a zone is the case
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))), None),
        (datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-12))), None),
        (datetime(9999, 12, 31, 23, tzinfo=UTC), None),
    ],
)
def test_a_date_is_in_utc_or_none(said, held):
    """A moment so near the ends of time that some time zone cannot tell it is none."""
    assert to_utc(said) == held


@given(st.datetimes(timezones=st.timezones() | st.none()))
def test_every_date_that_is_kept_can_be_told_everywhere(said):
    """So that no answer fails over it."""
    held = to_utc(said)

    for hours in (-14, 14) if held else ():
        assert held.astimezone(timezone(timedelta(hours=hours))) == held


def test_an_unexpected_error_is_one_short_line():
    """With its kind; even where its text could not be stored."""
    assert describe_error(ValueError("bad \ud800\nthing")) == "cannot be read: ValueError: bad \ufffd thing"
    assert describe_error(RecursionError()) == "cannot be read: RecursionError"
    assert len(describe_error(ValueError("x" * 1000))) == 200
