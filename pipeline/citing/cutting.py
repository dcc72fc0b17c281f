"""Cuts running text into sentences as it arrives.

`storage.language.sentences` decides where a sentence ends, from a window of text that is the same however the text
arrived: all since the last cut, up to a fixed distance behind the stop in question. So a sentence is given out a few
words after its end, and never taken back.
"""

import re
from collections.abc import Iterator

from pipeline.citing.cleaning import opaque_spans
from pipeline.citing.marks import marks
from pipeline.citing.verbatim import covered, verbatim_spans
from storage.language.sentences import sentence_spans

_MAY_END = re.compile("[.!?…。！？｡।॥۔؟։።፧፨។៕༎᠃෴‼⁇⁈⁉．;\u037e]|(?<=[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]) ")
_AHEAD = 48
"""How much is read behind a stop before it is judged: marks that follow it, and the next word."""
_STRIDE = 16
"""How far behind it other stops are judged with it."""
_LONGEST = 1_000
"""No sentence is longer; it is cut at a space."""
_PAIRS = ("()", "[]", "（）", "「」", "『』", "《》", "“”", "„“", "«»")
_ENCLOSED = 300
"""How long something in brackets, quotation marks or backticks is waited for."""
_STANDS_FOR_A_WORD = "Q"


class Cutter:
    """Running text of one paragraph, item or heading after another."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._text = ""
        self._judged = 0
        """Up to where no stop ends the sentence."""

    @property
    def begun(self) -> str:
        """What came since the last cut."""
        return self._text

    def feed(self, text: str) -> Iterator[str]:
        """Take the next stretch, and yield the sentences that are certain, marks included."""
        self._text += text
        yield from self._cut(closed=False)

    def close(self) -> Iterator[str]:
        """Yield the rest, and begin anew."""
        yield from self._cut(closed=True)
        if self._text:
            yield self._text
        self._text, self._judged = "", 0

    def _cut(self, *, closed: bool) -> Iterator[str]:
        while end := self._end(closed=closed):
            yield self._text[:end]
            self._text, self._judged = self._text[end:], 0

    def _end(self, *, closed: bool) -> int:
        """Return where the first sentence ends, with the marks and spaces behind it; 0 while that is not certain."""
        while (stop := _MAY_END.search(self._text, self._judged)) and stop.end() <= _LONGEST:
            ahead = stop.end() + _AHEAD
            if ahead > len(self._text) and not closed:
                return 0
            if end := _first_end(self._text[:ahead], stop.end(), self._count, whole=ahead > len(self._text)):
                return end
            # The longer the sentence, the rarer: what is passed over here is found with the next.
            self._judged = stop.end() + max(_STRIDE, stop.end() // 3)
        if len(self._text) > _LONGEST + _AHEAD or (closed and len(self._text) > _LONGEST):
            end = _first_end(self._text[: _LONGEST + _AHEAD], _LONGEST, self._count, whole=False)
            return end or self._text.rfind(" ", 1, _LONGEST) + 1 or _LONGEST
        return _first_end(self._text, len(self._text), self._count, whole=True) if closed and self._text else 0


def masked(text: str, count: int) -> str:
    """Return a text of the same length in which code and links are single words, and marks are spaces."""
    text = covered(text, verbatim_spans(text), _STANDS_FOR_A_WORD)
    text = covered(text, opaque_spans(text), _STANDS_FOR_A_WORD)
    return covered(text, [mark.span for mark in marks(text, count)], " ").replace("\t", " ")


def _first_end(window: str, stop: int, count: int, *, whole: bool) -> int:
    """Return where the sentence after the first of `window` begins, if the first ends near `stop`, else 0."""
    text = masked(window, count)
    spans = sentence_spans(text)
    if len(spans) == 1 or not spans or spans[0][1] > stop + _STRIDE:
        return 0
    if not whole and _encloses(text, spans[0][1]):
        return 0
    return spans[1][0]


def _encloses(text: str, end: int) -> bool:
    """Whether something was opened shortly before `end` that may still close."""
    near = max(0, end - _ENCLOSED)
    if any(text.count(sign, near, end) % 2 and sign not in text[end:] for sign in '"`'):
        return True
    return any(
        text.rfind(pair[0], near, end) > text.rfind(pair[1], near, end) and pair[1] not in text[end:] for pair in _PAIRS
    )
