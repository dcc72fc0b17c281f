"""Markdown becomes headings and plain blocks."""

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
    ("source", "expected"),
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
def test_text_becomes_plain_prose(source, expected):
    assert blocks(source) == [expected]


CODE = "def f():\n    return **x**  # {{< no >}}"
LETTER = ("Thank you for your application to our team.", "We will answer within two weeks.")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Text[^a].\n\n[^a]: First note.\n[^b]: https://x.org", ["Text.", "First note.", "https://x.org"]),
        (
            "3. third\n4. fourth\n   - inner\n   - [x] done\n   - [ ] open\n",
            ["3. third\n4. fourth\n  - inner\n  - ✓ done\n  - open"],
        ),
        ("1. Run\n\n   ```\n   make test\n   ```\n\n2. Wait\n", ["1. Run", ("make test", PassageKind.CODE), "2. Wait"]),
        (
            "| Plan | Price |\n|---|---:|\n| **Basic** | 5 € |\n| Team | |\n| Big \\| huge | a<br>b |\n",
            [
                (row, PassageKind.TABLE)
                for row in ("Plan: Basic; Price: 5 €", "Plan: Team", "Plan: Big | huge; Price: a, b")
            ],
        ),
        ("| A | B |\n| --- |\n| one | two |\n", [("A: one; B: two", PassageKind.TABLE)]),
        (f"```python\n{CODE}\n```\n", [(CODE, PassageKind.CODE)]),
        ("```\n{}\n\n{}\n```".format(*LETTER), [*LETTER]),
        ("**Hosting**\nThe scripts run on one machine.", ["Hosting\nThe scripts run on one machine."]),
        (
            "<details><summary>More</summary>\n\nInner *text*.\n\n</details>\n<script>alert(1)</script>\n",
            ["More", "Inner text."],
        ),
        ("---\ntitle: [unclosed\n---\nText.\n", ["Text."]),
    ],
    ids=[
        "footnotes",
        "lists",
        "code in list",
        "table",
        "broken table",
        "code",
        "letter",
        "bold line",
        "HTML",
        "broken",
    ],
)
def test_text_becomes_blocks(source, expected):
    blocks = tuple(Block(block) if isinstance(block, str) else Block(*block) for block in expected)

    assert markdown_reader.read_markdown(source).items == blocks


def test_heading_attributes_are_removed():
    assert markdown_reader.read_markdown("## Goals {#goals}\n").items == (Heading(2, "Goals"),)


def test_front_matter_describes_the_page():
    reading = markdown_reader.read_markdown(
        "---\ntitle: Leave\nupdated: 2024-05-06\nversion: 3\nlang: de-AT\n---\n\nText.\n"
    )

    assert (reading.title, reading.revision, reading.language) == ("Leave", "3", "de")
    assert reading.date == datetime(2024, 5, 6, tzinfo=UTC)
    assert reading.items == (Block("Text."),)


def test_toml_front_matter_is_read():
    assert markdown_reader.read_markdown('+++\ntitle = "Leave"\n+++\nText.\n').title == "Leave"


@pytest.mark.parametrize("source", ["---\n\nText\n\n---\n", "---\njust text\n---\n"])
def test_text_between_rules_is_not_front_matter(source):
    assert markdown_reader.read_markdown(source).items[0].text.lower().endswith("text")


def test_mdx_scripts_are_removed():
    assert markdown_reader.read_mdx("import A from './a'\n\nText {/* hidden */}here.\n").items == (Block("Text here."),)


def test_mdx_expressions_become_text_or_mark():
    source = "Ask {props.team} or {'Bo'} today."

    assert markdown_reader.read_mdx(source).items == (Block("Ask […] or Bo today."),)
    assert blocks(source) == [source]


def test_deep_nesting_is_read():
    source = "".join("  " * depth + f"- level {depth}\n" for depth in range(30))

    assert all(f"level {depth}" in blocks(source)[0] for depth in range(30))


@given(st.text(alphabet="ab *_`[](){}<>|-#\n!&;:^~\\\"'1.%", max_size=80))
def test_any_text_is_read_without_blank_blocks(source):
    assert all(item.text.strip() for item in markdown_reader.read_markdown(source).items)
