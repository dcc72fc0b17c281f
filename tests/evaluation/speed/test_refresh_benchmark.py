"""Half-indexed documents are detected, and dumps are changed as described."""

from dataclasses import replace
from random import Random

from evaluation.speed.refresh_benchmark import (
    SECTIONS,
    build_station_page,
    build_versions,
    change_dump,
    find_search_faults,
    find_turn_faults,
)
from ingest.chunking import split_page
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from storage.types import Citation, Document, Hit
from tests.ingest.sources.dumps import dump
from tests.ingest.sources.dumps import page as article


def hits(number, version):
    """Return what a search finds in one version of a document."""
    made = build_station_page(number, version)
    document = Document("stations", f"{number}", made.title, revision=made.revision)
    return [Hit(passage, document, 1.0) for passage in split_page("stations", f"{number}", made)]


def citation(hit):
    """Cite a hit."""
    one, of = hit.passage, hit.document
    names = (1, one.corpus, one.document, of.title, one.section, of.url, of.revision)
    return Citation(*names, None, one.text, one.id, one.text, one.hash)


def test_every_passage_of_a_station_changes_with_its_version():
    old, new = hits(7, 1), hits(7, 2)

    assert len(old) == len(new) == SECTIONS
    assert not {hit.passage.id for hit in old} & {hit.passage.id for hit in new}
    assert [found.fingerprint for found in build_versions(2, 5).documents({})] == ["5", "5"]


def test_mixed_versions_or_missing_passages_of_a_station_are_reported():
    old, new = hits(7, 1), hits(7, 2)
    misled = [replace(hit, document=new[0].document) for hit in old]

    assert [*find_search_faults(7, [*old, *hits(8, 2)])] == []
    assert "versions ['1', '2']" in next(find_search_faults(7, [*old[:2], new[2]]))
    assert "versions ['1', '2']" in next(find_search_faults(7, misled))
    assert [*find_search_faults(7, old[:2])] == ["2 of 3 passages of station 7"]
    assert [*find_turn_faults(map(citation, old))] == []
    assert [*find_turn_faults(map(citation, [old[0], new[1]]))] == ["station 7 cited in versions ['1', '2']"]


def test_changed_dump_has_only_edited_removed_renamed_and_added_pages(tmp_path):
    texts = [article(number, f"Page {number}", f"It is about {number}.") for number in range(1, 21)]
    before, after = tmp_path / "before.xml", tmp_path / "after.xml"
    before.write_bytes(dump(*texts))

    changed = change_dump(before, after, 0.2, Random(1))

    old, new = ({document.key: document for document in WikipediaDump(path).documents()} for path in (before, after))
    both = old.keys() & new.keys()
    assert (changed, len(new), len(old.keys() - new.keys()), len(new.keys() - old.keys())) == (4, 20, 1, 1)
    assert sum(old[key].fingerprint != new[key].fingerprint for key in both) == 2
    assert sum(old[key].load().title != new[key].load().title for key in both) == 1
