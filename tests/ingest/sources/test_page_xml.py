"""Exports are split into pages. A broken page does not affect others, and memory stays bounded."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.sources.dumps.dump_file import DumpTruncated
from ingest.sources.dumps.page_xml import XmlExport, parse_head, parse_text
from tests.ingest.sources.dumps import END, HEADER, dump, page


def pages(xml, size=50):
    return list(XmlExport(xml[at : at + size] for at in range(0, len(xml), size)).pages())


@given(st.integers(1, 400))
def test_pages_do_not_depend_on_block_size(size):
    xml = dump(page(1, "Ada", "One."), page(2, "Bob", "Two."))

    parsed = pages(xml, size)

    assert [parse_text(each.xml).wikitext for each in parsed] == ["One.", "Two."]
    assert [xml[each.byte :].startswith(each.xml) for each in parsed] == [True, True]
    assert [each.line for each in parsed] == [xml[: each.byte].count(b"\n") + 1 for each in parsed]


def test_header_is_parsed():
    site = XmlExport([dump()]).site

    assert (site.name, site.language, site.origin) == ("enwiki", "en", "https://en.wikipedia.org")
    assert site.namespaces[6] == ("file",)
    assert site.hidden == {"file", "category"}


def test_export_without_header_is_read():
    export = XmlExport([page(1, "Ada", "One.").encode(), END.encode()])

    assert export.site.origin == ""
    assert len(list(export.pages())) == 1


def test_last_revision_of_a_full_history_is_read():
    revisions = "".join(
        f"<revision><id>{year}</id><timestamp>{year}-01-01T00:00:00Z</timestamp><text>In {year}.</text></revision>"
        for year in (2001, 2005, 2003)
    )
    xml = f"<page><title>Ada</title><ns>0</ns><id>1</id>{revisions}</page>"

    (parsed,) = pages((HEADER + xml + END).encode())

    assert parse_text(parsed.xml).wikitext == "In 2005."
    assert parse_head(parsed.xml, XmlExport([dump()]).site).revision == "2005"


def test_long_history_is_read_within_bounded_memory():
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
    parsed = list(XmlExport(blocks()).pages())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert [parse_head(each.xml, XmlExport([dump()]).site).revision for each in parsed] == ["599", "200"]
    assert parsed[1].line == 605
    assert peak < 40_000_000


def test_page_without_end_loses_only_itself():
    broken = page(2, "Bob", "Two.").replace("</page>", "")

    parsed = pages(dump(page(1, "Ada", "One."), broken, page(3, "Cy", "Three.")))

    assert [parse_text(each.xml).wikitext for each in parsed] == ["One.", "", "Three."]
    assert "its XML is broken" in parse_text(parsed[1].xml).reason


@pytest.mark.parametrize("cut", [0.5, 0.9])
def test_export_truncated_in_a_page_yields_the_pages_before(cut):
    second = page(2, "Bob", "Two. " * 50)
    xml = dump(page(1, "Ada", "One."))[: -len(END)] + second[: int(len(second) * cut)].encode()
    parsed = []

    with pytest.raises(DumpTruncated, match=r"within the page “Bob” \(line 7, byte [\d,]+ of the XML\)"):
        parsed.extend(XmlExport([xml]).pages())
    assert len(parsed) == 1


def test_export_truncated_between_pages_is_detected():
    with pytest.raises(DumpTruncated, match="ends without </mediawiki>"):
        pages(dump(page(1, "Ada", "One."), end=""))


def vast(end):
    """Yield an export of three pages; the second has seventy megabytes and ends with `end`."""
    yield HEADER.encode() + page(1, "Ada", "One.").encode()
    yield b"<page><title>Vast</title><ns>0</ns><id>7</id><revision><id>9</id><text>"
    yield from (b"word " * 200_000 for _ in range(70))
    yield end + page(2, "Bob", "Two.").encode() + END.encode()


@pytest.mark.parametrize("end", [b"</text></revision></page>", b""])
def test_oversized_page_loses_only_itself(end):
    parsed = list(XmlExport(vast(end)).pages())

    assert [parse_text(each.xml).wikitext for each in parsed] == ["One.", "", "Two."]
    assert "longer than any" in parse_text(parsed[1].xml).reason
    assert parse_head(parsed[1].xml, XmlExport([dump()]).site).key == "7"
    assert len(parsed[1].xml) < 1_000


def test_export_truncated_in_an_oversized_page_is_reported():
    blocks = [*vast(b"")][:-1]

    with pytest.raises(DumpTruncated, match=r"the page “Vast” .* does not end"):
        list(XmlExport(blocks).pages())
