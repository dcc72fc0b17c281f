"""Templates that stand for words: styles, languages, quotations, links, signs, lists.

Each handler takes a template's arguments to the words that a reader would see. `dates` and `quantities` do the same for
dates and for numbers.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ingest.wikitext.arguments import Arguments
from ingest.wikitext.marks import BREAK, PIPE, raised

Handler = Callable[[Arguments], str]


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


def listed(arguments: Arguments) -> str:
    """All arguments as a list on one line."""
    return ", ".join(filter(None, arguments.places))


def itemised(arguments: Arguments) -> str:
    """Arguments that are lists already, or are the items of one; each on a line of its own."""
    items = [arguments.named("title", "heading"), *arguments.places]
    return "\n".join(item if item[:1] in "*#\n" else f"\n* {item}" for item in items if item)


def quotation(arguments: Arguments) -> str:
    """A quotation, and who said it, on lines of their own."""
    said = arguments.named("text", "quote", "1", "zitat", "texto", "testo", "texte", "citat") or arguments.at(0)
    who = arguments.named("author", "sign", "by", "autor", "auteur", "autore") or arguments.at(1)
    return f"\n\n{said}\n{f'— {who}' if who else ''}\n" if said else ""


def quoted(arguments: Arguments) -> str:
    """A quotation within a sentence."""
    said = first(arguments)
    return f"“{said}”" if said else ""


def nihongo(arguments: Arguments) -> str:
    """English, then the Japanese and its reading in brackets."""
    within = ", ".join(filter(None, arguments.places[1:3]))
    english = arguments.at(0)
    return f"{english} ({within})" if english and within else english or within


def with_reading(arguments: Arguments) -> str:
    """A word and its reading in brackets."""
    return f"{arguments.at(0)}({arguments.at(1)})" if arguments.at(1) else arguments.at(0)


def in_language(arguments: Arguments) -> str:
    """Words of another language: `{{lang|de|Wort}}`."""
    return arguments.at(1) or arguments.named("2", "text") or ("" if len(arguments.at(0)) <= 3 else arguments.at(0))  # noqa: PLR2004 - a language's code has two or three letters


def chinese(arguments: Arguments) -> str:
    """The forms of a Chinese word with their names."""
    forms = (("t", "Chinese"), ("c", "Chinese"), ("s", "simplified"), ("p", "pinyin"), ("j", "Jyutping"), ("l", "lit."))
    said = [f"{name}: {arguments.names[key]}" for key, name in forms if arguments.names.get(key)]
    return "; ".join(said) or first(arguments)


def ship(arguments: Arguments) -> str:
    """A ship's name and number: `{{ship|HMS|Beagle}}`."""
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
    return spaced(Arguments(arguments.places[:2], {}))


def superscript(arguments: Arguments) -> str:
    """A superscript, a number as such."""
    return raised(first(arguments))


def aside(arguments: Arguments) -> str:
    """An insertion between dashes."""
    return f"– {first(arguments)} –"


def _each(handler: Handler, names: str) -> dict[str, Handler]:
    return dict.fromkeys(names.split("|"), handler)


def _sign(text: str) -> Handler:
    return lambda _: text


_SIGNS = {
    "'": "'", "'s": "'s", "''": "'", '"': '"', "-'": "'", "`": "‘", "=": "=", "!": PIPE, "!!": PIPE * 2, "pipe": PIPE,
    "(": "(", ")": ")", "(!": "{" + PIPE, "!)": PIPE + "}", "!-": PIPE + "-", "ndash": "–", "–": "–", "en dash": "–",
    "endash": "–", "mdash": "—", "—": "—", "em dash": "—", "emdash": "—", "spaced ndash": " – ", "snd": " – ",
    "spnd": " – ", "spaced en dash": " – ", "sndash": " – ", "mdashb": " — ", "snds": " – ", "nbsp": " ", "space": " ",
    "spaces": " ", "sp": " ", "thinsp": " ", "thin space": " ", "hair space": " ", "·": " · ", "•": " • ", "dot": " · ",
    "middot": " · ", "bullet": " • ", "bold dot": " · ", "\\": " / ", "br": BREAK, "break": BREAK, "crlf": BREAK,
    "سخ": BREAK, "zwj": "", "zwnj": "\u200c", "shy": "", "wbr": "", "okina": "ʻ", "hamza": "ʾ", "ayin": "ʿ", "yes": "Yes",
    "no": "No", "y": "Yes", "n": "No", "tick": "Yes", "check": "Yes", "cross": "No", "n/a": "N/A", "na": "N/A",
    "won": "Won", "nom": "Nominated", "tba": "TBA", "dagger": "†", "double-dagger": "‡", "asterisk": "*", "star": "*",
    "number sign": "#", "hash": "#", "section sign": "§", "pi": "π", "euro": "€", "ø": "—", "c": "c.", "s.d.": "s.d.",
    "ca.": "c.", "prime": "′", "sharp": "♯", "flat": "♭", "music": "", "ac": "a. C.", "dc": "d. C.", "bce": "BCE",
    "ce": "CE", "bc": "BC", "ad": "AD", "km²": "km²", "smiley": "", "infinity": "∞", "degree": "°",
}  # fmt: skip

_FIRST = (
    "nowrap|nobr|nobreak|nowr|j|nwr|small|smaller|big|larger|large|huge|sc|smallcaps|sc2|abbr|abbrv|abbreviation|"
    "tooltip|vanchor|visible anchor|em|strong|strongbad|strike|sub|mvar|math|var|code|mono|tt|kbd|samp|key press|key|"
    "keypress|nobold|noitalic|normal|font color|uc|lc|ill|ill-wd|ill-wd2|interlanguage link|interlanguage link multi|"
    "illm|linktext|pslink|esd|nobr2|nsbr|comment|hover title|hover|definition|defn|term|flag|flagcountry|flagu|flagdeco|"
    "flag+link|flagg|fb|nihongo2|script|polytonic|hebrew|unicode|nastaliq|nq|big2|box|not a typo|typo|sic-ok|as written|"
    "proper name|zh-t|zh-s|zh-hant|zh-hans|jpn|nowiki|vr|mathbf|italic title|section link|slink|first word|"
    "resize2|allow wrap|wrap|pad|verse translation|nobullets|longitem|nowrap item|native phrase|angbr ipa|"
    "仮リンク|日本語版にない記事リンク|le|link-en|link-de|link-fr|link-ja|link-ru|link-es|link-it|link-ko|link-la|"
    "internal link helper|僻字|llink|нп3|нп5|нп2|нп4|нп|не переведено|не переведено 3|не переведено 5|не переведено 2|"
    "iw|iw2|lien|interlanguage|ілл|link-interwiki|enlace|traduccion|ilink|tłum|link|флагификация|флаг2|bandera2|bandiera2|"
    "drapeau2|флагшток|geobox|s-nowrap|nbr|nw|nobrk|unité/2|petit|grand|italique|gras|romain|rom|majuscules|"
    "minuscules|petites capitales|page h'|abréviation discrète|abrd|acronyme|souligner|exp|ind|tooltip2|wort|"
    "latein|abk.|abkürzung|kapitälchen|sperrschrift|unterstrichen|hist|перевод|подсказка|abbr2|підказка|"
    "מונחון|כ|ערך|חופשי|נקודתיים|ルビ|補助漢字フォント|jis2004フォント|cjkv|和暦|機種依存文字|small caps|yesno|"
    "won2|sort under|partial|some|maybe|depends|free|nonfree|included|pending|active|good|bad|eliminated|"
    "party name with color|party name with colour|highlight|highlight round|text|oldstyle date|large text|"
    "kanji|hangul|hanja|coord text|blue|red|green|birth-date|birth-date and age|death-date|death-date and age|start-date|"
    "end-date|ordinal to word|ref label text|bartable|subject bar text|lino|kap|nobold2|overline|ol2|underline|u|vec|"
    "math2|bigmath|tmath|ltr|rtl|rtl-lang|wikt|wiktlink|bdi|cleartext|nobl|url text|mono2|hanging indent|notatypo|"
    "imdb text|jct text|nts|ntsr|number table sorting|dunno text|poem|chem name|chem2|ce|chemf|formula"
)
_SECOND = (
    "transl|transliteration|wikt-lang|color|colour|colored text|resize|font|fontcolor|style|span|sort|nihongo3|"
    "hs2|script/hebrew|script/arabic|langue|en langue|langr|язык|мова|jęz|språk|taal|langx|foreign|llang|nowrap2|"
    "legend inline|legend2|legend|farblegende|légende/parti|fontsize|size|shade|bg|bgcolor|cell|sub/sup|w języku|lang2|"
    "data sort|tri|sortkey|sortierschlüssel|צבע|שפה|färg|colore|cor|chú thích màu|lng|tdes"
)
_QUOTATIONS = (
    "quote|blockquote|quotation|cquote|bquote|rquote|pull quote|pq|poemquote|poem quote|quote box|quotebox|block quote|"
    "zitat|zitat-en|zitat-fr|zitat-la|citat|cita|citazione|citação|citation bloc|citation étrangère bloc|"
    "début citation|цитата|начало цитаты|cytat|citaat|quadro de citação|cita destacada|caja de cita|ציטוט|מובאה|"
    "نقل قول|اقتباس|alıntı|인용문|quote2|aquote|lquote|verse|versform|quote-text|epigraph|эпиграф|centered pull quote"
)
_LISTS = (
    "hlist|cslist|comma separated entries|flatlist|ubl|unbulleted list|ublist|vunblist|plainlist|plain list|"
    "br separated entries|unbullet|liste horizontale|unbulleted list2|collapsible list|collapsible|ubli|"
    "columns-list|bulleted list|ordered list|numbered list|blist|liste|lista desplegable|lista colapsável|"
    "flat list|nlist|startflatlist|flatlist2|pipelist|enum|lista columnas|listă|collapsed list|indented plainlist"
)

HANDLERS: Mapping[str, Handler] = MappingProxyType({
    **{name: _sign(text) for name, text in _SIGNS.items()},
    **_each(first, _FIRST),
    **_each(second, _SECOND),
    **_each(third, "tsl|internal link helper/en|le2|link-wikidata"),
    **_each(last, "angle|bracket|lang-zh-full"),
    **_each(joined, "chem|simple chem|isotope|gaps|wrap begin|nuclide name"),
    **_each(spaced, "full name|flagathlete|unité nobr|nombre|nb|nombre2|unité de nombre|heure2|num|number|nobr num"),
    **_each(itemised, _LISTS),
    **_each(quotation, _QUOTATIONS),
    **_each(quoted, "\"|'|inlinequote|qi|quote inline|citation étrangère|« »|guillemets|«|„|«»|q|zit"),
    **_each(in_language, "lang|language|lang-xx|idioma|لغة|zh-lang|lang/langue|выделение языка"),
    **_each(nihongo, "nihongo|nihongo foot|korean text|chinese text"),
    **_each(with_reading, "読み仮名|ruby|ふりがな|読み|ruby-ja|ruby-zh-p|ruby-zh-b|読み仮名 ruby不使用"),
    **_each(chinese, "zh|chinese|zh-c|lang-zh|lang-zh2"),
    **_each(ship, "ship|navire|schiff"),
    **_each(ship_class, "sclass|sclass2|sclass-|sclass2-"),
    **_each(marriage, "marriage|married|matrimonio|casamento|mariage"),
    **_each(person, "sortname|sort name|nom|triname"),
    **_each(superscript, "sup|smallsup|exposant|superscript"),
    **_each(aside, "incise|tiret"),
    **_each(lambda arguments: f"⟨{first(arguments)}⟩", "angbr|angle bracket|chevrons|grapheme"),
    **_each(lambda arguments: f"{arguments.at(0)}/{arguments.at(1)}", "rating|sfrac2|rating-5|s/"),
    **_each(lambda arguments: f"[{first(arguments)}]", "brackets|bracket text|sqbr|interp|crochets|mod"),
    **_each(lambda arguments: f"{arguments.at(1) or 'Yes'}", "yes2|aye"),
    **_each(lambda arguments: f"†{first(arguments)}", "†|extinct|decd"),
})  # fmt: skip
"""By name, in lower case."""

WORDS = frozenset("yes|no|won|nom|n/a|na|tba|y|n|good|bad|maybe|partial|unknown|dunno|nonfree|free".split("|"))
"""Names that say themselves unless an argument says more: `{{yes|since 1999}}`."""
