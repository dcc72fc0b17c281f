"""Templates that stand for numbers: measures, fractions, values with an uncertainty, money, places on the globe."""

from collections.abc import Mapping
from types import MappingProxyType

from ingest.wikitext.arguments import Arguments
from ingest.wikitext.marks import raised
from ingest.wikitext.wordings import Handler, first

_UNITS = MappingProxyType({
    "km2": "km²", "m2": "m²", "cm2": "cm²", "mm2": "mm²", "km3": "km³", "m3": "m³", "cm3": "cm³", "sqmi": "sq mi",
    "sqkm": "km²", "sqft": "sq ft", "sqyd": "sq yd", "cuft": "cu ft", "cuin": "cu in", "cumi": "cu mi", "C": "°C",
    "F": "°F", "K": "K", "km/h": "km/h", "kmh": "km/h", "m/s2": "m/s²", "kg/m3": "kg/m³", "C-change": "°C",
    "F-change": "°F", "/km2": "/km²", "/sqmi": "/sq mi", "PD/km2": "per km²", "PD/sqmi": "per sq mi", "usgal": "US gal",
    "impgal": "imp gal", "nmi": "nautical miles", "floz": "fl oz", "lbft": "lb·ft", "u": "u",
    "pd/km2": "per km²", "pd/sqmi": "per sq mi", "ST": "short tons", "LT": "long tons", "t": "t",
})  # fmt: skip
_RANGES = MappingProxyType({
    "-": "–", "–": "–", "to": " to ", "and": " and ", "or": " or ", "by": " by ", "x": " × ", "×": " × ", "*": " × ",
    "+/-": " ± ", "±": " ± ", "to(-)": " to ", "and(-)": " and ", "xx": " × ",
})  # fmt: skip
MONEY = MappingProxyType({
    "us$": "US$", "usd": "US$", "$": "$", "gbp": "£", "£": "£", "pound sterling": "£", "€": "€", "eur": "€",
    "inr": "₹", "₹": "₹", "indian rupee": "₹", "a$": "A$", "aud": "A$", "c$": "C$", "cad": "C$", "ca$": "C$",
    "jpy": "¥", "¥": "¥", "cny": "¥", "rmb": "¥", "krw": "₩", "nz$": "NZ$", "nzd": "NZ$", "hk$": "HK$", "hkd": "HK$",
    "php": "₱", "rub": "₽", "chf": "CHF ", "sek": "SEK ", "nok": "NOK ", "dkk": "DKK ", "pln": "PLN ", "brl": "R$",
    "zar": "R", "nt$": "NT$", "twd": "NT$", "ils": "₪", "nis": "₪", "try": "₺", "iusd": "US$", "euro": "€",
})  # fmt: skip
"""The sign of a currency, by the name of its template."""


def _number(text: str) -> bool:
    return text[:1].isdigit() or text[:2].lstrip("-−+.").isdigit()


def convert(arguments: Arguments) -> str:
    """The measure as given, not converted: `{{convert|5|to|10|km|mi}}` is 5 to 10 km."""
    said: list[str] = []
    places = arguments.places
    for place, part in enumerate(places):
        if _number(part):
            said.append(part)
        elif part in _RANGES and place + 1 < len(places) and _number(places[place + 1]):
            said.append(_RANGES[part])
        else:
            said.append(f" {_UNITS.get(part, part)}")
            # Feet and inches: a number after a unit belongs to it unless it says how to round.
            if not (place + 2 < len(places) and _number(places[place + 1]) and places[place + 2] in ("in", "oz", "lb")):
                break
            said.append(" ")
    return "".join(said).replace("  ", " ").strip()


def height(arguments: Arguments) -> str:
    """`{{height|ft=6|in=2}}`: 6 ft 2 in."""
    said = [f"{arguments.names[unit]} {unit}" for unit in ("ft", "in", "m", "cm") if arguments.names.get(unit)]
    return " ".join(said) or convert(arguments)


def value(arguments: Arguments) -> str:
    """`{{val|1.5|0.2|e=6|u=kg}}`: 1.5±0.2×10⁶ kg."""
    number = arguments.at(0)
    if arguments.at(1):
        number += f"±{arguments.at(1)}"
    if arguments.named("e"):
        number += f"×10{raised(arguments.named('e'))}"
    unit = arguments.named("u", "ul", "unit")
    before = arguments.named("p", "pre")
    return f"{before}{number}{arguments.named('s', 'suf')} {_UNITS.get(unit, unit)}".strip()


def fraction(arguments: Arguments) -> str:
    """`{{frac|3|1|2}}`: 3 1/2."""
    match [part for part in arguments.places if part]:
        case [whole, above, below, *_]:
            return f"{whole} {above}/{below}"
        case [above, below]:
            return f"{above}/{below}"
        case [below]:
            return f"1/{below}"
        case _:
            return ""


def power_of_ten(arguments: Arguments) -> str:
    """`{{e|6}}`: ×10⁶."""
    return f"×10{raised(first(arguments))}"


def ordinal(arguments: Arguments) -> str:
    """`{{ordinal|22}}`: 22nd."""
    number = first(arguments)
    ending = "th" if number[-2:-1] == "1" else {"1": "st", "2": "nd", "3": "rd"}.get(number[-1:], "th")
    return f"{number}{ending}" if number.isdigit() else number


def measure(arguments: Arguments) -> str:
    """`{{unité|12|hab/km|2}}`: 12 hab/km²; `{{M|5|ul=km}}`: 5 km."""
    said = [arguments.at(0)]
    for part in arguments.places[1:6]:
        if _number(part) and len(said) > 1:
            said[-1] += raised(part)
        elif part:
            said.append(part)
    unit = arguments.named("u", "ul", "um")
    return " ".join([*said, _UNITS.get(unit, unit)]).strip()


def coordinates(arguments: Arguments) -> str:
    """`{{coord|52|31|N|13|24|E}}`: 52°31′N 13°24′E."""
    if arguments.named("display") in ("title", "t"):
        return ""
    if not {"N", "S"}.intersection(arguments.places[:4]):
        return ", ".join(part for part in arguments.places[:2] if _number(part))
    said, signs = "", iter("°′″")
    for part in arguments.places[:8]:
        if part in ("N", "S", "E", "W", "O"):
            said += f"{part} "
            signs = iter("°′″")
        elif _number(part) and said.count(" ") < 2:  # noqa: PLR2004 - latitude and longitude
            said += f"{part}{next(signs, '')}"
        else:
            break
    return said.strip()


def above_sea(arguments: Arguments) -> str:
    """`{{Höhe|34|DE-NHN}}`: 34 m."""
    return f"{arguments.at(0)} m" if arguments.at(0) else ""


def atom(arguments: Arguments) -> str:
    """`{{SimpleNuclide|uranium|235}}`: uranium-235."""
    return "-".join(filter(None, arguments.places[:2]))


def labelled_percent(arguments: Arguments) -> str:
    """A bar of a chart: `{{bar percent|Catholic|green|12.5}}` is a row."""
    return f"\n* {arguments.at(0)}: {arguments.at(2)}%\n" if arguments.at(2) else ""


def ten_to_the(arguments: Arguments) -> str:
    """`{{10^|6}}`: 10⁶."""
    return f"10{raised(first(arguments))}"


def power(arguments: Arguments) -> str:
    """`{{pow|2|8}}`: 2⁸."""
    return f"{arguments.at(0)}{raised(arguments.at(1))}"


def root(arguments: Arguments) -> str:
    """`{{sqrt|2}}`: √2."""
    return f"√{first(arguments)}"


def percent(arguments: Arguments) -> str:
    """`{{percent|12}}`: 12%."""
    return f"{first(arguments)}%"


def money(sign: str) -> Handler:
    """`{{US$|5 million}}`: US$5 million."""
    return lambda arguments: f"{sign}{first(arguments)}" if first(arguments) else sign.strip()


HANDLERS: Mapping[str, Handler] = MappingProxyType({
    handler.__name__: handler
    for handler in (
        convert, height, value, fraction, power_of_ten, ten_to_the, power, root, percent, ordinal, measure, coordinates,
        above_sea, atom, labelled_percent,
    )
})  # fmt: skip
"""By kind."""
