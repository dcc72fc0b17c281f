"""Draw figures over time as lines; pure. A table next to each chart has the same figures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from storage.record.record_search import Figures

WIDTH, HEIGHT = 640, 160
LEFT, TOP, BOTTOM = 56, 10, 22
Measure = Callable[[Figures], float | None]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a chart, as points of SVG; it has gaps at missing figures."""

    name: str
    style: str
    paths: tuple[str, ...]
    dots: tuple[tuple[float, float], ...]  # isolated points


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: its lines, the labels of its axes, and its text alternative."""

    title: str
    unit: str
    top: str
    lines: tuple[Line, ...]
    first: str
    last: str
    summary: str


def _share(part: Callable[[Figures], float], whole: Callable[[Figures], float]) -> Measure:
    return lambda row: 100 * part(row) / whole(row) if whole(row) else None


def _per_turn(value: Callable[[Figures], float]) -> Measure:
    return lambda row: value(row) if row.turns else None


_CHARTS: tuple[tuple[str, str, tuple[tuple[str, Measure], ...]], ...] = (
    ("Questions", "", (("asked", lambda row: row.turns), ("not answered", lambda row: row.abstained))),
    ("Supported statements", "%", (("supported", _share(lambda row: row.supported, lambda row: row.claims)),)),
    ("Ratings", "", (("helpful", lambda row: row.up), ("not helpful", lambda row: row.down))),
    (
        "Seconds to an answer",
        "s",
        (("median", _per_turn(lambda row: row.seconds)), ("95th percentile", _per_turn(lambda row: row.slow_seconds))),
    ),
    ("Tokens", "", (("tokens", lambda row: row.tokens),)),
    ("Cost", "", (("cost", lambda row: row.cost),)),
)
_STYLES = ("line", "other")


def draw_charts(rows: Sequence[Figures], zone: tzinfo) -> tuple[Chart, ...]:
    """Draw the charts of figures over time. `rows` has one row for each step of time; empty without rows."""
    return tuple(_draw(rows, zone, *about) for about in _CHARTS) if rows else ()


def _draw(
    rows: Sequence[Figures], zone: tzinfo, title: str, unit: str, series: tuple[tuple[str, Measure], ...]
) -> Chart:
    values = [[measure(row) for row in rows] for _, measure in series]
    known = [value for line in values for value in line if value is not None]
    top = max(known, default=0.0) or 1.0
    lines = tuple(
        _line(name, style, line, top) for (name, _), style, line in zip(series, _STYLES, values, strict=False)
    )
    first, last = (f"{row.begin.astimezone(zone):%Y-%m-%d}" for row in (rows[0], rows[-1]))
    parts = (f"{name} {_range(line, unit)}" for (name, _), line in zip(series, values, strict=True))
    return Chart(title, unit, _number(top, unit), lines, first, last, f"{first} to {last}: {'; '.join(parts)}.")


def _line(name: str, style: str, values: Sequence[float | None], top: float) -> Line:
    runs: list[list[tuple[float, float]]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((_x(place, len(values)), _y(value, top)))
    paths = tuple(" ".join(f"{x:.1f},{y:.1f}" for x, y in run) for run in runs if len(run) > 1)
    return Line(name, style, paths, tuple(run[0] for run in runs if len(run) == 1))


def _x(place: int, count: int) -> float:
    return LEFT + (WIDTH - LEFT - 8) * (place / (count - 1) if count > 1 else 0.5)


def _y(value: float, top: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top)


def _range(values: Sequence[float | None], unit: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "was not measured"
    return f"between {_number(min(known), unit)} and {_number(max(known), unit)}"


def _number(value: float, unit: str) -> str:
    number = f"{value:,.0f}" if value >= _WHOLE or value == int(value) else f"{value:.3g}"
    return f"{number} {unit}".strip()


_WHOLE = 100  # larger numbers are shown without fractions
