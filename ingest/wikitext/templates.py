"""Double braces: what a template says in the text, by its name.

Templates that are words, dates or numbers become these (`wordings`, `dates`, `quantities`); boxes become rows
(`boxes`); everything else (citations, maintenance, navigation) goes.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from ingest.wikitext import dates, quantities, wordings
from ingest.wikitext.arguments import Arguments, parse
from ingest.wikitext.boxes import rows
from ingest.wikitext.functions import result
from ingest.wikitext.languages import ENGLISH
from ingest.wikitext.wordings import Handler

_HANDLERS = {**dates.HANDLERS, **quantities.HANDLERS, **wordings.HANDLERS}
_BOX = re.compile(
    r"infobox|info(?:/|box|kast|skreine)|taxobox|automatic taxobox|speciesbox|ficha|taxotabla|карточк|картка|infokutija|"
    r"chembox|drugbox|geobox|基礎情報|صندوق|معلومات|جعبه|정보|סטטיסטיקה|infoboks|bilgi kutusu|hộp thông tin|personendaten|"
    r"bio$|historical populations|us census population|weather box|election box|speciesbox|subspeciesbox|planetbox|"
    r"starbox|tietolaatikko|infolenteles?|infokast|infotaula|πλαίσιο|кутия|картуш|таксобокс"
)
_NO_BOX = re.compile(
    r"cit|cyt|nav|reflist|refbegin|multiple|location map|clade|chart|graph|graphic|image|bild|foto|montage|quote|portal|"
    r"sister|album ratings|listen|audio|video|succession|s-|authority|commons|wiki|webarchiv|internetquelle|literatur|"
    r"lien|ouvrage|article|chapitre|книга|статья|публикация|web|book|journal|news|unreferenced|cleanup|issues|"
    r"notelist|efn|sfn|harv|use |about|other|redirect|hatnote|main|see|further|timeline|dts|col|div|family|diagram|"
    r"chess|goban|football kit|kit|normdaten|control|side box|sidebar|position|karte|map|legend|imagemap|toc|pp-|"
    r"begriff|literatur|references|references|source|یادکرد|استشهاد|الاستشهاد|مرجع|웹 인용|서적|저널|뉴스|מקור|cita "
)
_LANGUAGE = re.compile(r"(?:lang|vol|langue)-([a-z-]{2,12})|(?:lang)-?([a-z]{2,3})-?short")
_IN_LANGUAGE = re.compile(r"\s*[A-Za-z]{2,3}S\s*")
_ITSELF = re.compile(r"\d+(?:er|re|e|ère|ème|ª|º)s?|[IVXLC]+(?:er|re|e)s?|[IVXLC]+e siècle(?: av\. J\.-C\.)?")
_MANY = 4
"""Named arguments on lines of their own that make a box of a template with an unknown name."""


def rendered(body: str, language: str = "") -> str:
    """What stands for `{{body}}` in the text: words, rows on lines of their own, or nothing."""
    name, _, rest = body.partition("|")
    if ":" in name and (said := result(name, rest)) is not None:
        return said
    handler = _handler(name, language)
    return handler(rest) if handler else ""


@lru_cache(maxsize=65536)
def _handler(name: str, language: str) -> Callable[[str], str] | None:
    """How a template of this name is read, None if it says nothing."""
    known = " ".join(name.replace("_", " ").split())
    if _ITSELF.fullmatch(known):
        return lambda _: known
    lowered = known.lower().removeprefix("template:")
    if (found := _HANDLERS.get(lowered) or _by_form(lowered, known)) and lowered not in _ELSEWHERE.get(language, ()):
        return _saying(found, known if lowered in wordings.WORDS else "", language)
    if _BOX.match(lowered):
        return lambda rest: rows(parse(rest, language))
    if not lowered or _NO_BOX.search(lowered):
        return None
    return lambda rest: _unknown(rest, language)


_ELSEWHERE = {"en": frozenset({"s", "s-", "m", "date-"}), "de": frozenset({"s", "m"})}
"""Names that say something in other languages than these."""


def _saying(handler: Handler, alone: str, language: str) -> Callable[[str], str]:
    """A handler of the unread arguments; `alone` is said where there are none."""
    if not alone:
        return lambda rest: handler(parse(rest, language))
    return lambda rest: (parse(rest).at(0) if rest else "") or alone


def _by_form(lowered: str, known: str) -> Handler | None:
    """Handlers of families of names: `lang-de`, and `deS` of the German Wikipedia."""
    if match := _LANGUAGE.fullmatch(lowered):
        english = ENGLISH.get(match[1] or "", "")
        return lambda arguments: _labelled(english if arguments.language == "en" else "", wordings.first(arguments))
    if _IN_LANGUAGE.fullmatch(known):
        return wordings.first
    return None


def _labelled(label: str, text: str) -> str:
    return f"{label}: {text}" if label and text else text


def _unknown(rest: str, language: str) -> str:
    """A template whose name says nothing to us is a box if it has many named arguments on lines of their own."""
    if rest.count("=") < _MANY or rest.count("\n") < _MANY:
        return ""
    arguments: Arguments = parse(rest, language)
    return rows(arguments) if len(arguments.names) >= _MANY else ""
