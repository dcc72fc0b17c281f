"""Clean up the text that remains after markup: quotes, spaces, entities, and the holes that removed markup left."""

import html
import re
from itertools import pairwise

from ingest.wikitext.wiki_site import load_other_names
from storage.language.lazy_pattern import lazy_compile

ROW = "\x02"  # begins a row of a table or infobox
CODE = "\x03"  # begins a line of code, with `BREAK` for its line breaks
BREAK = "\x04"  # a line break within a line: `<br>`
PIPE = "\x05"  # a pipe that does not separate arguments: `{{!}}`
PAGE_NAME = "\x07"  # the title of the page: `{{PAGENAME}}`
HOLE = "\x06"  # content that only the wiki can show: a template that queries it, a sound

_MARKS = ROW + CODE + BREAK + PIPE + HOLE + PAGE_NAME
_MARK_TABLE = str.maketrans("", "", _MARKS)
_ESCAPES = {ord(char): f"&#{ord(char)};" for char in "[]{}|'=*#:;!<>_-~&"}
_CODE_ESCAPES = _ESCAPES | {ord(char): f"&#{ord(char)};" for char in " ,.()\t"} | {ord("\n"): BREAK}
_SUPERSCRIPT = str.maketrans("0123456789+-−–n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻ⁿ")
_SUPERSCRIPT_NUMBER = lazy_compile(r"[0-9+\-−–]+n?|n")


def strip_marks(text: str) -> str:
    """Remove the control characters that serve as marks here, as text that is not from a dump may contain them."""
    return text.translate(_MARK_TABLE) if any(map(text.__contains__, _MARKS)) else text


def escape_markup(text: str) -> str:
    """Write the characters of markup as entities, so that they are no longer read as markup."""
    return text.translate(_ESCAPES)


def make_code_line(text: str) -> str:
    """Make a line of code that keeps its indentation; empty if the code is empty."""
    stripped = text.strip("\n").rstrip()
    return f"\n{CODE}{stripped.translate(_CODE_ESCAPES)}\n" if stripped else ""


def make_superscript(text: str) -> str:
    """Write a number in superscript digits, so that 10² is not read as 102; return other text unchanged."""
    return text.translate(_SUPERSCRIPT) if _SUPERSCRIPT_NUMBER.fullmatch(text) else text


_APOSTROPHES = lazy_compile(r"''''+")
_QUOTES = lazy_compile(r"''+")
_ELISION = lazy_compile(
    r"'''(?=\w)(?:(?<!\w[lLdDnNsSjJmMtTcC]''')(?<=[lLdDnNsSjJmMtTcC]''')|(?<=ll''')|(?<=un''')|(?<=qu'''))([^'\n]+)''(?!')"
)
# Many patterns begin with one character and an assertion: one character is found ten times as fast as two.
_DOUBLE_BRACKETS = {bracket: lazy_compile(rf"\{bracket}(?=\{bracket})") for bracket in "[]{}"}
_SWITCH = lazy_compile(r"_(?=_)_[A-Z]{3,}__")
_VARIANT = lazy_compile(r"-(?=\{)\{([^{}\n]*)\}-")
_PREFERRED = ("zh-cn", "zh-hans", "zh", "zh-sg", "zh-hant", "zh-tw", "zh-hk", "sr-el", "sr-ec")
_HOLLOW = lazy_compile(r"\((?:[\s,;:·/–—=~-]|or|and|oder|und|ou|et|y|e|o)*\) ?")
_HOLLOW_SQUARE = lazy_compile(r"\](?<= \[\])")
_HOLLOW_WIDE = lazy_compile(r"（[\s:、，；：]*）|(?<=（)[\s、，；]+|(?<![\s、，；])[\s、，；]++(?=）)")
_REPEATED_WIDE = lazy_compile(r"([、，])(?:\s*[、，；])+")
_AFTER_BRACKET = lazy_compile(r"\([\s,;:]+")
_LATE_BRACKET = lazy_compile(r"\)(?<=[\s,;]\))")
_REPEATED = lazy_compile(r",(?:\s*[,;])+")
_LATE_POINT = lazy_compile(r"\.(?<=[ ,]\.)(?=[\s\"”»)\]]|$)")
_LATE_COMMA = lazy_compile(r",(?<= ,)(?=\s|$)")
_SPACES = ("\xa0", "\u2009", "\u202f", "\u2002", "\u200b", "\t")
_ENTITY = lazy_compile(r"&(?:amp;)?(nbsp|#160|thinsp|ensp|emsp|ndash|mdash|minus);")
_SIGNS = {"ndash": "–", "mdash": "—", "minus": "−"}
_DOUBLE = lazy_compile("  +")


def strip_quotes(text: str) -> str:
    if "''" not in text:
        return text
    if "''''" in text:
        text = _APOSTROPHES.sub(lambda run: "'" if len(run[0]) == 4 else "'" * max(0, len(run[0]) - 5), text)  # noqa: PLR2004 - five are bold and italics
    if "'''" in text:
        text = _ELISION.sub(r"'\1", text)
    return "".join(_QUOTES.split(text))


def strip_switches(text: str) -> str:
    """Remove switches such as `__NOTOC__`. Of text in several scripts, keep one variant."""
    return _VARIANT.sub(_choose_variant, _SWITCH.sub("", text))


def _choose_variant(match: re.Match[str]) -> str:
    flags, pipe, rest = match[1].partition("|")
    if pipe and set(flags) & set("THD-"):
        return "" if "A" not in flags else _choose_text(rest)
    return _choose_text(rest if pipe else flags)


def _choose_text(text: str) -> str:
    forms = dict(part.split(":", 1) for part in text.split(";") if ":" in part)
    if not forms:
        return text
    forms = {name.strip(): form.strip() for name, form in forms.items()}
    return next((forms[name] for name in _PREFERRED if name in forms), next(iter(forms.values())))


def strip_double_brackets(text: str) -> str:
    """Remove the double brackets of links and templates, also those that arose from two single brackets."""
    for bracket, double in _DOUBLE_BRACKETS.items():
        if bracket in text:
            text = double.sub("", text)
    return text


def normalize_spaces(text: str) -> str:
    text = _ENTITY.sub(lambda entity: _SIGNS.get(entity[1], " "), text)
    for space in _SPACES:
        if space in text:
            text = text.replace(space, " ")
    return _DOUBLE.sub(" ", text)


def close_holes(text: str) -> str:
    """Remove brackets, commas and spaces that surrounded removed text: `Athens (; ) .` becomes `Athens.`."""
    text = _AFTER_BRACKET.sub("(", _HOLLOW.sub("", text))
    text = _strip_before(_LATE_BRACKET, " ,;\n", text)
    if "（" in text or "、" in text or "，" in text:
        text = _HOLLOW_WIDE.sub("", _REPEATED_WIDE.sub(r"\1", text))
    if "⟨" in text or _HOLLOW_SQUARE.search(text):
        text = text.replace(" []", "").replace(" ⟨⟩", "")
    if "،" in text:
        text = text.replace(" ،", "،")
    text = _REPEATED.sub(",", text)
    return _strip_before(_LATE_COMMA, " ", _strip_before(_LATE_POINT, " ,", text))


_AROUND = 120  # characters examined on either side of a hole
_HOLES = HOLE + " "
_MOST_WORDS = 8
_NESTED = 3
_BRACKET_WITH_HOLE = lazy_compile(rf"[(\[（]([^()\[\]（）\n{HOLE}]{{0,200}}+{HOLE}[^()\[\]（）\n]{{0,200}}+)[)\]）]")
_ENCLOSED_HOLE = lazy_compile(f"[/⟨“„«‘\"'](?={HOLE}){HOLE}[/⟩”“»’\"']")
_CLAUSE = lazy_compile(r"([,;，、；،])")
_CLAUSE_WORD = lazy_compile(rf"[^\s{HOLE}:：/~–-]+")
_LABELLED_HOLE = lazy_compile(rf"[^:：]*[:：]\s*{HOLE}[\s{HOLE}]*")
_AMOUNT_SIGN = r"(?:(?:\b(?:US|A|C|CA|AU|NZ|HK|NT|R))?[$€£¥₹₩₽₪₺]|\b(?:USD|EUR|GBP|JPY|CHF|INR|Rs\.?))\s?"
_AMOUNT_ENDS = frozenset("$€£¥₹₩₽₪₺DRPYFs.")  # the last characters of `_AMOUNT_SIGN`
_BEFORE_AMOUNT = lazy_compile(_AMOUNT_SIGN + r"\Z")
_AMOUNT_WITH_HOLE = lazy_compile(_AMOUNT_SIGN + HOLE)
_AFTER_AMOUNT = lazy_compile(r"(?:&nbsp;|[\s-])?([^\W\d_]+\.?)")
_COUNTED = lazy_compile(r"(?:&nbsp;|\s)?[人円元年명개%％]")
_CLAUSE_ENDS = lazy_compile(r"\s*(?:[.,;:!?)\]}»”。，、；）،؛]|\Z)")


def close_gaps(text: str) -> str:
    """Remove the holes that templates left (␆), brackets with nothing else inside, and words that lead to a hole.

    This removes `(pronounced ␆)`, `, equivalent to $␆ million in ␆` and `in ␆.`. An amount within a sentence becomes
    `[…]`.
    """
    parts: list[str] = []
    end = 0
    while (place := text.find(HOLE, end)) >= 0:
        start = text.rfind("\n", end, place) + 1 or end
        stop = text.find("\n", place)
        stop = len(text) if stop < 0 else stop
        line = text[start:stop]
        parts += (text[end:start], _close_line(line) if line.strip(_HOLES) else "")
        end = stop
    return "".join((*parts, text[end:]))


def _close_line(line: str) -> str:
    line = _ENCLOSED_HOLE.sub(HOLE, line)
    for _ in range(_NESTED):
        line, closed = _BRACKET_WITH_HOLE.subn(_close_bracket, line)
        if not closed:
            break
    parts = line.split(HOLE)
    done = [parts.pop()]
    while parts:
        left = parts.pop()
        if left:
            left, done[-1] = _close_gap(left, done)
        done.append(left)
    return "".join(reversed(done))


def _close_bracket(match: re.Match[str]) -> str:
    """Return a bracket without the clauses that say nothing without their hole. If no clause is left, return a hole."""
    *clauses, last = _CLAUSE.split(match[1])
    pairs = [*zip(clauses[::2], clauses[1::2], strict=True), (last, "")]
    content = "".join(clause + sign for clause, sign in pairs if HOLE not in clause or not _lacks_value(clause))
    return f"{match[0][0]}{content.strip(' ,;，、；،')}{match[0][-1]}" if content.strip() else HOLE


def _lacks_value(clause: str) -> bool:
    if _AMOUNT_WITH_HOLE.search(clause) or _LABELLED_HOLE.fullmatch(clause):
        return True
    governing = load_other_names("governing") | load_other_names("phrase") | load_other_names("magnitude")
    words = _CLAUSE_WORD.findall(clause)
    return all(word.lower() in governing or (len(word) == 4 and word.isdigit()) for word in words)  # noqa: PLR2004 - a year


def _close_gap(left: str, done: list[str]) -> tuple[str, str]:
    """Return the text before and after a hole without words that lead to it.

    `done` is the text after it, last part first.
    """
    tail, right = left[-_AROUND:], done[-1]
    amount = _BEFORE_AMOUNT.search(tail) if tail.rstrip()[-1:] in _AMOUNT_ENDS else None
    if amount:
        tail = tail[: amount.start()]
        if (after := _AFTER_AMOUNT.match(right)) and after[1].lower() in load_other_names("magnitude"):
            right = right[after.end() :]
    ahead = "".join(part[:_AROUND] for part in (right, *done[-2:-4:-1]))
    if _CLAUSE_ENDS.match(ahead):
        tail = _strip_governing(tail)
    elif amount or _COUNTED.match(right) or _begins_with_unit(right):
        tail += "[…]"
    if tail[-1:] == " " and right[:1] == " ":
        right = right[1:]
    return left[:-_AROUND] + tail, right


def _begins_with_unit(right: str) -> bool:
    """Return whether the next word is the unit of a number."""
    after = _AFTER_AMOUNT.match(right)
    counted = load_other_names("counted") | load_other_names("magnitude")
    return after is not None and not counted.isdisjoint({after[1].lower(), after[1].lower().rstrip(".")})


def _strip_governing(tail: str) -> str:
    """Remove the words before a hole that make no sense without a word after them, such as prepositions."""
    governing, bare = load_other_names("governing"), tail.rstrip(" ")
    if bare == tail and tail[-1:].isalnum():
        return tail  # a mark attached to a word, such as a footnote
    for _ in range(_MOST_WORDS):
        last = bare.rpartition(" ")[2].rpartition("(")[2].rpartition("（")[2]
        if not last or last.rstrip(":：").lower() not in governing:
            break
        bare = bare[: -len(last)].rstrip(" ")
    return bare.rstrip(" ,;，、；،") if bare != tail else tail


def _strip_before(sign: re.Pattern[str], lost: str, text: str) -> str:
    """Remove the characters in `lost` that are directly before a match of `sign`."""
    starts = [match.start() for match in sign.finditer(text)]
    if not starts:
        return text
    parts = [text[start:end] for start, end in pairwise((0, *starts, len(text)))]
    return "".join([part.rstrip(lost) for part in parts[:-1]]) + parts[-1]


def decode_entities(text: str) -> str:
    return html.unescape(text) if "&" in text else text
