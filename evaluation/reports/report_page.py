"""Render a report as one page of HTML that loads nothing: its Markdown, and plots as SVG. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from markdown_it import MarkdownIt

ROW, LABEL, WIDTH, RIGHT, TOP, TICKS = 22, 330, 860, 70, 26, 4


@dataclass(frozen=True, slots=True)
class PlotPoint:
    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Plot:
    """Values with their intervals, a row each, on an axis from 0 to `top`."""

    title: str
    points: tuple[PlotPoint, ...]
    top: float
    write: Callable[[float], str]


def render_page(markdown: str, title: str, plots: Sequence[Plot]) -> str:
    """Return the page; HTML in the Markdown is shown as text."""
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    head, mark, rest = body.partition("<h2>")
    drawn = "\n".join(map(draw_plot, plots))
    tables = f"{head}{drawn}{mark}{rest}".replace("<table>", '<div class="wide"><table>').replace(
        "</table>", "</table></div>"
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><main>\n{tables}\n</main></body></html>\n"
    )


def draw_plot(plot: Plot) -> str:
    """Draw a plot as SVG, with its values as text for screen readers."""
    height = TOP + ROW * len(plot.points) + 24
    values = "; ".join(f"{point.name}: {plot.write(point.value)}" for point in plot.points)
    inner = "".join((*_draw_axis(plot, height), *_draw_points(plot)))
    return (
        f"<figure><figcaption>{escape(plot.title)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(values)}">{inner}</svg></figure>'
    )


def _x(plot: Plot, value: float) -> float:
    return LABEL + (WIDTH - LABEL - RIGHT) * min(1.0, max(0.0, value / plot.top))


def _draw_axis(plot: Plot, height: int) -> Iterator[str]:
    for tick in range(TICKS + 1):
        value = plot.top * tick / TICKS
        x = _x(plot, value)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{height - 22}"/>'
        yield f'<text class="tick" x="{x:.1f}" y="{height - 6}" text-anchor="middle">{escape(plot.write(value))}</text>'


def _draw_points(plot: Plot) -> Iterator[str]:
    for place, point in enumerate(plot.points):
        y = TOP + ROW * place + ROW / 2 - 4
        low, high, x = _x(plot, point.low), _x(plot, point.high), _x(plot, point.value)
        yield f'<text x="{LABEL - 12}" y="{y + 4:.1f}" text-anchor="end">{escape(point.name)}</text>'
        yield f'<line class="range" x1="{low:.1f}" x2="{high:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'
        yield f'<text class="value" x="{WIDTH - RIGHT + 12}" y="{y + 4:.1f}">{escape(plot.write(point.value))}</text>'


_STYLE = """
:root{color-scheme:light dark;--ink:#1d1d1f;--faint:#6b6b70;--line:#d9d9de;--paper:#fff;--mark:#2f6f9f}
@media(prefers-color-scheme:dark){:root{--ink:#e8e8ea;--faint:#9a9aa2;--line:#3a3a40;--paper:#17171a;--mark:#7db8e0}}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:76rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{font-size:1.7rem;margin:0 0 .5rem}h2{font-size:1.2rem;margin:2.4rem 0 .4rem}
p,li{max-width:46rem}blockquote{margin:1rem 0;padding:.2rem 1rem;border-left:4px solid var(--mark)}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.88rem;margin:.6rem 0}
th,td{text-align:left;padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--line);vertical-align:top}
td{font-variant-numeric:tabular-nums}th{color:var(--faint);font-weight:600}
figure{margin:1.6rem 0;max-width:56rem}figcaption{font-weight:600;margin-bottom:.3rem}
svg{width:100%;height:auto;font:12px system-ui,sans-serif}svg text{fill:var(--ink)}.tick{fill:var(--faint)!important}
.grid{stroke:var(--line)}.range{stroke:var(--mark);stroke-width:2}circle{fill:var(--mark)}
"""
