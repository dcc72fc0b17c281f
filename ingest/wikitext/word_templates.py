"""Render templates of words: styles, languages, quotations, links, lists and signs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ingest.wikitext.markup_cleanup import BREAK, PIPE, make_superscript
from ingest.wikitext.wiki_site import load_meanings


@dataclass(frozen=True, slots=True)
class TemplateArguments:
    """The arguments of a template, by position and by name, without surrounding white space."""

    places: tuple[str, ...]
    names: dict[str, str]
    language: str = ""  # of the wiki, ISO 639-1: some templates depend on it

    def at(self, place: int) -> str:
        return self.places[place] if place < len(self.places) else self.names.get(str(place + 1), "")

    def named(self, *names: str) -> str:
        """Return the first argument with one of these names, in lower case or capitalized, that is not empty."""
        written = (form for name in names for form in (name, name.capitalize()))
        return next((self.names[name] for name in written if self.names.get(name)), "")


def parse_arguments(rest: str, language: str = "") -> TemplateArguments:
    """Parse the text after a template's name and the first pipe. Nested markup is already replaced by text."""
    places: list[str] = []
    names: dict[str, str] = {}
    for part in rest.split("|"):
        name, equals, value = part.partition("=")
        if equals:
            names[name.strip()] = value.strip()
        else:
            places.append(part.strip())
    return TemplateArguments(tuple(places), names, language)


TemplateHandler = Callable[[TemplateArguments], str]

TEMPLATE_SIGNS: Mapping[str, str] = MappingProxyType({
    "'": "'", "' \"": "'\"", "\" '": "\"'", '-"': '"',
    "'s": "'s", "-'": "'", "`": "‘", "=": "=", "!": PIPE, "!!": PIPE * 2, "pipe": PIPE, "(": "(", ")": ")",
    "(!": "{" + PIPE, "!)": PIPE + "}", "!-": PIPE + "-", "ndash": "–", "–": "–", "en dash": "–", "endash": "–",
    "mdash": "—", "—": "—", "em dash": "—", "emdash": "—", "spaced ndash": " – ", "snd": " – ", "spnd": " – ",
    "spaced en dash": " – ", "sndash": " – ", "snds": " – ", "mdashb": " — ", "spaced mdash": " — ", "nbsp": " ",
    "space": " ", "spaces": " ", "sp": " ", "thinsp": " ", "thin space": " ", "hair space": " ", "·": " · ",
    "•": " • ", "dot": " · ", "middot": " · ", "bullet": " • ", "bold dot": " · ", "\\": " / ", "br": BREAK,
    "break": BREAK, "crlf": BREAK, "سخ": BREAK, "zwnj": "\u200c", "okina": "ʻ", "hamza": "ʾ", "ayin": "ʿ",
    "dagger": "†", "double-dagger": "‡", "asterisk": "*", "number sign": "#", "hash": "#", "section sign": "§",
    "pi": "π", "ø": "—", "prime": "′", "sharp": "♯", "flat": "♭", "km²": "km²", "infinity": "∞", "degree": "°",
})  # fmt: skip
"""Signs by the name of their template, whose arguments do not matter."""


def first(arguments: TemplateArguments) -> str:
    return arguments.at(0) or arguments.named("text", "content")


def second(arguments: TemplateArguments) -> str:
    return arguments.at(1) or arguments.at(0)


def itemised(arguments: TemplateArguments) -> str:
    items = [arguments.named("title", "heading"), *arguments.places]
    return "\n".join(item if item[:1] in "*#\n" else f"\n* {item}" for item in items if item)


def quotation(arguments: TemplateArguments) -> str:
    text = arguments.named("text", "quote", "zitat", "texto", "testo", "texte", "citat", "تוכן") or arguments.at(0)
    who = arguments.named("author", "sign", "by", "autor", "auteur", "autore") or arguments.at(1)
    return f"\n\n{text}\n{f'— {who}' if who else ''}\n" if text else ""


def nihongo(arguments: TemplateArguments) -> str:
    within = ", ".join(filter(None, arguments.places[1:3]))
    english = arguments.at(0)
    return f"{english} ({within})" if english and within else english or within


def chinese(arguments: TemplateArguments) -> str:
    forms = (("t", "Chinese"), ("c", "Chinese"), ("s", "simplified"), ("p", "pinyin"), ("j", "Jyutping"), ("l", "lit."))
    parts = [f"{name}: {arguments.names[key]}" for key, name in forms if arguments.names.get(key)]
    return "; ".join(parts) or first(arguments)


def marriage(arguments: TemplateArguments) -> str:
    years = "–".join(filter(None, arguments.places[1:3]))
    return f"{arguments.at(0)} ({years})" if years else arguments.at(0)


def columns(arguments: TemplateArguments) -> str:
    """Render `{{columns|col1=...|col2=...}}`, or lists in arguments without a name, as their unchanged lines."""
    named = [value for name, value in arguments.names.items() if name.rstrip("0123456789") in ("col", "content")]
    return "\n" + "\n".join(named or [part for part in arguments.places if "\n" in part or part[:1] == "*"]) + "\n"


def releases(arguments: TemplateArguments) -> str:
    """Render `{{vgrelease|NA|May 1, 2001|JP=June 2}}` as NA: May 1, 2001, JP: June 2."""
    pairs = [*zip(arguments.places[::2], arguments.places[1::2], strict=False), *arguments.names.items()]
    return BREAK.join(f"{region}: {date}" for region, date in pairs if region and date)


_MUSIC_SIGNS = MappingProxyType({
    "flat": "♭", "b": "♭", "sharp": "♯", "#": "♯", "natural": "♮", "n": "♮", "doubleflat": "𝄫", "doublesharp": "𝄪",
    "x": "𝄪",
})  # fmt: skip


_HANDLERS = (first, second, itemised, quotation, nihongo, chinese, marriage, columns, releases)
WORD_HANDLERS: Mapping[str, TemplateHandler] = MappingProxyType(
    {
        **{handler.__name__: handler for handler in _HANDLERS},
        "third": lambda a: a.at(2) or second(a),
        "last": lambda a: a.places[-1] if a.places else a.named("text"),
        "joined": lambda a: "".join(a.places),
        "spaced": lambda a: " ".join(filter(None, a.places)),
        "quoted": lambda a: f"“{first(a)}”" if first(a) else "",
        # Words of another language: `{{lang|de|Wort}}`.
        "in_language": lambda a: a.at(1) or a.named("text") or (a.at(0) if len(a.at(0)) > 3 else ""),  # noqa: PLR2004
        # A sound of speech in the English Wikipedia; elsewhere, or with a language, a pronunciation.
        "sound": lambda a: a.at(0) if a.language == "en" and len(a.places) == 1 else "",
        "with_reading": lambda a: f"{a.at(0)}({a.at(1)})" if a.at(1) else a.at(0),
        "ship": lambda a: " ".join(filter(None, a.places[:2])),  # A ship's name: `{{ship|HMS|Beagle}}`.
        "ship_class": lambda a: f"{a.at(0)}-class {a.at(1)}".strip(),
        "person": lambda a: " ".join(filter(None, a.places[:2])),  # `{{sortname|Ayn|Rand}}`: first name and last name.
        "superscript": lambda a: make_superscript(first(a)),
        # An insertion between dashes.
        "aside": lambda a: f"– {first(a)} –",
        # A letter in angle brackets.
        "angled": lambda a: f"⟨{first(a)}⟩",
        # A word inserted into a quotation.
        "bracketed": lambda a: f"[{first(a)}]",
        "over": lambda a: "/".join(filter(None, a.places[:2])),
        "music": lambda a: _MUSIC_SIGNS.get(a.at(0).lower(), a.at(0)) + a.at(1),
        "patent": lambda a: f"Patent {first(a)}" if first(a) else "",
        "verse": lambda a: " ".join(filter(None, a.places[:2])),  # `{{bibleref|Mark|3:25}}`
        "country": lambda a: load_meanings("country_names").get(a.at(0), a.at(0)) if a.language == "en" else a.at(0),
        "old_style": lambda a: f"{a.at(0)} [O.S. {a.at(2)}] {a.at(1)}",
        "hard_space": lambda a: first(a) or " ",  # `45{{esd}}km`
        "parenthesised": lambda a: f"({first(a)})" if first(a) else "",  # `{{ألمانية|Spree}}`, in its language.
        # A twin town: `{{jumelage|Los Angeles|États-Unis|année=1967}}`.
        "sister": lambda a: ", ".join(filter(None, (*a.places[:2], a.named("année", "מתאריך")))),
        "extinct": lambda a: f"†{first(a)}",
    }
)
"""By the kinds of `template_names.txt`."""
