"""The files of questions have the format of `questions/README.md`, and every answer is in its document."""

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.types import ChangedDocument

ROOT = Path(__file__).parents[3]
QUESTIONS = ROOT / "evaluation" / "answers" / "questions"
DATA = Path(os.environ.get("FOOTNOTE_DATA", ROOT.parent / "shared" / "data"))
KEYS = {"question", "answer", "document", "answerable", "disagreement", "kind", "held"}
ABSENT = {"question", "answerable", "kind", "held"}


@pytest.fixture(params=sorted(QUESTIONS.glob("*.json")), ids=lambda path: path.name)
def file(request: pytest.FixtureRequest) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(request.param.read_text(encoding="utf-8"))
    return values


@pytest.fixture
def pages(file: dict[str, Any]) -> dict[str, str]:
    if "dump" in file:
        return _articles(Path(file["dump"].replace("$FOOTNOTE_DATA", str(DATA))))
    folder = ROOT / file["folder"].replace("$FOOTNOTE_DATA", str(DATA))
    if not folder.is_dir():
        pytest.skip(f"the documents of {file['corpus']} are not here; FOOTNOTE_DATA can name the folder of data")
    return _texts(folder)


@cache
def _texts(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): _folded(path.read_text("utf-8")) for path in folder.rglob("*.md")}


@cache
def _articles(dump: Path) -> dict[str, str]:
    if not dump.is_file():
        pytest.skip(f"{dump.name} is not here; FOOTNOTE_DATA can name the folder of data")
    pages = {
        item.key: item.load()
        for item in WikipediaDump(dump, processes=1).documents()
        if isinstance(item, ChangedDocument)
    }
    blocks = {key: (block.text for section in page.sections for block in section.blocks) for key, page in pages.items()}
    return {key: _folded("\n".join(texts)) for key, texts in blocks.items()}


def _rows(file: dict[str, Any]) -> list[dict[str, Any]]:
    turns = (turn for talk in file.get("conversations", ()) for turn in talk["turns"])
    return [*file.get("questions", ()), *turns]


def _answerable(file: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in _rows(file) if row.get("answerable", True)]


def _folded(text: str) -> str:
    return " ".join(re.sub(r"[*_`]", "", text).split()).casefold()


def _has(string: str, folded: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(_folded(string))}(?!\w)", folded) is not None


def test_question_file_has_the_documented_form(file: dict[str, Any]) -> None:
    absent = [row for row in _rows(file) if not row.get("answerable", True)]

    assert file.keys() - {"corpus", "folder", "dump"} in (
        {"questions"},
        {"conversations"},
        {"questions", "conversations"},
    )
    assert file.keys() & {"folder", "dump"}
    assert all(row.keys() <= KEYS and row["question"] for row in _rows(file))
    assert all(row["answer"] for row in _answerable(file))
    assert all(row.keys() <= ABSENT for row in absent)
    assert all(2 <= len(talk["turns"]) <= 3 for talk in file.get("conversations", ()))
    if "questions" not in file:
        assert len(file["conversations"]) >= 6
        return
    questions = [row["question"] for row in file["questions"]]
    assert len(set(questions)) == len(questions)
    assert len(_answerable(file)) >= (8 if "dump" in file else 10)
    # People who see only the titles cannot aim at what no page says.
    assert len(absent) >= (2 if "dump" in file or any("held" in row for row in file["questions"]) else 10)


def test_every_answer_is_in_its_document(file: dict[str, Any], pages: dict[str, str]) -> None:
    for row in _answerable(file):
        texts = [pages[row["document"]]] if "document" in row else pages.values()
        assert any(all(_has(string, text) for string in row["answer"]) for text in texts), row["question"]


def test_disagreeing_strings_are_in_different_documents(file: dict[str, Any], pages: dict[str, str]) -> None:
    for row in (row for row in _rows(file) if "disagreement" in row):
        newer, older = row["disagreement"]

        assert _has(newer, pages[row["document"]])
        assert not _has(older, pages[row["document"]])
        assert any(_has(older, text) for text in pages.values())
