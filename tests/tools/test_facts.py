"""The listed facts stand in the passages that are made of their dump."""

import os
from pathlib import Path

import pytest

from ingest.chunking import split_page
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from tools.benchmarks.dump_reading import has_fact, read_facts

ROOT = Path(__file__).parents[2]
FACTS = ROOT / "tools" / "facts" / "enwiki_2016.json"
DATA = Path(os.environ.get("FOOTNOTE_DATA", ROOT.parent / "shared" / "data")) / "wikipedia_dumps"
DUMP = DATA / "enwiki-2016-shortened.xml.bz2"


@pytest.mark.skipif(not DUMP.exists(), reason="FOOTNOTE_DATA can name the folder of data sets")
def test_nine_of_ten_stand_in_a_passage_of_their_page():
    """In a table's passages or in prose."""
    pages = {item.key: item.load() for item in WikipediaDump(DUMP, processes=1).documents()}
    texts = {page.title: [each.text for each in split_page("w", key, page)] for key, page in pages.items()}
    facts = read_facts(FACTS)
    standing = [fact for fact in facts if any(has_fact(text, fact) for text in texts[fact.title])]

    assert len(facts) == 40
    assert len(standing) >= 36
