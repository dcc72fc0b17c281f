"""Templates that stand for words: styles, languages, quotations, links, lists, signs.

Each function takes a template's arguments to the words that a reader would see; `template_names.txt` says which names
it is for. `dates` and `quantities` do the same for dates and for numbers.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ingest.wikitext.arguments import Arguments
from ingest.wikitext.marks import BREAK, PIPE, raised

Handler = Callable[[Arguments], str]

SIGNS: Mapping[str, str] = MappingProxyType({
    "'": "'", "'s": "'s", "-'": "'", "`": "‘", "=": "=", "!": PIPE, "!!": PIPE * 2, "pipe": PIPE, "(": "(", ")": ")",
    "(!": "{" + PIPE, "!)": PIPE + "}", "!-": PIPE + "-", "ndash": "–", "–": "–", "en dash": "–", "endash": "–",
    "mdash": "—", "—": "—", "em dash": "—", "emdash": "—", "spaced ndash": " – ", "snd": " – ", "spnd": " – ",
    "spaced en dash": " – ", "sndash": " – ", "snds": " – ", "mdashb": " — ", "spaced mdash": " — ", "nbsp": " ",
    "space": " ", "spaces": " ", "sp": " ", "thinsp": " ", "thin space": " ", "hair space": " ", "·": " · ",
    "•": " • ", "dot": " · ", "middot": " · ", "bullet": " • ", "bold dot": " · ", "\\": " / ", "br": BREAK,
    "break": BREAK, "crlf": BREAK, "سخ": BREAK, "zwnj": "\u200c", "okina": "ʻ", "hamza": "ʾ", "ayin": "ʿ",
    "dagger": "†", "double-dagger": "‡", "asterisk": "*", "number sign": "#", "hash": "#", "section sign": "§",
    "pi": "π", "ø": "—", "prime": "′", "sharp": "♯", "flat": "♭", "km²": "km²", "infinity": "∞", "degree": "°",
})  # fmt: skip
"""Templates that are one sign, whatever their arguments, by name."""

WORDS: Mapping[str, str] = MappingProxyType({
    "yes": "Yes", "no": "No", "y": "Yes", "n": "No", "tick": "Yes", "check": "Yes", "cross": "No", "aye": "Yes",
    "won": "Won", "nom": "Nominated", "n/a": "N/A", "na": "N/A", "tba": "TBA", "unknown": "Unknown", "dunno": "?",
    "free": "Free", "nonfree": "Proprietary", "partial": "Partial", "maybe": "Maybe", "good": "Good", "bad": "Bad",
    "some": "Some", "depends": "Depends", "included": "Included", "active": "Active", "pending": "Pending",
    "eliminated": "Eliminated", "bce": "BCE", "ce": "CE", "bc": "BC", "ad": "AD", "ca.": "c.",
})  # fmt: skip
"""Templates that say this unless an argument says more (`{{yes|since 1999}}`), by name."""


def first(arguments: Arguments) -> str:
    """The first argument."""
    return arguments.at(0) or arguments.named("text", "content")


def second(arguments: Arguments) -> str:
    """The second argument, or the first if it is alone."""
    return arguments.at(1) or arguments.at(0)


def third(arguments: Arguments) -> str:
    """The third argument, or the nearest before it."""
    return arguments.at(2) or second(arguments)


def last(arguments: Arguments) -> str:
    """The last argument."""
    return arguments.places[-1] if arguments.places else arguments.named("text")


def joined(arguments: Arguments) -> str:
    """All arguments without anything between them."""
    return "".join(arguments.places)


def spaced(arguments: Arguments) -> str:
    """All arguments with spaces between them."""
    return " ".join(filter(None, arguments.places))


def itemised(arguments: Arguments) -> str:
    """Arguments that are lists already, or are the items of one; each on a line of its own."""
    items = [arguments.named("title", "heading"), *arguments.places]
    return "\n".join(item if item[:1] in "*#\n" else f"\n* {item}" for item in items if item)


def quotation(arguments: Arguments) -> str:
    """A quotation, and who said it, on lines of their own."""
    said = arguments.named("text", "quote", "zitat", "texto", "testo", "texte", "citat", "تוכן") or arguments.at(0)
    who = arguments.named("author", "sign", "by", "autor", "auteur", "autore") or arguments.at(1)
    return f"\n\n{said}\n{f'— {who}' if who else ''}\n" if said else ""


def quoted(arguments: Arguments) -> str:
    """A quotation within a sentence."""
    return f"“{first(arguments)}”" if first(arguments) else ""


def in_language(arguments: Arguments) -> str:
    """Words of another language: `{{lang|de|Wort}}`."""
    # Alone, an argument is the words if it is too long for a language's code.
    return arguments.at(1) or arguments.named("text") or (arguments.at(0) if len(arguments.at(0)) > 3 else "")  # noqa: PLR2004


def sound(arguments: Arguments) -> str:
    """A sound in the English Wikipedia, which speaks of sounds so; elsewhere, and with a language, a pronunciation."""
    return arguments.at(0) if arguments.language == "en" and len(arguments.places) == 1 else ""


def nihongo(arguments: Arguments) -> str:
    """English, then the Japanese and its reading in brackets."""
    within = ", ".join(filter(None, arguments.places[1:3]))
    english = arguments.at(0)
    return f"{english} ({within})" if english and within else english or within


def with_reading(arguments: Arguments) -> str:
    """A word and its reading in brackets."""
    return f"{arguments.at(0)}({arguments.at(1)})" if arguments.at(1) else arguments.at(0)


def chinese(arguments: Arguments) -> str:
    """The forms of a Chinese word with their names."""
    forms = (("t", "Chinese"), ("c", "Chinese"), ("s", "simplified"), ("p", "pinyin"), ("j", "Jyutping"), ("l", "lit."))
    said = [f"{name}: {arguments.names[key]}" for key, name in forms if arguments.names.get(key)]
    return "; ".join(said) or first(arguments)


def ship(arguments: Arguments) -> str:
    """A ship's name: `{{ship|HMS|Beagle}}`."""
    return " ".join(filter(None, arguments.places[:2]))


def ship_class(arguments: Arguments) -> str:
    """`{{sclass|Nimitz|aircraft carrier}}`: Nimitz-class aircraft carrier."""
    return f"{arguments.at(0)}-class {arguments.at(1)}".strip()


def marriage(arguments: Arguments) -> str:
    """A spouse and the years."""
    years = "–".join(filter(None, arguments.places[1:3]))
    return f"{arguments.at(0)} ({years})" if years else arguments.at(0)


def person(arguments: Arguments) -> str:
    """`{{sortname|Ayn|Rand}}`: first name and last name."""
    return " ".join(filter(None, arguments.places[:2]))


def superscript(arguments: Arguments) -> str:
    """A superscript, a number as such."""
    return raised(first(arguments))


def aside(arguments: Arguments) -> str:
    """An insertion between dashes."""
    return f"– {first(arguments)} –"


def angled(arguments: Arguments) -> str:
    """A letter as it is written, in angle brackets."""
    return f"⟨{first(arguments)}⟩"


def bracketed(arguments: Arguments) -> str:
    """A word put into a quotation, in square brackets."""
    return f"[{first(arguments)}]"


def over(arguments: Arguments) -> str:
    """`{{rating|4|5}}`: 4/5."""
    return "/".join(filter(None, arguments.places[:2]))


def extinct(arguments: Arguments) -> str:
    """The dagger of what is no more."""
    return f"†{first(arguments)}"


HANDLERS: Mapping[str, Handler] = MappingProxyType({
    handler.__name__: handler
    for handler in (
        first, second, third, last, joined, spaced, itemised, quotation, quoted, in_language, sound, nihongo,
        with_reading, chinese, ship, ship_class, marriage, person, superscript, aside, angled, bracketed, over, extinct,
    )
})  # fmt: skip
"""By kind."""
