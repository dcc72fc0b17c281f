"""Web pages become their main text."""

import time
from datetime import UTC, datetime

import pytest

from ingest.readers import html_tree, web_page
from ingest.readers.parsed_document import Heading
from ingest.types import Block
from storage.types import PassageKind


def texts(markup):
    """Return the texts of what was read."""
    return [item.text for item in html_tree.read_html(markup)]


def test_what_surrounds_the_main_part_is_left_out():
    """Navigation, headers, footers and scripts are on every page of a site."""
    page = b"""<html lang=en-GB><head><title>Leave | Intranet</title><script>x()</script></head><body>
    <header>Our site</header><nav>Home</nav><div class="sidebar">Links</div>
    <main><h1>Leave</h1><p>Thirty days of leave, as agreed.</p></main><footer>Imprint</footer></body></html>"""

    reading = web_page.read_web_page(page)

    assert reading.items == (Heading(1, "Leave"), Block("Thirty days of leave, as agreed."))
    assert (reading.title, reading.fallback_title, reading.language) == ("Leave", "Leave", "en")


def test_a_page_without_a_main_part_is_read_whole():
    """Nothing is lost that is not known to surround."""
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
def test_the_date_is_the_last_change(head):
    """Whichever of its names a site uses."""
    reading = web_page.read_web_page(f"<head>{head}</head><p>Text</p>".encode())

    assert reading.date == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.mark.parametrize("encoding", ["utf-8", "windows-1252", "shift_jis"])
def test_a_declared_encoding_is_followed(encoding):
    """The declaration is followed, in upper or lower case."""
    word = "日本" if encoding == "shift_jis" else "Büro"
    page = f'<html><head><meta charset="{encoding.upper()}"></head><p>{word}</p></html>'.encode(encoding)

    assert web_page.read_web_page(page).items == (Block(word),)


def test_hidden_text_is_not_read():
    """Nobody sees it, so nobody shall be answered with it."""
    page = "<p hidden>a</p><p style='display: none'>b</p><p aria-hidden=true>c</p><template>d</template><p>e</p>"

    assert texts(page) == ["e"]


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("<p>Press <button>Save</button>.</p><button>Copy</button>", "Press Save."),
        ("<p>Mail <a href='https://x.org'></a>.</p>", "Mail […]."),
        ("<p>See the <a href='/d'>docs<svg></svg></a>, then <a id=here></a>go.<img></p>", "See the docs, then go."),
        ("<p>Rain <img alt='or snow'> falls. <img alt='a cat'> Yes.</p>", "Rain or snow falls. Yes."),
        ("<p>Where <math><mi>x</mi></math> is the mass.</p>", "Where […] is the mass."),
    ],
)
def test_a_sentence_has_no_holes(page, said):
    """What is seen and not read leaves its text or a mark within a sentence, and nothing elsewhere."""
    assert texts(page) == [said]


@pytest.mark.parametrize("gap", ["<img>", "<img alt=a>", "<a href=x></a>", "<s></s>"])
def test_many_gaps_are_not_slow(gap):
    """A line of ten thousand takes seconds at most."""
    began = time.process_time()
    texts(f"<p>{f'{gap} a ' * 10_000}</p>")

    assert time.process_time() - began < 2


def test_spans_of_a_table_are_followed():
    """A cell over two rows belongs to both, one over two columns is said once."""
    page = """<table><tr><th>Team</th><th>Day</th><th>Room</th></tr>
    <tr><td rowspan=2>Sales</td><td>Monday</td><td>1</td></tr><tr><td>Friday</td><td>2</td></tr>
    <tr><td colspan=3>Bring your badge</td></tr></table>"""

    assert texts(page) == [
        "Team: Sales; Day: Monday; Room: 1",
        "Team: Sales; Day: Friday; Room: 2",
        "Team: Bring your badge",
    ]


@pytest.mark.parametrize(
    ("rows", "said"),
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
def test_what_stands_above_columns(rows, said):
    """A row over the whole table is its title; what spans some columns needs the names below it."""
    assert texts(f"<table><tr>{'</tr><tr>'.join(rows)}</tr></table>") == said


def test_a_table_of_names_and_values():
    """Where the first column names what stands beside it, it is named so."""
    assert texts("<table><tr><th>Owner</th><td>Ann</td></tr><tr><th>Since</th><td>2020</td></tr></table>") == [
        "Owner: Ann",
        "Since: 2020",
    ]


def test_a_table_without_marked_header():
    """Its first row is the header if it reads like one."""
    assert texts("<table><tr><td>Item</td><td>Price</td></tr><tr><td>Tea</td><td>2</td></tr></table>") == [
        "Item: Tea; Price: 2"
    ]
    assert texts("<table><tr><td>Tea</td><td>2</td></tr><tr><td>Milk</td><td>1</td></tr></table>") == [
        "Tea; 2",
        "Milk; 1",
    ]


def test_a_table_that_lays_out_a_page_is_prose():
    """Its cells are texts of their own."""
    items = html_tree.read_html("<table><tr><td><h2>Left</h2><p>One.</p></td><td><p>Two.</p></td></tr></table>")

    assert items == (Heading(2, "Left"), Block("One."), Block("Two."))


def test_a_table_of_whole_texts_is_read_text_by_text():
    """Its cells would not fit into rows; each follows the name of its column."""
    long = "A sentence of some length. " * 30
    cells = f"<td>IC1</td><td><p>Learns.</p><p>{long}</p></td>"
    page = f"<table><tr><th>Level</th><th>Duties</th></tr><tr>{cells}</tr></table>"

    assert texts(page) == ["Level: IC1", "Duties:", "Learns.", long.strip()]


def test_definitions_stand_beside_their_terms():
    """A term without definition is kept as well."""
    assert texts("<dl><dt>ARR</dt><dd>Annual revenue.</dd><dt>MRR</dt></dl>") == ["ARR: Annual revenue.", "MRR"]


def test_preformatted_lines_are_kept():
    """Highlighting within code is no text of its own."""
    assert html_tree.read_html("<pre><code><span>a</span> = 1<br>b = 2</code></pre>") == (
        Block("a = 1\nb = 2", PassageKind.CODE),
    )


def test_depth_does_not_exhaust_the_stack():
    """A thousand elements within each other are read for their text."""
    assert "deep" in " ".join(texts("<div>" * 1000 + "deep" + "</div>" * 1000))


def test_nothing_is_no_text():
    """An empty page has no blocks."""
    assert web_page.read_web_page(b"<html></html>").items == ()
    assert web_page.read_web_page(b"<!-- -->").items == ()


def test_the_header_of_a_part_is_its_title_and_that_of_the_page_the_sites():
    """Also where the page has no main part."""
    markup = b"""<html><body><header><p>Our site</p></header>
    <section><header><h2>Leave</h2></header><p>Thirty days of leave, as agreed.</p></section></body></html>"""

    assert web_page.read_web_page(markup).items == (Heading(2, "Leave"), Block("Thirty days of leave, as agreed."))
