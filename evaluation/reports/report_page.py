"""Render a report as one HTML page that loads nothing: Markdown becomes text and tables, plots become SVG."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

TICKS = 4
_LEFT, _RIGHT = 330, 790  # the ends of a plot's axis, in the units of its SVG


@dataclass(frozen=True, slots=True)
class PlotPoint:
    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Plot:
    """Values with their intervals, one per row, on an axis from 0 to `top`."""

    title: str
    points: tuple[PlotPoint, ...]
    top: float
    write: Callable[[float], str]

    @property
    def ticks(self) -> list[float]:
        return [self.top * tick / TICKS for tick in range(TICKS + 1)]

    def place(self, value: float) -> str:
        """Return the x coordinate of a value. A value beyond the axis is placed at its end."""
        return f"{_LEFT + (_RIGHT - _LEFT) * min(1.0, max(0.0, value / self.top)):.1f}"


def render_page(markdown: str, title: str, plots: Sequence[Plot]) -> str:
    """Render the page; plots come before the first section. HTML in the Markdown is shown as text."""
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    wide = body.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
    head, mark, rest = wide.partition("<h2>")
    template = Path(__file__).with_name("report.html")
    return render_html(template, title=title, head=Markup(head), rest=Markup(mark + rest), plots=plots)  # noqa: S704 - MarkdownIt escapes HTML


def render_html(template: Path, **facts: object) -> str:
    """Render a template. All values except those of type `Markup` are escaped."""
    environment = Environment(
        loader=FileSystemLoader(template.parent), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}
    return environment.get_template(template.name).render(**facts)
