"""Every link in the guides has a target, the index links every guide, and every command is documented."""

import re
from pathlib import Path

import pytest
import typer

from bot.cli.entry_point import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def find_links(page: Path) -> list[str]:
    """Return the targets of a page's links and pictures within the repository."""
    text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^()\s]+)\)", re.sub(r"`[^`\n]*`", "", text))
    return [link for link in links if not re.match(r"\w+:", link)]


def list_anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_has_a_target(page):
    for link in find_links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in list_anchors(target), link


def test_index_names_every_guide():
    guides = {guide.name for guide in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert guides <= set(find_links(ROOT / "docs" / "README.md"))


def test_commands_guide_names_every_command():
    commands = typer.main.get_command(app)
    named = set(re.findall(r"`footnote ([a-z]+)", (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")))
    assert set(commands.list_commands(typer.Context(commands))) <= named
