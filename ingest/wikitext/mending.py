"""What is left to mend in text whose markup is gone: quotes, spaces, entities, and the holes that markup left."""

import html
import re
from itertools import pairwise

_APOSTROPHES = re.compile(r"''''+")
_QUOTES = re.compile(r"''+")
_ELISION = re.compile(r"'''(?!')(?<=[lLdDnNsSjJmMtTcC]''')([^'\n]+)''(?!')")
# In front of many patterns stands one character, then an assertion: one character is found ten times as fast as two.
_DOUBLE_BRACKETS = tuple(re.compile(rf"\{bracket}(?=\{bracket})") for bracket in "[]{}")
_SWITCH = re.compile(r"_(?=_)_[A-Z]{3,}__")
_VARIANT = re.compile(r"-(?=\{)\{([^{}\n]*)\}-")
_PREFERRED = ("zh-cn", "zh-hans", "zh", "zh-sg", "zh-hant", "zh-tw", "zh-hk", "sr-el", "sr-ec")
_HOLLOW = re.compile(r"\((?:[\s,;:·/–—=~-]|or|and|oder|und|ou|et|y|e|o)*\) ?")
_HOLLOW_SQUARE = re.compile(r"\](?<= \[\])")
_HOLLOW_WIDE = re.compile(r"（[\s:、，；：]*）|(?<=（)[\s、，；]+|[\s、，；]+(?=）)")
_REPEATED_WIDE = re.compile(r"([、，])(?:\s*[、，；])+")
_AFTER_BRACKET = re.compile(r"\([\s,;:]+")
_LATE_BRACKET = re.compile(r"\)(?<=[\s,;]\))")
_REPEATED = re.compile(r",(?:\s*[,;])+")
_LATE_POINT = re.compile(r"\.(?<= \.)(?=[\s\"”»)\]]|$)")
_LATE_COMMA = re.compile(r",(?<= ,)(?=\s|$)")
_SPACES = ("\xa0", "\u2009", "\u202f", "\u2002", "\u200b", "\t")
_ENTITY = re.compile(r"&(?:amp;)?(nbsp|#160|thinsp|ensp|emsp|ndash|mdash|minus);")
_SIGNS = {"ndash": "–", "mdash": "—", "minus": "−"}
_DOUBLE = re.compile("  +")


def without_quotes(text: str) -> str:
    """Text without the apostrophes of bold and italics; those that are letters stay."""
    if "''" not in text:
        return text
    if "''''" in text:
        text = _APOSTROPHES.sub(lambda run: "'" if len(run[0]) == 4 else "'" * max(0, len(run[0]) - 5), text)  # noqa: PLR2004 - five are bold and italics
    if "'''" in text:
        text = _ELISION.sub(r"'\1", text)
    return "".join(_QUOTES.split(text))


def without_switches(text: str) -> str:
    """Text without `__NOTOC__` and its like, and with one variant of what a wiki of several scripts writes twice."""
    return _VARIANT.sub(_variant, _SWITCH.sub("", text))


def _variant(match: re.Match[str]) -> str:
    flags, pipe, rest = match[1].partition("|")
    if pipe and set(flags) & set("THD-"):
        return "" if "A" not in flags else _chosen(rest)
    return _chosen(rest if pipe else flags)


def _chosen(text: str) -> str:
    forms = dict(part.split(":", 1) for part in text.split(";") if ":" in part)
    if not forms:
        return text
    forms = {name.strip(): form.strip() for name, form in forms.items()}
    return next((forms[name] for name in _PREFERRED if name in forms), next(iter(forms.values())))


def without_double_brackets(text: str) -> str:
    """Text in which no brackets of links and templates stand, not even where something between two single ones went."""
    for double in _DOUBLE_BRACKETS:
        text = double.sub("", text)
    return text


def with_plain_spaces(text: str) -> str:
    """Text whose spaces of all kinds are spaces, no two beside each other."""
    text = _ENTITY.sub(lambda entity: _SIGNS.get(entity[1], " "), text)
    for space in _SPACES:
        if space in text:
            text = text.replace(space, " ")
    return _DOUBLE.sub(" ", text)


def without_holes(text: str) -> str:
    """Text without the brackets, commas and spaces that stood around what is gone: `Athens (; ) .` is `Athens.`."""
    text = _AFTER_BRACKET.sub("(", _HOLLOW.sub("", text))
    text = _without_before(_LATE_BRACKET, " ,;\n", text)
    if "（" in text or "、" in text or "，" in text:
        text = _HOLLOW_WIDE.sub("", _REPEATED_WIDE.sub(r"\1", text))
    if "⟨" in text or _HOLLOW_SQUARE.search(text):
        text = text.replace(" []", "").replace(" ⟨⟩", "")
    if "،" in text:
        text = text.replace(" ،", "،")
    text = _REPEATED.sub(",", text)
    return _without_before(_LATE_COMMA, " ", _without_before(_LATE_POINT, " ", text))


def _without_before(sign: re.Pattern[str], lost: str, text: str) -> str:
    """Text without the characters `lost` right before each match of `sign`."""
    starts = [match.start() for match in sign.finditer(text)]
    if not starts:
        return text
    parts = [text[start:end] for start, end in pairwise((0, *starts, len(text)))]
    return "".join([part.rstrip(lost) for part in parts[:-1]]) + parts[-1]


def decoded(text: str) -> str:
    """Text with its entities as characters."""
    return html.unescape(text) if "&" in text else text
