"""Show traced turns: figures side by side, and each turn's timeline, as text or as a picture of the same."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from evaluation.speed.turn_figures import MARKS, WIKICHAT_2_1, critical_path
from evaluation.speed.turn_trace import MeasuredTurn

WIDTH = 72
SHORTEST = 0.02
"""Seconds of a step that is shown though the end did not wait for it."""
_PIXELS, _ROW, _LABELS = 1_500, 24, 230
_ON_PATH, _ASIDE, _INK, _PAPER = "#2563c9", "#b9d0f5", "#1f2430", "#ffffff"


@dataclass(frozen=True, slots=True)
class TimelineBar:
    """One line of a timeline; times are seconds from the turn's beginning."""

    label: str
    began: float
    ended: float
    critical: tuple[float, float] | None
    """The stretch that the end waited for; None where it did not."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """A turn's steps in the order in which they began, and the moments marked beneath; the last is its end."""

    title: str
    bars: Sequence[TimelineBar]
    moments: Sequence[tuple[str, float]]


def build_timeline(system: str, turn: MeasuredTurn) -> Timeline:
    """Lay out the steps that last, or that the end waited for."""
    path = critical_path(turn.steps, turn.last, turn.began, turn.ended)
    legs = {leg.step.id: leg for leg in path if leg.step}
    numbers: dict[str, int] = {}
    bars = []
    for step in turn.steps:
        if step.ended - step.began < SHORTEST:
            continue
        name = f"prompt of {step.name}" if step.kind == "prompt" else step.name
        numbers[name] = numbers.get(name, 0) + 1
        leg = legs.get(step.id)
        critical = (leg.began - turn.began, leg.ended - turn.began) if leg else None
        bars.append(TimelineBar(f"{name} {numbers[name]}", step.began - turn.began, step.ended - turn.began, critical))
    moments = [("first sentence", turn.first_seconds)] if turn.said else []
    return Timeline(system, bars, (*moments, ("end", turn.seconds)))


def render_timeline(timeline: Timeline) -> str:
    """Return it as text: `#` is what the end waited for, `-` what ran beside it."""
    end = timeline.moments[-1][1]
    wide = max((len(bar.label) for bar in timeline.bars), default=0)
    lines = [f"{timeline.title}: what the end waited for (#), and what ran beside it (-)"]
    for bar in timeline.bars:
        marks = [" "] * (WIDTH + 1)
        _fill(marks, bar.began, bar.ended, "-", end)
        if bar.critical:
            _fill(marks, *bar.critical, "#", end)
        lines.append(f"{bar.label:<{wide}} |{''.join(marks)}| {bar.began:6.2f} {bar.ended:6.2f}")
    for label, at in timeline.moments:
        marks = [" "] * (WIDTH + 1)
        _fill(marks, at, at, "^", end)
        lines.append(f"{'':<{wide}} |{''.join(marks)}| {at:6.2f} {label}")
    return "\n".join(lines)


def draw_timelines(timelines: Sequence[Timeline], unit: float, path: Path) -> None:
    """Draw the same as a PNG, all on one scale, whose moments are told in `unit`s: seconds of one plain call."""
    rows = sum(len(one.bars) + len(one.moments) + 2 for one in timelines)
    image = Image.new("RGB", (_PIXELS, rows * _ROW), _PAPER)
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(15)
    scale = (_PIXELS - _LABELS - 260) / max(one.moments[-1][1] for one in timelines)
    top = 0
    for one in timelines:
        pen.text((10, top + 6), one.title, _INK, ImageFont.load_default(20))
        top += _ROW + 6
        first = top
        for bar in one.bars:
            pen.text((10, top), bar.label, _INK, font)
            for span, colour in (((bar.began, bar.ended), _ASIDE), (bar.critical, _ON_PATH)):
                if span:
                    start, stop = (_LABELS + at * scale for at in span)
                    pen.rectangle((start, top, max(start + 2, stop), top + _ROW - 6), colour)
            top += _ROW
        for label, at in one.moments:
            pen.line((_LABELS + at * scale, first, _LABELS + at * scale, top + _ROW), _INK)
            pen.text((_LABELS + at * scale + 5, top), f"{label}: {at:.2f} s, {at / unit:.2f} plain calls", _INK, font)
            top += _ROW
        top += _ROW - 6
    image.save(path, "PNG", optimize=True)


def _fill(marks: list[str], began: float, ended: float, mark: str, end: float) -> None:
    first, last = (min(WIDTH, round(at / end * WIDTH)) if end else 0 for at in (began, ended))
    marks[first : max(last, first + 1)] = mark * (max(last, first + 1) - first)


_ROWS: Sequence[tuple[str, str, Callable[[float], str]]] = (
    ("first visible checked sentence, over the end of a plain call", "first_ratio", "{:.2f}".format),
    ("the same by the pace of server and index alone", "first_ratio_without_ours", "{:.2f}".format),
    ("end, over the end of a plain call", "end_ratio", "{:.2f}".format),
    ("the same by the pace of server and index alone", "end_ratio_without_ours", "{:.2f}".format),
    ("seconds to the first sentence", "first_seconds", "{:.2f}".format),
    ("seconds to the end", "end_seconds", "{:.2f}".format),
    ("rounds: seconds of a server that takes one for any reply", "rounds", "{:.0f}".format),
    ("the same with ours", "seconds_in_rounds", "{:.2f}".format),
    ("calls", "calls", "{:.0f}".format),
    ("prompt tokens", "prompt_tokens", "{:,.0f}".format),
    ("of these a stable prefix", "stable_share", "{:.0%}".format),
    ("reply tokens", "reply_tokens", "{:,.0f}".format),
    ("passages sent again in one round", "sent_again", "{:.0f}".format),
    ("verdicts after the draft began", "late_verdicts", "{:.0f}".format),
    ("verdicts", "verdicts", "{:.0f}".format),
)


def render_figures(found: Sequence[Mapping[str, Any]]) -> str:
    names = [*(str(one["system"]) for one in found), "WikiChat 2.1"]
    lines = [f"| | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for label, key, shown in _ROWS:
        cells = [_render_cell(one, key, shown) for one in (*found, WIKICHAT_2_1)]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _render_cell(one: Mapping[str, Any], key: str, shown: Callable[[float], str]) -> str:
    value = one.get(key, math.nan)
    if isinstance(value, float) and math.isnan(value):
        return ""
    said = shown(value)
    if key == "end_ratio" and "end_ratio_refined" in one:
        said += f" ({one['end_ratio_refined']:.2f} refined)"
    if key not in one.get("marks", {}):
        return said
    way, mark = MARKS[one["system"]][key]
    return f"{said} ({'keeps' if one['marks'][key] else 'MISSES'} {way} {shown(mark)})"


def render_stages(one: Mapping[str, Any]) -> str:
    lines = [
        f"{one['system']}: prompt tokens of a turn by stage",
        "",
        "| stage | calls | tokens | stable prefix | of these |",
        "|---|---|---|---|---|",
    ]
    for name, sent in one["stages"].items():
        part = sent.stable / sent.tokens if sent.tokens else 0.0
        lines.append(f"| {name} | {sent.calls} | {sent.tokens:,} | {sent.stable:,} | {part:.0%} |")
    return "\n".join(lines)


def render_parts(one: Mapping[str, Any]) -> str:
    """Return where the seconds to the end, and to the first sentence, of a system went."""
    lines = []
    for key, until in (("to_the_first", "first sentence"), ("to_the_end", "end")):
        ways = one[key]
        ours = {name: seconds for name, seconds in ways.items() if name not in {"server", "search"}}
        detail = ", ".join(f"{name} {seconds * 1000:.0f}" for name, seconds in ours.items())
        lines.append(
            f"{one['system']}, to the {until}: server {ways.get('server', math.nan):.2f} s, "
            f"index {ways.get('search', math.nan):.2f} s, ours {sum(ours.values()) * 1000:.0f} ms ({detail})"
        )
    return "\n".join(lines)
