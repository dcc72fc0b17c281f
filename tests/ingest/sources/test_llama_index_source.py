"""Sources that use readers of LlamaIndex: documents, failures, and a real reader."""

import importlib.util
import json
from datetime import UTC, datetime

import pytest

from ingest.sources.filters import SelectionRules
from ingest.sources.llama_index_source import LlamaIndexSource, LlamaReader
from ingest.types import ChangedDocument, SourceUnavailable, Unreadable, UnreadableDocument
from tests.ingest.sources import readers

HERE = "tests.ingest.sources.readers"


def given(*documents, rules=None, now=lambda: datetime.now(UTC), **load):
    return LlamaIndexSource(LlamaReader(f"{HERE}:Given", {"documents": list(documents)}, load), rules, now=now)


def keys(llama_source):
    return [item.key for item in llama_source.documents()]


def test_document_is_read_with_metadata():
    metadata = {"Title": "On call", "URL": "https://x.org/a/", "last_modified": "2026-03-04", "other": [1]}
    [document] = given({"text": "# Heading\n\nText.", "metadata": metadata}).documents()

    page = document.load()

    assert document.key == "https://x.org/a"
    assert (page.title, page.url) == ("On call", "https://x.org/a/")
    assert page.date == datetime(2026, 3, 4, tzinfo=UTC)
    assert [block.text for section in page.sections for block in section.blocks] == ["Text."]


def test_keys_are_stable():
    documents = [
        {"text": "A.", "id_": "page-7"},
        {"text": "B.", "metadata": {"file_path": "/x/b.md"}},
        {"text": "C.", "metadata": {"page_id": 12}},
        {"text": "D."},
    ]

    first, again = keys(given(*documents)), keys(given(*documents))

    assert first == again
    assert first[:3] == ["page-7", "/x/b.md", "12"]
    assert first[3].startswith("text:")
    assert given({"text": "A", "id_": "x"}).documents().items.__next__().fingerprint != (
        given({"text": "B", "id_": "x"}).documents().items.__next__().fingerprint
    )


def test_consecutive_parts_are_one_document():
    pages = [{"text": f"Page {n}.", "metadata": {"file_name": "a.pdf", "page_label": n}} for n in (1, 2)]
    other = {"text": "Other.", "metadata": {"file_name": "b.pdf"}}

    documents = list(given(*pages, other, pages[0]).documents())

    assert [item.key for item in documents] == ["a.pdf", "b.pdf", "a.pdf (2)"]
    assert [block.text for section in documents[0].load().sections for block in section.blocks] == [
        "Page 1.",
        "Page 2.",
    ]
    assert documents[0].load().title == "A"


def test_html_texts_are_parsed_as_html():
    [document] = given({"text": "<!DOCTYPE html><html><body><h1>T</h1><p>Text.</p></body></html>"}).documents()

    assert document.load().title == "T"


def test_invalid_documents_are_unreadable():
    first, second = given("just a text", {"text": " ", "id_": "blank"}).documents()

    assert isinstance(first, Unreadable)
    with pytest.raises(UnreadableDocument, match="empty"):
        second.load()


def test_selection_rules_select_documents_by_name_and_date():
    dated = [{"text": "A.", "id_": f"{n}.md", "metadata": {"updated": f"2026-03-0{n}"}} for n in (1, 2)]
    rules = SelectionRules(include=("*.md",), exclude=("3.md",), newest_days=1)
    llama_source = given(*dated, {"text": "B.", "id_": "3.md"}, {"text": "C.", "id_": "x"}, rules=rules,
                  now=lambda: datetime(2026, 3, 2, 12, tzinfo=UTC))  # fmt: skip

    assert keys(llama_source) == ["2.md"]


def test_lazy_reader_reads_at_most_one_document_ahead():
    readers.asked.clear()
    items = LlamaIndexSource(LlamaReader(f"{HERE}:Lazy", {"count": 5})).documents().items

    next(items)

    assert len(readers.asked) <= 2
    assert len(list(items)) == 4


def test_reader_without_lazy_loading_loads_all_documents_at_once():
    assert keys(LlamaIndexSource(LlamaReader(f"{HERE}:LateLazy"))) == ["one"]
    assert keys(given({"text": "A.", "id_": "a"}, {"text": "B.", "id_": "b"}, only="A.")) == ["a"]


def test_reader_prints_go_to_stderr(capsys):
    keys(given({"text": "A."}))

    printed = capsys.readouterr()

    assert (printed.out, printed.err) == ("", "Loading ...\n")


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("tests.nowhere:Reader", {}, "There is no reader tests.nowhere:Reader: ModuleNotFoundError"),
        (f"{HERE}:Reader", {}, f"{HERE} has no reader Reader"),
        (f"{HERE}:Nothing", {}, "returned None"),
        (f"{HERE}:Exits", {}, "SystemExit: no credentials"),
        (f"{HERE}:Unfit", {"api_key": "s3cret"}, "ValueError: the key … is wrong"),
        (f"{HERE}:Lazy", {}, "missing 1 required positional argument: 'count'"),
    ],
)
def test_failing_reader_is_reported_without_secrets(path, options, message):
    with pytest.raises(SourceUnavailable) as error:
        keys(LlamaIndexSource(LlamaReader(path, options)))

    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.hint
    assert "s3cret" not in f"{error.value}{error.value.__cause__}"


def test_documents_before_a_failure_are_listed():
    reader = LlamaReader(f"{HERE}:Lazy", {"count": 3, "fails_after": 2, "token": "abc"}, secrets=("abc",))
    items = LlamaIndexSource(reader).documents().items

    assert next(items).key == "https://x.org/0"
    with pytest.raises(SourceUnavailable, match="token=… refused"):
        list(items)


def test_reading_one_document_by_key_is_refused():
    llama_source = LlamaIndexSource(LlamaReader(f"{HERE}:Lazy", {"count": 3}))

    with pytest.raises(SourceUnavailable, match="single document"):
        llama_source.one("x", {})


def test_stop_ends_reading():
    llama_source = LlamaIndexSource(LlamaReader(f"{HERE}:Lazy", {"count": 3}))
    items = llama_source.documents().items
    next(items)

    llama_source.stop()

    with pytest.raises(SourceUnavailable, match="was stopped"):
        list(items)


@pytest.mark.skipif(importlib.util.find_spec("llama_index") is None, reason="LlamaIndex is not installed")
def test_real_llama_index_reader_works(tmp_path):
    (tmp_path / "a.md").write_text("# Rota\n\nText.")
    (tmp_path / "b.json").write_text(json.dumps({"name": "value"}))

    reader = LlamaReader("llama_index.core:SimpleDirectoryReader", {"input_dir": str(tmp_path)})
    documents = list(LlamaIndexSource(reader).documents())

    assert [item.key for item in documents] == [str(tmp_path / name) for name in ("a.md", "b.json")]
    assert all(isinstance(item, ChangedDocument) for item in documents)
    assert documents[0].load().title == "Rota"
