"""Wikitext read as sections: what a reader of the page would see, and nothing of the markup."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.types import Block, Section
from ingest.wikitext.wikitext_parser import make_sections, parse_wikitext
from storage.types import PassageKind


def read(text, language="en"):
    """Return the blocks of all sections, kinds left out."""
    return [
        block.text for section in make_sections(parse_wikitext(text, language=language)) for block in section.blocks
    ]


def test_headings_are_paths_and_the_lead_has_none():
    """A section's path names the headings above it, outermost first."""
    page = "Lead.\n== History ==\nOld.\n=== War ===\nLost.\n== Today ==\nNew."

    assert make_sections(parse_wikitext(page)) == (
        Section((), (Block("Lead."),)),
        Section(("History",), (Block("Old."),)),
        Section(("History", "War"), (Block("Lost."),)),
        Section(("Today",), (Block("New."),)),
    )


def test_the_name_of_the_page_is_its_title():
    page = parse_wikitext("'''{{PAGENAME}}''' is {{#if:{{FULLPAGENAME}}|one}}.", title="Dong [x]")

    assert page == (((), ("Dong [x] is one.",)),)


def test_links_are_their_labels():
    """Links within the wiki, to the web and to other projects show what a reader sees."""
    text = "[[Athens]] and [[Sparta|the other]], [http://x.org its site], [[:Category:Cities]], [[wikt:polis|polis]]s."

    assert read(text) == ["Athens and the other, its site, Category:Cities, poliss."]


def test_titles_with_a_colon_are_shown():
    """A colon alone does not make a namespace."""
    assert read("See [[Star Trek: Voyager]].") == ["See Star Trek: Voyager."]


def test_files_categories_and_other_languages_are_gone():
    """Whatever stands in their captions goes with them."""
    text = "[[File:A.jpg|thumb|A [[ship]] {{circa|1900}} at [[sea]]]]Text.\n[[Kategorie:X]]\n[[de:Schiff]]"

    assert read(text) == ["Text."]


def test_namespaces_of_the_wiki_itself_are_hidden():
    """A dump says how its wiki calls files and categories."""
    assert parse_wikitext("[[Kuvaus:A.jpg]]Text.", hidden=frozenset({"kuvaus"})) == (((), ("Text.",)),)


def test_references_comments_and_galleries_are_gone():
    """Named, empty, nested in templates or spread over lines."""
    text = 'A<ref name="x">B {{cite web|url=c}}</ref>.<ref name=x /> <!-- D\nE -->F<gallery>\nG.jpg|H\n</gallery>'

    assert read(text) == ["A. F"]


def test_a_reference_that_never_ends_costs_itself_alone():
    """The next section is not eaten."""
    text = "A<ref>B.\n\n== C ==\nD<ref>E</ref>."

    assert read(text) == ["AB.", "D."]


def test_braces_that_never_close_cost_themselves_alone():
    """What follows them is read as ever."""
    assert read("A {{lang|de B.\n\nC {{circa|1500}} [[D]].") == ["A lang|de B.", "C c. 1500 D."]


def test_what_was_not_meant_as_markup_stays():
    """Text in nowiki and formulas keep their brackets and signs."""
    assert read("<nowiki>[[x]] ''y''</nowiki> a < b") == ["[[x]] ''y'' a < b"]


def test_bold_and_italics_are_gone_and_apostrophes_stay():
    """An apostrophe before italics is a letter."""
    assert read("'''A''' ''b'' '''''c''''' l'''île'' dogs' x") == ["A b c l'île dogs' x"]
    assert read("'''Albedo coefficient''', of ''albus'', dell'''Arte''") == ["Albedo coefficient, of albus, dell'Arte"]


def test_lists_are_items():
    """Of any depth, numbered or not; a term stands with its definition."""
    text = "* a\n** b\n# c\n; term : its meaning\n; other\n: its own\n: more"

    assert read(text) == ["- a", "- b", "- c", "term: its meaning", "other: its own", "more"]


def test_lines_of_a_paragraph_are_joined():
    """With a space, but not where the script has none."""
    assert read("one\ntwo\n\n中文\n字") == ["one two", "中文字"]


def test_lists_of_references_and_links_are_dropped_and_prose_stays():
    """In any language; the sections below them too."""
    text = "A.\n== External links ==\nSee this.\n* [http://x y]\n=== More ===\n* z\n== Weblinks ==\n* q\n== B ==\n* c"

    assert read(text) == ["A.", "See this.", "- c"]


@pytest.mark.parametrize(
    ("text", "mended"),
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
def test_holes_are_mended(text, mended):
    """Brackets, commas and spaces around what is gone go too."""
    assert read(text) == [mended]


@pytest.mark.parametrize(
    ("text", "mended"),
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
def test_what_cannot_be_said_takes_what_governs_it(text, mended):
    """Brackets that hold nothing else, prepositions before the end of a clause, signs and sizes of amounts."""
    assert read(text) == [mended]


def test_letters_of_a_script_are_read():
    """The template names the script first, if it does."""
    assert read("{{Script|Copt|Ⲁ ⲁ}} : alpha, {{script|Ж}} and {{script/Hebrew|א}}.") == ["Ⲁ ⲁ : alpha, Ж and א."]


HOLED = st.lists(
    st.sampled_from([
        "{{Inflation|US|1}}", "{{IPA-de|x}}", "{{cn}}", "(", ")", "pronounced ", "IPA: ", "$", " million", " in ", ", ",
        ". ", "or ", "of ", "cat ", "[", "]", "（", "）", "，", "\n", "[[File:A.ogg]]", "’s ", "&nbsp;",
    ]),
    max_size=30,
).map("".join)  # fmt: skip


@given(HOLED)
def test_no_hole_is_left(text):
    """Whatever stands around what cannot be said."""
    said = "\n".join(read(text))

    assert "\x06" not in said
    assert (
        not any(hole in said for hole in ("()", "( )", "[]", "（）")) or "()" in text or "（）" in text or "[]" in text
    )
    if text.count("(") == text.count("{{I") == 1 and "(pronounced {{I" in text and "}})" in text:
        assert "pronounced" not in said or text.count("pronounced") > 1


def test_superscripts_are_no_digits_of_the_number():
    """Ten squared is not one hundred and two."""
    assert read("10<sup>2</sup> m<sup>−1</sup> 19<sup>th</sup> H<sub>2</sub>O") == ["10² m⁻¹ 19th H2O"]


def test_the_base_of_a_number_is_none_of_its_digits():
    page = "20<sub>16</sub> to 7E<sub>[[hexadecimal|16]]</sub>, CO<sub>2</sub>, C<sub>4</sub>H<sub>10</sub>"

    assert read(page) == ["20₁₆ to 7E₁₆, CO2, C4H10"]


def test_the_letter_of_a_footnote_is_no_part_of_the_word_before_it():
    """Behind a link; elsewhere a raised letter may be an exponent or an abbreviation."""
    page = "Paid in [[crown (coin)|crowns]]<sup>d</sup> and [[Mark]]s. M<sup>e</sup> Vik x<sup>a</sup>"
    assert read(page) == ["Paid in crowns and Marks. Me Vik xa"]


def test_code_is_a_block_of_its_own():
    """With its line breaks and indentation, and nothing in it read as markup."""
    page = "A\n<source lang=py>\nif x:\n    [[y]]  # ''z''\n</source>\nB"

    assert make_sections(parse_wikitext(page))[0].blocks == (
        Block("A"),
        Block("if x:\n    [[y]]  # ''z''", PassageKind.CODE),
        Block("B"),
    )


def test_one_script_is_chosen_where_a_page_is_written_in_two():
    """Chinese pages hold both; titles for conversion alone are gone."""
    assert read("-{zh-hans:信息;zh-hant:資訊}-和-{自由}--{T|zh-cn:x;zh-tw:y}-", "zh") == ["信息和自由"]


def test_an_html_table_is_a_table():
    """Rows are rows whichever way they are written."""
    text = "<table><tr><th>City</th><th>Size</th></tr><tr><td>Ulm</td><td>12</td></tr></table>"

    assert read(text) == ["City: Ulm; Size: 12"]


MARKUP = st.lists(
    st.sampled_from([
        "{{", "}}", "[[", "]]", "|", "=", "\n", "==", "'''", "''", "<ref>", "</ref>", "<!--", "-->", "{|", "|}", "|-",
        "!", "*", "a", " ", "File:", "infobox", "convert|5|km", "<math>", "\\frac{", "}", "&nbsp;", "(", ")", ",", ".",
        "-{", "}-", "__TOC__", "[http://x ", "]", "<nowiki>", "</nowiki>", "<br>", "\x02", "中",
    ]),
    max_size=60,
).map("".join)  # fmt: skip


@given(MARKUP)
def test_nothing_makes_it_fail_and_no_brackets_are_left(text):
    """Whatever is thrown at it, it answers with text."""
    said = "\n".join(read(text))

    if "<nowiki>" not in text and "<math>" not in text:
        assert not any(bracket in said for bracket in ("{{", "}}", "[[", "]]", "<ref>"))


@pytest.mark.parametrize(
    "piece",
    [
        "{{",
        "[[",
        "{{a|",
        "[[{{x]]",
        "<ref>",
        "<!--",
        "{|\n",
        "|rowspan=500|a\n",
        "[http://",
        "(;",
        "{{{a|",
        "<nowiki>",
        "\n==",
        "{{x}}",
        "({{x}}",
        "{{x}} in ",
        "\n|a={{x}}",
        "{{#expr:1+",
    ],
)
def test_two_hundred_thousand_characters_of_garbage_are_quickly_read(piece):
    """Time grows with the length of the text: what is quadratic would take minutes here."""
    garbage = "{{Infobox\n" + piece * (200_000 // len(piece))
    started = time.process_time()
    parse_wikitext(garbage)

    assert time.process_time() - started < 5
