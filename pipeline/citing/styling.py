"""Takes emphasis out of a sentence: asterisks, underscores and tildes that Markdown would read as style.

Arithmetic (`2 * 3`, `2**3`), snake_case, `__init__` and `**kwargs` inside a sentence keep theirs. Code and mathematics
are taken out beforehand (see `verbatim`).
"""

import re

_SPACED = r"A-Za-z0-9\u00c0-\u02af\u0370-\u03ff\u0400-\u052f_"
_STYLED = (
    re.compile(
        rf"(?<![{_SPACED}*\\])(?P<sign>\*{{1,3}}+)(?![\s*])(?P<text>(?:[^*\n]|(?<=\s)\*(?=\s))++)(?<![\s\\])(?P=sign)(?![{_SPACED}*])"
    ),
    re.compile(
        r"(?<![\w\\])(?P<sign>_{1,3}+)(?![\s_])(?P<text>(?:[^_\n]|(?<=[^\W_])_(?=[^\W_]))++)(?<![\s\\])(?P=sign)(?!\w)"
    ),
    re.compile(r"(?P<sign>~~)(?![\s~])(?P<text>[^~\n]++)(?<!\s)~~"),
)
_DUNDER = re.compile(r"__[a-z][a-z0-9]*(?:_[a-z0-9]+)*__")
_OPENED = re.compile(r"([\s\"“„«(]*)\*{1,3}(?=[^\s*])([^*]*)\Z")
_CLOSED = re.compile(r"\A([^*]*[^\s*])\*{1,3}([.!?…。\"”»)]*\s*)\Z")
_ESCAPED = re.compile(r"\\([*_\[\]#+!|>~.-])")
_PASSES = 4
"""Emphasis within emphasis."""


def unstyled(text: str) -> str:
    """Return a sentence without emphasis; what opens or closes in a neighbouring sentence goes at its ends."""
    for _ in range(_PASSES):
        before = text
        for pattern in _STYLED:
            text = pattern.sub(_bare, text)
        if text == before:
            break
    text = _OPENED.sub(r"\1\2", text) if _OPENED.match(text) else text
    return _CLOSED.sub(r"\1\2", text)


def unescaped(text: str) -> str:
    """Return the text without the backslashes that keep Markdown from reading a sign."""
    return _ESCAPED.sub(r"\1", text)


def _bare(found: re.Match[str]) -> str:
    return found[0] if _DUNDER.fullmatch(found[0]) else found["text"]
