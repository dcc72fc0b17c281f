"""Replace the comments, references, tags and formulas of wikitext."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from ingest.wikitext.markup_cleanup import BREAK, escape_markup, make_code_line, make_superscript
from ingest.wikitext.wiki_site import load_meanings
from storage.language.lazy_pattern import lazy_compile

_FRACTION = lazy_compile(r"\\[dtc]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_BINOMIAL = lazy_compile(r"\\[dt]?binom\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_ROOT = lazy_compile(r"\\sqrt\s*\{([^{}]*)\}")
_ENVIRONMENT = lazy_compile(r"\\(?:begin|end)\s*\{[^{}]*\}(?:\{[lcr|]*\})?")
_STYLED = lazy_compile(r"\\(?:math[a-z]+|text[a-z]*|mbox|operatorname\*?|boldsymbol|pmb|rm|bf|overline|bar|hat|vec|"
                     r"tilde|dot|ddot|underline|color|widehat|mathbb)\s*\{([^{}]*)\}")  # fmt: skip
_COMMAND = lazy_compile(r"\\([A-Za-z]+)\*?")
_SCRIPT = lazy_compile(r"([\^_])\s*\{([^{}]*)\}")
_EXPONENT = lazy_compile(r"\^([0-9n])(?![0-9])")
_ATOM = lazy_compile(r"\w+|\\[A-Za-z]+")
_DEEPEST_LATEX = 6
"""Nesting of braces that is read; deeper ones lose their structure, not their letters."""


def render_latex(latex: str) -> str:
    r"""Write LaTeX as plain text: `\frac{a}{b}` becomes `a/b`, `x^{2}` becomes `x²`, `\alpha` becomes `α`."""
    text = _ENVIRONMENT.sub(" ", latex).replace("\\\\", "; ").replace("\\,", " ").replace("\\;", " ")
    for _ in range(_DEEPEST_LATEX):
        before = text
        text = _STYLED.sub(r"\1", text)
        text = _ROOT.sub(lambda match: f"√{_bracket_terms(match[1])}", text)
        text = _FRACTION.sub(lambda match: f"{_bracket_terms(match[1])}/{_bracket_terms(match[2])}", text)
        text = _BINOMIAL.sub(r"C(\1, \2)", text)
        text = _SCRIPT.sub(_render_script, text)
        if text == before:
            break
    text = _COMMAND.sub(lambda command: load_meanings("latex_symbols").get(command[1], ""), text)
    text = _EXPONENT.sub(lambda match: make_superscript(match[1]), text)
    for gone in ("\\{", "\\}", "\\", "{", "}", "&", "~", "$"):
        text = text.replace(gone, {"\\{": "(", "\\}": ")"}.get(gone, " " if gone in "&~" else ""))
    return " ".join(text.split())


def _bracket_terms(text: str) -> str:
    text = text.strip()
    return text if _ATOM.fullmatch(text) else f"({text})"


def _render_script(match: re.Match[str]) -> str:
    text = match[2].strip()
    if match[1] == "^" and (small := make_superscript(text)) != text:
        return small
    return f"{match[1]}{_bracket_terms(text)}"


_TAG = lazy_compile(r"<(?:(!--)|(/?)([A-Za-z][A-Za-z0-9-]*+)([^<>]*+)>)")
_RAISED = lazy_compile(r"\s*([0-9+\-−–n]{1,12})\s*</sup\s*>")
_BASE = lazy_compile(r"\s*(?:\[\[[^\[\]|]*\|)?([0-9]{1,2})(?:\]\])?\s*</sub\s*>")
_DIGITS_BEFORE = lazy_compile(r"[0-9][0-9A-F]{0,15}\Z")
_LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_NOTE_LETTER = lazy_compile(r"\s*[a-m]\s*</sup\s*>")
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


_CONTENT: Mapping[str, Callable[[str], str]] = MappingProxyType({
    "nowiki": escape_markup,
    **dict.fromkeys(
        ("pre", "source", "syntaxhighlight"),
        lambda text: make_code_line(text.removeprefix("<nowiki>").removesuffix("</nowiki>")),
    ),
    **dict.fromkeys(("math", "ce", "chem"), lambda text: escape_markup(render_latex(text))),
})  # fmt: skip
_KNOWN = _INVISIBLE.union(_DROPPED, _LAYOUT, _CLOSING, _CONTENT)


def replace_tags(text: str) -> str:
    """Replace comments, references and tags. Formulas and code become text without markup.

    Of an element that is never closed, only the tag is removed: it could otherwise swallow the rest of the page.
    """
    if "<" not in text:
        return text
    out: list[str] = []
    at = 0
    ahead = _Lookahead(text)
    for tag in _TAG.finditer(text):
        start = tag.start()
        if start < at:
            continue
        out.append(text[at:start])
        if tag[3] == "ref" and not tag[2] and tag[4][-1:] != "/":  # every second tag
            at = _reference_end(ahead, tag.end())
        else:
            replacement, at = _read_tag(ahead, tag)
            out.append(replacement)
    out.append(text[at:])
    return "".join(out)


class _Lookahead:
    """Finds the next position of given strings, and remembers it, so that no text is searched for them twice."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._places: dict[str, int] = {}

    def find(self, needle: str, start: int) -> int:
        place = self._places.get(needle, -1)
        if place < start:
            place = self.text.find(needle, start)
            place = self._places[needle] = len(self.text) if place < 0 else place
        return place


def _read_tag(ahead: _Lookahead, tag: re.Match[str]) -> tuple[str, int]:
    """Return the text that replaces a tag and its content, and the position where the text continues."""
    comment, closing, written, attributes = tag.groups()
    end = tag.end()
    if comment:
        return _comment_end(ahead, tag.start(), end)
    name = written.lower()
    if closing:
        return (_CLOSING.get(name, "") if name in _KNOWN else tag[0]), end
    if name in _DROPPED or name in _CONTENT:
        return ("", end) if attributes.endswith("/") else _read_content(ahead, written, attributes, end)
    shifted = _read_shifted(ahead.text, name, tag.start(), end) if name in {"sup", "sub"} else None
    return shifted or (_LAYOUT.get(name, "" if name in _KNOWN else tag[0]), end)


def _read_shifted(text: str, name: str, start: int, end: int) -> tuple[str, int] | None:
    """Return the text for an exponent, note or number base, and where the text continues; None for anything else."""
    if name == "sub":
        base = _BASE.match(text, end) if _DIGITS_BEFORE.search(text, max(0, start - 16), start) else None
        return (base[1].translate(_LOWERED), base.end()) if base else None
    if number := _RAISED.match(text, end):
        return make_superscript(number[1]), number.end()
    letter = _NOTE_LETTER.match(text, end) if text.endswith("]]", 0, start) else None
    return ("", letter.end()) if letter else None


def _comment_end(ahead: _Lookahead, start: int, end: int) -> tuple[str, int]:
    text = ahead.text
    close = ahead.find("-->", end)
    if close == len(text):
        return "", end
    close += 3
    # A comment on its own lines must not leave an empty line, which would end a paragraph.
    alone = text[start - 1 : start] == "\n" and text[close : close + 1] == "\n"
    return "", close + alone


def _reference_end(ahead: _Lookahead, end: int) -> int:
    close = ahead.find("</ref>", end)
    # It is unclosed, as a heading in it shows too.
    return end if close == len(ahead.text) or ahead.find("\n==", end) < close else close + len("</ref>")


def _read_content(ahead: _Lookahead, written: str, attributes: str, end: int) -> tuple[str, int]:
    text, closing, name = ahead.text, f"</{written}>", written.lower()
    close = ahead.find(closing, end)
    if close == len(text):
        return "", end
    after = close + len(closing)
    if name not in _CONTENT:
        return "", after
    content = text[end:close]
    return (escape_markup if "inline" in attributes else _CONTENT[name])(content), after
