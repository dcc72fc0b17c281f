"""Templates: words, dates and numbers are said; boxes are rows; the rest is silent."""

import pytest

from ingest.types import Block
from ingest.wikitext.templates import render_template
from ingest.wikitext.wiki_site import load_template_kinds
from ingest.wikitext.wikitext_parser import make_sections, parse_wikitext
from ingest.wikitext.word_templates import TEMPLATE_SIGNS, TEMPLATE_WORDS
from storage.types import PassageKind


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("convert|5|km|mi", "5 km"),
        ("convert|5|to|10|km|mi", "5 to 10 km"),
        ("convert|6|ft|2|in|m", "6 ft 2 in"),
        ("convert|1,200|sqmi|km2|0", "1,200 sq mi"),
        ("convert|20|C", "20 °C"),
        ("height|ft=5|in=11", "5 ft 11 in"),
        ("val|1.5|0.2|e=6|u=kg", "1.5±0.2×10⁶ kg"),
        ("frac|1|2", "1/2"),
        ("frac|3|1|2", "3 1/2"),
        ("e|-6", "×10⁻⁶"),
        ("ordinal|22", "22nd"),
        ("ordinal|13", "13th"),
        ("US$|5 million", "US$5 million"),
        ("coord|52|31|N|13|24|E|display=inline", "52°31′N 13°24′E"),
        ("coord|52.5|-13.4", "52.5, -13.4"),
        ("coord|52|31|N|13|24|E|display=title", ""),
        ("formatnum: 1234567.5", "1,234,567.5"),
        ("formatnum:1,234|R", "1,234"),
        ("birth date|1879|3|14", "March 14, 1879"),
        ("birth date|1879|3|14|df=y", "14 March 1879"),
        ("death date and age|1955|4|18|1879|3|14", "April 18, 1955"),
        ("start date|2001|9", "September 2001"),
        ("start-date|December 21, 1968", "December 21, 1968"),
        ("as of|2015|4", "As of April 2015"),
        ("as of|2015|lc=y", "as of 2015"),
        ("circa|1500|1510", "c. 1500 – c. 1510"),
        ("lang|de|Wort", "Wort"),
        ("lang-de|Wort", "German: Wort"),
        ("langx|de|Wort", "German: Wort"),
        ("citation needed span|They say so.|date=May 2015", "They say so."),
        ("transl|ja|kanji", "kanji"),
        ("nihongo|Tokyo|東京|Tōkyō", "Tokyo (東京, Tōkyō)"),
        ("nowrap|a b", "a b"),
        ("IPA|/æ/", "/æ/"),
        ("IPA|fr|paʁi", ""),
        ("IPAc-en|a", ""),
        ("flag|France", "France"),
        ("flagicon|France", ""),
        ("FRA", "France"),
        ("yes", "Yes"),
        ("yes|since 1999", "since 1999"),
        ("marriage|Mary Todd|1842|1865", "Mary Todd (1842–1865)"),
        ("sclass|Nimitz|aircraft carrier", "Nimitz-class aircraft carrier"),
        ("chem|H|2|O", "H2O"),
        ("spaced ndash", " – "),
        ("'s", "'s"),
        ("citation needed|date=May 2015", ""),
        ("cite book|title=A|author=B", ""),
        ("main|History", ""),
        ("#if:x|yes|no", "yes"),
        ("#if: |yes|no", "no"),
        ("#ifeq:a|a|same|other", "same"),
        ("#switch:b|a=1|b=2|3", "2"),
        ("#invoke:Foo|bar", ""),
        ("DEFAULTSORT:Foo", ""),
        ("lc:ABC", "abc"),
        ("", ""),
    ],
)
def test_english_templates_say_what_a_reader_sees(template, said):
    """Each as the English Wikipedia shows it, conversions left out."""
    assert render_template(template, "en") == said


@pytest.mark.parametrize(
    ("language", "template", "said"),
    [
        ("fr", "date|14|mars|1879", "14 mars 1879"),
        ("fr", "unité|12|hab/km|2", "12 hab/km²"),
        ("fr", "s-|XIX|e", "XIXe siècle"),
        ("fr", "langue|de|Wort", "Wort"),
        ("fr", "citation|Bonjour", "“Bonjour”"),
        ("fr", "référence nécessaire|Il dit.|date=1", "Il dit."),
        ("en", "citation|title=Bonjour|last=B", ""),
        ("it", "M|5|ul=km", "5 km"),
        ("ru", "s|5 км", "5 км"),
        ("fr", "1er", "1er"),
        ("fr", "formatnum:98659", "98659"),
        ("de", "enS|word", "word"),
        ("de", "Höhe|34|DE-NHN", "34 m"),
        ("de", '"|Zitat', "“Zitat”"),
        ("de", "0", ""),
        ("es", "fecha|14|3|1879", "14 de marzo de 1879"),
        ("es", "siglo|XIX", "siglo XIX"),
        ("ru", "Дата рождения|14|3|1879", "14 марта 1879"),
        ("ru", "нп3|Имя||en|Name", "Имя"),
        ("ja", "仮リンク|ラベル|en|Label", "ラベル"),
        ("ja", "読み仮名|漢字|かんじ", "漢字(かんじ)"),
        ("ja", "生年月日と年齢|1959|5|1", "1959年5月1日"),
        ("ja", "死亡年月日と没年齢|1879|3|14|1955|4|18", "1955年4月18日"),
        ("zh", "link-en|甲|A", "甲"),
        ("zh", "tsl|en|A|甲", "甲"),
        ("sv", "födelsedatum|1879|3|14", "14 mars 1879"),
        ("fi", "birth date|1879|3|14", "1879-03-14"),
    ],
)
def test_templates_of_other_wikipedias(language, template, said):
    """In their own words and their own order of dates."""
    assert render_template(template, language) == said


def rows(text, language="en"):
    """Return the table rows of a page."""
    blocks = [block for section in make_sections(parse_wikitext(text, language=language)) for block in section.blocks]
    return [block.text for block in blocks if block.kind is PassageKind.TABLE]


def test_an_infobox_is_rows_of_label_and_value():
    """Pictures and their captions are left out, lists are one row, templates within say what they say."""
    text = """{{Infobox person
| name = Ada
| image = Ada.jpg | caption = Ada in 1843
| birth_date = {{birth date|df=y|1815|12|10}}
| known_for = {{plainlist|
* [[Mathematics]]
* [[Computing]]
}}
| spouse = A<br />B (1835)
| website =
| TotalArea_km2 = 12
}}
Ada was."""

    assert rows(text) == [
        "Name: Ada",
        "Birth date: 10 December 1815",
        "Known for: Mathematics, Computing",
        "Spouse: A, B (1835)",
        "Total Area km²: 12",
    ]
    assert make_sections(parse_wikitext(text))[0].blocks[-1] == Block("Ada was.")


def test_arguments_that_name_others_are_their_labels():
    """`leader_title1` is what `leader_name1` is called; `label1` what `data1` is."""
    text = "{{Infobox country\n|leader_title1 = President\n|leader_name1 = Ann\n|label1 = Rank\n|data1 = 3rd\n}}"

    assert rows(text) == ["President: Ann", "Rank: 3rd"]


def test_a_template_with_an_unknown_name_is_a_box_if_it_looks_like_one():
    """Four named arguments on lines of their own; fewer say nothing."""
    assert rows("{{Nieznany\n|a=1x\n|b=2x\n|c=3x\n|d=4x\n}}") == ["A: 1x", "B: 2x", "C: 3x", "D: 4x"]
    assert rows("{{Nieznany|a=1x|b=2x}}") == []


def test_a_climate_is_a_row_for_each_quantity():
    """Not twelve of each."""
    text = "{{Weather box\n|Jan high C = 3\n|Feb high C = 4\n|location = Ulm\n}}"

    assert rows(text) == ["High C: Jan 3, Feb 4", "Location: Ulm"]


def test_populations_are_a_row_for_each_year():
    """They stand in pairs without names."""
    assert rows("{{Historical populations|1900|1250|1910|9046}}") == ["1900: 1250", "1910: 9046"]


def test_an_infobox_within_an_infobox_keeps_its_rows():
    """They follow the row of the argument that holds them."""
    text = "{{Infobox a\n|x = 1st\n|module = {{Infobox b\n|y = 2nd\n}}\n|z = 3rd\n}}"

    assert sorted(rows(text)) == ["X: 1st", "Y: 2nd", "Z: 3rd"]


def test_no_name_has_two_readings():
    """Signs and words are written in code, all others in the list; a name in both would hide one."""
    assert not load_template_kinds().keys() & TEMPLATE_SIGNS.keys()
    assert not load_template_kinds().keys() & TEMPLATE_WORDS.keys()
