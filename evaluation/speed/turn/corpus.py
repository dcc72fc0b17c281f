"""What is asked about: the example handbook's text in passages as long as they may be, and its questions.

Its pages are short. Run together, a folder's pages fill passages of 120 words, which is what verification usually
reads.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from evaluation.posing import read_exam
from evaluation.retrieval import SetSource
from evaluation.sets.types import Text

HANDBOOK = Path(__file__).parents[3] / "examples" / "handbook"
QUESTIONS = Path(__file__).parents[2] / "questions" / "example_handbook.json"
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_NO_PROSE = re.compile(r"^(?:#|\||\s*[-*]\s|\s*\d+\.\s|```|>)")


def full_passages() -> SetSource:
    """Return the handbook as a source of one long page a folder."""
    return SetSource(tuple(_pages(HANDBOOK)), "en")


def questions() -> tuple[str, ...]:
    """Return what is asked, each once."""
    return tuple(dict.fromkeys(posed.text for posed in read_exam(QUESTIONS).questions))


def _pages(handbook: Path) -> Iterator[Text]:
    for folder in sorted(handbook.iterdir()):
        paragraphs = [prose for file in sorted(folder.rglob("*.md")) for prose in _prose(file.read_text("utf-8"))]
        if paragraphs:
            yield Text(folder.name, folder.name.capitalize(), " ".join(paragraphs))


def _prose(page: str) -> Iterator[str]:
    """Yield a page's paragraphs, each on one line; its headings, lists and tables are left out."""
    for block in re.split(r"\n\s*\n", _FRONT.sub("", page)):
        if not _NO_PROSE.match(block):
            yield " ".join(block.split())
