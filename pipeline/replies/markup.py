"""Remove links, images, tags, mentions and emphasis from text that a model wrote. Pure.

Code and mathematics are set aside first and put back afterwards.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import count

from storage.language.lazy_pattern import lazy_compile
from storage.language.scripts import UNSPACED_CLASS
from storage.types import Span

_CODE_TICKS = lazy_compile("`+")
_FENCE_LENGTH = 3  # a run of so many backticks may hold blank lines
_MATH = lazy_compile(
    r"\$\$[^$]{1,500}\$\$"
    r"|(?<![\w$\\])\$(?![\s\d$])[^$\n]{1,200}(?<![\s$\\])\$(?!\w)"
    r"|(?<![\w$\\])\$(?=\d)[^\s$]{1,100}\$(?!\w)"
    r"|\\\([^\n]{1,200}?\\\)"
    # Not a citation mark whose brackets are escaped.
    r"|\\\[(?!\s*\^?[\d\s,;–-]+\\?\])[^\n]{1,300}?\\\]"
)
_OPEN_ASIDE, _CLOSE_ASIDE = "\ufdd0", "\ufdd1"
_ASIDE = lazy_compile(f"{_OPEN_ASIDE}(\\d+){_CLOSE_ASIDE}")
RESERVED = "\ufdd0-\ufdef"
"""Placeholders for text set aside, as the inside of a character class; they are removed from all input."""


def find_verbatim_spans(text: str) -> list[Span]:
    """Return the spans of code and mathematics with their delimiters, in order and without overlap."""
    code = _find_code_spans(text)
    return merge_spans([*code, *(found.span() for found in _MATH.finditer(mask_spans(text, code, "`")))])


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, overlapping ones merged."""
    apart: list[Span] = []
    for start, end in sorted(spans):
        if apart and start < apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((start, end))
    return apart


def _replace_spans(text: str, spans: Iterable[Span], replace: Callable[[str], str]) -> str:
    """Return the text with the content of each of `spans`, which are in order, replaced."""
    pieces, at = [], 0
    for start, end in spans:
        pieces += [text[at:start], replace(text[start:end])]
        at = end
    return "".join([*pieces, text[at:]])


def mask_spans(text: str, spans: Iterable[Span], char: str) -> str:
    """Return the text with every character of `spans`, which are in order, replaced by `char`."""
    return _replace_spans(text, spans, lambda inside: char * len(inside))


def extract_verbatim(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text with a placeholder for each piece of code and mathematics, and those pieces."""
    spans, numbers = find_verbatim_spans(text), count()
    prose = _replace_spans(text, spans, lambda _: f"{_OPEN_ASIDE}{next(numbers)}{_CLOSE_ASIDE}")
    return prose, tuple(text[start:end] for start, end in spans)


def restore_verbatim(text: str, kept: tuple[str, ...]) -> str:
    return _ASIDE.sub(lambda found: kept[int(found[1])], text)


def _find_code_spans(text: str) -> list[Span]:
    """Return the spans of code: each reaches from a run of backticks to the next run of the same length.

    A span with fewer backticks than a fence must lie within one paragraph.
    """
    runs = list(_CODE_TICKS.finditer(text))
    later: dict[str, list[int]] = {}
    for place in reversed(range(len(runs))):
        later.setdefault(runs[place][0], []).append(place)
    spans: list[Span] = []
    place = 0
    while place < len(runs):
        partners = later[runs[place][0]]
        while partners and partners[-1] <= place:
            partners.pop()
        span = (runs[place].start(), runs[partners[-1]].end()) if partners else None
        if span and (len(runs[place][0]) >= _FENCE_LENGTH or "\n\n" not in text[slice(*span)]):
            spans.append(span)
            place = partners[-1]
        place += 1
    return spans


_ADDRESS_RUN = rf"[^\s<>\"`|{{}}{RESERVED}，。！？；：、（）【】［］「」『』《》“”’{UNSPACED_CLASS}]"
_SCHEMES = "javascript|vbscript|livescript|mailto|callto|skype|magnet|blob|view-source|sips?|xmpp|slack|discord"
_TOP_DOMAINS = (
    r"(?:com|org|net|edu|gov|mil|int|info|biz|name|pro|dev|app|xyz|top|site|online|shop|store|club|link|click|page|live"
    r"|cloud|tech|blog|news|wiki|zip|mov|(?!js|ts|py|md|cs)[a-z]{2})"
)
_ANYWHERE_ADDRESS = (
    rf"[a-z][a-z0-9+.-]{{0,30}}+://{_ADDRESS_RUN}*+"
    rf"|://{_ADDRESS_RUN}*+"
    rf"|h(?:tt|xx)ps?(?:\[:\]|:){_ADDRESS_RUN}++"
    rf"|\b(?:{_SCHEMES}):{_ADDRESS_RUN}++"
    rf"|\bdata:(?:[\w.+-]{{1,40}}+/[\w.+-]{{1,60}}+)?[;,]{_ADDRESS_RUN}*+"
    r"|\b(?:tel|sms):\+?\d[\d()-]*+"
    rf"|\bwww\d?\.(?=\w){_ADDRESS_RUN}++"
)
_PROSE_ADDRESS = (
    rf"(?<![:\w/.])//(?=[\w-]{{1,63}}+\.){_ADDRESS_RUN}++"
    rf"|(?<![\w.-])(?!asp\.net)(?:[a-z0-9-]{{1,63}}+\.){{1,8}}{_TOP_DOMAINS}(?::\d{{2,5}}\b|(?=[/?#])){_ADDRESS_RUN}*+(?<![?#])"
    rf"|\b\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?::\d{{1,5}})?/(?=[a-z]){_ADDRESS_RUN}++"
)
_ADDRESS_IN_CODE = lazy_compile(_ANYWHERE_ADDRESS, re.IGNORECASE)
_ADDRESS = lazy_compile(f"{_ANYWHERE_ADDRESS}|{_PROSE_ADDRESS}", re.IGNORECASE)
_MAY_BE_ADDRESS = lazy_compile(r"[:/]|www|\.", re.IGNORECASE)
_TRAILING_PUNCTUATION = ".,;:!?)]}'*_~»›"  # punctuation after an address that belongs to the sentence


def find_addresses(text: str, *, code: bool = False) -> Iterator[Span]:
    """Yield the spans of addresses, without punctuation after them; if `code`, only those with a scheme or www."""
    if not _MAY_BE_ADDRESS.search(text):
        return
    for found in (_ADDRESS_IN_CODE if code else _ADDRESS).finditer(text):
        bare = found[0].rstrip(_TRAILING_PUNCTUATION)
        closing = found[0][len(bare) :]
        opened = bare.count("(") - bare.count(")")
        inside = len(closing) - len(closing.lstrip(")")) if opened > 0 else 0
        yield found.start(), found.start() + len(bare) + min(opened, inside)


def strip_addresses(text: str, *, code: bool = False) -> str:
    return _replace_spans(text, find_addresses(text, code=code), lambda _: " ")


_INVISIBLE = lazy_compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff"
    rf"\ufff9-\ufffb\ud800-\udfff{RESERVED}\U000e0000-\U000e007f]"
)
"""Controls, marks without width, marks that change the direction of text, halves of surrogate pairs."""
_JOINER = lazy_compile(r"(?<=[\x00-\x7f])[\u200c\u200d]+(?=[\x00-\x7f])")
_ENTITY = lazy_compile(r"&(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z][a-z0-9]{1,30});", re.IGNORECASE)
_JSON_ESCAPE = lazy_compile(r"\\(?:u00|x|u\{)(2[1-9a-f]|3[a-f]|40|5[b-f]|7[b-e])\}?", re.IGNORECASE)
_HTML_BLOCKS = tuple(
    (lazy_compile(begin, re.IGNORECASE), lazy_compile(end, re.IGNORECASE))
    for begin, end in [("<!--", "-->"), *((rf"<{tag}\b[^<>]*>", rf"</{tag}\s*>") for tag in ("script", "style"))]
)
_CONTROL = lazy_compile(
    r"(?:<|&lt;|\\u003c)[!@#][^<>&\\\n]*(?:>|&gt;|\\u003e)|<[!@#][^<>\n]*>"
    r"|<a?:\w{1,64}:\d+>|<t:-?\d+(?::\w)?>|</[\w -]{1,64}:\d+>|<id:\w{1,64}>"
    r"|(?<!\w)@(?:everyone|here|channel)\b|@(?:everyone|here|channel)\b(?!\.\w)",
    re.IGNORECASE,
)
_LINK_LABEL = r"\[((?:[^\[\]\n]|\[[^\[\]\n]*\]){0,500}+)\]"
_LINK_TARGET = (
    r"\(\s{0,9}+(<[^<>\n]*>|(?:[^()\s]|\([^()\s]{0,200}+\)){0,500}+)"
    r"(?:\s{1,9}+[\"'(][^\"'()\n]{0,300}+[\"')])?\s{0,9}+\)"
)
_NUMERIC = r"[\s\d,;^–-]*"
_IMAGE = lazy_compile(rf"!(?!\[{_NUMERIC}\]){_LINK_LABEL}(?:{_LINK_TARGET}|\[[^\[\]\n]*\])?")
_LINK = lazy_compile(_LINK_LABEL + _LINK_TARGET)
_REFERENCE_LINK = lazy_compile(rf"{_LINK_LABEL}\[(?!\^|[\s\d,;–-]+\])[^\[\]\n]*\]")
_LABELLED_LINK = lazy_compile(r"<([^<>|\s]*[:./][^<>|\s]*)\|([^<>\n]*)>")
_MAIL = lazy_compile(r"<([\w.+-]{1,64}@[\w.-]{1,255})>")
_DEFINITION = lazy_compile(
    r"^[ \t]{0,9}\[(?:\^[^\[\]\n]{1,60}\]:.*|[^\[\]\n]{1,200}\]:[ \t]{0,9}<?(?:[/#]|[^\s:/.]{0,300}+[:/.])\S+.*)$",
    re.MULTILINE,
)
_SUPERSCRIPT = lazy_compile(r"<sup>\s{0,9}+(\d{1,3})\s{0,9}+</sup>", re.IGNORECASE)
_INLINE_TAGS = (
    "abbr|b|big|bdi|bdo|cite|code|del|dfn|em|font|i|ins|kbd|mark|q|s|samp|small|span|strike|strong|sub|sup|tt|u|var"
)
_OTHER_TAGS = (
    "a|address|area|article|aside|audio|base|blockquote|body|br|button|canvas|caption|center|col|colgroup|dd|details"
    "|dialog|div|dl|dt|embed|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe"
    "|img|input|label|legend|li|link|main|map|marquee|math|menu|meta|meter|nav|noscript|object|ol|optgroup|option"
    "|output|p|param|picture|pre|progress|script|section|select|source|style|summary|svg|table|tbody|td|template"
    "|textarea|tfoot|th|thead|time|title|tr|track|ul|video|wbr"
)
# After a name of one letter only what looks like an attribute: `a <b and c> d` compares.
_TAG = lazy_compile(
    rf"</?(?:({_INLINE_TAGS})|{_OTHER_TAGS})(?:\s*+/?|\s++[\w:-]++\s*+=[^<>]*+|(?<=\w\w)(?:\s|/)[^<>]*+)>",
    re.IGNORECASE,
)
_EMPTY_BRACKETS = lazy_compile(r"(?<!\w)(?:\(\s+\)|（\s+）|\[\s+\]|<\s*>)")
_MENTION = lazy_compile(r"(?<![\w.+-])@(?=\w)")
_CLEANING_PASSES = 12
_TRIGGERS = lazy_compile(r"[<>@\[\]()（）:/\\&.]")  # without these nothing above matches


def strip_invisible(text: str) -> str:
    """Return the text without invisible characters."""
    return _INVISIBLE.sub("", text)


@lru_cache(maxsize=128)
def clean_markup(text: str) -> str:
    """Return text that a model wrote without links, images, tags and mentions, of which only the visible words remain.

    Cleaning twice changes nothing more, and white space is not tidied. Text in which markup is nested a dozen levels
    deep loses all its special characters.
    """
    for _ in range(_CLEANING_PASSES):
        before, text = text, _clean_once(text)
        if text == before:
            return text
    return _clean_once(_TRIGGERS.sub(" ", text))


def is_link_definition(line: str) -> bool:
    """Return whether a line only defines a link or a footnote."""
    return _DEFINITION.fullmatch(line) is not None


def find_opaque_spans(text: str) -> list[Span]:
    """Return the spans of links and addresses, in order and without overlap; no sentence may end inside one."""
    return merge_spans([*(found.span() for found in _LINK.finditer(text)), *find_addresses(text)])


def _clean_once(text: str) -> str:
    prose, verbatim = extract_verbatim(_JOINER.sub("", strip_invisible(text)))
    prose = _strip_html_blocks(_decode_entities(prose))
    for pattern, shown in _SUBSTITUTIONS:
        prose = pattern.sub(shown, prose)
    return restore_verbatim(_MENTION.sub("", strip_addresses(prose)), tuple(map(_clean_code, verbatim)))


def _clean_code(text: str) -> str:
    """Return code without addresses and control sequences. Entities are decoded only if they hide one of these."""
    read = _decode_entities(_decode_entities(text))
    bare, bare_read = _strip_control(text), _strip_control(read)
    return bare if bare_read == read else bare_read


def _strip_control(code: str) -> str:
    return strip_addresses(_CONTROL.sub(" ", code), code=True)


def _decode_entities(text: str) -> str:
    """Return the text with entities and JSON escapes decoded."""
    text = _ENTITY.sub(lambda found: html.unescape(found[0]), text)
    return _JSON_ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)


def _strip_html_blocks(text: str) -> str:
    """Return the text without comments, scripts and styles; one that is never closed stays."""
    for begin, end in _HTML_BLOCKS:
        spans, at = list[Span](), 0
        while (opened := begin.search(text, at)) and (closed := end.search(text, opened.end())):
            at = closed.end()
            spans.append((opened.start(), at))
        text = _replace_spans(text, spans, lambda _: " ")
    return text


def _link_text(found: re.Match[str]) -> str:
    """Return the text of a link. A footnote mark keeps its brackets, and code like `f[x](y)` stays unchanged."""
    label, target = found[1], found[2]
    if re.fullmatch(_NUMERIC, label) and label.strip():
        return f"[{label}]"
    before = found.string[found.start() - 1 : found.start()]
    if before.isalnum() and target and not re.search(r"[:./#?@\\]", target):
        return found[0]
    return label


_SUBSTITUTIONS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (_DEFINITION, ""),
    (_IMAGE, " "),
    (_LINK, _link_text),
    (_REFERENCE_LINK, r"\1"),
    (_LABELLED_LINK, r"\2"),
    (_MAIL, r"\1"),
    (_CONTROL, " "),
    (_SUPERSCRIPT, lambda found: found[1].translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))),
    (_TAG, lambda found: "" if found[1] else " "),
    (_EMPTY_BRACKETS, " "),
)
"""Patterns in the order of their application, and their replacements."""

_SPACED_SCRIPTS = r"A-Za-z0-9\u00c0-\u02af\u0370-\u03ff\u0400-\u052f_"
_STYLED = (
    lazy_compile(
        rf"(?<![{_SPACED_SCRIPTS}*\\])(?P<sign>\*{{1,3}}+)(?![\s*])(?P<text>(?:[^*\n]|(?<=\s)\*(?=\s))++)(?<![\s\\])(?P=sign)(?![{_SPACED_SCRIPTS}*])"
    ),
    lazy_compile(
        r"(?<![\w\\])(?P<sign>_{1,3}+)(?![\s_])(?P<text>(?:[^_\n]|(?<=[^\W_])_(?=[^\W_]))++)(?<![\s\\])(?P=sign)(?!\w)"
    ),
    lazy_compile(r"(?P<sign>~~)(?![\s~])(?P<text>[^~\n]++)(?<!\s)~~"),
)
_DUNDER = lazy_compile(r"__[a-z][a-z0-9]*(?:_[a-z0-9]+)*__")
_OPENED_STYLE = lazy_compile(r"([\s\"“„«(]*)\*{1,3}(?=[^\s*])([^*]*)\Z")
_CLOSED_STYLE = lazy_compile(r"\A([^*]*[^\s*])\*{1,3}([.!?…。\"”»)]*\s*)\Z")
_MARKDOWN_ESCAPE = lazy_compile(r"\\([*_\[\]#+!|>~.-])")
_STYLE_PASSES = 4  # emphasis within emphasis


def strip_emphasis(text: str) -> str:
    """Return a sentence without emphasis, including unpaired signs at its ends."""
    for _ in range(_STYLE_PASSES):
        before = text
        for pattern in _STYLED:
            text = pattern.sub(lambda found: found[0] if _DUNDER.fullmatch(found[0]) else found["text"], text)
        if text == before:
            break
    text = _OPENED_STYLE.sub(r"\1\2", text) if _OPENED_STYLE.match(text) else text
    return _CLOSED_STYLE.sub(r"\1\2", text)


def unescape_markdown(text: str) -> str:
    return _MARKDOWN_ESCAPE.sub(r"\1", text)
