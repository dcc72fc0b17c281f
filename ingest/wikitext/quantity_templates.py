"""Render templates of numbers and dates: measures, fractions, money, coordinates, days and years."""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from ingest.wikitext.markup_cleanup import make_superscript
from ingest.wikitext.wiki_site import load_meanings
from ingest.wikitext.word_templates import TemplateArguments, TemplateHandler, first
from storage.language.lazy_pattern import lazy_compile

_RANGES = MappingProxyType({
    "-": "–", "–": "–", "to": " to ", "and": " and ", "or": " or ", "by": " by ", "x": " × ", "×": " × ", "*": " × ",
    "+/-": " ± ", "±": " ± ", "to(-)": " to ", "and(-)": " and ", "xx": " × ",
})  # fmt: skip


def _strip_number(text: str) -> bool:
    return text[:1].isdigit() or text[:2].lstrip("-−+.").isdigit()


def _unit_sign(unit: str) -> str:
    return load_meanings("unit_signs").get(unit, unit)


def convert(arguments: TemplateArguments) -> str:
    parts: list[str] = []
    places = arguments.places
    for place, part in enumerate(places):
        if _strip_number(part):
            parts.append(part)
        elif part in _RANGES and place + 1 < len(places) and _strip_number(places[place + 1]):
            parts.append(_RANGES[part])
        else:
            parts.append(f" {load_meanings('unit_signs').get(part, part)}")
            # Feet and inches: a number after a unit belongs to it unless it controls rounding.
            if not (
                place + 2 < len(places) and _strip_number(places[place + 1]) and places[place + 2] in ("in", "oz", "lb")
            ):
                break
            parts.append(" ")
    return "".join(parts).replace("  ", " ").strip()


def height(arguments: TemplateArguments) -> str:
    """Render `{{height|ft=6|in=2}}` as 6 ft 2 in."""
    parts = [f"{arguments.names[unit]} {unit}" for unit in ("ft", "in", "m", "cm") if arguments.names.get(unit)]
    return " ".join(parts) or convert(arguments)


def value(arguments: TemplateArguments) -> str:
    """Render `{{val|1.5|0.2|e=6|u=kg}}` as 1.5±0.2×10⁶ kg."""
    number = arguments.at(0)
    if arguments.at(1):
        number += f"±{arguments.at(1)}"
    if arguments.named("e"):
        number += f"×10{make_superscript(arguments.named('e'))}"
    unit = arguments.named("u", "ul", "unit")
    before = arguments.named("p", "pre")
    return f"{before}{number}{arguments.named('s', 'suf')} {load_meanings('unit_signs').get(unit, unit)}".strip()


def fraction(arguments: TemplateArguments) -> str:
    """Render `{{frac|3|1|2}}` as 3 1/2."""
    match [part for part in arguments.places if part]:
        case [whole, above, below, *_]:
            return f"{whole} {above}/{below}"
        case [above, below]:
            return f"{above}/{below}"
        case [below]:
            return f"1/{below}"
        case _:
            return ""


_TOKEN = lazy_compile(r"\d+(?:\.\d*)?|\.\d+|round|mod|[-+*/^()]")
_EXPRESSION = lazy_compile(r"(?:\s*+(?:\d++(?:\.\d*+)?|\.\d++|round|mod|[-+*/^()]))++\s*+")
_LONGEST_EXPRESSION = 200
_OPERATORS: Mapping[str, tuple[int, Callable[[float, float], float]]] = MappingProxyType({
    "round": (1, lambda left, right: round(left, int(max(-20, min(right, 20)))) if right else round(left)),
    "+": (2, operator.add), "-": (2, operator.sub), "*": (3, operator.mul), "/": (3, operator.truediv),
    "mod": (3, math.fmod), "^": (4, math.pow), "sign": (5, operator.mul),
})  # fmt: skip
"""Precedence of each operator, as in MediaWiki, and its function."""


def evaluate_expression(text: str) -> str:
    """Evaluate `#expr`: sums, products, powers, brackets and `round`. Empty for anything else."""
    plain = text.replace("−", "-").replace("×", "*")
    if len(plain) > _LONGEST_EXPRESSION or not _EXPRESSION.fullmatch(plain):
        return ""
    try:
        result = _calculate(["(", *_TOKEN.findall(plain), ")"])
    except (ArithmeticError, LookupError, ValueError):
        return ""
    return f"{result:.12g}" if math.isfinite(result) else ""


def _calculate(tokens: list[str]) -> float:
    numbers: list[float] = []
    waiting: list[str] = []
    for before, part in pairwise(["(", *tokens]):
        if part[0].isdigit() or part[0] == ".":
            numbers.append(float(part))
        elif part == "(":
            waiting.append(part)
        elif part in "+-" and (before == "(" or before in _OPERATORS):
            numbers.append(-1.0 if part == "-" else 1.0)
            waiting.append("sign")
        else:
            least = _OPERATORS[part][0] if part != ")" else 0
            while waiting[-1] != "(" and _OPERATORS[waiting[-1]][0] >= least:
                right, left = numbers.pop(), numbers.pop()
                numbers.append(_OPERATORS[waiting.pop()][1](left, right))
            if part == ")":
                waiting.pop()
            else:
                waiting.append(part)
    (result,) = numbers
    if waiting:
        raise ValueError
    return result


def density(arguments: TemplateArguments) -> str:
    """Render `{{pop density|3645257|640081.87|km2|prec=1}}` as 5.7/km²."""
    result = evaluate_expression(
        f"{arguments.at(0)}/{arguments.at(1)} round {arguments.named('prec') or 0}".replace(",", "")
    )
    return (
        f"{result}/{load_meanings('unit_signs').get(arguments.at(2), arguments.at(2))}"
        if result and arguments.at(2)
        else result
    )


def ordinal(arguments: TemplateArguments) -> str:
    """Render `{{ordinal|22}}` as 22nd."""
    number = first(arguments)
    ending = "th" if number[-2:-1] == "1" else {"1": "st", "2": "nd", "3": "rd"}.get(number[-1:], "th")
    return f"{number}{ending}" if number.isdigit() else number


def measure(arguments: TemplateArguments) -> str:
    """Render `{{unité|12|hab/km|2}}` as 12 hab/km², and `{{M|5|ul=km}}` as 5 km."""
    parts = [arguments.at(0)]
    for part in arguments.places[1:6]:
        if _strip_number(part) and len(parts) > 1:
            parts[-1] += make_superscript(part)
        elif part:
            parts.append(part)
    unit = arguments.named("u", "ul", "um")
    return " ".join([*parts, _unit_sign(unit)]).strip()


def coordinates(arguments: TemplateArguments) -> str:
    """Render `{{coord|52|31|N|13|24|E}}` as 52°31′N 13°24′E."""
    if arguments.named("display") in ("title", "t"):
        return ""
    if not {"N", "S"}.intersection(arguments.places[:4]):
        return ", ".join(part for part in arguments.places[:2] if _strip_number(part))
    text, signs = "", iter("°′″")
    for part in arguments.places[:8]:
        if part in ("N", "S", "E", "W", "O"):
            text += f"{part} "
            signs = iter("°′″")
        elif _strip_number(part) and text.count(" ") < 2:  # noqa: PLR2004 - latitude and longitude
            text += f"{part}{next(signs, '')}"
        else:
            break
    return text.strip()


def format_position(latitude: Sequence[str], longitude: Sequence[str]) -> str:
    """Format a position given as degrees, minutes, seconds and directions; empty unless the degrees are numbers."""
    if not (_strip_number(latitude[0]) and _strip_number(longitude[0])):
        return ""
    if not any((*latitude[1:], *longitude[1:])):
        return f"{latitude[0]}, {longitude[0]}"
    sides = zip((latitude, longitude), "NE", strict=True)
    return " ".join(
        "".join(f"{part}{sign}" for part, sign in zip(parts, "°′″", strict=False) if part) + (parts[3] or side)
        for parts, side in sides
    )


def make_money_handler(sign: str) -> TemplateHandler:
    """Return a handler that puts `sign` before an amount: it renders `{{US$|5 million}}` as US$5 million."""
    return lambda arguments: f"{sign}{first(arguments)}" if first(arguments) else sign.strip()


_HANDLERS = (convert, height, value, fraction, density, ordinal, measure, coordinates)
QUANTITY_HANDLERS: Mapping[str, TemplateHandler] = MappingProxyType(
    {
        **{handler.__name__: handler for handler in _HANDLERS},
        "power_of_ten": lambda a: f"×10{make_superscript(first(a))}",  # `{{e|6}}`: ×10⁶.
        "ten_to_the": lambda a: f"10{make_superscript(first(a))}",  # `{{10^|6}}`: 10⁶.
        "power": lambda a: f"{a.at(0)}{make_superscript(a.at(1))}",  # `{{pow|2|8}}`: 2⁸.
        "root": lambda a: f"√{first(a)}",  # `{{sqrt|2}}`: √2.
        # In the French Wikipedia; the Italian one has another template of this name.
        "temperature": lambda a: measure(a) if _strip_number(a.at(0)) else "",
        "percent": lambda a: f"{first(a)}%",  # `{{percent|12}}`: 12%.
        "above_sea": lambda a: f"{a.at(0)} m" if a.at(0) else "",  # `{{Höhe|34|DE-NHN}}`: 34 m.
        # `{{fossil range|370|0}}`: 370–0 Ma.
        "ages": lambda a: "–".join(filter(None, a.places[:2])) + " Ma " * _strip_number(a.at(0)),
        "atom": lambda a: "-".join(filter(None, a.places[:2])),  # `{{SimpleNuclide|uranium|235}}`: uranium-235.
        # `{{bar percent|Catholic|green|12.5}}`: a row of a chart.
        "labelled_percent": lambda a: f"\n* {a.at(0)}: {a.at(2)}%\n" if a.at(2) else "",
    }
)
"""By the kinds of `template_names.txt`."""

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
_BETWEEN_DATE_PARTS = MappingProxyType({"es": " de ", "pt": " de "})
_AFTER_DAY = MappingProxyType({"de": ". ", "da": ". ", "no": ". ", "es": " de ", "pt": " de "})
_MONTH_NUMBER = lazy_compile(r"[0-9]{1,2}")
_YEAR_DIGITS = 3


def format_date(year: str, month: str, day: str, language: str, *, day_first: bool = True) -> str:
    """Write a date in words; missing parts are left out. The month may be a number or a name."""
    if not year or (not month and not day):
        return year
    if language in ("ja", "zh", "ko"):
        signs = "년월일" if language == "ko" else "年月日"
        return "".join(
            f"{part.lstrip('0')}{sign}" for part, sign in zip((year, month, day), signs, strict=True) if part
        )
    name = _month_name(month, language)
    if not name:
        return "-".join(filter(None, (year, month.zfill(2), day and day.zfill(2))))
    day = day.lstrip("0")
    between = _BETWEEN_DATE_PARTS.get(language, " ")
    if not day:
        return f"{name}{between}{year}"
    if language == "en" and not day_first:
        return f"{name} {day}, {year}"
    return f"{day}{_AFTER_DAY.get(language, ' ')}{name}{between}{year}"


def _month_name(month: str, language: str) -> str:
    """Return the name of a month, given as number or name; empty if this language's month names are unknown."""
    if not _MONTH_NUMBER.fullmatch(month):
        return month
    names = _MONTHS.get(language or "en", "").split()
    return names[int(month) - 1] if 0 < int(month) <= len(names) else ""


def date(arguments: TemplateArguments, start: int = 0) -> str:
    """Write a date from year, month, day, or the reverse, from argument `start` on. A year has three digits or more."""
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
    return format_date(year, month, day, arguments.language, day_first=day_first)


def as_of(arguments: TemplateArguments) -> str:
    """Render `{{as of|2015|4}}` as As of April 2015."""
    if arguments.named("alt"):
        return arguments.named("alt")
    word = "Since" if arguments.named("since") else "As of"
    word = word.lower() if arguments.named("lc") else word
    return f"{word} {date(arguments)}"


def circa(arguments: TemplateArguments) -> str:
    """Render `{{circa|1500|1510}}` as c. 1500 – c. 1510."""
    years = [f"c. {year}" for year in arguments.places[:2] if year]
    return " – ".join(years) or "c."


def century(arguments: TemplateArguments) -> str:
    """Render `{{s|XIX|e}}` as XIXe siècle, and `{{siglo|XIX||s}}` as siglo XIX."""
    number = f"{arguments.at(0)}{arguments.at(1)}"
    return f"siglo {arguments.at(0)}" if arguments.language == "es" else f"{number} siècle"


def lifetime(arguments: TemplateArguments) -> str:
    """Render `{{bd|1879年|3月14日|1955年|4月18日}}` as 1879年3月14日－1955年4月18日."""
    born, died = "".join(arguments.places[:2]), "".join(arguments.places[2:4])
    return f"{born}－{died}" if died else born


DATE_HANDLERS: Mapping[str, TemplateHandler] = MappingProxyType(
    {
        **{handler.__name__: handler for handler in (date, as_of, circa, century, lifetime)},
        # The second of two dates: a death after a birth.
        "later_date": lambda a: date(a, 3) or date(a),
        # `{{floruit|1500|1510}}`: fl. 1500–1510.
        "floruit": lambda a: f"fl. {'–'.join(filter(None, a.places[:2]))}".strip(),
        "reign": lambda a: f"r. {'–'.join(filter(None, a.places[:2]))}".strip(),  # `{{reign|1500|1510}}`: r. 1500–1510.
        "clock": lambda a: f"{a.at(0)} h {a.at(1)}".strip(),  # `{{heure|14|30}}`: 14 h 30.
    }
)
"""By the kinds of `template_names.txt`."""
