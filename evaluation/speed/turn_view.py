"""Show traced turns: figures side by side, and timelines as text and as a picture."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from evaluation.speed.turn_figures import MARKS, WIKICHAT_2_1, PathLeg
from evaluation.speed.turn_trace import TraceStep

WIDTH = 72
SHORTEST = 0.02
"""Seconds of a step that is shown though the end did not wait for it."""


@dataclass(frozen=True, slots=True)
class TimelineBar:
    """One line of a timeline; times are seconds from the turn's beginning."""

    label: str
    kind: str
    began: float
    ended: float
    critical: tuple[float, float] | None
    """The stretch that the end waited for; None where it did not."""
    first_piece: float | None = None


def lay_out_bars(steps: Sequence[TraceStep], path: Sequence[PathLeg], began: float) -> tuple[TimelineBar, ...]:
    """Return a line for each step that lasts, or that the end waited for, in the order in which they began."""
    legs = {leg.step.id: leg for leg in path if leg.step}
    numbers: dict[str, int] = {}
    found = []
    for step in steps:
        if step.ended - step.began < SHORTEST:
            continue
        name = f"prompt of {step.name}" if step.kind == "prompt" else step.name
        numbers[name] = numbers.get(name, 0) + 1
        leg = legs.get(step.id)
        critical = (leg.began - began, leg.ended - began) if leg else None
        first = step.pieces[0] - began if step.pieces else None
        label = f"{name} {numbers[name]}"
        found.append(TimelineBar(label, step.kind, step.began - began, step.ended - began, critical, first))
    return tuple(found)


def render_timeline(lines: Sequence[TimelineBar], moments: Sequence[tuple[str, float]], end: float) -> str:
    """Return a timeline: `#` is what the end waited for, `-` what ran beside it.

    Args:
        lines: The steps.
        moments: What to mark beneath, with its time.
        end: How long the turn took.
    """
    wide = max((len(line.label) for line in lines), default=0)
    shown = []
    for line in lines:
        marks = [" "] * (WIDTH + 1)
        _fill(marks, line.began, line.ended, "-", end)
        if line.critical:
            _fill(marks, *line.critical, "#", end)
        shown.append(f"{line.label:<{wide}} |{''.join(marks)}| {line.began:6.2f} {line.ended:6.2f}")
    for label, at in moments:
        marks = [" "] * (WIDTH + 1)
        marks[_place(at, end)] = "^"
        shown.append(f"{'':<{wide}} |{''.join(marks)}| {at:6.2f} {label}")
    return "\n".join(shown)


def _fill(marks: list[str], began: float, ended: float, mark: str, end: float) -> None:
    for place in range(_place(began, end), max(_place(ended, end), _place(began, end) + 1)):
        marks[place] = mark


def _place(at: float, end: float) -> int:
    return min(WIDTH, round(at / end * WIDTH)) if end else 0


_WIDTH, _MARGIN, _LABELS, _ROW, _HEAD = 1_500, 30, 190, 26, 96
_BAR = 18
_FEET = 44
_INK, _FAINT, _PAPER = "#1f2430", "#c9ced8", "#ffffff"
_COLOURS: Mapping[str, tuple[str, str]] = {
    "model": ("#2563c9", "#b9d0f5"),
    "search": ("#1e8a5a", "#b4e3cd"),
    "check": ("#b45a14", "#f1d0b2"),
    "think": ("#b45a14", "#f1d0b2"),
    "prompt": ("#7a4fb5", "#d9c8f0"),
}
"""Of each kind of step: what the end waited for, and what ran beside it."""
_NAMES = {"model": "model", "search": "search", "check": "check"}
_FIRST, _END = "#c2185b", "#1f2430"


@dataclass(frozen=True, slots=True)
class TimelinePanel:
    """One turn of a system; times are seconds from its beginning."""

    title: str
    lines: Sequence[TimelineBar]
    moments: Sequence[tuple[str, float]]


def draw_timelines(panels: Sequence[TimelinePanel], unit: float, path: Path) -> None:
    """Draw panels beneath one another and write them as a PNG.

    Args:
        panels: The turns.
        unit: Seconds of one plain call: the scale is ruled in these.
        path: The file to write.

    Raises:
        OSError: it cannot be written.
    """
    heights = [_HEAD + _ROW * len(panel.lines) + _FEET for panel in panels]
    image = Image.new("RGB", (_WIDTH, sum(heights) + 2 * _MARGIN + 30), _PAPER)
    pen = ImageDraw.Draw(image)
    longest = max((at for panel in panels for _, at in panel.moments), default=1.0)
    scale = (_WIDTH - 2 * _MARGIN - _LABELS - 20) / longest
    _draw_legend(pen, _MARGIN)
    top = _MARGIN + 30
    for panel, height in zip(panels, heights, strict=True):
        _draw_panel(pen, panel, top, scale, unit)
        top += height
    image.save(path, "PNG", optimize=True)


def _draw_panel(pen: ImageDraw.ImageDraw, panel: TimelinePanel, top: int, scale: float, unit: float) -> None:
    left = _MARGIN + _LABELS
    pen.text((_MARGIN, top + 14), panel.title, _INK, _font(22))
    rows = top + _HEAD
    bottom = rows + _ROW * len(panel.lines)
    end = max((at for _, at in panel.moments), default=0.0)
    for place in range(int(end / unit) + 1):
        x = left + place * unit * scale
        pen.line((x, rows - 10, x, bottom), _FAINT)
        pen.text((x, rows - 14), f"{place} x", _INK, _font(13), anchor="mb")
    for place, line in enumerate(panel.lines):
        _draw_bar(pen, line, left, rows + _ROW * place, scale)
    for label, at in panel.moments:
        colour, lift = (_END, 0) if at == end else (_FIRST, 20)
        x = left + at * scale
        pen.line((x, rows - 30 - lift, x, bottom), colour, 2)
        pen.text((x - 5, rows - 28 - lift), f"{label} {at / unit:.2f} x ({at:.2f} s)", colour, _font(15), anchor="rb")


def _draw_bar(pen: ImageDraw.ImageDraw, line: TimelineBar, left: float, top: float, scale: float) -> None:
    waited, beside = _COLOURS[line.kind]
    pen.text((left - 10, top + _BAR / 2), line.label, _INK, _font(15), anchor="rm")
    pen.rectangle(_bar_box(line.began, line.ended, left, top, scale), beside)
    if line.critical:
        pen.rectangle(_bar_box(*line.critical, left, top, scale), waited)
    if line.first_piece is not None:
        x = left + line.first_piece * scale
        pen.line((x, top, x, top + _BAR), _PAPER, 2)


def _bar_box(began: float, ended: float, left: float, top: float, scale: float) -> tuple[float, float, float, float]:
    start = left + began * scale
    return start, top, max(start + 2, left + ended * scale), top + _BAR


def _draw_legend(pen: ImageDraw.ImageDraw, top: int) -> None:
    x = _MARGIN + 0.0
    font = _font(14)
    for kind, name in _NAMES.items():
        for colour, said in zip(_COLOURS[kind], ("on the way to the end", "beside it"), strict=True):
            text = f"{name}, {said}"
            pen.rectangle((x, top, x + 14, top + 14), colour)
            pen.text((x + 20, top + 7), text, _INK, font, anchor="lm")
            x += 38 + pen.textlength(text, font)
    pen.text((x, top + 7), "white line: first token; x: one plain call", _INK, font, anchor="lm")


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


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
    """Return a Markdown table: a row a figure, a column a system, and last WikiChat 2.1."""
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
    """Return what each stage of a system sends in a turn."""
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
