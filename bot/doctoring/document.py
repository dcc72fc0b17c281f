"""The doctor's findings for programs. Pure; `report` has the same for people."""

from collections.abc import Mapping
from typing import Any

from bot.doctoring.figures import Figures, turn_seconds
from bot.doctoring.report import Report
from bot.doctoring.ways import Measured

_TOLD = (
    "cases",
    "first",
    "readable",
    "right",
    "cited",
    "valid",
    "calls",
    "prompt_tokens",
    "completion_tokens",
    "estimated",
    "cost",
    "cut",
    "retried",
    "thought",
    "trimmed",
    "shortened",
    "schema",
)


def document(report: Report) -> dict[str, Any]:
    """Return the findings: `ways`, each with its figures by kind, `advice`, and `settings`, the lines to write."""
    return {
        "schema": 1,
        "model": report.model,
        "server": report.server,
        "calls_at_once": report.facts.at_once,
        "ways": [_way(found) for found in report.facts.measured],
        "turn_seconds": turn_seconds(report.facts.figures),
        "advice": [{"why": one.why, "changes": dict(one.changes)} for one in report.advice],
        "settings": list(report.lines),
    }


def _way(found: Measured) -> dict[str, Any]:
    kinds = {kind: _figures(one) for kind, one in found.figures.items()}
    return {"way": found.way, "offered": found.offered, "kinds": kinds, "cut_short": dict(found.cut_short)}


def _figures(one: Figures) -> Mapping[str, Any]:
    return {
        **{name: getattr(one, name) for name in _TOLD},
        "seconds": {"median": one.seconds, "p95": one.slow_seconds},
        "verdicts": [
            {"expected": expected, "given": given, "count": count} for (expected, given), count in one.verdicts.items()
        ],
        "wrong": dict(one.wrong),
        "faults": [str(fault) for fault in one.faults],
    }
