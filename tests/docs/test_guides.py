"""Guides lead to what there is, the index to every guide, and each command is told of."""

import re
from pathlib import Path

import pytest
import typer

from bot.cli.entry_point import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def find_links(page: Path) -> list[str]:
    """Return where a page's links and pictures lead within the repository."""
    text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^()\s]+)\)", re.sub(r"`[^`\n]*`", "", text))
    return [one for one in links if not re.match(r"\w+:", one)]


def list_anchors(page: Path) -> set[str]:
    """Return what a page's headings are called in addresses."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_has_a_target(page):
    for link in find_links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in list_anchors(target), link


def test_index_names_every_guide():
    guides = {one.name for one in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert guides <= set(find_links(ROOT / "docs" / "README.md"))


def test_commands_guide_names_every_command():
    commands = typer.main.get_command(app)
    named = set(re.findall(r"`footnote ([a-z]+)", (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")))
    assert set(commands.list_commands(typer.Context(commands))) <= named
