"""Wikitext becomes sections of plain text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.types import Block, Section
from ingest.wikitext.wikitext_parser import make_sections, parse_wikitext
from storage.types import PassageKind


def read(text, language="en"):
    """Return the texts of all blocks."""
    return [
        block.text for section in make_sections(parse_wikitext(text, language=language)) for block in section.blocks
    ]


def test_sections_have_paths_of_headings():
    page = "Lead.\n== History ==\nOld.\n=== War ===\nLost.\n== Today ==\nNew."

    assert make_sections(parse_wikitext(page)) == (
        Section((), (Block("Lead."),)),
        Section(("History",), (Block("Old."),)),
        Section(("History", "War"), (Block("Lost."),)),
        Section(("Today",), (Block("New."),)),
    )


def test_page_name_is_the_title():
    page = parse_wikitext("'''{{PAGENAME}}''' is {{#if:{{FULLPAGENAME}}|one}}.", title="Dong [x]")

    assert page == (((), ("Dong [x] is one.",)),)


def test_links_to_hidden_namespaces_are_removed():
    assert parse_wikitext("[[Kuvaus:A.jpg]]Text.", hidden=frozenset({"kuvaus"})) == (((), ("Text.",)),)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[[Athens]] and [[Sparta|the other]], [http://x.org a site], [[:Category:Cities]], [[wikt:polis|polis]]s.",
            ["Athens and the other, a site, Category:Cities, poliss."],
        ),
        ("See [[Star Trek: Voyager]].", ["See Star Trek: Voyager."]),
        ("[[File:A.jpg|thumb|A [[ship]] {{circa|1900}} at [[sea]]]]Text.\n[[Kategorie:X]]\n[[de:Schiff]]", ["Text."]),
        (
            'A<ref name="x">B {{cite web|url=c}}</ref>.<ref name=x /> <!-- D\nE -->F<gallery>\nG.jpg|H\n</gallery>',
            ["A. F"],
        ),
        ("A<ref>B.\n\n== C ==\nD<ref>E</ref>.", ["AB.", "D."]),
        ("A {{lang|de B.\n\nC {{circa|1500}} [[D]].", ["A lang|de B.", "C c. 1500 D."]),
        ("<nowiki>[[x]] ''y''</nowiki> a < b", ["[[x]] ''y'' a < b"]),
        ("'''A''' ''b'' '''''c''''' l'''île'' dogs' x", ["A b c l'île dogs' x"]),
        ("'''Albedo coefficient''', of ''albus'', dell'''Arte''", ["Albedo coefficient, of albus, dell'Arte"]),
        (
            "* a\n** b\n# c\n; term : its meaning\n; other\n: its own\n: more",
            ["- a", "- b", "- c", "term: its meaning", "other: its own", "more"],
        ),
        ("one\ntwo\n\n中文\n字", ["one two", "中文字"]),
        (
            "A.\n== External links ==\nSee this.\n* [http://x y]\n=== More ===\n* z\n== Weblinks ==\n* q\n== B ==\n* c",
            ["A.", "See this.", "- c"],
        ),
        (
            "{{Script|Copt|Ⲁ ⲁ}} : alpha, {{script|Ж}} and {{script/Hebrew|א}}.",
            ["Ⲁ ⲁ : alpha, Ж and א."],
        ),
        ("10<sup>2</sup> m<sup>−1</sup> 19<sup>th</sup> H<sub>2</sub>O", ["10² m⁻¹ 19th H2O"]),
        (
            "20<sub>16</sub> to 7E<sub>[[hexadecimal|16]]</sub>, CO<sub>2</sub>, C<sub>4</sub>H<sub>10</sub>",
            ["20₁₆ to 7E₁₆, CO2, C4H10"],
        ),
        (
            "Paid in [[crown (coin)|crowns]]<sup>d</sup> and [[Mark]]s. M<sup>e</sup> Vik x<sup>a</sup>",
            ["Paid in crowns and Marks. Me Vik xa"],
        ),
        ("<table><tr><th>City</th><th>Size</th></tr><tr><td>Ulm</td><td>12</td></tr></table>", ["City: Ulm; Size: 12"]),
    ],
    ids=[
        *("links", "colon", "files", "references", "open reference", "open braces", "nowiki", "quotes", "elision"),
        *("lists", "paragraphs", "appendix", "scripts", "exponents", "bases", "footnote letter", "HTML table"),
    ],
)
def test_markup_becomes_plain_text(text, expected):
    assert read(text) == expected


def test_one_of_several_chinese_scripts_is_chosen():
    assert read("-{zh-hans:信息;zh-hant:資訊}-和-{自由}--{T|zh-cn:x;zh-tw:y}-", "zh") == ["信息和自由"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Athens ({{IPAc-en|a}}; {{lang-el|Αθήνα}}) is old.", "Athens (Greek: Αθήνα) is old."),
        ("A ({{IPAc-en|a}}) b.", "A b."),
        ("A ({{IPAc-en|a}} or {{IPAc-en|b}}) b.", "A b."),
        ("A {{cn}}, b {{cn}}.", "A, b."),
        ("A, {{ISBN|1}}.", "A."),
        ("A{{nbsp}}b&nbsp;c &amp; d&ndash;e", "A b c & d–e"),
        ("ベルリン（{{IPA-de|x}}、伯林）は", "ベルリン（伯林）は"),
        ("- {{cite book|title=x}}", "-"),
    ],
)
def test_punctuation_around_removed_markup_is_removed(text, expected):
    assert read(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "It cost $5 (equivalent to ${{Inflation|US|5|1929}}&nbsp;million in {{CURRENTYEAR}}) then.",
            "It cost $5 then.",
        ),
        ("It cost $5 ({{nowrap|${{Inflation|US|5|1929}} million}} today), a lot.", "It cost $5, a lot."),
        ("It cost $5, equivalent to ${{Inflation|US|5|1929}} million in {{CURRENTYEAR}}.", "It cost $5."),
        ("It cost ${{Inflation|US|5|1929}} million to build.", "It cost […] to build."),
        ("It has {{Population|X}} inhabitants.", "It has […] inhabitants."),
        (
            "Mit rund {{X}}&nbsp;Millionen Menschen auf {{X}} km² die größte.",
            "Mit rund […] Millionen Menschen auf […] km² die größte.",
        ),
        ("It covers {{Area|X}} km.", "It covers […] km."),
        ("Albedo (pronounced {{IPAc-en|æ}}) is.", "Albedo is."),
        ("Albedo (pronounced [{{IPA-la|x}}]; Latin: ''albus'') is.", "Albedo (Latin: albus) is."),
        ("Berlin (IPA: {{IPA-de|x}}, [[File:A.ogg|listen]]) is.", "Berlin is."),
        ("Berlin (en allemand : {{API|x}}) est.", "Berlin est."),
        ("柏林（德语：{{IPA-de|x}}，伯林）是", "柏林（伯林）是"),
        ("Founded in {{Start of X}}.", "Founded."),
        ("As it was founded in {{Start of X}}, it is old.", "As it was founded, it is old."),
        ("It believed in{{note of doubt}}.", "It believed in."),
        ("Sent to {{Someone}} by post.", "Sent to by post."),
        ("It was {{cn}}.", "It was."),
        ("Ann ({{Age|1990|1|1}} years old) said “{{Something}}”, and left.", "Ann said, and left."),
        ("{{#if:{{Whatever}}|yes|no}}", "no"),
    ],
)
def test_unknown_content_is_removed_with_governing_words(text, expected):
    assert read(text) == [expected]


HOLED = st.lists(
    st.sampled_from([
        "{{Inflation|US|1}}", "{{IPA-de|x}}", "{{cn}}", "(", ")", "pronounced ", "IPA: ", "$", " million", " in ", ", ",
        ". ", "or ", "of ", "cat ", "[", "]", "（", "）", "，", "\n", "[[File:A.ogg]]", "’s ", "&nbsp;",
    ]),
    max_size=30,
).map("".join)  # fmt: skip


@given(HOLED)
def test_removed_templates_leave_no_hole(text):
    result = "\n".join(read(text))

    assert "\x06" not in result
    assert (
        not any(hole in result for hole in ("()", "( )", "[]", "（）"))
        or "()" in text
        or "（）" in text
        or "[]" in text
    )
    if text.count("(") == text.count("{{I") == 1 and "(pronounced {{I" in text and "}})" in text:
        assert "pronounced" not in result or text.count("pronounced") > 1


def test_code_becomes_a_block():
    page = "A\n<source lang=py>\nif x:\n    [[y]]  # ''z''\n</source>\nB"

    assert make_sections(parse_wikitext(page))[0].blocks == (
        Block("A"),
        Block("if x:\n    [[y]]  # ''z''", PassageKind.CODE),
        Block("B"),
    )


MARKUP = st.lists(
    st.sampled_from([
        "{{", "}}", "[[", "]]", "|", "=", "\n", "==", "'''", "''", "<ref>", "</ref>", "<!--", "-->", "{|", "|}", "|-",
        "!", "*", "a", " ", "File:", "infobox", "convert|5|km", "<math>", "\\frac{", "}", "&nbsp;", "(", ")", ",", ".",
        "-{", "}-", "__TOC__", "[http://x ", "]", "<nowiki>", "</nowiki>", "<br>", "\x02", "中",
    ]),
    max_size=60,
).map("".join)  # fmt: skip


@given(MARKUP)
def test_any_markup_is_read_without_brackets(text):
    result = "\n".join(read(text))

    if "<nowiki>" not in text and "<math>" not in text:
        assert not any(bracket in result for bracket in ("{{", "}}", "[[", "]]", "<ref>"))
