"""A dump as a source: articles with aliases, unchanged and unreadable ones."""

import bz2

import pytest

from ingest.sources.dumps.dump_file import DumpError
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.types import ChangedDocument, Unreadable, UnreadableDocument
from tests.ingest.engines.pickling import PicklingEngine
from tests.ingest.sources.dumps import HEADER, dump, pack_streams, page

PAGES = (
    page(1, "Ada", "'''Ada''' was a [[mathematician]]."),
    page(2, "Countess", "#REDIRECT [[ada]]", redirect="ada"),
    page(3, "Talk:Ada", "Who?", ns=1),
    page(4, "Bob", "Bob is a name.\n{{disambiguation}}"),
    page(5, "Robert", "#REDIRECT [[Bob]]", redirect="Bob"),
)


def written(tmp_path, content, name="dump.xml"):
    path = tmp_path / name
    path.write_bytes(content)
    return WikipediaDump(path)


def loaded(items):
    items = list(items)
    pages = {item.key: item.load() for item in items if not isinstance(item, Unreadable)}
    return pages, [(item.key, item.reason) for item in items if isinstance(item, Unreadable)]


def test_articles_have_aliases_and_metadata(tmp_path):
    source = written(tmp_path, dump(*PAGES))
    pages, failures = loaded(source.documents())

    assert (list(pages), failures) == (["1", "4"], [])
    ada = pages["1"]
    assert (ada.title, ada.aliases, ada.language, ada.revision) == ("Ada", ("Countess",), "en", "100")
    assert ada.url == "https://en.wikipedia.org/w/index.php?title=Ada&oldid=100"
    assert ada.date.isoformat() == "2016-04-22T10:19:33+00:00"
    assert ada.sections[0].blocks[0].text == "Ada was a mathematician."
    assert [pages[key].disambiguation for key in pages] == [False, True]


def test_expected_count_is_available_before_parsing(tmp_path):
    source = written(tmp_path, dump(*PAGES))

    assert (source.expected(), source.expected()) == (2, 2)
    assert len(list(source.documents())) == 2
    assert len(list(source.documents())) == 2


def test_known_articles_are_not_parsed(tmp_path):
    first = {item.key: item.fingerprint for item in written(tmp_path, dump(*PAGES)).documents()}
    changed = dump(PAGES[0].replace("<id>100</id>", "<id>101</id>"), *PAGES[1:])
    items = {item.key: item for item in written(tmp_path, changed).documents(first)}

    assert items["1"].fingerprint != first["1"]
    assert items["1"].load().revision == "101"
    assert items["4"].fingerprint == first["4"]
    with pytest.raises(UnreadableDocument):
        items["4"].load()


def test_new_redirect_changes_its_target(tmp_path):
    first = {item.key: item.fingerprint for item in written(tmp_path, dump(*PAGES)).documents()}
    more = dump(*PAGES, page(6, "Lady Ada", "#REDIRECT [[Ada]]", redirect="Ada"))
    second = {item.key: item for item in written(tmp_path, more).documents(first)}

    assert second["1"].load().aliases == ("Countess", "Lady Ada")
    assert second["4"].fingerprint == first["4"]


@pytest.mark.parametrize("processes", [1, 2])
def test_order_does_not_depend_on_process_count(tmp_path, processes):
    pages = [page(number, f"Page {number}", f"Text {number}. " * 400) for number in range(1, 300)]
    path = tmp_path / "dump.xml"
    path.write_bytes(dump(*pages))
    items = list(WikipediaDump(path, processes=processes).documents())

    assert [item.key for item in items] == [str(number) for number in range(1, 300)]
    assert items[41].load().sections[0].blocks[0].text.startswith("Text 42. Text 42.")


def test_abandoned_listing_leaves_no_processes(tmp_path):
    path = tmp_path / "dump.xml"
    path.write_bytes(dump(*(page(number, f"Page {number}", f"Text {number}. " * 400) for number in range(1, 1000))))
    items = WikipediaDump(path, processes=2).documents().items
    next(items)
    items.close()

    assert list(items) == []


def multistream(tmp_path, *, index=True):
    """Write a multistream dump of two streams of articles, and its index."""
    content, lines, _ = pack_streams(PAGES[:2], PAGES[2:])
    path = tmp_path / "enwiki-x-pages-articles-multistream.xml.bz2"
    path.write_bytes(content)
    if index:
        path.with_name("enwiki-x-pages-articles-multistream-index.txt").write_text(lines)
    return path


@pytest.mark.parametrize("index", [True, False])
def test_multistream_dump_reads_the_same_without_index(tmp_path, index):
    source = WikipediaDump(multistream(tmp_path, index=index))
    pages, failures = loaded(source.documents())

    assert source.expected() == 2
    assert failures == []
    assert [(page.title, page.aliases) for page in pages.values()] == [("Ada", ("Countess",)), ("Bob", ("Robert",))]


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("corpus", ["", "wiki"])
def test_remote_processes_read_the_same(tmp_path, index, corpus):
    path, engine = multistream(tmp_path, index=index), PicklingEngine(lacks=tmp_path)
    plain, far = WikipediaDump(path), WikipediaDump(path, engine=engine)
    plain.pack_for(corpus)
    far.pack_for(corpus)

    listings = [[(item, corpus or item.load()) for item in source.documents()] for source in (plain, far)]

    assert repr(listings[1]) == repr(listings[0])
    assert engine.sent


def test_known_multistream_articles_are_not_parsed(tmp_path):
    source = WikipediaDump(multistream(tmp_path))
    known = {item.key: item.fingerprint for item in source.documents()}
    items = {item.key: item for item in source.documents(known | {"1": "99-old-0"})}

    assert items["1"].load().title == "Ada"
    assert items["4"].fingerprint == known["4"]
    with pytest.raises(UnreadableDocument):
        items["4"].load()


def test_damaged_stream_is_reported_and_others_are_read(tmp_path):
    path = multistream(tmp_path)
    content = bytearray(path.read_bytes())
    content[len(bz2.compress(HEADER.encode())) + 30] ^= 0xFF
    path.write_bytes(content)
    pages, failures = loaded(WikipediaDump(path).documents())

    assert [page.title for page in pages.values()] == ["Bob"]
    assert [key for key, _ in failures] == [path.name]
    assert "damaged or missing" in failures[0][1]


@pytest.mark.parametrize(
    ("first", "cut", "keys"),
    [
        (PAGES[0], b"Bob is a", ["1", "dump.xml", "4"]),
        (page(1, "Ada", "#REDIRECT [[Bob]]", redirect="Bob"), b"Bob is a", ["dump.xml", "4"]),
        (PAGES[0], b"<title>Robert", ["1", "4", "dump.xml"]),
    ],
    ids=["in a page", "an article became a redirect", "before a redirect"],
)
def test_truncated_dump_keeps_known_articles_and_aliases(tmp_path, first, cut, keys):
    known = {item.key: item.fingerprint for item in written(tmp_path, dump(*PAGES)).documents()}
    content = dump(first, *PAGES[1:])
    items = {item.key: item for item in written(tmp_path, content[: content.index(cut)]).documents(known)}

    assert sorted(items) == sorted(keys)
    assert "Download the dump again" in items.pop("dump.xml").reason
    assert all(item.fingerprint == known[key] for key, item in items.items())


def test_damaged_stream_keeps_targets_of_its_redirects(tmp_path):
    path = tmp_path / "enwiki-multistream.xml.bz2"
    whole, lines, starts = pack_streams(PAGES[:1], [PAGES[1], PAGES[3]])
    path.write_bytes(whole)
    path.with_name("enwiki-multistream-index.txt").write_text(lines)
    known = {item.key: item.fingerprint for item in WikipediaDump(path).documents()}
    content = bytearray(whole)
    content[starts[1] + 30] ^= 0xFF
    path.write_bytes(content)
    items = list(WikipediaDump(path).documents(known))

    assert [item.key for item in items if isinstance(item, Unreadable)] == [path.name]
    assert {item.key: item.fingerprint for item in items if isinstance(item, ChangedDocument)} == known


def test_repeated_page_is_read_once_and_reported(tmp_path):
    pages, failures = loaded(written(tmp_path, dump(*PAGES, *PAGES)).documents())

    assert list(pages) == ["1", "4"]
    assert failures == [
        ("dump.xml (repeated pages)", "2 pages appear in the dump more than once: only the first of each was read")
    ]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (page(9, "", "x").replace("<title></title>", ""), "the page has no title (line 3, byte"),
        (page(9, "Cy", "x").replace("text", "texts"), "“Cy”: it has no <text> element (line 3, byte"),
        (page(9, "Cy", ""), "“Cy”: its text is empty (line 3, byte"),
        (page(9, "Cy", "a & b"), "“Cy”: its XML is broken"),
        (page(9, "Cy", "== Notes ==\n{{stub}}"), "“Cy”: it contains no text except headings, templates and links"),
    ],
)
def test_unreadable_page_is_reported_with_its_position(tmp_path, bad, reason):
    pages, failures = loaded(written(tmp_path, dump(bad, PAGES[0])).documents())

    assert list(pages) == ["1"]
    assert [key for key, _ in failures] == ["9"]
    assert failures[0][1].startswith(reason)


def test_invalid_dump_is_reported_immediately(tmp_path):
    with pytest.raises(DumpError):
        WikipediaDump(tmp_path / "none.xml").documents()
    with pytest.raises(DumpError):
        written(tmp_path, b"{}").expected()


@pytest.mark.parametrize("indexed", [False, True])
def test_several_files_form_one_dump(tmp_path, indexed):
    paths = []
    for number, pages in enumerate((PAGES[:1], PAGES[1:4], PAGES[4:]), 1):
        content, lines, _ = pack_streams(pages)
        name = f"enwiki-20260101-pages-articles-multistream{number}.xml-p{number}p{number}.bz2"
        paths.append(tmp_path / name)
        paths[-1].write_bytes(content)
        if indexed:
            index = name.replace("multistream", "multistream-index").replace(".xml", ".txt")
            (tmp_path / index).write_bytes(bz2.compress(lines.encode()))
    source = WikipediaDump(*paths)

    pages, failures = loaded(source.documents())
    assert (list(pages), failures, source.expected()) == (["1", "4"], [], 2)
    assert (pages["1"].aliases, pages["4"].aliases) == (("Countess",), ("Robert",))


@pytest.mark.parametrize("index", [True, False])
def test_unchanged_dump_is_not_unpacked_again(tmp_path, index):
    path, survey_path = multistream(tmp_path, index=index), tmp_path / "home" / "survey"
    known = {item.key: item.fingerprint for item in WikipediaDump(path, survey=survey_path).documents()}
    source = WikipediaDump(path, survey=survey_path)

    assert source.expected() == 2
    path.write_bytes(bz2.compress(HEADER.encode()).ljust(path.stat().st_size, b"\0"))
    assert {item.key: item.fingerprint for item in source.documents(known)} == known


def test_only_changed_streams_are_read(tmp_path):
    path, survey_path = multistream(tmp_path), tmp_path / "survey"
    known = {item.key: item.fingerprint for item in WikipediaDump(path, survey=survey_path).documents()}
    more = page(6, "The Countess", "#REDIRECT [[Ada]]", redirect="Ada")
    path.write_bytes(pack_streams(PAGES[:2], [*PAGES[2:], more])[0])
    items = {item.key: item for item in WikipediaDump(path, survey=survey_path).documents(known)}

    assert items["1"].load().aliases == ("Countess", "The Countess")
    assert items["4"].fingerprint == known["4"]


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0" + b"x" * 4096])
def test_damaged_survey_is_rebuilt(tmp_path, content):
    path, survey_path = multistream(tmp_path), tmp_path / "survey"
    survey_path.write_bytes(content)

    assert WikipediaDump(path, survey=survey_path).expected() == 2


def test_survey_damaged_while_reading_is_deleted(tmp_path):
    path, survey_path = multistream(tmp_path), tmp_path / "survey"
    known = {item.key: item.fingerprint for item in WikipediaDump(path, survey=survey_path).documents()}
    content = bytearray(survey_path.read_bytes())
    content[4096:] = b"x" * len(content[4096:])
    survey_path.write_bytes(content)

    with pytest.raises(DumpError, match="is damaged"):
        list(WikipediaDump(path, survey=survey_path).documents(known))
    assert {item.key: item.fingerprint for item in WikipediaDump(path, survey=survey_path).documents()} == known


def test_unwritable_survey_is_tolerated(tmp_path):
    path = multistream(tmp_path)

    assert WikipediaDump(path, survey=path / "survey").expected() == 2
