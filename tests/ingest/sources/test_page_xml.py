"""Exports are cut into pages; one that is broken costs itself alone, and memory stays small."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.sources.dumps.dump_file import DumpTruncated
from ingest.sources.dumps.page_xml import XmlExport, parse_head, parse_text
from tests.ingest.sources.dumps import END, HEADER, dump, page


def pages(xml, size=50):
    """Read an export that comes in blocks of so many bytes."""
    return list(XmlExport(xml[at : at + size] for at in range(0, len(xml), size)).pages())


@given(st.integers(1, 400))
def test_pages_are_whole_whatever_the_blocks(size):
    """And know their place."""
    xml = dump(page(1, "Ada", "One."), page(2, "Bob", "Two."))

    found = pages(xml, size)

    assert [parse_text(each.xml).wikitext for each in found] == ["One.", "Two."]
    assert [xml[each.byte :].startswith(each.xml) for each in found] == [True, True]
    assert [each.line for each in found] == [xml[: each.byte].count(b"\n") + 1 for each in found]


def test_the_header_is_read():
    """Wiki, language, address and namespaces."""
    site = XmlExport([dump()]).site

    assert (site.name, site.language, site.origin) == ("enwiki", "en", "https://en.wikipedia.org")
    assert site.namespaces[6] == ("file",)
    assert site.hidden == {"file", "category"}


def test_an_export_without_a_header_is_read():
    """Some tools write pages alone."""
    export = XmlExport([page(1, "Ada", "One.").encode(), END.encode()])

    assert export.site.origin == ""
    assert len(list(export.pages())) == 1


def test_of_a_full_history_the_last_revision_is_taken():
    """By its date, wherever it stands."""
    revisions = "".join(
        f"<revision><id>{year}</id><timestamp>{year}-01-01T00:00:00Z</timestamp><text>In {year}.</text></revision>"
        for year in (2001, 2005, 2003)
    )
    xml = f"<page><title>Ada</title><ns>0</ns><id>1</id>{revisions}</page>"

    (found,) = pages((HEADER + xml + END).encode())

    assert parse_text(found.xml).wikitext == "In 2005."
    assert parse_head(found.xml, XmlExport([dump()]).site).revision == "2005"


def test_a_history_longer_than_memory_allows_is_read_as_it_comes():
    """Sixty megabytes of revisions in a third of that."""

    def blocks():
        yield (HEADER + "<page><title>Ada</title><ns>0</ns><id>1</id>\n").encode()
        for number in range(600):
            filler = b"x" * 100_000
            yield b"<revision><id>%d</id><timestamp>2001-01-01T%05dZ</timestamp><text>%s</text></revision>\n" % (
                number,
                number,
                filler,
            )
        yield b"</page>\n"
        yield page(2, "Bob", "Two.").encode()
        yield END.encode()

    tracemalloc.start()
    found = list(XmlExport(blocks()).pages())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert [parse_head(each.xml, XmlExport([dump()]).site).revision for each in found] == ["599", "200"]
    assert found[1].line == 605
    assert peak < 40_000_000


def test_a_page_that_lost_its_end_costs_itself_alone():
    """The next one begins within it."""
    broken = page(2, "Bob", "Two.").replace("</page>", "")

    found = pages(dump(page(1, "Ada", "One."), broken, page(3, "Cy", "Three.")))

    assert [parse_text(each.xml).wikitext for each in found] == ["One.", "", "Three."]
    assert "its XML is broken" in parse_text(found[1].xml).reason


@pytest.mark.parametrize("cut", [0.5, 0.9])
def test_an_export_cut_in_a_page_gives_the_pages_before(cut):
    """And says in which page it ends."""
    second = page(2, "Bob", "Two. " * 50)
    xml = dump(page(1, "Ada", "One."))[: -len(END)] + second[: int(len(second) * cut)].encode()
    found = []

    with pytest.raises(DumpTruncated, match=r"within the page “Bob” \(line 7, byte [\d,]+ of the XML\)"):
        found.extend(XmlExport([xml]).pages())
    assert len(found) == 1


def test_an_export_cut_between_pages_is_told_by_its_missing_end():
    """Or half a Wikipedia would pass for the whole."""
    with pytest.raises(DumpTruncated, match="ends without </mediawiki>"):
        pages(dump(page(1, "Ada", "One."), end=""))


def vast(end):
    """Return an export in blocks: a page, one of seventy megabytes, and another; the second ends as it is told to."""
    yield HEADER.encode() + page(1, "Ada", "One.").encode()
    yield b"<page><title>Vast</title><ns>0</ns><id>7</id><revision><id>9</id><text>"
    yield from (b"word " * 200_000 for _ in range(70))
    yield end + page(2, "Bob", "Two.").encode() + END.encode()


@pytest.mark.parametrize("end", [b"</text></revision></page>", b""])
def test_a_page_of_seventy_megabytes_costs_itself_alone(end):
    """It is never held whole, and what comes after it is read, whether it has an end or not."""
    found = list(XmlExport(vast(end)).pages())

    assert [parse_text(each.xml).wikitext for each in found] == ["One.", "", "Two."]
    assert "longer than any" in parse_text(found[1].xml).reason
    assert parse_head(found[1].xml, XmlExport([dump()]).site).key == "7"
    assert len(found[1].xml) < 1_000


def test_a_vast_page_within_which_the_export_ends_is_told():
    """With what it is called."""
    blocks = [*vast(b"")][:-1]

    with pytest.raises(DumpTruncated, match=r"the page “Vast” .* does not end"):
        list(XmlExport(blocks).pages())
