"""Markdown becomes headings and plain blocks."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.readers import markdown_reader
from ingest.readers.parsed_document import Heading
from ingest.types import Block
from storage.types import PassageKind


def blocks(text):
    """Return the texts of the blocks of a Markdown text."""
    return [item.text for item in markdown_reader.read_markdown(text).items if isinstance(item, Block)]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("Some **bold**, _slanted_ and `code` words.", "Some bold, slanted and code words."),
        ("See [the policy](https://x.org/a_b) or <https://x.org>.", "See the policy or https://x.org."),
        ("See [the policy][1].\n\n[1]: https://x.org", "See the policy."),
        ("A picture ![of a cat](cat.png) is gone.", "A picture of a cat is gone."),
        ("Tea &amp; coffee&nbsp;at 5&deg;", "Tea & coffee at 5°"),
        ("One line\nand the next.", "One line and the next."),
        ("Text<!-- a comment --> goes on.", "Text goes on."),
        ("H<sub>2</sub>O and 5 m<sup>2</sup>", "H2O and 5 m²"),
        ("It was ~~red~~ green.", "It was green."),
        ("Ask <your-name> about it.", "Ask <your-name> about it."),
        ("A note[^1] here.", "A note here."),
        ('{{< figure src="x.png" >}}Text {% include a.html %}here.', "Text here."),
        ("Alert the team in [](https://x.org).", "Alert the team in […]."),
        ("Alert the team in [#help]({{ site.chat }}/help).", "Alert the team in #help."),
        ("Write to {{< param mail >}} by Friday, or {{ 'Bo' | upcase }}.", "Write to […] by Friday, or Bo."),
        ('See [*the* list]({{< ref "l.md" >}}), [rules][r] or [CI][].\n\n[r]: {{ u }}/r', "See the list, rules or CI."),
        ("{{ site.company }} pays. {% if x %}Yes.{% endif %} [](#id)Good.", "[…] pays. Yes. Good."),
        ("Click ![](gear.png) or ![Save](s.png).\n![shown here](a.png)", "Click […] or Save."),
        ("Rooms: {{ rooms }}", "Rooms: […]"),
        ("- ~~Colour~~: no.", "- […]: no."),
        ("Ask <your team lead> or <Chat name='help' />.", "Ask <your team lead> or help."),
        ("<p>Write to {{ site.mail }} now.</p>", "Write to […] now."),
        ("Members:\n\n{{generator:team}}\n", "Members: […]"),
        ("See m[i][j] and terraform { ... } blocks.", "See m[i][j] and terraform { ... } blocks."),
        ("> [!NOTE]\n> Read this.", "Read this."),
        (":::tip\nDrink water.\n:::", "Drink water."),
        ("**Owner: **the people team.", "Owner: the people team."),
        ("See [here](#with a space) now.", "See here now."),
        ("Use `**/*.md` and `[a](b)`.", "Use **/*.md and [a](b)."),
    ],
)
def test_text_reads_as_plain_prose(source, said):
    """No mark of markup is left, and nothing that a reader would see is lost."""
    assert blocks(source) == [said]


def test_a_footnote_is_a_paragraph_where_it_stands():
    """The mark goes, the text stays, two footnotes stay apart."""
    assert blocks("Text[^a].\n\n[^a]: First note.\n[^b]: https://x.org") == ["Text.", "First note.", "https://x.org"]


def test_lists_are_lines_of_one_block():
    """Numbers are kept, nested items indented, tasks marked when done."""
    source = "3. third\n4. fourth\n   - inner\n   - [x] done\n   - [ ] open\n"

    assert blocks(source) == ["3. third\n4. fourth\n  - inner\n  - ✓ done\n  - open"]


def test_code_within_a_list_parts_it():
    """The code is a block of its own, and the numbers go on after it."""
    items = markdown_reader.read_markdown("1. Run\n\n   ```\n   make test\n   ```\n\n2. Wait\n").items

    assert items == (Block("1. Run"), Block("make test", PassageKind.CODE), Block("2. Wait"))


def test_each_table_row_names_its_columns():
    """A row can be read without its table; empty cells are left out."""
    source = "| Plan | Price |\n|---|---:|\n| **Basic** | 5 € |\n| Team | |\n| Big \\| huge | a<br>b |\n"

    assert markdown_reader.read_markdown(source).items == (
        Block("Plan: Basic; Price: 5 €", PassageKind.TABLE),
        Block("Plan: Team", PassageKind.TABLE),
        Block("Plan: Big | huge; Price: a, b", PassageKind.TABLE),
    )


def test_a_table_with_a_column_too_many_is_still_a_table():
    """What its writer drew with pipes is read as rows."""
    assert markdown_reader.read_markdown("| A | B |\n| --- |\n| one | two |\n").items == (
        Block("A: one; B: two", PassageKind.TABLE),
    )


def test_code_keeps_its_lines():
    """Nothing in code is taken for markup."""
    code = "def f():\n    return **x**  # {{< no >}}"

    assert markdown_reader.read_markdown(f"```python\n{code}\n```\n").items == (Block(code, PassageKind.CODE),)


def test_a_letter_set_as_code_is_prose():
    """What reads as sentences is no code, whatever it is set as."""
    source = "```\nThank you for your application to our team.\n\nWe will answer within two weeks.\n```"

    assert [item.kind for item in markdown_reader.read_markdown(source).items] == [PassageKind.PROSE, PassageKind.PROSE]


def test_headings_lose_their_anchors():
    """Attributes that site generators read are no text."""
    assert markdown_reader.read_markdown("## Goals {#goals}\n").items == (Heading(2, "Goals"),)


def test_bold_words_alone_on_a_line_stay_alone():
    """They are a heading in all but name."""
    assert blocks("**Hosting**\nThe scripts run on one machine.") == ["Hosting\nThe scripts run on one machine."]


def test_html_within_is_read_as_html():
    """Tables and details written as HTML are not lost, scripts are."""
    source = "<details><summary>More</summary>\n\nInner *text*.\n\n</details>\n<script>alert(1)</script>\n"

    assert blocks(source) == ["More", "Inner text."]


def test_front_matter_tells_of_the_page():
    """Title, date and version are taken from it; it is no text."""
    reading = markdown_reader.read_markdown(
        "---\ntitle: Leave\nupdated: 2024-05-06\nversion: 3\nlang: de-AT\n---\n\nText.\n"
    )

    assert (reading.title, reading.revision, reading.language) == ("Leave", "3", "de")
    assert reading.date == datetime(2024, 5, 6, tzinfo=UTC)
    assert reading.items == (Block("Text."),)


def test_front_matter_in_toml():
    """Hugo writes it so."""
    assert markdown_reader.read_markdown('+++\ntitle = "Leave"\n+++\nText.\n').title == "Leave"


@pytest.mark.parametrize("source", ["---\n\nText\n\n---\n", "---\njust text\n---\n"])
def test_a_text_between_rules_is_no_front_matter(source):
    """Only fields are taken off."""
    assert markdown_reader.read_markdown(source).items[0].text.lower().endswith("text")


def test_broken_front_matter_is_no_text():
    """It cannot be read, but is not shown either."""
    assert blocks("---\ntitle: [unclosed\n---\nText.\n") == ["Text."]


def test_scripts_of_mdx_are_left_out():
    """Imports are no text; the same words in code are."""
    assert markdown_reader.read_mdx("import A from './a'\n\nText {/* hidden */}here.\n").items == (Block("Text here."),)


def test_expressions_of_mdx_are_gaps():
    """A text in quotes is what it says; in plain Markdown braces are braces."""
    source = "Ask {props.team} or {'Bo'} today."

    assert markdown_reader.read_mdx(source).items == (Block("Ask […] or Bo today."),)
    assert blocks(source) == [source]


def test_deep_nesting_loses_nothing():
    """Thirty lists within lists are read to the last."""
    source = "".join("  " * depth + f"- level {depth}\n" for depth in range(30))

    assert all(f"level {depth}" in blocks(source)[0] for depth in range(30))


@pytest.mark.parametrize(
    "unit", ["{{x}} ", "{% x ", "{{< ", "[a]({% x %}", "[](x) ", "[ab", "<A b='", "![", "{x", "[a]: {{ "]
)
def test_no_text_is_slow(unit):
    """Thousands of any beginning take seconds at most."""
    began = time.process_time()
    markdown_reader.read_mdx(unit * 3_000 + "][")

    assert time.process_time() - began < 3


@given(st.text(alphabet="ab *_`[](){}<>|-#\n!&;:^~\\\"'1.%", max_size=80))
def test_any_text_is_read(source):
    """No text, however odd, fails, and no block is blank."""
    assert all(item.text.strip() for item in markdown_reader.read_markdown(source).items)
