"""Templates that stand for dates, in the order and with the months of the wiki's language."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from ingest.wikitext.arguments import Arguments
from ingest.wikitext.wordings import Handler

_MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "sv": "januari februari mars april maj juni juli augusti september oktober november december",
    "da": "januar februar marts april maj juni juli august september oktober november december",
    "no": "januar februar mars april mai juni juli august september oktober november desember",
    "pl": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    "ru": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "uk": "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня",
    "tr": "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık",
}
_BETWEEN = MappingProxyType({"es": " de ", "pt": " de "})
_AFTER_DAY = MappingProxyType({"de": ". ", "da": ". ", "no": ". ", "es": " de ", "pt": " de "})
_NUMBER = re.compile(r"[0-9]{1,2}")
_YEAR_DIGITS = 3


def written(year: str, month: str, day: str, language: str, *, day_first: bool = True) -> str:
    """A date in words. What is missing is left out; a month may be a number or a name."""
    if not year or (not month and not day):
        return year
    if language in ("ja", "zh", "ko"):
        signs = "년월일" if language == "ko" else "年月日"
        return "".join(
            f"{part.lstrip('0')}{sign}" for part, sign in zip((year, month, day), signs, strict=True) if part
        )
    name = _month(month, language)
    if not name:
        return "-".join(filter(None, (year, month.zfill(2), day and day.zfill(2))))
    day = day.lstrip("0")
    between = _BETWEEN.get(language, " ")
    if not day:
        return f"{name}{between}{year}"
    if language == "en" and not day_first:
        return f"{name} {day}, {year}"
    return f"{day}{_AFTER_DAY.get(language, ' ')}{name}{between}{year}"


def _month(month: str, language: str) -> str:
    """The month's name; as it is if it is a name; empty if the language's months are not known."""
    if not _NUMBER.fullmatch(month):
        return month
    names = _MONTHS.get(language or "en", "").split()
    return names[int(month) - 1] if 0 < int(month) <= len(names) else ""


def date(arguments: Arguments, start: int = 0) -> str:
    """Year, month, day, or day, month, year, from the argument `start` on: a year has three digits or more."""
    parts = [part for part in arguments.places[start : start + 3] if part]
    if not parts:
        return arguments.named("year", "1")
    if len(parts) == 1 or not any(part.isdigit() for part in parts):
        return parts[0]
    if len(parts[0]) < _YEAR_DIGITS or not parts[0].isdigit():
        parts = [part for part in parts if len(part) >= _YEAR_DIGITS and part.isdigit()] + [
            part for part in reversed(parts) if len(part) < _YEAR_DIGITS or not part.isdigit()
        ]
    year, month, day = (*parts, "", "")[:3]
    day_first = arguments.named("df", "dmy", "mf") in ("y", "yes", "true", "1", "dmy") or arguments.language != "en"
    return written(year, month, day, arguments.language, day_first=day_first)


def later_date(arguments: Arguments) -> str:
    """The second of two dates: a death after a birth."""
    return date(arguments, 3) or date(arguments)


def as_of(arguments: Arguments) -> str:
    """`{{as of|2015|4}}`: As of April 2015."""
    if arguments.named("alt"):
        return arguments.named("alt")
    word = "Since" if arguments.named("since") else "As of"
    word = word.lower() if arguments.named("lc") else word
    return f"{word} {date(arguments)}"


def circa(arguments: Arguments) -> str:
    """`{{circa|1500|1510}}`: c. 1500 – c. 1510."""
    years = [f"c. {year}" for year in arguments.places[:2] if year]
    return " – ".join(years) or "c."


def floruit(arguments: Arguments) -> str:
    """`{{floruit|1500|1510}}`: fl. 1500–1510."""
    return f"fl. {'–'.join(filter(None, arguments.places[:2]))}".strip()


def reign(arguments: Arguments) -> str:
    """`{{reign|1500|1510}}`: r. 1500–1510."""
    return f"r. {'–'.join(filter(None, arguments.places[:2]))}".strip()


def century(arguments: Arguments) -> str:
    """`{{s|XIX|e}}` is XIXe siècle, `{{siglo|XIX||s}}` is siglo XIX."""
    number = f"{arguments.at(0)}{arguments.at(1)}"
    return f"siglo {arguments.at(0)}" if arguments.language == "es" else f"{number} siècle"


def clock(arguments: Arguments) -> str:
    """`{{heure|14|30}}`: 14 h 30."""
    return f"{arguments.at(0)} h {arguments.at(1)}".strip()


def lifetime(arguments: Arguments) -> str:
    """`{{bd|1879年|3月14日|1955年|4月18日}}`: both dates."""
    born, died = "".join(arguments.places[:2]), "".join(arguments.places[2:4])
    return f"{born}－{died}" if died else born


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        handler.__name__: handler
        for handler in (date, later_date, as_of, circa, floruit, reign, century, clock, lifetime)
    }
)
"""By kind."""
