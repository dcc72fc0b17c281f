"""What `footnote doctor` found, for people and for programs. Pure."""

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from bot.console import Fault
from bot.doctoring.checks import Finding

_MARKS = {"ok": "ok  ", "warn": "WARN", "fail": "FAIL"}
_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}


def document(found: Sequence[Finding]) -> dict[str, Any]:
    """Return the findings, and whether all is well enough to work."""
    told = [{"level": one.level, "what": one.what, "hint": one.hint} for one in found]
    return {"schema": 1, "healthy": not any(one.level == "fail" for one in found), "findings": told}


def view(found: Sequence[Finding]) -> RenderableType:
    """Show each in a line, with what to do."""
    return Group(*map(_line, found))


def _line(finding: Finding) -> Text:
    said = Fault("", finding.what, finding.hint).line()
    mark = (_MARKS[finding.level], _STYLES[finding.level])
    return Text.assemble(mark, f"  {said}")
