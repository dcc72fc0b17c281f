"""Double braces and double brackets, however nested, read with a stack in one pass.

Templates become what they say (`templates`), links what they show (`links`). There is no recursion, so that no page can
exhaust it, and what is never closed loses its brackets alone, so that it cannot eat the page.
"""

import re
from collections.abc import Callable

_TOKEN = re.compile(r"(\{\{|\}\}|\[\[|\]\])")
_PARAMETER = re.compile(r"\{\{\{[^{}|]*(?:\|([^{}|]*))?\}\}\}")
_DEEPEST = 40
"""Brackets nested deeper than this are no markup that anyone wrote; it bounds how often a stretch is copied."""
_SHORT = 300

Render = Callable[[str], str]
"""From the inside of a pair of brackets to what stands for it."""


def expanded(text: str, template: Render, link: Render) -> str:
    """The text with each `{{...}}` and `[[...]]` replaced by what `template` and `link` make of its inside."""
    if "{{{" in text:
        text = _PARAMETER.sub(lambda match: match[1] or "", text)
    pieces = iter(_TOKEN.split(text))
    nest = _Nest(template, link)
    nest.out.append(next(pieces))
    for sign, following in zip(pieces, pieces, strict=True):
        if sign in ("{{", "[["):
            nest.open(sign)
        elif sign == "}}":
            nest.close_template()
        else:
            nest.close_link()
        if following:
            nest.out.append(following)
    return nest.end()


class _Nest:
    """The brackets that are open, and the text gathered within each."""

    def __init__(self, template: Render, link: Render) -> None:
        self._template = template
        self._link = link
        self._open: list[tuple[str, list[str]]] = []
        self._templates = 0
        self.out: list[str] = []
        """Within the innermost open bracket."""

    def open(self, sign: str) -> None:
        if len(self._open) < _DEEPEST:
            self._open.append((sign, self.out))
            self._templates += sign == "{{"
            self.out = []

    def close_template(self) -> None:
        if not self._templates:
            return
        while self._open[-1][0] == "[[":  # a link that was never closed
            self._dissolve()
        body = "".join(self.out)
        _, self.out = self._open.pop()
        self._templates -= 1
        # A heading within a template: some braces above were never closed. The text is worth more than they are.
        self.out.append(body if "\n==" in body else self._template(body))

    def close_link(self) -> None:
        if self._forgot_braces():
            self._dissolve()
        if self._open and self._open[-1][0] == "[[":
            body = "".join(self.out)
            _, self.out = self._open.pop()
            self.out.append(self._link(body))

    def _forgot_braces(self) -> bool:
        """Whether a link ends with a template in it that was not closed before: `[[File:a.png|{{lang|de|b}]]`."""
        signs = [sign for sign, _ in self._open[-2:]]
        return signs == ["[[", "{{"] and len(self.out) < _SHORT and sum(map(len, self.out)) < _SHORT

    def _dissolve(self) -> None:
        """The innermost open bracket was none."""
        sign, outer = self._open.pop()
        self._templates -= sign == "{{"
        outer += self.out
        self.out = outer

    def end(self) -> str:
        """All of the text; what is still open lost its brackets."""
        return "".join(part for _, parts in self._open for part in parts) + "".join(self.out)
