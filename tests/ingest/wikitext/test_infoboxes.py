"""Infoboxes become rows of label and value, without pictures, colours and sizes."""

import pytest

from ingest.types import Block
from ingest.wikitext.wikitext_parser import make_sections, parse_wikitext
from storage.types import PassageKind


def rows(text, language="en"):
    blocks = [block for section in make_sections(parse_wikitext(text, language=language)) for block in section.blocks]
    return [block.text for block in blocks if block.kind is PassageKind.TABLE]


def test_infobox_becomes_rows_of_label_and_value():
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "{{Infobox country\n|leader_title1 = President\n|leader_name1 = Ann\n|label1 = Rank\n|data1 = 3rd\n}}",
            ["President: Ann", "Rank: 3rd"],
        ),
        ("{{Nieznany\n|a=1x\n|b=2x\n|c=3x\n|d=4x\n}}", ["A: 1x", "B: 2x", "C: 3x", "D: 4x"]),
        ("{{Nieznany|a=1x|b=2x}}", []),
        (
            "{{Weather box\n|Jan high C = 3\n|Feb high C = 4\n|location = Ulm\n}}",
            ["High C: Jan 3, Feb 4", "Location: Ulm"],
        ),
        ("{{Historical populations|1900|1250|1910|9046}}", ["1900: 1250", "1910: 9046"]),
    ],
    ids=["labels", "unknown box", "unknown template", "climate", "populations"],
)
def test_box_becomes_rows(text, expected):
    assert rows(text) == expected


def test_nested_infobox_keeps_its_rows():
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
def test_argument_names_are_compared_by_whole_words(argument, row):
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
def test_arguments_of_style_are_omitted(argument):
    assert rows("{{Infobox x\n|a=1st\n|" + argument + "\n}}")[1:] == []


@pytest.mark.parametrize("name", ["Divisione amministrativa", "Nave", "Videogioco", "College", "Wikisode", "Colonia"])
def test_box_names_are_compared_by_whole_words(name):
    assert len(rows("{{" + name + "\n|a=1x\n|b=2x\n|c=3x\n|d=4x\n}}")) == 4


@pytest.mark.parametrize(
    "name", ["Cite web", "cita libro", "Navbox", "Multiple image", "Literatur", "웹 인용", "Article"]
)
def test_citations_pictures_and_navigation_are_not_boxes(name):
    assert rows("{{" + name + "\n|a=1x\n|b=2x\n|c=3x\n|d=4x\n}}") == []


@pytest.mark.parametrize(
    "arguments",
    [
        "latd=52|latm=31|latNS=N|longd=13|longm=24|longEW=E",
        "lat_deg=52|lat_min=31|lat_dir=N|lon_deg=13|lon_min=24|lon_dir=E",
        "lat_d=52|lat_m=31|long_d=13|long_m=24",
    ],
)
def test_degrees_minutes_and_directions_form_one_row_of_coordinates(arguments):
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
def test_layout_templates_are_rendered(text, blocks):
    assert [
        block.text for section in make_sections(parse_wikitext(text, language="en")) for block in section.blocks
    ] == blocks
