"""Render parts of a view in a platform's dialect of Markdown; pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

from bot.views.message_layout import MessagePart, PartKind, TextRun, TextStyle
from bot.views.sanitize import WORD_JOINER, sanitize_url, strip_invisible

_SIGNS = MappingProxyType({"checking": "⏳", "supported": "✅", "refuted": "❌", "unknown": "❔"})
_BOLD = frozenset({PartKind.HEADING, PartKind.LABEL, PartKind.NOTICE})
_SMALL = frozenset({PartKind.STATUS, PartKind.COLLAPSED, PartKind.LEFT_OUT})
_QUOTATION = "> "


@dataclass(frozen=True, slots=True)
class MarkdownDialect:
    escape: Callable[[str], str]
    link: str  # template of label and address
    subtext: str = ""  # prefix of small text; italics if empty

    def format_link(self, title: str, url: str) -> str:
        """Return a link to a stored document; plain text if its address cannot be linked."""
        target, label = sanitize_url(url), " ".join(title.split())
        if target:
            return self.link.format(self.escape(label or url.strip()), target)
        title, address = self.escape(label), self.escape(" ".join(url.split()))
        return f"{title} ({address})" if title and address else title or address

    def render(self, part: MessagePart, format_mention: Callable[[TextRun], str]) -> str:
        """Return a part as Markdown; empty if nothing of it is visible.

        `format_mention` returns a run as the mention of a person; empty if it is not one.
        """
        begins_claim = part.state and part.runs and part.runs[0].style is TextStyle.NOTE
        text = f"{_SIGNS.get(part.state, '❔')} " if begins_claim else ""
        for run in part.runs:
            prefix = _QUOTATION if run.style is TextStyle.QUOTE else self.subtext if part.kind in _SMALL else ""
            shown = format_mention(run) or self._render_run(run, part.kind)
            text += "\n" * (run.style is TextStyle.CODE and not text.endswith("\n"))
            text += _prefix_each_line(shown, prefix, begins=not text or text.endswith("\n"))
        return text.strip("\n") if text.strip() else ""

    def _render_run(self, run: TextRun, kind: PartKind) -> str:
        if run.url:
            return self.format_link(run.text, run.url)
        if run.style is TextStyle.CODE:
            return fence_code(run.text)
        text = self.escape(run.text)
        if kind in _BOLD:
            return _wrap_each_line("**", text)
        italic = run.style is TextStyle.NOTE or (kind in _SMALL and not self.subtext)
        return _wrap_each_line("*", text) if italic else text


def fence_code(text: str) -> str:
    """Return lines as a block of code, in which chat clients make no mention, link or format."""
    shown = strip_invisible(text).strip("\n").replace("```", WORD_JOINER.join("```"))
    return f"```\n{shown}\n```\n"


def _wrap_each_line(mark: str, text: str) -> str:
    """Put `mark` around each line of a text, inside the spaces at the line's ends."""
    return re.sub(r"\S(?:.*\S)?", lambda line: f"{mark}{line[0]}{mark}", text)


def _prefix_each_line(text: str, prefix: str, *, begins: bool) -> str:
    """Put a prefix before each non-empty line. `begins`: the text starts at the beginning of a line."""
    if not prefix:
        return text
    lines = enumerate(text.split("\n"))
    return "\n".join(f"{prefix}{line}" if line.strip() and (number or begins) else line for number, line in lines)
