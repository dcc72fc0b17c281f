"""Parts a reply from the thoughts that some models write into it, `<think>...</think>`, as the text arrives.

Some chat templates open the thought in the prompt, so that only its `</think>` arrives: all before it is thought.
Whoever passes pieces on as they come must hold them back until then (`hold=True`), or learns too late (`late`).
"""

import re

_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_TAGS = ("<think>", "</think>", "<thinking>", "</thinking>")
_LONGEST = max(map(len, _TAGS))


class ThoughtFilter:
    """Fed with text in any pieces; gives back what is meant for the reader, without blank space in front."""

    def __init__(self, *, hold: bool) -> None:
        self.tagged = False
        """Whether any tag was seen."""
        self.unopened = False
        """Whether a thought ended that never began."""
        self.late = False
        """Whether that was found when text before it had been given back already."""
        self.thoughts: list[str] = []
        self._hold = hold
        self._inside = False
        self._begun = False
        self._unread = ""
        self._held: list[str] = []

    def feed(self, text: str) -> str:
        """Take a piece; return the visible text that is ready."""
        self._unread += text
        while tag := _TAG.search(self._unread):
            before, self._unread = self._unread[: tag.start()], self._unread[tag.end() :]
            self._take(before)
            self._turn(closing=bool(tag[1]))
        ready = len(self._unread) - _tail(self._unread)
        self._take(self._unread[:ready])
        self._unread = self._unread[ready:]
        return "" if self._hold else self._release()

    def stop_holding(self) -> str:
        """Hold nothing back any longer; return what was held."""
        self._hold = False
        return self._release()

    def end(self) -> str:
        """Say that no more will come; return the rest."""
        self._take(self._unread)
        self._unread = ""
        return self.stop_holding()

    def _take(self, text: str) -> None:
        (self.thoughts if self._inside else self._held).append(text)

    def _turn(self, *, closing: bool) -> None:
        self.tagged = True
        if closing and not self._inside:
            self.unopened = True
            self.late = self.late or self._begun
            self.thoughts += self._held
            self._held = []
        self._inside = not closing

    def _release(self) -> str:
        text, self._held = "".join(self._held), []
        if not self._begun:
            text = text.lstrip()
        self._begun = self._begun or bool(text)
        return text


def _tail(text: str) -> int:
    """Return how many characters at a text's end may be the beginning of a tag."""
    start = text.rfind("<", max(0, len(text) - _LONGEST + 1))
    tail = text[start:].lower() if start >= 0 else ""
    return len(tail) if tail and any(tag.startswith(tail) for tag in _TAGS) else 0
