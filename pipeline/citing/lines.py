"""Lines of a reply as they arrive: running text, where it breaks off, rows of tables and fenced code.

`storage.language.blocks` does this for whole texts and looks ahead as far as it likes; here the reply may still be
growing, so each line is judged by its first characters alone, and nothing is given out that more text could change.
Definitions of links and footnotes are dropped.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.citing.bullets import Lead, lead
from pipeline.citing.cleaning import is_definition, visible
from storage.language.scripts import is_unspaced


@dataclass(frozen=True, slots=True)
class Prose:
    """The next stretch of running text; white space at its ends counts."""

    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """Running text has ended; what follows begins a paragraph, an item or a heading."""


@dataclass(frozen=True, slots=True)
class Row:
    """A whole row of a table."""

    line: str


@dataclass(frozen=True, slots=True)
class Code:
    """A whole fence of code, with fences that nothing inside closes."""

    text: str


Event = Prose | Ended | Row | Code

_BREAKS = re.compile("[\x0b\x0c\x85\u2028\u2029]")
_INDENT = " \t\u00a0\u3000"
_HEAD = 48
"""How many characters of a line tell what it is."""
_WRAPPED = range(60, 121)
"""Lines of such lengths were broken for width."""
_FENCE = re.compile(r"(`{3,}|~{3,})([^`\n]*)\Z")
_MAY_DEFINE = re.compile(r"\[[^\]]*(?:\]:|\Z)")
_MARKS_ALONE = re.compile(r"\s*((?:[\[【［][^\[\]【】［］\n]{0,60}[\]】］]\s*)*)\Z")
_TICKS = re.compile("`+")


class Lines:
    """One reply. Its events are the same however the reply is cut into pieces, but for how running text is cut."""

    def __init__(self) -> None:
        self._rest = ""
        self._fresh = True
        """Whether the rest begins a line."""
        self._open = False
        """Whether running text came since the last end."""
        self._heading = False
        self._length = 0
        self._last = ""
        """How long the line before was, and its last character."""
        self._quoted = self._was_quoted = False
        self._item = 0
        """The largest number of an item under this heading."""
        self._fence = ""
        self._code: list[str] = []
        self._closed = False

    def feed(self, piece: str) -> Iterator[Event]:
        """Take the next piece of the reply, and yield what it makes certain."""
        self._rest += _BREAKS.sub("\n", visible(piece.replace("\r", " ")))
        yield from self._events()

    def close(self) -> Iterator[Event]:
        """Yield the rest of the reply; a fence that was left open closes."""
        self._closed = True
        yield from self._events()
        if self._fence:
            yield self._fenced()
        yield Ended()

    def _events(self) -> Iterator[Event]:
        while self._rest:
            step = self._in_fence if self._fence else self._at_start if self._fresh else self._in_line
            events = step()
            if events is None:
                return
            yield from events

    def _in_line(self) -> list[Event]:
        text, newline, self._rest = self._rest.partition("\n")
        return self._prose(text, ends=bool(newline))

    def _prose(self, text: str, *, ends: bool) -> list[Event]:
        self._fresh = ends
        self._length += len(text)
        self._last = text.rstrip()[-1:] or self._last
        return [Prose(text)]

    def _at_start(self) -> list[Event] | None:
        """Judge a line by its head; None where more of it must come first."""
        self._rest = self._rest.lstrip(_INDENT)
        head, newline, _ = self._rest[:_HEAD].partition("\n")
        if not (newline or self._closed) and len(head) < _HEAD:
            return None
        if not head:
            self._rest = self._rest[1:]
            return self._ended()
        if found := lead(head, self._item):
            self._rest = "**" * found.bold + self._rest[found.length :]
            return self._led(found)
        if head.startswith(("|", "```", "~~~")) or _MAY_DEFINE.match(head):
            line = self._line()
            return None if line is None else self._whole(line)
        return self._begun(head)

    def _led(self, found: Lead) -> list[Event]:
        if found.kind == "quote":
            self._quoted = True
            return []
        self._item = 0 if found.kind == "heading" else max(self._item, found.number)
        ended = self._ended()
        self._heading = found.kind == "heading"
        return ended

    def _whole(self, line: str) -> list[Event]:
        """Judge a line that was seen to its end."""
        if fence := _FENCE.match(line):
            self._fence, self._code = fence[1], [fence[2]]
            return self._ended()
        if line.startswith("|"):
            return [*(self._ended() if self._open else []), Row(line)]
        if is_definition(line):
            return self._ended()
        return [*self._begun(line), *self._prose(line, ends=True)]

    def _begun(self, head: str) -> list[Event]:
        """Begin a line of running text: it goes on with the line before, or that has ended."""
        joins = self._open and not self._heading and self._quoted == self._was_quoted and self._wraps(head[0])
        spaced = not (is_unspaced(head[0]) and is_unspaced(self._last or " "))
        before: list[Event] = [Prose(" " * spaced)] if joins else [Ended()]
        self._heading = self._heading and not self._open
        self._open, self._fresh, self._length = True, False, 0
        self._quoted, self._was_quoted = False, self._quoted
        return before

    def _wraps(self, first: str) -> bool:
        """Whether the break before a line that begins with `first` was made for width alone."""
        return first.islower() or self._last in {",", ";"} or (self._length in _WRAPPED and self._last not in "]】］:")

    def _ended(self) -> list[Event]:
        self._open = self._heading = self._quoted = False
        return [Ended()]

    def _line(self) -> str | None:
        line, newline, rest = self._rest.partition("\n")
        if not (newline or self._closed):
            return None
        self._rest = rest
        return line

    def _in_fence(self) -> list[Event] | None:
        line = self._line()
        if line is None:
            return None
        bare = line.strip()
        marks = _MARKS_ALONE.fullmatch(bare.lstrip(self._fence[0])) if bare.startswith(self._fence) else None
        if marks is None:
            self._code.append(line)
            return []
        return [self._fenced(), Prose(marks[1]), Ended()]

    def _fenced(self) -> Code:
        inside = max(map(len, _TICKS.findall("\n".join(self._code))), default=0)
        ticks = "`" * max(3, inside + 1)
        self._fence, lines = "", self._code
        return Code("\n".join([ticks + lines[0], *lines[1:], ticks]))
