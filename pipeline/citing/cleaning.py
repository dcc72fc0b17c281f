"""Takes links, images, tags and mentions out of text that a model wrote, so that it can neither lead nor call anybody.

Links come from stored passages alone. What a link or a tag shows stays as plain text. Taking something out could join
what stood around it into something new, so it is done until nothing changes. Inside code only addresses and control
sequences are taken: tags and brackets are what code is made of.
"""

import html
import re
from collections.abc import Callable

from pipeline.citing.addresses import address_spans, without_addresses
from pipeline.citing.verbatim import RESERVED, disjoint, put_back, set_aside
from storage.types import Span

_INVISIBLE = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff"
    rf"\ufff9-\ufffb\ud800-\udfff{RESERVED}\U000e0000-\U000e007f]"
)
"""Controls, marks without width, marks that reorder what is read, halves of surrogate pairs."""
_JOINER = re.compile(r"(?<=[\x00-\x7f])[\u200c\u200d]+(?=[\x00-\x7f])")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z][a-z0-9]{1,30});", re.IGNORECASE)
_ESCAPED = re.compile(r"\\(?:u00|x|u\{)(2[1-9a-f]|3[a-f]|40|5[b-f]|7[b-e])\}?", re.IGNORECASE)
_BLOCKS = tuple(
    (re.compile(begin, re.IGNORECASE), re.compile(end, re.IGNORECASE))
    for begin, end in [("<!--", "-->"), *((rf"<{tag}\b[^<>]*>", rf"</{tag}\s*>") for tag in ("script", "style"))]
)
_CONTROL = re.compile(
    r"(?:<|&lt;|\\u003c)[!@#][^<>&\\\n]*(?:>|&gt;|\\u003e)|<[!@#][^<>\n]*>"
    r"|<a?:\w{1,64}:\d+>|<t:-?\d+(?::\w)?>|</[\w -]{1,64}:\d+>|<id:\w{1,64}>"
    r"|(?<!\w)@(?:everyone|here|channel)\b|@(?:everyone|here|channel)\b(?!\.\w)",
    re.IGNORECASE,
)
_LABEL = r"\[((?:[^\[\]\n]|\[[^\[\]\n]*\]){0,500}+)\]"
_TARGET = (
    r"\(\s{0,9}+(<[^<>\n]*>|(?:[^()\s]|\([^()\s]{0,200}+\)){0,500}+)"
    r"(?:\s{1,9}+[\"'(][^\"'()\n]{0,300}+[\"')])?\s{0,9}+\)"
)
_NUMERIC = r"[\s\d,;^–-]*"
_IMAGE = re.compile(rf"!(?!\[{_NUMERIC}\]){_LABEL}(?:{_TARGET}|\[[^\[\]\n]*\])?")
_LINK = re.compile(_LABEL + _TARGET)
_REFERRED = re.compile(rf"{_LABEL}\[(?!\^|[\s\d,;–-]+\])[^\[\]\n]*\]")
_LABELLED = re.compile(r"<([^<>|\s]*[:./][^<>|\s]*)\|([^<>\n]*)>")
_MAIL = re.compile(r"<([\w.+-]{1,64}@[\w.-]{1,255})>")
_DEFINITION = re.compile(
    r"^[ \t]{0,9}\[(?:\^[^\[\]\n]{1,60}\]:.*|[^\[\]\n]{1,200}\]:[ \t]{0,9}<?(?:[/#]|[^\s:/.]{0,300}+[:/.])\S+.*)$",
    re.MULTILINE,
)
_SUPERSCRIPT = re.compile(r"<sup>\s{0,9}+(\d{1,3})\s{0,9}+</sup>", re.IGNORECASE)
_INLINE = (
    "abbr|b|big|bdi|bdo|cite|code|del|dfn|em|font|i|ins|kbd|mark|q|s|samp|small|span|strike|strong|sub|sup|tt|u|var"
)
_OTHER = (
    "a|address|area|article|aside|audio|base|blockquote|body|br|button|canvas|caption|center|col|colgroup|dd|details"
    "|dialog|div|dl|dt|embed|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe"
    "|img|input|label|legend|li|link|main|map|marquee|math|menu|meta|meter|nav|noscript|object|ol|optgroup|option"
    "|output|p|param|picture|pre|progress|script|section|select|source|style|summary|svg|table|tbody|td|template"
    "|textarea|tfoot|th|thead|time|title|tr|track|ul|video|wbr"
)
# After a name of one letter only what looks like an attribute: `a <b and c> d` compares.
_TAG = re.compile(
    rf"</?(?:({_INLINE})|{_OTHER})(?:\s*+/?|\s++[\w:-]++\s*+=[^<>]*+|(?<=\w\w)(?:\s|/)[^<>]*+)>", re.IGNORECASE
)
_EMPTY = re.compile(r"(?<!\w)(?:\(\s+\)|（\s+）|\[\s+\]|<\s*>)")
_NAMED = re.compile(r"(?<![\w.+-])@(?=\w)")
_PASSES = 12
_TRIGGERS = re.compile(r"[<>@\[\]()（）:/\\&.]")
"""Without these nothing above matches."""


def visible(text: str) -> str:
    """Return the text without what cannot be seen; it looks at one character at a time."""
    return _INVISIBLE.sub("", text)


def cleaned(text: str) -> str:
    """Return text that a model wrote without links, images, tags and mentions; what they showed stays as words.

    Cleaning twice is cleaning once. White space is left as it falls. Text that hides one thing inside another a dozen
    times over loses every sign that such things are made of.
    """
    for _ in range(_PASSES):
        before, text = text, _once(text)
        if text == before:
            return text
    return _once(_TRIGGERS.sub(" ", text))


def is_definition(line: str) -> bool:
    """Whether a line only says where a link or a footnote leads."""
    return _DEFINITION.fullmatch(line) is not None


def opaque_spans(text: str) -> list[Span]:
    """Return, in order and apart, where links and addresses stand; no sentence ends inside."""
    return disjoint([*(found.span() for found in _LINK.finditer(text)), *address_spans(text)])


def _once(text: str) -> str:
    prose, kept = set_aside(_JOINER.sub("", visible(text)))
    return put_back(_prose(prose), tuple(map(_code, kept)))


def _code(text: str) -> str:
    """Return code without addresses and control sequences; where they are written as entities, as it would be read."""
    read = _decoded(_decoded(text))
    bare, bare_read = _without_control(text), _without_control(read)
    return bare if bare_read == read else bare_read


def _without_control(code: str) -> str:
    return without_addresses(_CONTROL.sub(" ", code), code=True)


def _prose(text: str) -> str:
    text = _without_blocks(_decoded(text))
    for pattern, shown in _SHOWN:
        text = pattern.sub(shown, text)
    return _NAMED.sub("", without_addresses(text))


def _decoded(text: str) -> str:
    """Return the text with what is written as an entity or a JSON escape as it would be read."""
    text = _ENTITY.sub(lambda found: html.unescape(found[0]), text)
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def _without_blocks(text: str) -> str:
    """Return the text without comments, scripts and styles that end."""
    for begin, end in _BLOCKS:
        pieces, at = [], 0
        while (opened := begin.search(text, at)) and (closed := end.search(text, opened.end())):
            pieces += [text[at : opened.start()], " "]
            at = closed.end()
        text = "".join([*pieces, text[at:]])
    return text


def _linked(found: re.Match[str]) -> str:
    """Return what a link shows; a footnote mark keeps its brackets, and so do `f[x](y)` and brackets before words."""
    label, target = found[1], found[2]
    if re.fullmatch(_NUMERIC, label) and label.strip():
        return f"[{label}]"
    before = found.string[found.start() - 1 : found.start()]
    if before.isalnum() and target and not re.search(r"[:./#?@\\]", target):
        return found[0]
    return label


def _superscript(found: re.Match[str]) -> str:
    return found[1].translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


_SHOWN: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (_DEFINITION, ""),
    (_IMAGE, " "),
    (_LINK, _linked),
    (_REFERRED, r"\1"),
    (_LABELLED, r"\2"),
    (_MAIL, r"\1"),
    (_CONTROL, " "),
    (_SUPERSCRIPT, _superscript),
    (_TAG, lambda found: "" if found[1] else " "),
    (_EMPTY, " "),
)
"""What is looked for, in this order, and what is shown in its place."""
