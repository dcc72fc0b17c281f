"""The example handbook is well formed, and two of its pages disagree as the demo needs."""

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

HANDBOOK = Path(__file__).parents[2] / "examples" / "handbook"
PAGES = sorted(HANDBOOK.rglob("*.md"))
WORD = re.compile(r"[^\W_]+(?:[-'.,][^\W_]+)*")
NUMBER_OR_DATE = re.compile(r"\d+ (?:March|February) \d+|\d+")


def _front_matter(page: Path) -> dict[str, Any]:
    head = page.read_text(encoding="utf-8").split("---\n", 2)[1]
    values: dict[str, Any] = yaml.safe_load(head)
    return values


def _body(page: Path) -> str:
    return page.read_text(encoding="utf-8").split("---\n", 2)[2]


def test_handbook_has_twenty_to_thirty_pages() -> None:
    assert 20 <= len(PAGES) <= 30


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(HANDBOOK).as_posix())
def test_pages_have_title_date_owner_and_length(page: Path) -> None:
    values, text = _front_matter(page), _body(page)

    assert values.keys() == {"title", "date", "owner"}
    assert isinstance(values["date"], date)
    assert f"\n# {values['title']}\n" in text
    assert 120 <= len(WORD.findall(text)) <= 450


def test_titles_are_unique() -> None:
    titles = [_front_matter(page)["title"] for page in PAGES]

    assert len(titles) == len(set(titles))


def test_two_dated_pages_disagree_on_a_number() -> None:
    older, newer = (HANDBOOK / "operations" / name for name in ("travel-2024.md", "travel-2026.md"))
    sentences = [
        re.findall(r"From [^.]* meal allowance [^.]*\.", " ".join(_body(page).split())) for page in (older, newer)
    ]

    assert _front_matter(older)["date"] < _front_matter(newer)["date"]
    assert sentences[0] != sentences[1]
    assert [len(found) for found in sentences] == [1, 1]
    assert len({NUMBER_OR_DATE.sub("N", found[0]) for found in sentences}) == 1
