"""Infoboxes: templates with named arguments, one a line, become rows of "Label: value"."""

import re
from functools import lru_cache

from ingest.wikitext.arguments import Arguments
from ingest.wikitext.marks import BREAK, PIPE, ROW

_PICTORIAL = re.compile(
    r"image|imag[ei]n|bild|img|photo|foto|logo|icon|map|karte|carte|mapa|caption|légende|legend|alt$|_alt|width|size|"
    r"größe|breite|^lien|^diagramm|quelle$|taille|style|colou?r|farbe|couleur|font|align|class|bodystyle|footnote|^refs?$|_refs?$|note?s?$|audio|"
    r"signature|pushpin|coord|^lat|^long|_lat|_long|latd|lond|zoom|^dot|skin|sound|video|thumb|upright|border|embed|"
    r"module|child|suppress|float|margin|collaps|plainrow|autoheader|state$|display|nocat|categor|fichier|archivo|"
    r"immagine|imagem|файл|изображение|подпись|ширина|размер|画像|图像|圖像|图片|圖片|그림|사진|صورة|تصویر|תמונה|כיתוב|"
    r"rozmiar|grafika|afbeelding|bildtext|url$|link$|^id$|^doi$|isbn|accessdate|archive|access-date|cite",
    re.IGNORECASE,
)
_FILE = re.compile(r"\.(?:jpe?g|png|svg|gif|tiff?|webp|ogg|oga|ogv|webm|mp3|pdf)\s*$", re.IGNORECASE)
_EMPTY = re.compile(
    r"(?:[\W_]*|yes|no|y|n|none|#?[0-9a-f]{6}|\d+px|left|right|center|auto|inline|title|dmy|mdy)", re.IGNORECASE
)
_HUMP = re.compile(r"(?<=[a-z])([A-Z])(?=[a-z])")
_MONTHLY = re.compile(r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[ _](.+)", re.IGNORECASE)
_CRYPTIC = re.compile(r"[a-z]{1,3}(?:jan|feb|m[aä]r|mrz|apr|mai|may|jun|jul|aug|sep|okt|oct|nov|dez|dec)")
_PARTNERS = (
    ("label", "data"), ("_label", "_data"), ("_title", "_name"), ("_title", ""), ("_type", "_name"),
    ("_event", "_date"), ("_name", "_info"), ("blank_name_sec", "blank_info_sec"), ("_header", "_data"),
    ("heading", "data"), ("titre", "texte"), ("_name", "_value"),
)  # fmt: skip
_BEFORE = (("titre ", "nom "), ("titre ", ""), ("type ", "date "), ("type ", ""))
"""The same where the language puts it before."""
_LONGEST = 1000
"""Characters of a value; what is longer is no value of a row."""
_LONGEST_LABEL = 80
_LIST_SIGNS = "*#:; \t"


def rows(arguments: Arguments) -> str:
    """The named arguments as lines of their own, each a row; pictures, colours and sizes left out.

    An argument that names another (`leader_title`, `label1`) becomes the label of that (`leader_name`, `data1`).
    """
    names = arguments.names
    labels = _partners(names)
    said = set(labels.values())
    out = _by_month(names) + _by_year(arguments.places)
    for name, value in names.items():
        if value and name not in said and (label := _label(name)):
            text = flat(value)
            if text and len(text) < _LONGEST and not _EMPTY.fullmatch(text) and not _FILE.search(text):
                out.append(f"{ROW}{flat(names[labels[name]]) if name in labels else label}: {text}")
        if ROW in value:
            out += [line for line in value.split("\n") if line.startswith(ROW)]
    return "\n" + "\n".join(out) + "\n" if out else ""


def _by_month(names: dict[str, str]) -> list[str]:
    """A climate's numbers, a row for each quantity: `Jan high C` and its like are "High C: Jan 3, Feb 4"."""
    found: dict[str, list[str]] = {}
    for name, value in names.items():
        if value and len(value) < _LONGEST_LABEL and (match := _MONTHLY.fullmatch(name)):
            found.setdefault(match[2], []).append(f"{match[1].capitalize()} {flat(value)}")
    return [f"{ROW}{_label(quantity)}: {', '.join(said)}" for quantity, said in found.items() if _label(quantity)]


def _by_year(places: tuple[str, ...]) -> list[str]:
    """`{{historical populations|1900|1250|1910|9046}}`: a row for each year."""
    pairs = list(zip(places[::2], places[1::2], strict=False))
    years = len(pairs) > 1 and all(len(year) == 4 and year.isdigit() for year, _ in pairs)  # noqa: PLR2004
    return [f"{ROW}{year}: {number}" for year, number in pairs] if years else []


def flat(value: str) -> str:
    """A value on one line: list items and line breaks become commas, tables and rows within it are left out."""
    if "\n" in value:
        lines = (line.strip(_LIST_SIGNS) for line in value.split("\n") if line[:1] not in (ROW, "|", "!", PIPE, "{"))
        value = ", ".join(line for line in lines if line)
    if BREAK in value:
        parts = (part.strip(" ,") for part in value.split(BREAK))
        value = ", ".join(part for part in parts if part).replace(", (", " (").replace(":, ", ": ")
    return value.replace(",,", ",").strip(_LIST_SIGNS + ",")


def _partners(names: dict[str, str]) -> dict[str, str]:
    """From the name of an argument to the name of the one that labels it."""
    found: dict[str, str] = {}
    for name, value in names.items():
        if value and len(value) <= _LONGEST_LABEL:
            for other in _labelled(name):
                if names.get(other):
                    found.setdefault(other, name)
                    break
    return found


@lru_cache(maxsize=16384)
def _labelled(name: str) -> tuple[str, ...]:
    """The names that an argument may be the label of: `leader_title1` of `leader_name1`."""
    stem = name.rstrip("0123456789")
    number = name[len(stem) :]
    pairs = ((ending, partner) for ending, partner in _PARTNERS if stem.endswith(ending))
    others = [stem[: -len(ending)] + partner + number for ending, partner in pairs]
    others += [after + name[len(before) :] for before, after in _BEFORE if name.startswith(before)]
    return tuple(other for other in others if other != name)


@lru_cache(maxsize=16384)
def _label(name: str) -> str:
    """`birth_date` and `BirthDate` are Birth date; nothing for pictures, colours and the like."""
    if _PICTORIAL.search(name) or _CRYPTIC.fullmatch(name) or _MONTHLY.fullmatch(name):
        return ""
    words = " ".join(_HUMP.sub(r" \1", name.replace("km2", "km²").replace("_", " ").replace("-", " ")).split())
    stem = words.rstrip("0123456789").rstrip()
    words = stem if stem and len(words) - len(stem) <= 3 else words  # noqa: PLR2004 - a number of two digits, a space
    return words[:1].upper() + words[1:]
