"""The angle brackets of wikitext: comments, references and tags, gone or turned into what they mean.

It comes first: after it no `<` is markup, and no content that is not text (references, galleries) is left.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from ingest.wikitext.marks import BREAK, code_line, raised, sheltered
from ingest.wikitext.mathematics import plain

_TAG = re.compile(r"<(?:(!--)|(/?)([A-Za-z][A-Za-z0-9-]*)([^<>]*)>)")
_RAISED = re.compile(r"\s*([0-9+\-−–n]{1,12})\s*</sup\s*>")
_DROPPED = frozenset({
    "ref", "references", "gallery", "timeline", "score", "imagemap", "templatedata", "graph", "mapframe",
    "maplink", "inputbox", "categorytree", "hiero", "includeonly", "templatestyles", "section", "indicator",
    "dynamicpagelist", "rss", "phonos", "languages", "tvar", "style", "script",
})  # fmt: skip
_LAYOUT = MappingProxyType({
    "br": BREAK, "p": "\n\n", "blockquote": "\n\n", "poem": "\n", "li": "\n* ", "dt": "\n; ", "dd": "\n: ",
    "ul": "\n", "ol": "\n", "dl": "\n", "hr": "\n\n", "table": "\n{|\n", "tr": "\n|-\n", "td": "\n|", "th": "\n!",
    "caption": "\n|+", "h2": "\n== ", "h3": "\n=== ", "h4": "\n==== ",
})  # fmt: skip
_CLOSING = MappingProxyType({
    "p": "\n\n", "blockquote": "\n\n", "poem": "\n", "table": "\n|}\n", "ul": "\n", "ol": "\n", "dl": "\n",
    "h2": " ==\n", "h3": " ===\n", "h4": " ====\n", "br": BREAK,
})  # fmt: skip
_INVISIBLE = frozenset({
    "b", "i", "u", "s", "a", "em", "strong", "small", "big", "sub", "sup", "span", "div", "center", "font",
    "cite", "abbr", "acronym", "code", "tt", "kbd", "var", "samp", "q", "del", "ins", "strike", "ruby", "rb",
    "rt", "rp", "rtc", "noinclude", "onlyinclude", "translate", "img", "tbody", "thead", "tfoot", "colgroup",
    "col", "bdi", "bdo", "wbr", "mark", "time", "data", "dfn", "noicon", "h1", "h5", "h6",
})  # fmt: skip


def _code(text: str) -> str:
    return code_line(text.removeprefix("<nowiki>").removesuffix("</nowiki>"))


def _formula(text: str) -> str:
    return sheltered(plain(text))


_CONTENT: Mapping[str, Callable[[str], str]] = MappingProxyType({
    "nowiki": sheltered, "pre": _code, "source": _code, "syntaxhighlight": _code,
    "math": _formula, "ce": _formula, "chem": _formula,
})  # fmt: skip
_KNOWN = _INVISIBLE.union(_DROPPED, _LAYOUT, _CLOSING, _CONTENT)


def without_tags(text: str) -> str:
    """Wikitext without comments, references and tags; formulas and code stand as text that is no markup.

    What is opened and never closed loses its tag alone, so that it cannot eat the page. Time grows with the length
    of the text, whatever it holds.
    """
    if "<" not in text:
        return text
    out: list[str] = []
    at = 0
    ahead = _Ahead(text)
    for tag in _TAG.finditer(text):
        start = tag.start()
        if start < at:
            continue
        out.append(text[at:start])
        if tag[3] == "ref" and not tag[2] and tag[4][-1:] != "/":  # every second tag
            at = _behind_reference(ahead, tag.end())
        else:
            replacement, at = _read(ahead, tag)
            out.append(replacement)
    out.append(text[at:])
    return "".join(out)


class _Ahead:
    """Looks for the next of a few strings, and remembers where it was: no stretch is searched twice for one of them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._places: dict[str, int] = {}

    def find(self, needle: str, start: int) -> int:
        """The first place of `needle` from `start` on; the length of the text if there is none."""
        place = self._places.get(needle, -1)
        if place < start:
            place = self.text.find(needle, start)
            place = self._places[needle] = len(self.text) if place < 0 else place
        return place


def _read(ahead: _Ahead, tag: re.Match[str]) -> tuple[str, int]:
    """What stands for a tag (and its content), and where the text goes on."""
    comment, closing, written, attributes = tag.groups()
    end = tag.end()
    if comment:
        return _comment(ahead, tag.start(), end)
    name = written.lower()
    if closing:
        return (_CLOSING.get(name, "") if name in _KNOWN else tag[0]), end
    if name in _DROPPED or name in _CONTENT:
        return ("", end) if attributes.endswith("/") else _content(ahead, written, attributes, end)
    if name == "sup" and (number := _RAISED.match(ahead.text, end)):
        return raised(number[1]), number.end()
    return _LAYOUT.get(name, "" if name in _KNOWN else tag[0]), end


def _comment(ahead: _Ahead, start: int, end: int) -> tuple[str, int]:
    text = ahead.text
    close = ahead.find("-->", end)
    if close == len(text):
        return "", end
    close += 3
    # A comment on lines of its own leaves no empty line, which would end a paragraph.
    alone = text[start - 1 : start] == "\n" and text[close : close + 1] == "\n"
    return "", close + alone


def _behind_reference(ahead: _Ahead, end: int) -> int:
    close = ahead.find("</ref>", end)
    # Never closed: a heading in it says so, too.
    return end if close == len(ahead.text) or ahead.find("\n==", end) < close else close + len("</ref>")


def _content(ahead: _Ahead, written: str, attributes: str, end: int) -> tuple[str, int]:
    text, closing, name = ahead.text, f"</{written}>", written.lower()
    close = ahead.find(closing, end)
    if close == len(text):
        return "", end
    after = close + len(closing)
    if name not in _CONTENT:
        return "", after
    content = text[end:close]
    return (sheltered if "inline" in attributes else _CONTENT[name])(content), after
