"""Parts of a page as Discord's Markdown; pure.

Every run is escaped by itself, as the very last step; what is put around it afterwards is the only markup there is.
Links are made of sources' addresses alone, and mentions of `View.mentions`.
"""

from types import MappingProxyType

from bot.discord.escaping import escaped, link
from bot.views.render_tree import MessagePart, PartKind, TextRun, TextStyle
from storage.language.lazy_pattern import lazy_compile

PERSON = lazy_compile(r"[0-9]{1,20}")
"""A person's id."""
_SIGNS = MappingProxyType({"checking": "⏳", "supported": "✅", "refuted": "❌", "unknown": "❔"})
_BOLD = frozenset({PartKind.HEADING, PartKind.LABEL, PartKind.NOTICE})
_SMALL = frozenset({PartKind.STATUS, PartKind.COLLAPSED, PartKind.LEFT_OUT})
_QUOTATION, _SUBTEXT = "> ", "-# "


def markdown(part: MessagePart) -> str:
    """Return the text that shows a part; empty where nothing of it can be seen."""
    begun = part.state and part.runs and part.runs[0].style is TextStyle.NOTE
    said = f"{_SIGNS.get(part.state, '❔')} " if begun else ""
    for run in part.runs:
        said += _lines(_run(run, part.kind), _before(run, part.kind), begins=not said or said.endswith("\n"))
    return said.strip("\n") if said.strip() else ""


def is_person(run: TextRun) -> bool:
    """Return whether a run mentions somebody."""
    return run.style is TextStyle.PERSON and PERSON.fullmatch(run.text) is not None


def _run(run: TextRun, kind: PartKind) -> str:
    if is_person(run):
        return f"<@{run.text}>"
    if run.url:
        return link(run.text, run.url)
    text = escaped(run.text)
    if kind in _BOLD:
        return _around("**", text)
    return _around("*", text) if run.style is TextStyle.NOTE else text


def _around(mark: str, text: str) -> str:
    """Return each line of a text between marks, with the blanks at its ends left outside."""
    return "\n".join(_line_around(mark, line) for line in text.split("\n"))


def _line_around(mark: str, line: str) -> str:
    core = line.strip()
    before, _, after = line.partition(core) if core else (line, "", "")
    return f"{before}{mark}{core}{mark}{after}" if core else line


def _before(run: TextRun, kind: PartKind) -> str:
    return _QUOTATION if run.style is TextStyle.QUOTE else _SUBTEXT if kind in _SMALL else ""


def _lines(text: str, before: str, *, begins: bool) -> str:
    """Return a text with something before each of its lines that is not empty."""
    if not before:
        return text
    lines = text.split("\n")
    return "\n".join(
        f"{before}{line}" if line.strip() and (number or begins) else line for number, line in enumerate(lines)
    )
