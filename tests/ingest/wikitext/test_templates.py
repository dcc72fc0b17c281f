"""Templates of words, dates and numbers are rendered, others omitted."""

import pytest

from ingest.wikitext.markup_cleanup import HOLE
from ingest.wikitext.templates import expand_template
from ingest.wikitext.wiki_site import load_meanings
from ingest.wikitext.word_templates import TEMPLATE_SIGNS


@pytest.mark.parametrize(
    ("template", "expected"),
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
        ("#expr: 1310 / 156.9 round 1", "8.3"),
        ("#expr: -(2 + 3) * 2^3", "-40"),
        ("#expr: 7 mod 4 - 1", "2"),
        ("#expr: 1 / 0", ""),
        ("#expr: (1", ""),
        ("#expr: {{{x}}} + 1", ""),
        ("pop density|3645257|640081.87|km2|sqmi|prec=1", "5.7/km²"),
        ("fossil range|370|0", "370–0 Ma "),
        ("ESP", "Spain"),
        ("flag|JPN", "Japan"),
        ("USS|Hornet|CV-12|6", "USS Hornet"),
        ("music|flat", "♭"),
        ("OldStyleDate|February 2|1905|January 20", "February 2 [O.S. January 20] 1905"),
        ("vgrelease|NA|May 1|JP=June 2", "NA: May 1\x04JP: June 2"),
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
def test_english_templates_are_rendered(template, expected):
    assert expand_template(template, "en").strip(HOLE) == expected


@pytest.mark.parametrize(
    ("language", "template", "expected"),
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
        ("fr", "nombre|71|sièges", "71 sièges"),
        ("fr", "tmp|9.5|°C", "9.5 °C"),
        ("it", "tmp|stub", ""),
        ("es", "esd", " "),
        ("ar", "ألمانية|Spree", "(Spree)"),
        ("fr", "jumelage|Lyon|France|année=1967", "Lyon, France, 1967"),
        ("ja", "JPN", "JPN"),
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
def test_templates_of_other_languages_are_rendered(language, template, expected):
    assert expand_template(template, language).strip(HOLE) == expected


@pytest.mark.parametrize("template", ["cn", "inflation-fn|UK", "actualizar|2012", "אנ|Skarholm Light"])
def test_silent_templates_leave_no_hole(template):
    assert expand_template(template) == ""


def test_template_names_are_unambiguous():
    assert not load_meanings("template_names").keys() & TEMPLATE_SIGNS.keys()
    assert not load_meanings("template_names").keys() & load_meanings("template_words").keys()
