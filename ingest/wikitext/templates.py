"""Double braces: what a template says in the text, by its name.

Templates that are words, dates or numbers become these (`wordings`, `dates`, `quantities`); boxes become rows
(`boxes`); everything else (citations, maintenance, navigation) goes.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from types import MappingProxyType

from ingest.wikitext import dates, quantities, wordings
from ingest.wikitext.arguments import Arguments, parse
from ingest.wikitext.boxes import rows
from ingest.wikitext.english import COUNTRIES, ENGLISH
from ingest.wikitext.functions import result
from ingest.wikitext.names import template_kinds
from ingest.wikitext.quantities import MONEY, money
from ingest.wikitext.wordings import SIGNS, WORDS, Handler

_KINDS = MappingProxyType({**wordings.HANDLERS, **dates.HANDLERS, **quantities.HANDLERS})
_BOX = re.compile(
    r"infobox|info(?:/|box|kast|skreine)|taxobox|automatic taxobox|speciesbox|ficha|taxotabla|"
    r"карточк|картка|infokutija|"
    r"chembox|drugbox|geobox|基礎情報|صندوق|معلومات|جعبه|정보|סטטיסטיקה|infoboks|bilgi kutusu|hộp thông tin|"
    r"personendaten|bio$|historical populations|us census population|weather box|election box|speciesbox|subspeciesbox|"
    r"planetbox|starbox|tietolaatikko|infolenteles?|infokast|infotaula|πλαίσιο|кутия|картуш|таксобокс"
)
_NO_BOX = re.compile(
    r"cit|cyt|nav|reflist|refbegin|multiple|location map|clade|chart|graph|graphic|image|bild|foto|montage|quote|"
    r"portal|sister|album ratings|listen|audio|video|succession|s-|authority|commons|wiki|webarchiv|"
    r"internetquelle|literatur|"
    r"lien|ouvrage|article|chapitre|книга|статья|публикация|web|book|journal|news|unreferenced|cleanup|issues|"
    r"notelist|efn|sfn|harv|use |about|other|redirect|hatnote|main|see|further|timeline|dts|col|div|family|diagram|"
    r"chess|goban|football kit|kit|normdaten|control|side box|sidebar|position|karte|map|legend|imagemap|toc|pp-|"
    r"begriff|literatur|references|source|یادکرد|استشهاد|الاستشهاد|مرجع|웹 인용|서적|저널|뉴스|מקור|cita "
)
_LANGUAGE = re.compile(r"(?:lang|vol|langue)-([a-z-]{2,12})|(?:lang)-?([a-z]{2,3})-?short")
_IN_LANGUAGE = re.compile(r"\s*[A-Za-z]{2,3}S\s*")
_ITSELF = re.compile(r"\d+(?:er|re|e|ère|ème|ª|º)s?|[IVXLC]+(?:er|re|e)s?|[IVXLC]+e siècle(?: av\. J\.-C\.)?")
_LOCAL = MappingProxyType({
    "fr": {"citation": "quoted", "s": "century", "h": "clock"},
    "es": {"s": "century"},
    "it": {"m": "measure"},
    "ru": {"s": "first", "c": "first"},
})  # fmt: skip
"""Names that are read so in one language alone."""
_MANY = 4
"""Named arguments on lines of their own that make a box of a template with an unknown name."""


def rendered(body: str, language: str = "") -> str:
    """What stands for `{{body}}` in the text: words, rows on lines of their own, or nothing."""
    name, _, rest = body.partition("|")
    if ":" in name and (said := result(name, rest, language)) is not None:
        return said
    handler = _handler(name, language)
    return handler(rest) if handler else ""


@lru_cache(maxsize=65536)
def _handler(name: str, language: str) -> Callable[[str], str] | None:
    """How a template of this name is read, None if it says nothing."""
    written = " ".join(name.replace("_", " ").split())
    known = written.lower().removeprefix("template:")
    if _ITSELF.fullmatch(written):
        return lambda _: written
    if found := _by_name(known, language) or _by_form(known, written):
        return lambda rest: found(parse(rest, language))
    if _BOX.match(known):
        return lambda rest: rows(parse(rest, language))
    if not known or _NO_BOX.search(known):
        return None
    return lambda rest: _unknown(rest, language)


def _by_name(name: str, language: str) -> Handler | None:
    if (sign := SIGNS.get(name)) is not None:
        return lambda _: sign
    if word := WORDS.get(name):
        return lambda arguments: arguments.at(0) or word
    if currency := MONEY.get(name):
        return money(currency)
    if name == "langx":
        return lambda arguments: _labelled(arguments.at(0), arguments.at(1), arguments.language)
    return _KINDS.get(_LOCAL.get(language, {}).get(name) or template_kinds().get(name, ""))


def _by_form(name: str, written: str) -> Handler | None:
    """Handlers of families of names: `lang-de`, `deS` of the German Wikipedia, and the codes of countries."""
    if match := _LANGUAGE.fullmatch(name):
        return lambda arguments: _labelled(match[1] or "", wordings.first(arguments), arguments.language)
    if _IN_LANGUAGE.fullmatch(written):
        return wordings.first
    if country := COUNTRIES.get(written):
        return lambda arguments: country if arguments.language == "en" else written
    return None


def _labelled(code: str, text: str, language: str) -> str:
    """Words of another language, which the English Wikipedia names before them."""
    label = ENGLISH.get(code) if language == "en" else None
    return f"{label}: {text}" if label and text else text


def _unknown(rest: str, language: str) -> str:
    """A template whose name says nothing to us is a box if it has many named arguments on lines of their own."""
    if rest.count("=") < _MANY or rest.count("\n") < _MANY:
        return ""
    arguments: Arguments = parse(rest, language)
    return rows(arguments) if len(arguments.names) >= _MANY else ""
