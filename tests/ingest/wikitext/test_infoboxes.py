"""Boxes: every fact is a row of label and value; pictures, colours and sizes are none."""

import pytest

from ingest.types import Block
from ingest.wikitext.wikitext_parser import make_sections, parse_wikitext
from storage.types import PassageKind


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


@pytest.mark.parametrize(
    ("argument", "row"),
    [
        ("latest release version = 4.2", "Latest release version: 4.2"),
        ("architectural_style = Gothic", "Architectural style: Gothic"),
        ("Ship class = Nimitz", "Ship class: Nimitz"),
        ("body_style = 4-door saloon", "Body style: 4-door saloon"),
        ("children = Robert and Tad", "Children: Robert and Tad"),
        ("category = Cat. 5", "Category: Cat. 5"),
        ("coordinates = {{coord|52|31|N|13|24|E}}", "Coordinates: 52°31′N 13°24′E"),
        ("size = 12 ha", "Size: 12 ha"),
        ("width = 28 m", "Width: 28 m"),
        ("borders = France", "Borders: France"),
        ("display = 15-inch", "Display: 15-inch"),
        ("conventional_long_name = Aruba", "Conventional long name: Aruba"),
        ("population = 185112", "Population: 185112"),
        ("Breite = 12 m", "Breite: 12 m"),
        ("taille = 1,80 m", "Taille: 1,80 m"),
        ("Larghezza = 28", "Larghezza: 28"),
        ("Latitudine NS = N", "Latitudine NS: N"),
        ("name = Brot und Bilder", "Name: Brot und Bilder"),
        ("Bildung = Abitur", "Bildung: Abitur"),
        ("position = 4", "Position: 4"),
        ("legendary_creatures = dragon", "Legendary creatures: dragon"),
        ("notes = Lost in 1912", "Notes: Lost in 1912"),
        ("density = {{#expr: 10 / 4}} per km", "Density: 2.5 per km"),
    ],
)
def test_a_fact_is_kept_whatever_word_its_name_has_within(argument, row):
    """Words are compared whole: an architectural style is no style of a cell, children are no `child`."""
    assert rows("{{Infobox x\n|a=1st\n|" + argument + "\n}}")[1:] == [row]


@pytest.mark.parametrize(
    "argument",
    [
        "image = A ship", "image_size = 120", "imagesize = 120", "ImageSize = 12", "map_caption = At sea",
        "logo = a.svg", "bodystyle = x", "style = width:20em;", "color = #dedede", "familycolor = Altaic",
        "linecolor = 336699", "flag_link = Flag of X", "seal_size = 70", "légende drapeau = Drapeau",
        "taille image = 200", "imagen_pie = x", "Bildbreite = 200px", "画像説明 = 城", "website_url = x",
        "photo1a = x", "state = collapsed", "module = yes", "cost = ${{Inflation|US|1|1990}} million",
    ],
)  # fmt: skip
def test_looks_are_no_facts(argument):
    """Pictures, their captions and sizes, colours, and an amount that cannot be said."""
    assert rows("{{Infobox x\n|a=1st\n|" + argument + "\n}}")[1:] == []


@pytest.mark.parametrize("name", ["Divisione amministrativa", "Nave", "Videogioco", "College", "Wikisode", "Colonia"])
def test_a_box_is_one_whatever_its_name_has_within(name):
    """`div`, `nav`, `video` and `col` are parts of other words."""
    assert len(rows("{{" + name + "\n|a=1x\n|b=2x\n|c=3x\n|d=4x\n}}")) == 4


@pytest.mark.parametrize(
    "name", ["Cite web", "cita libro", "Navbox", "Multiple image", "Literatur", "웹 인용", "Article"]
)
def test_citations_pictures_and_boxes_of_links_are_no_boxes(name):
    """However many arguments they have."""
    assert rows("{{" + name + "\n|a=1x\n|b=2x\n|c=3x\n|d=4x\n}}") == []


@pytest.mark.parametrize(
    "arguments",
    [
        "latd=52|latm=31|latNS=N|longd=13|longm=24|longEW=E",
        "lat_deg=52|lat_min=31|lat_dir=N|lon_deg=13|lon_min=24|lon_dir=E",
        "lat_d=52|lat_m=31|long_d=13|long_m=24",
    ],
)
def test_the_parts_of_a_position_are_one_row(arguments):
    assert rows("{{Infobox x|" + arguments + "}}") == ["Coordinates: 52°31′N 13°24′E"]
    assert rows("{{Infobox x|lat=52.5|long=13.4}}") == ["Coordinates: 52.5, 13.4"]


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        (
            "{{Episode list\n|EpisodeNumber=1\n|Title=Pilot\n|LineColor=336699\n|ShortSummary=They meet.\n}}",
            ["Episode Number: 1; Title: Pilot", "They meet."],
        ),
        (
            "{{succession box|title=Mayor|years=1990–94|before=Ann|after=Bo}}",
            ["Office: Mayor (1990–94)", "Preceded by: Ann", "Succeeded by: Bo"],
        ),
        ("{{s-bef|before=Ann}}{{s-ttl|title=Mayor|years=1990}}", ["Preceded by: Ann", "Office: Mayor (1990)"]),
        ("{{clade|1=A|label2=B|2={{clade|1=C|2=D}}}}", ["(A, B: (C, D))"]),
        (
            "{{MedalSport|Tennis}}{{MedalGold|1996 Atlanta|Singles}}",
            ["Sport: Tennis", "Gold medal: 1996 Atlanta, Singles"],
        ),
        ("{{bar box|title=Faith|titlebar=#ddd|bars={{bar percent|A|red|60}}}}", ["Faith", "- A: 60%"]),
        ("{{columns|width=9em|col1=\n* a\n|col2=\n* b\n}}", ["- a", "- b"]),
        ('{|\n|colspan="2" {{yes}}\n|x\n|}', ["Yes: x"]),
    ],
)
def test_what_templates_lay_out_is_read(text, blocks):
    """Episodes, offices, family trees of species, medals, bars and columns."""
    assert [
        block.text for section in make_sections(parse_wikitext(text, language="en")) for block in section.blocks
    ] == blocks
