"""Real handbooks, and real files of many formats."""

import os
import re
from pathlib import Path

import pytest

from ingest import chunking
from ingest.sources.folder import FolderSource
from ingest.types import Unreadable, UnreadableDocument
from storage.language.words import count_words
from storage.types import PassageKind
from tests.thorough import THOROUGH

DATA = Path(os.environ.get("FOOTNOTE_DATA") or Path(__file__).parents[2].parent / "shared/data") / "corporate_docs"

MARKUP = re.compile(r"\*\*\w[^*\n]*\w\*\*|&(?:nbsp|amp|lt|gt);|<(?:div|span|td|br|p|img)\b|^\s*-\s*$", re.MULTILINE)
HOLE = re.compile(
    r"^\s*(?:- )?[.,;:](?=\s|$)"
    r"|\b(?:in|at|to|via|see|with|for|from|of|or|and|the|an?|is|are|our|your) [.,;:!?)](?=\s|$)"
    r"|(?<!\w)\(\s*[,.;]?\s*\)|(?<!\w)\[[^\[\]]*\]\[[^\[\]\s]*\]|\{\{|\{%|\w\]\(",
    re.MULTILINE,
)
"""A place where a sentence lacks a word or shows removed markup; writers leave some such places themselves."""

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"there is no {DATA}; set FOOTNOTE_DATA")


def read(name):
    """Return the passages of a folder with their pages, and the reasons of unreadable documents."""
    passages, failures = [], {}
    for document in FolderSource(DATA / name).documents():
        if isinstance(document, Unreadable):
            failures[document.key] = document.reason
            continue
        try:
            page = document.load()
        except UnreadableDocument as error:
            failures[document.key] = str(error)
        else:
            passages += [(page, passage) for passage in chunking.split_page(name, document.key, page)]
    return passages, failures


@pytest.mark.parametrize(
    ("name", "documents", "failed"),
    [
        *([("sourcegraph-handbook", 884, 3)] if THOROUGH else []),
        ("madetech-handbook", 185, 0),
        ("fixtures-markitdown", 30, 3),
    ],
)
def test_every_document_is_counted_and_read_without_markup(name, documents, failed, capfd):
    passages, failures = read(name)

    assert FolderSource(DATA / name).expected() == documents
    assert len(failures) == failed
    assert len({passage.document for _, passage in passages}) == documents - failed
    assert len({passage.id for _, passage in passages}) == len(passages)
    assert all(count_words(p.text) <= chunking.available_words(page.title, p.section) for page, p in passages)
    prose = [passage.text for _, passage in passages if passage.kind is PassageKind.PROSE]
    assert sum(1 for text in prose if MARKUP.search(text)) <= len(prose) // 1000
    assert sum(1 for text in prose if HOLE.search(text)) <= 1 + len(prose) // 500
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("file", "fact"),
    [
        ("test.docx", "314b0a30-5b04-470b-b9f7-eed2c2bec74a"),
        ("test.docx", "49e168b7-d2ae-407f-a055-2167576f39a1"),
        ("test.pptx", "2cdda5c8-e50e-4db4-b5f0-9722a649f455"),
        ("test.pptx", "04191ea8-5c73-4215-a1d3-1cfb43aaaf12"),
        ("test.pptx", "1b92870d-e3b5-4e65-8153-919f4ff45592"),
        ("test.pptx", "a3f6004b-6f4f-4ea8-bee3-3741f4dc385f"),
        ("test.xlsx", "6ff4173b-42a5-4784-9b19-f49caff4d93d"),
        ("test.xlsx", "affc7dad-52dc-4b98-9b5d-51e65d8a8ad0"),
        ("test.xls", "6ff4173b-42a5-4784-9b19-f49caff4d93d"),
        ("test.pdf", "While there is contemporaneous exploration of multi-agent approaches"),
        ("test.json", "5b64c88c-b3c3-4510-bcb8-da0b200602d8"),
        ("test_mskanji.csv", "名前: 佐藤太郎; 年齢: 30; 住所: 東京"),
        ("test_outlook_msg.msg", "This is the body of the test email message"),
        ("SPARSE-2024-INV-1234_borderless_table.pdf", "Product Code: SKU-8847; Location: A-12; Expected: 450"),
        ("movie-theater-booking-2024.pdf", "Month: December 2024; # Shows: 48; Gross Amount: $12,500.00"),
    ],
)
def test_facts_of_a_file_are_in_its_passages(file, fact):
    [document] = FolderSource(DATA / "fixtures-markitdown", include=[f"**/{file}"]).documents()

    passages = chunking.split_page("c", document.key, document.load())

    assert any(fact in f"{passage.section}\n{passage.text}" for passage in passages)
