"""Readers of LlamaIndex: what they yield, how they fail, and that one real one fits."""

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
    """Return the source whose reader returns these documents."""
    return LlamaIndexSource(LlamaReader(f"{HERE}:Given", {"documents": list(documents)}, load), rules, now=now)


def keys(there):
    """Return the keys of all documents."""
    return [item.key for item in there.documents()]


def test_a_document_is_read_with_its_metadata():
    """Under the names that readers give to title, address and date."""
    metadata = {"Title": "On call", "URL": "https://x.org/a/", "last_modified": "2026-03-04", "other": [1]}
    [found] = given({"text": "# Heading\n\nText.", "metadata": metadata}).documents()

    page = found.load()

    assert found.key == "https://x.org/a"
    assert (page.title, page.url) == ("On call", "https://x.org/a/")
    assert page.date == datetime(2026, 3, 4, tzinfo=UTC)
    assert [block.text for section in page.sections for block in section.blocks] == ["Text."]


def test_keys_are_the_same_every_time():
    """An identifier that was drawn at random is none."""
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


def test_pages_of_a_file_are_one_document():
    """Those that follow each other under one name; another of that name later is told apart."""
    pages = [{"text": f"Page {n}.", "metadata": {"file_name": "a.pdf", "page_label": n}} for n in (1, 2)]
    other = {"text": "Other.", "metadata": {"file_name": "b.pdf"}}

    found = list(given(*pages, other, pages[0]).documents())

    assert [item.key for item in found] == ["a.pdf", "b.pdf", "a.pdf (2)"]
    assert [block.text for section in found[0].load().sections for block in section.blocks] == ["Page 1.", "Page 2."]
    assert found[0].load().title == "A"


def test_web_pages_are_read_as_such():
    """Their markup is no text."""
    [found] = given({"text": "<!DOCTYPE html><html><body><h1>T</h1><p>Text.</p></body></html>"}).documents()

    assert found.load().title == "T"


def test_what_is_no_document_is_told():
    """As is what holds no text."""
    first, second = given("just a text", {"text": " ", "id_": "blank"}).documents()

    assert isinstance(first, Unreadable)
    with pytest.raises(UnreadableDocument, match="empty"):
        second.load()


def test_rules_hold_for_names_and_dates():
    """Of what the metadata tell."""
    dated = [{"text": "A.", "id_": f"{n}.md", "metadata": {"updated": f"2026-03-0{n}"}} for n in (1, 2)]
    rules = SelectionRules(include=("*.md",), exclude=("3.md",), newest_days=1)
    there = given(*dated, {"text": "B.", "id_": "3.md"}, {"text": "C.", "id_": "x"}, rules=rules,
                  now=lambda: datetime(2026, 3, 2, 12, tzinfo=UTC))  # fmt: skip

    assert keys(there) == ["2.md"]


def test_a_lazy_reader_is_asked_for_one_at_a_time():
    """So that a large one fits."""
    readers.asked.clear()
    items = LlamaIndexSource(LlamaReader(f"{HERE}:Lazy", {"count": 5})).documents().items

    next(items)

    assert len(readers.asked) <= 2
    assert len(list(items)) == 4


def test_one_that_is_lazy_in_name_only_is_asked_for_all():
    """As many are, and as the base class of all is."""
    assert keys(LlamaIndexSource(LlamaReader(f"{HERE}:LateLazy"))) == ["one"]
    assert keys(given({"text": "A.", "id_": "a"}, {"text": "B.", "id_": "b"}, only="A.")) == ["a"]


def test_what_it_prints_is_kept_from_stdout(capsys):
    """A command that prints JSON prints nothing else."""
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
def test_a_reader_that_fails_is_told_in_a_line(path, options, message):
    """Without what may be a secret, in the message or in what it was raised from."""
    with pytest.raises(SourceUnavailable) as told:
        keys(LlamaIndexSource(LlamaReader(path, options)))

    assert message in str(told.value)
    assert "\n" not in str(told.value)
    assert told.value.hint
    assert "s3cret" not in f"{told.value}{told.value.__cause__}"


def test_one_that_fails_half_way_gives_what_it_gave():
    """The refresh keeps that, and removes nothing."""
    reader = LlamaReader(f"{HERE}:Lazy", {"count": 3, "fails_after": 2, "token": "abc"}, secrets=("abc",))
    items = LlamaIndexSource(reader).documents().items

    assert [next(items).key for _ in range(1)] == ["https://x.org/0"]
    with pytest.raises(SourceUnavailable, match="token=… refused"):
        list(items)


def test_no_single_document_can_be_had_and_stopping_ends_it():
    """Whoever asks for one is told what to do."""
    there = LlamaIndexSource(LlamaReader(f"{HERE}:Lazy", {"count": 3}))
    with pytest.raises(SourceUnavailable, match="single document"):
        there.one("x", {})
    items = there.documents().items
    next(items)

    there.stop()

    with pytest.raises(SourceUnavailable, match="was stopped"):
        list(items)


@pytest.mark.skipif(importlib.util.find_spec("llama_index") is None, reason="LlamaIndex is not installed")
def test_a_real_reader(tmp_path):
    """LlamaIndex's own, of a folder."""
    (tmp_path / "a.md").write_text("# Rota\n\nText.")
    (tmp_path / "b.json").write_text(json.dumps({"name": "value"}))

    found = list(
        LlamaIndexSource(
            LlamaReader("llama_index.core:SimpleDirectoryReader", {"input_dir": str(tmp_path)})
        ).documents()
    )

    assert [item.key for item in found] == [str(tmp_path / name) for name in ("a.md", "b.json")]
    assert all(isinstance(item, ChangedDocument) for item in found)
    assert found[0].load().title == "Rota"
