"""OpenDocument texts, presentations and sheets."""

import pytest

from ingest.readers import open_document
from ingest.readers.parsed_document import Heading
from ingest.types import Block, UnreadableDocument
from storage.types import PassageKind
from tests.ingest.files import zipped

NAMES = " ".join(
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for short, name in (
        *((name, name) for name in ("office", "text", "table", "presentation", "style")),
        ("draw", "drawing"),
        ("svg", "svg-compatible"),
    )
)


def make_document(kind, body, styles="", **parts):
    content = (
        f'<office:document-content {NAMES} xmlns:xlink="http://www.w3.org/1999/xlink">'
        f"<office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    return zipped({"content.xml": content, **parts})


def cells(*texts, tag="table-cell"):
    return "".join(f"<table:{tag}><text:p>{text}</text:p></table:{tag}>" for text in texts)


def rows(*lines):
    return "".join(f"<table:table-row>{line}</table:table-row>" for line in lines)


def test_text_becomes_headings_lists_and_tables():
    lists = (
        '<text:list text:style-name="N"><text:list-item><text:p>One</text:p><text:list><text:list-item>'
        "<text:p>Inner</text:p></text:list-item></text:list></text:list-item></text:list>"
    )
    numbered = '<text:list-style style:name="N"><text:list-level-style-number text:level="1"/></text:list-style>'
    body = (
        "<text:tracked-changes>gone</text:tracked-changes><text:table-of-content>Rules 3</text:table-of-content>"
        '<text:h text:outline-level="1">Leave</text:h>'
        "<text:p>Thirty<text:s text:c='2'/>days,<text:line-break/><text:span>paid</text:span>"
        "<office:annotation><text:p>remark</text:p></office:annotation>"
        "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>In full.</text:p>"
        f"</text:note-body></text:note>.</text:p>{lists}"
        f"<table:table><table:table-header-rows>{rows(cells('City', 'Days'))}</table:table-header-rows>"
        f"{rows(cells('Graz', '30'))}</table:table>"
    )
    meta = (
        f'<office:document-meta {NAMES} xmlns:dc="http://purl.org/dc/elements/1.1/"><office:meta>'
        "<dc:title>Old</dc:title><dc:date>2024-05-06T07:08:09</dc:date></office:meta></office:document-meta>"
    )

    read = open_document.read_text_document(make_document("text", body, numbered, **{"meta.xml": meta}))

    assert read.items == (
        Heading(1, "Leave"),
        Block("Thirty days,\npaid."),
        Block("1. One\n  - Inner"),
        Block("City: Graz; Days: 30", PassageKind.TABLE),
        Block("1. In full."),
    )
    assert (read.fallback_title, f"{read.date:%Y-%m-%d}") == ("Old", "2024-05-06")


def test_each_slide_becomes_a_section():
    frame = '<draw:frame svg:y="{}cm" presentation:class="{}"><draw:text-box>{}</draw:text-box></draw:frame>'
    number = frame.format(9, "page-number", "<text:p><text:page-number>1</text:page-number></text:p>")
    notes = (
        f"<presentation:notes>{number}{frame.format(1, 'notes', '<text:p>Mention it.</text:p>')}</presentation:notes>"
    )
    body = (
        f"<draw:page>{frame.format(9, 'outline', '<text:p>Below</text:p>')}"
        f"<draw:g>{frame.format(5, 'outline', '<text:p>Above</text:p>')}</draw:g>"
        f"{frame.format(1, 'title', '<text:p>Plans</text:p>')}{notes}</draw:page>"
    )

    assert open_document.read_presentation(make_document("presentation", body)).items == (
        Heading(2, "Plans"),
        Block("Above"),
        Block("Below"),
        Block("Notes: Mention it."),
    )


def test_visible_sheets_become_rows():
    values = (
        '<table:table-cell office:value-type="date" office:date-value="2019-03-01"><text:p>3/1/19</text:p>'
        '</table:table-cell><table:table-cell office:value-type="float" office:value="1200" '
        'table:number-columns-repeated="2"><text:p>1,200.00</text:p></table:table-cell>'
    )
    blank = '<table:table-row table:number-rows-repeated="1048570"><table:table-cell/></table:table-row>'
    hidden = (
        '<style:style style:name="H" style:family="table"><style:table-properties table:display="false"/></style:style>'
    )
    body = (
        f'<table:table table:name="Offices">{rows(cells("Opened", "Share", "Visits"), values)}{blank}</table:table>'
        f'<table:table table:name="Secret" table:style-name="H">{rows(cells("a", "b"))}</table:table>'
    )

    assert open_document.read_ods(make_document("spreadsheet", body, hidden)).items == (
        Heading(2, "Offices"),
        Block("Opened: 2019-03-01; Share: 1200; Visits: 1200", PassageKind.TABLE),
    )


def test_protected_file_is_refused():
    manifest = {"META-INF/manifest.xml": "<manifest><encryption-data/></manifest>"}

    with pytest.raises(UnreadableDocument, match="password"):
        open_document.read_text_document(make_document("text", "", **manifest))
