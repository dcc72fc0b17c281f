"""Render double braces: what a template or a parser function says in the text, by its name.

Infoboxes, templates with named arguments one a line, become rows of "Label: value". Parser functions (`{{#if:...}}`,
`{{formatnum:...}}`) are evaluated as far as a page can say what they yield without its wiki.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

from ingest.wikitext import quantity_templates, word_templates
from ingest.wikitext.html_tags import render_latex
from ingest.wikitext.markup_cleanup import BREAK, PIPE, ROW, shelter_text
from ingest.wikitext.quantity_templates import CURRENCY_SIGNS, make_money_handler
from ingest.wikitext.wiki_site import load_template_kinds
from ingest.wikitext.word_templates import (
    COUNTRY_NAMES,
    LANGUAGE_NAMES,
    TEMPLATE_SIGNS,
    TEMPLATE_WORDS,
    TemplateArguments,
    TemplateHandler,
    parse_arguments,
)
from storage.language.lazy_pattern import lazy_compile

_PICTORIAL = lazy_compile(
    r"image|imag[ei]n|bild|img|photo|foto|logo|icon|map|karte|carte|mapa|caption|légende|legend|alt$|_alt|width|size|"
    r"größe|breite|^lien|^diagramm|quelle$|taille|style|colou?r|farbe|couleur|font|align|class|bodystyle|footnote|^refs?$|_refs?$|note?s?$|audio|"
    r"signature|pushpin|coord|^lat|^long|_lat|_long|latd|lond|zoom|^dot|skin|sound|video|thumb|upright|border|embed|"
    r"module|child|suppress|float|margin|collaps|plainrow|autoheader|state$|display|nocat|categor|fichier|archivo|"
    r"immagine|imagem|файл|изображение|подпись|ширина|размер|画像|图像|圖像|图片|圖片|그림|사진|صورة|تصویر|תמונה|כיתוב|"
    r"rozmiar|grafika|afbeelding|bildtext|url$|link$|^id$|^doi$|isbn|accessdate|archive|access-date|cite",
    re.IGNORECASE,
)
_FILE_ENDING = lazy_compile(r"\.(?:jpe?g|png|svg|gif|tiff?|webp|ogg|oga|ogv|webm|mp3|pdf)\s*$", re.IGNORECASE)
_EMPTY_VALUE = lazy_compile(
    r"(?:[\W_]*|yes|no|y|n|none|#?[0-9a-f]{6}|\d+px|left|right|center|auto|inline|title|dmy|mdy)", re.IGNORECASE
)
_HUMP = lazy_compile(r"(?<=[a-z])([A-Z])(?=[a-z])")
_MONTHLY = lazy_compile(r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[ _](.+)", re.IGNORECASE)
_CRYPTIC = lazy_compile(r"[a-z]{1,3}(?:jan|feb|m[aä]r|mrz|apr|mai|may|jun|jul|aug|sep|okt|oct|nov|dez|dec)")
_PARTNERS = (
    ("label", "data"), ("_label", "_data"), ("_title", "_name"), ("_title", ""), ("_type", "_name"),
    ("_event", "_date"), ("_name", "_info"), ("blank_name_sec", "blank_info_sec"), ("_header", "_data"),
    ("heading", "data"), ("titre", "texte"), ("_name", "_value"),
)  # fmt: skip
_BEFORE = (("titre ", "nom "), ("titre ", ""), ("type ", "date "), ("type ", ""))
"""The same where the language puts it before."""
_LONGEST_VALUE = 1000  # characters of a value; what is longer is no value of a row
_LONGEST_LABEL = 80
_LIST_SIGNS = "*#:; \t"


def render_box(arguments: TemplateArguments) -> str:
    """Render the named arguments as rows, each on a line of its own, without pictures, colours and sizes.

    An argument that names another (`leader_title`, `label1`) becomes the label of that (`leader_name`, `data1`).
    """
    names = arguments.names
    labels = _find_labels(names)
    said = set(labels.values())
    out = _render_climate(names) + _render_years(arguments.places)
    for name, value in names.items():
        if value and name not in said and (label := _make_label(name)):
            text = flatten_value(value)
            if (
                text
                and len(text) < _LONGEST_VALUE
                and not _EMPTY_VALUE.fullmatch(text)
                and not _FILE_ENDING.search(text)
            ):
                out.append(f"{ROW}{flatten_value(names[labels[name]]) if name in labels else label}: {text}")
        if ROW in value:
            out += [line for line in value.split("\n") if line.startswith(ROW)]
    return "\n" + "\n".join(out) + "\n" if out else ""


def _render_climate(names: dict[str, str]) -> list[str]:
    """Render a climate's numbers, a row for each quantity: `Jan high C` and its like are "High C: Jan 3, Feb 4"."""
    found: dict[str, list[str]] = {}
    for name, value in names.items():
        if value and len(value) < _LONGEST_LABEL and (match := _MONTHLY.fullmatch(name)):
            found.setdefault(match[2], []).append(f"{match[1].capitalize()} {flatten_value(value)}")
    return [
        f"{ROW}{_make_label(quantity)}: {', '.join(values)}"
        for quantity, values in found.items()
        if _make_label(quantity)
    ]


def _render_years(places: tuple[str, ...]) -> list[str]:
    """`{{historical populations|1900|1250|1910|9046}}`: a row for each year."""
    pairs = list(zip(places[::2], places[1::2], strict=False))
    years = len(pairs) > 1 and all(len(year) == 4 and year.isdigit() for year, _ in pairs)  # noqa: PLR2004
    return [f"{ROW}{year}: {number}" for year, number in pairs] if years else []


def flatten_value(value: str) -> str:
    """Put a value on one line: list items and line breaks become commas, tables and rows within it are left out."""
    if "\n" in value:
        lines = (line.strip(_LIST_SIGNS) for line in value.split("\n") if line[:1] not in (ROW, "|", "!", PIPE, "{"))
        value = ", ".join(line for line in lines if line)
    if BREAK in value:
        parts = (part.strip(" ,") for part in value.split(BREAK))
        value = ", ".join(part for part in parts if part).replace(", (", " (").replace(":, ", ": ")
    return value.replace(",,", ",").strip(_LIST_SIGNS + ",")


def _find_labels(names: dict[str, str]) -> dict[str, str]:
    """Map the name of an argument to the name of the one that labels it."""
    found: dict[str, str] = {}
    for name, value in names.items():
        if value and len(value) <= _LONGEST_LABEL:
            for other in _labelled_names(name):
                if names.get(other):
                    found.setdefault(other, name)
                    break
    return found


@lru_cache(maxsize=16384)
def _labelled_names(name: str) -> tuple[str, ...]:
    """Yield the names that an argument may be the label of: `leader_title1` of `leader_name1`."""
    stem = name.rstrip("0123456789")
    number = name[len(stem) :]
    pairs = ((ending, partner) for ending, partner in _PARTNERS if stem.endswith(ending))
    others = [stem[: -len(ending)] + partner + number for ending, partner in pairs]
    others += [after + name[len(before) :] for before, after in _BEFORE if name.startswith(before)]
    return tuple(other for other in others if other != name)


@lru_cache(maxsize=16384)
def _make_label(name: str) -> str:
    """Make a label: `birth_date` and `BirthDate` are Birth date; nothing for pictures, colours and the like."""
    if _PICTORIAL.search(name) or _CRYPTIC.fullmatch(name) or _MONTHLY.fullmatch(name):
        return ""
    words = " ".join(_HUMP.sub(r" \1", name.replace("km2", "km²").replace("_", " ").replace("-", " ")).split())
    stem = words.rstrip("0123456789").rstrip()
    words = stem if stem and len(words) - len(stem) <= 3 else words  # noqa: PLR2004 - a number of two digits, a space
    return words[:1].upper() + words[1:]


def _evaluate_switch(value: str, cases: list[str]) -> str:
    default, wanted = "", False
    for case in cases:
        name, equals, result = case.partition("=")
        wanted = wanted or name.strip() == value.strip()
        if equals and wanted:
            return result
        if name.strip() == "#default" or not equals:
            default = result or name
    return default


def _evaluate_tag(name: str, content: list[str]) -> str:
    if name.strip() == "math" and content:
        return shelter_text(render_latex(content[0]))
    return "".join(content[:1]) if name.strip() in ("poem", "small", "span", "div", "nowiki") else ""


def _first_branch(_: str, branches: list[str]) -> str:
    return "".join(branches[:1])


_DIGITS = lazy_compile(r"[0-9]{1,30}")
_COMMAS = frozenset({"", "en", "he", "ja", "ko", "simple", "th", "zh"})
_FUNCTIONS: Mapping[str, Callable[[str, list[str]], str]] = MappingProxyType(
    {
        "#if": lambda condition, branches: branches[0] if condition.strip() else "".join(branches[1:2]),
        "#ifeq": lambda left, rest: (
            "".join(rest[1:2]) if rest and left.strip() == rest[0].strip() else "".join(rest[2:3])
        ),
        "#iferror": lambda value, rest: "".join(rest[1:2]) or value,
        "#ifexpr": _first_branch,
        "#ifexist": _first_branch,
        "#switch": _evaluate_switch,
        "#tag": _evaluate_tag,
        "#time": lambda _, __: "",
        "#formatdate": lambda value, _: value,
        "#dateformat": lambda value, _: value,
        "lc": lambda value, _: value.lower(),
        "uc": lambda value, _: value.upper(),
        "lcfirst": lambda value, _: value[:1].lower() + value[1:],
        "ucfirst": lambda value, _: value[:1].upper() + value[1:],
        "plural": _first_branch,
        "padleft": lambda value, _: value,
        "nowrap": lambda value, _: value,
    }
)


def group_digits(number: str, language: str) -> str:
    """Write a number as wikis do whose language groups by commas; leave it as it is elsewhere."""
    whole, point, part = number.strip().partition(".")
    if language not in _COMMAS or not _DIGITS.fullmatch(whole):
        return number.strip()
    return f"{int(whole):,}{point}{part}"


def evaluate_function(name: str, rest: str, language: str = "") -> str | None:
    """Return what `{{name:...|rest}}` yields, `name` with its colon and what follows; None if it is no parser function.

    Functions that ask the wiki (`#invoke`, `#expr`, `#property`) and magic words (`DEFAULTSORT:`) yield nothing.
    """
    function, colon, value = name.strip().partition(":")
    function = function.lower()
    if not colon or (function[:1] != "#" and function not in _FUNCTIONS and function != "formatnum"):
        return "" if colon and function.replace(" ", "").isalpha() and name.strip()[:2].isupper() else None
    if function == "formatnum":
        return group_digits(value, language) if "r" not in rest.lower() else value.strip()
    known = _FUNCTIONS.get(function)
    return known(value, rest.split("|") if rest else []).strip() if known else ""


_HANDLERS = MappingProxyType(
    {**word_templates.WORD_HANDLERS, **quantity_templates.DATE_HANDLERS, **quantity_templates.QUANTITY_HANDLERS}
)
_BOX_NAME = lazy_compile(
    r"infobox|info(?:/|box|kast|skreine)|taxobox|automatic taxobox|speciesbox|ficha|taxotabla|"
    r"карточк|картка|infokutija|"
    r"chembox|drugbox|geobox|基礎情報|صندوق|معلومات|جعبه|정보|סטטיסטיקה|infoboks|bilgi kutusu|hộp thông tin|"
    r"personendaten|bio$|historical populations|us census population|weather box|election box|speciesbox|subspeciesbox|"
    r"planetbox|starbox|tietolaatikko|infolenteles?|infokast|infotaula|πλαίσιο|кутия|картуш|таксобокс"
)
_NO_BOX_NAME = lazy_compile(
    r"cit|cyt|nav|reflist|refbegin|multiple|location map|clade|chart|graph|graphic|image|bild|foto|montage|quote|"
    r"portal|sister|album ratings|listen|audio|video|succession|s-|authority|commons|wiki|webarchiv|"
    r"internetquelle|literatur|"
    r"lien|ouvrage|article|chapitre|книга|статья|публикация|web|book|journal|news|unreferenced|cleanup|issues|"
    r"notelist|efn|sfn|harv|use |about|other|redirect|hatnote|main|see|further|timeline|dts|col|div|family|diagram|"
    r"chess|goban|football kit|kit|normdaten|control|side box|sidebar|position|karte|map|legend|imagemap|toc|pp-|"
    r"begriff|literatur|references|source|یادکرد|استشهاد|الاستشهاد|مرجع|웹 인용|서적|저널|뉴스|מקור|cita "
)
_LANGUAGE = lazy_compile(r"(?:lang|vol|langue)-([a-z-]{2,12})|(?:lang)-?([a-z]{2,3})-?short")
_IN_LANGUAGE = lazy_compile(r"\s*[A-Za-z]{2,3}S\s*")
_ITSELF = lazy_compile(r"\d+(?:er|re|e|ère|ème|ª|º)s?|[IVXLC]+(?:er|re|e)s?|[IVXLC]+e siècle(?: av\. J\.-C\.)?")
_LOCAL = MappingProxyType({
    "fr": {"citation": "quoted", "s": "century", "h": "clock"},
    "es": {"s": "century"},
    "it": {"m": "measure"},
    "ru": {"s": "first", "c": "first"},
})  # fmt: skip
"""Names that are read so in one language alone."""
_MANY = 4
"""Named arguments on lines of their own that make a box of a template with an unknown name."""


def render_template(body: str, language: str = "") -> str:
    """Return what stands for `{{body}}` in the text: words, rows on lines of their own, or nothing."""
    name, _, rest = body.partition("|")
    if ":" in name and (result := evaluate_function(name, rest, language)) is not None:
        return result
    handler = _find_handler(name, language)
    return handler(rest) if handler else ""


@lru_cache(maxsize=65536)
def _find_handler(name: str, language: str) -> Callable[[str], str] | None:
    """Return how a template of this name is read, None if it says nothing."""
    written = " ".join(name.replace("_", " ").split())
    known = written.lower().removeprefix("template:")
    if _ITSELF.fullmatch(written):
        return lambda _: written
    if found := _find_by_name(known, language) or _find_by_form(known, written):
        return lambda rest: found(parse_arguments(rest, language))
    if _BOX_NAME.match(known):
        return lambda rest: render_box(parse_arguments(rest, language))
    if not known or _NO_BOX_NAME.search(known):
        return None
    return lambda rest: _render_unknown(rest, language)


def _find_by_name(name: str, language: str) -> TemplateHandler | None:
    if (sign := TEMPLATE_SIGNS.get(name)) is not None:
        return lambda _: sign
    if word := TEMPLATE_WORDS.get(name):
        return lambda arguments: arguments.at(0) or word
    if currency := CURRENCY_SIGNS.get(name):
        return make_money_handler(currency)
    if name == "langx":
        return lambda arguments: _label_language(arguments.at(0), arguments.at(1), arguments.language)
    return _HANDLERS.get(_LOCAL.get(language, {}).get(name) or load_template_kinds().get(name, ""))


def _find_by_form(name: str, written: str) -> TemplateHandler | None:
    """Find handlers of families of names: `lang-de`, `deS` of the German Wikipedia, and the codes of countries."""
    if match := _LANGUAGE.fullmatch(name):
        return lambda arguments: _label_language(match[1] or "", word_templates.first(arguments), arguments.language)
    if _IN_LANGUAGE.fullmatch(written):
        return word_templates.first
    if country := COUNTRY_NAMES.get(written):
        return lambda arguments: country if arguments.language == "en" else written
    return None


def _label_language(code: str, text: str, language: str) -> str:
    """Label words of another language, as the English Wikipedia does."""
    label = LANGUAGE_NAMES.get(code) if language == "en" else None
    return f"{label}: {text}" if label and text else text


def _render_unknown(rest: str, language: str) -> str:
    """Read a template whose name says nothing to us as a box if it has many named arguments on lines of their own."""
    if rest.count("=") < _MANY or rest.count("\n") < _MANY:
        return ""
    arguments: TemplateArguments = parse_arguments(rest, language)
    return render_box(arguments) if len(arguments.names) >= _MANY else ""
