"""Web pages become their main text."""

from datetime import UTC, datetime

import pytest

from ingest.readers import html_tree, web_page
from ingest.readers.parsed_document import Heading
from ingest.types import Block
from storage.types import PassageKind


def texts(markup):
    return [item.text for item in html_tree.read_html(markup)]


def test_surroundings_of_the_main_part_are_removed():
    page = b"""<html lang=en-GB><head><title>Leave | Intranet</title><script>x()</script></head><body>
    <header>Our site</header><nav>Home</nav><div class="sidebar">Links</div>
    <main><h1>Leave</h1><p>Thirty days of leave, as agreed.</p></main><footer>Imprint</footer></body></html>"""

    reading = web_page.read_web_page(page)

    assert reading.items == (Heading(1, "Leave"), Block("Thirty days of leave, as agreed."))
    assert (reading.title, reading.fallback_title, reading.language) == ("Leave", "Leave", "en")


def test_page_without_main_part_is_read_whole():
    assert web_page.read_web_page(b"<p>One</p><div>Two</div>Three").items == (
        Block("One"),
        Block("Two"),
        Block("Three"),
    )


@pytest.mark.parametrize(
    "head",
    [
        '<meta property="article:modified_time" content="2024-05-06T07:08:09Z">',
        '<meta name="last-modified" content="2024-05-06T07:08:09+00:00">',
        '<meta itemprop="dateModified" content="Mon, 06 May 2024 07:08:09 GMT">',
    ],
)
def test_date_is_the_last_change(head):
    reading = web_page.read_web_page(f"<head>{head}</head><p>Text</p>".encode())

    assert reading.date == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.mark.parametrize("encoding", ["utf-8", "windows-1252", "shift_jis"])
def test_declared_encoding_is_used(encoding):
    word = "日本" if encoding == "shift_jis" else "Büro"
    page = f'<html><head><meta charset="{encoding.upper()}"></head><p>{word}</p></html>'.encode(encoding)

    assert web_page.read_web_page(page).items == (Block(word),)


LONG = "A sentence of some length. " * 30


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p hidden>a</p><p style='display: none'>b</p><p aria-hidden=true>c</p><template>d</template><p>e</p>", ["e"]),
        ("<dl><dt>ARR</dt><dd>Annual revenue.</dd><dt>MRR</dt></dl>", ["ARR: Annual revenue.", "MRR"]),
        (
            """<table><tr><th>Team<th>Day<th>Room<tr><td rowspan=2>Sales<td>Monday<td>1
            <tr><td>Friday<td>2<tr><td colspan=3>Bring your badge</table>""",
            ["Team: Sales; Day: Monday; Room: 1", "Team: Sales; Day: Friday; Room: 2", "Team: Bring your badge"],
        ),
        ("<table><tr><th>Owner<td>Ann<tr><th>Since<td>2020</table>", ["Owner: Ann", "Since: 2020"]),
        ("<table><tr><td>Item<td>Price<tr><td>Tea<td>2</table>", ["Item: Tea; Price: 2"]),
        ("<table><tr><td>Tea<td>2<tr><td>Milk<td>1</table>", ["Tea; 2", "Milk; 1"]),
        (
            f"<table><tr><th>Level<th>Duties<tr><td>IC1<td><p>Learns.<p>{LONG}</table>",
            ["Level: IC1", "Duties:", "Learns.", LONG.strip()],
        ),
    ],
)
def test_elements_become_texts(page, expected):
    assert texts(page) == expected


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p>Press <button>Save</button>.</p><button>Copy</button>", "Press Save."),
        ("<p>Mail <a href='https://x.org'></a>.</p>", "Mail […]."),
        ("<p>See the <a href='/d'>docs<svg></svg></a>, then <a id=here></a>go.<img></p>", "See the docs, then go."),
        ("<p>Rain <img alt='or snow'> falls. <img alt='a cat'> Yes.</p>", "Rain or snow falls. Yes."),
        ("<p>Where <math><mi>x</mi></math> is the mass.</p>", "Where […] is the mass."),
    ],
)
def test_removed_elements_leave_text_or_mark_in_a_sentence(page, expected):
    assert texts(page) == [expected]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            [
                "<td><td colspan=2>Tiers",
                "<td>Activity<td>Small<td>Large",
                "<td>Blog<td>x<td>x",
                "<td>Event<td><td>x",
            ],
            ["Activity: Blog; Tiers Small: x; Tiers Large: x", "Activity: Event; Tiers Large: x"],
        ),
        (
            ["<td colspan=2>Levels", "<td>Level<td>Options", "<td>M6<td>61,880", "<td>M5<td>40,960"],
            ["Levels", "Level: M6; Options: 61,880", "Level: M5; Options: 40,960"],
        ),
        (["<th colspan=2>Levels", "<th>Level<th>Options", "<td>M6<td>7"], ["Levels", "Level: M6; Options: 7"]),
        (["<th colspan=2>Levels", "<td>M6<td>7"], ["Levels", "M6; 7"]),
        (
            ["<td>Version 2<td>", "<td><td>", "<td>Level<td>Options", "<td>M6<td>7"],
            ["Version 2", "Level: M6; Options: 7"],
        ),
        (["<td>Tea<td>2", "<td colspan=2>Cold", "<td>Juice<td>3"], ["Tea; 2", "Cold", "Juice; 3"]),
        (
            ["<td><td colspan=2>2024", "<td>Rent<td>5<td>6", "<td>Tea<td>1<td>2"],
            ["Rent; 2024: 5; 2024: 6", "Tea; 2024: 1; 2024: 2"],
        ),
    ],
)
def test_rows_above_table_columns_become_titles_or_column_names(rows, expected):
    assert texts(f"<table><tr>{'</tr><tr>'.join(rows)}</tr></table>") == expected


def test_layout_table_is_read_as_prose():
    items = html_tree.read_html("<table><tr><td><h2>Left</h2><p>One.</p></td><td><p>Two.</p></td></tr></table>")

    assert items == (Heading(2, "Left"), Block("One."), Block("Two."))


def test_preformatted_lines_become_code():
    assert html_tree.read_html("<pre><code><span>a</span> = 1<br>b = 2</code></pre>") == (
        Block("a = 1\nb = 2", PassageKind.CODE),
    )


def test_deep_nesting_is_read():
    assert "deep" in " ".join(texts("<div>" * 1000 + "deep" + "</div>" * 1000))


def test_empty_page_has_no_items():
    assert web_page.read_web_page(b"<html></html>").items == ()
    assert web_page.read_web_page(b"<!-- -->").items == ()


def test_page_header_is_removed_but_section_header_kept():
    markup = b"""<html><body><header><p>Our site</p></header>
    <section><header><h2>Leave</h2></header><p>Thirty days of leave, as agreed.</p></section></body></html>"""

    assert web_page.read_web_page(markup).items == (Heading(2, "Leave"), Block("Thirty days of leave, as agreed."))
