"""Characters that stand for structure while wikitext is read, and the shelter of text that is no markup.

The marks are control characters that XML cannot contain, so that no page of a dump has them.
"""

import re

ROW = "\x02"
"""Begins a line that is a row of a table or of an infobox."""
CODE = "\x03"
"""Begins a line that is a stretch of code, its line breaks written as `BREAK`."""
BREAK = "\x04"
"""A line break within a line: `<br>`."""
PIPE = "\x05"
"""A pipe that separates no arguments: `{{!}}`."""

_MARKS = str.maketrans("", "", ROW + CODE + BREAK + PIPE)
_SHELTER = {ord(char): f"&#{ord(char)};" for char in "[]{}|'=*#:;!<>_-~&"}
_CODE = _SHELTER | {ord(char): f"&#{ord(char)};" for char in " ,.()\t"} | {ord("\n"): BREAK}
_SUPERSCRIPT = str.maketrans("0123456789+-−–n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻ⁿ")
_RAISED = re.compile(r"[0-9+\-−–]+n?|n")


def without_marks(text: str) -> str:
    """The text without our own marks, which only text from elsewhere than a dump can hold."""
    if ROW in text or CODE in text or BREAK in text or PIPE in text:
        return text.translate(_MARKS)
    return text


def sheltered(text: str) -> str:
    """Text whose markup characters are written as entities, so that they are read as themselves."""
    return text.translate(_SHELTER)


def code_line(text: str) -> str:
    """A line of its own that holds code with its indentation; empty for empty code."""
    stripped = text.strip("\n").rstrip()
    return f"\n{CODE}{stripped.translate(_CODE)}\n" if stripped else ""


def raised(text: str) -> str:
    """A superscript: a number as superscript digits (10² is not 102), anything else as it is."""
    return text.translate(_SUPERSCRIPT) if _RAISED.fullmatch(text) else text
