"""Books, feeds, notebooks, and data in JSON, YAML and TOML."""

import json
from datetime import UTC, datetime

import pytest

from ingest.readers import notebook, office, structured_data, web_page
from ingest.readers.parsed_document import Heading
from ingest.types import Block, UnreadableDocument
from storage.types import PassageKind
from tests.ingest import files


def test_book_is_read_by_chapters():
    chapters = ["<h1>One</h1><p>First.</p>", "<h1>Two</h1><p>Second.</p>"]

    reading = office.read_epub(files.epub(chapters, title="The book", modified="2024-05-06T07:08:09Z"))

    assert reading.items == (Heading(1, "One"), Block("First."), Heading(1, "Two"), Block("Second."))
    assert (reading.title, reading.language) == ("The book", "en")
    assert reading.date == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


def test_each_feed_entry_becomes_a_section():
    content = b"""<rss xmlns:c="urn:c"><channel><title>News</title><item><title>New office</title>
    <pubDate>Mon, 06 May 2024 07:08:09 GMT</pubDate><description>Short.</description>
    <c:encoded>&lt;p&gt;We open in Graz &amp;amp; Linz.&lt;/p&gt;</c:encoded></item></channel></rss>"""

    reading = web_page.read_feed(content)

    assert reading.title == "News"
    assert reading.items == (
        Heading(2, "New office"), Block("Published: 2024-05-06"), Block("We open in Graz & Linz."),
    )  # fmt: skip


def test_other_xml_becomes_facts_and_paragraphs():
    content = b"<staff><one><name>Ann</name><city>Graz</city></one><note>See <b>the</b> list.</note></staff>"

    assert web_page.read_feed(content).items == (
        Block("name: Ann; city: Graz", PassageKind.TABLE),
        Block("See the list."),
    )


def test_xml_entities_are_not_resolved(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    content = f'<!DOCTYPE a [<!ENTITY e SYSTEM "file://{secret}">]><a><b>Text &e;</b></a>'.encode()

    assert "hidden" not in str(web_page.read_feed(content))


def test_notebook_becomes_prose_and_code():
    cells = [
        {"cell_type": "markdown", "source": ["# Report\n", "Some *text*."]},
        {"cell_type": "code", "source": "print(1)\n", "outputs": [{"text": "1"}]},
    ]

    reading = notebook.read_notebook(json.dumps({"cells": cells, "metadata": {}}))

    assert reading.items == (Heading(1, "Report"), Block("Some text."), Block("print(1)", PassageKind.CODE))


def test_json_objects_become_rows_and_sections():
    data = {"name": "Ann", "tags": ["a", "b"], "office": {"city": "Graz"}, "bio": "long " * 60}

    assert structured_data.read_json(json.dumps(data)).items == (
        Block("name: Ann; tags: a, b", PassageKind.TABLE),
        Heading(2, "office"),
        Block("city: Graz", PassageKind.TABLE),
        Heading(2, "bio"),
        Block(("long " * 60).strip()),
    )


def test_json_lines_yaml_and_toml_agree():
    row = Block("name: Ann; open: yes", PassageKind.TABLE)

    assert structured_data.read_json('{"name": "Ann", "open": true}\n{"name": "Ann", "open": true}').items == (row, row)
    assert structured_data.read_yaml("name: Ann\nopen: true\n").items == (row,)
    assert structured_data.read_toml('name = "Ann"\nopen = true\n').items == (row,)


@pytest.mark.parametrize(
    ("read", "text", "reason"),
    [
        (structured_data.read_json, '{"a": 1,\n}', "line [12]"),
        (structured_data.read_yaml, "a: 1\nb: [", "YAML"),
        (structured_data.read_toml, "a = ", "TOML"),
        (structured_data.read_yaml, "a: &a [*a]", "too large"),
        (
            structured_data.read_yaml,
            "x0: &x0 [1, 2]\n" + "".join(f"x{n}: &x{n} [*x{n - 1}, *x{n - 1}]\n" for n in range(1, 60)),
            "too large",
        ),
    ],
)
def test_invalid_data_has_a_reason(read, text, reason):
    with pytest.raises(UnreadableDocument, match=reason):
        read(text)
