"""Dates that a text states in front matter, or in a line at its top; and titles of plain texts."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.readers import file_formats
from ingest.types import Page

CHANGED = datetime(2026, 3, 1, tzinfo=UTC)
STATED = datetime(2023, 1, 4, tzinfo=UTC)
RULE = "The garage closes at 22:00 on every day of the week."


def read(text: str, name: str) -> Page:
    return file_formats.read_file(text.encode(), name, modified=CHANGED)


def texts(page: Page) -> list[str]:
    return [block.text for section in page.sections for block in section.blocks]


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.rst", "a.adoc", "README"])
@pytest.mark.parametrize("head", ["---\ndate: 2023-01-04\n---\n", '+++\nlastmod = "2023-01-04"\n+++\n'])
def test_front_matter_dates_every_text_format(name, head):
    page = read(f"{head}{RULE}\n", name)
    assert (page.date, texts(page)) == (STATED, [RULE])
    assert file_formats.is_dated(name, f"{head}{RULE}".encode())


@pytest.mark.parametrize(
    "head", ["---\nNote: keys are at the desk\n---\n", "---\nParking\n---\n", "---\n- Bring it\n---\n"]
)
@pytest.mark.parametrize("name", ["a.txt", "a.rst"])
def test_text_between_rules_is_not_front_matter(name, head):
    assert head.split("\n")[1].lstrip("- ") in str(read(f"{head}\n{RULE}\n", name).sections)


@pytest.mark.parametrize("name", ["a.txt", "a.md"])
@pytest.mark.parametrize(
    "line",
    [
        "Updated: 4 January 2023",
        "**Last updated:** Jan 4, 2023",
        "Stand: 4. Januar 2023",
        "*Mise à jour : 4 janvier 2023*",
        "Última actualización: 4 de enero de 2023",
        "last updated: 2023-01-04",
    ],
)
@pytest.mark.parametrize("above", ["", "{}Garage\n", "{}Garage\n\n", "Garage\n======\n\nAuthor: Ann Smith\n"])
def test_updated_line_dates_the_page_and_is_removed(name, line, above):
    text = f"{above.format('# ' if name == 'a.md' else '')}{line}\n\n{RULE}\n"
    page = read(text, name)
    assert page.date == STATED
    assert RULE in texts(page)
    assert "2023" not in str(page.sections)
    assert file_formats.is_dated(name, text.replace("\n", "\r\n").encode())


@pytest.mark.parametrize("name", ["a.txt", "a.md"])
@pytest.mark.parametrize("line", ["Date: 4 January 2023", "Datum: 4. Januar 2023", "Author: Ann\nDate: 4 January 2023"])
def test_date_line_dates_the_page_and_is_kept(name, line):
    page = read(f"Garage\n\n{line}\n{RULE}\n", name)
    assert page.date == STATED
    assert {RULE, line.split("\n")[-1]} <= {*texts(page)}


@pytest.mark.parametrize("name", ["a.txt", "a.md"])
@pytest.mark.parametrize(
    "text",
    [
        f"Summer party\n\nDate: 4 January 2023\nPlace: the garden\n\n{RULE}\n",
        f"Place: the garden\nDate: 4 January 2023\n\n{RULE}\n",
        f"The party was moved.\nDate: 4 January 2023\n\n{RULE}\n",
        f"Garage\n\n{RULE}\nUpdated: 4 January 2023\n",
        f"Garage\n\n{RULE}\n\nUpdated: 4 January 2023\n",
        f"Garage\n\nUpdated: January 2023\n\n{RULE}\n",
        f"Garage\n\nUpdated: 02/03/2023\n\n{RULE}\n",
        f"Garage\n\nThe rules were updated: 4 January 2023\n\n{RULE}\n",
        f"Garage\n\nDate: 4 January 2023 to 6 January 2023\n\n{RULE}\n",
    ],
)
def test_other_lines_do_not_date_a_page(name, text):
    page = read(text, name)
    assert page.date == CHANGED
    assert "2023" in str(page.sections)
    assert not file_formats.is_dated(name, text.encode())


LINES = [
    "",
    "Garage",
    "======",
    "Author: Ann",
    "Place: garden",
    "Date: 4 January 2023",
    "Stand: 4.1.2023",
    "Stand: x",
    RULE,
]


@given(st.lists(st.sampled_from(LINES), max_size=12))
def test_only_the_dating_line_is_removed(lines):
    page = read("\n".join([*lines, "The end."]), "a.txt")
    content = f"{page.title} {page.sections}"
    assert all(line in content for line in {*lines} - {LINES[-3]})
    assert content.count("Stand: 4.1.2023") + (page.date != CHANGED) >= lines.count("Stand: 4.1.2023")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (f"Leave (2023)\n\n{RULE}\n", "Leave (2023)"),
        (f"Updated: 4 January 2023\n\nLeave (2023)\n\n{RULE}\n", "Leave (2023)"),
        (f"休暇規定\n\n{RULE}\n", "休暇規定"),
        (f"Leave (2023)\n{RULE}\n", "Leave old"),
        (f"Dear all,\n\n{RULE}\n", "Leave old"),
        (f"The office is closed.\n\n{RULE}\n", "Leave old"),
        (f"To: all staff\n\n{RULE}\n", "Leave old"),
        (f"- Bring a towel\n\n{RULE}\n", "Leave old"),
        ("Kitchen closes at 22:00\n\nBar closes at 23:00\n", "Leave old"),
        ("Leave (2023)\n", "Leave old"),
    ],
)
def test_plain_text_title_is_found(text, title):
    page = read(text, "leave-old.txt")
    assert page.title == title
    assert (title not in str(page.sections)) or title == "Leave old"
