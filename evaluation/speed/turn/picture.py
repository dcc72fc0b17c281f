"""The way to the end of a turn as a picture: one panel a system, on one scale of seconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from evaluation.speed.turn.timeline import Bar

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
class Panel:
    """One turn of a system; times are seconds from its beginning."""

    title: str
    lines: Sequence[Bar]
    moments: Sequence[tuple[str, float]]


def draw(panels: Sequence[Panel], unit: float, path: Path) -> None:
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
    _key(pen, _MARGIN)
    top = _MARGIN + 30
    for panel, height in zip(panels, heights, strict=True):
        _panel(pen, panel, top, scale, unit)
        top += height
    image.save(path, "PNG", optimize=True)


def _panel(pen: ImageDraw.ImageDraw, panel: Panel, top: int, scale: float, unit: float) -> None:
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
        _bar(pen, line, left, rows + _ROW * place, scale)
    for label, at in panel.moments:
        colour, lift = (_END, 0) if at == end else (_FIRST, 20)
        x = left + at * scale
        pen.line((x, rows - 30 - lift, x, bottom), colour, 2)
        pen.text((x - 5, rows - 28 - lift), f"{label} {at / unit:.2f} x ({at:.2f} s)", colour, _font(15), anchor="rb")


def _bar(pen: ImageDraw.ImageDraw, line: Bar, left: float, top: float, scale: float) -> None:
    waited, beside = _COLOURS[line.kind]
    pen.text((left - 10, top + _BAR / 2), line.label, _INK, _font(15), anchor="rm")
    pen.rectangle(_box(line.began, line.ended, left, top, scale), beside)
    if line.critical:
        pen.rectangle(_box(*line.critical, left, top, scale), waited)
    if line.first_piece is not None:
        x = left + line.first_piece * scale
        pen.line((x, top, x, top + _BAR), _PAPER, 2)


def _box(began: float, ended: float, left: float, top: float, scale: float) -> tuple[float, float, float, float]:
    start = left + began * scale
    return start, top, max(start + 2, left + ended * scale), top + _BAR


def _key(pen: ImageDraw.ImageDraw, top: int) -> None:
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
