"""Show the examination of a model: as tables and advice for a terminal, and as a JSON document. Pure."""

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType

from bot.cli.terminal_output import Document, build_document, pick
from bot.doctor.model_exam import ModelReport
from bot.doctor.prompt_variants import AS_SET, Figures, VariantFigures, count_verdicts, estimate_turn_seconds
from bot.views.sanitize import sanitize_line
from bot.views.text_formats import build_table
from bot.views.text_layout import Text
from storage.types import Verdict

NO_FIGURE = "–"


def render_report(report: ModelReport) -> RenderableType:
    heading = Text(f"{report.model} at {report.server}, {report.facts.at_once} calls at once", style="bold")
    parts: list[RenderableType] = [heading, Text()]
    for variant in report.facts.measured:
        parts += _render_variant(variant)
    seconds = estimate_turn_seconds(report.facts.figures)
    if seconds is not None:
        parts += [
            Text(f"With these calls, an answer takes about {seconds:.1f} s; parallel calls are counted once."),
            Text(),
        ]
    return Group(*parts, *_render_advice(report))


def _render_variant(variant: VariantFigures) -> Sequence[RenderableType]:
    title = [] if variant.way == AS_SET else [Text(f"Asked as {variant.way}:")]
    stopped = [Text(f"{kind} was cut short: {sanitize_line(why)}") for kind, why in variant.cut_short.items()]
    verdicts = count_verdicts(variant.figures)
    tables = [_render_replies(variant.figures), _render_calls(variant.figures)]
    tables += [_render_verdicts(verdicts)] if verdicts else []
    return [*title, *(part for table in tables for part in (table, Text())), *stopped, *([Text()] if stopped else [])]


def _render_replies(measured: Mapping[str, Figures]) -> RenderableType:
    table = build_table("Replies", "Cases", "1st try", "Readable", "Right", "Cited right", numbers=range(1, 6))
    for kind, figures in measured.items():
        shares = (format_percent(count, figures.cases) for count in (figures.first, figures.readable, figures.right))
        table.add_row(kind, f"{figures.cases}", *shares, format_percent(figures.valid, figures.cited))
    return table


def _render_calls(measured: Mapping[str, Figures]) -> RenderableType:
    table = build_table("Calls", "Number", "Median", "95 %", "Read", "Written", "Cost", numbers=range(1, 7))
    for kind, figures in measured.items():
        about = "~" if figures.estimated else ""
        tokens = (f"{about}{count:,}" for count in (figures.prompt_tokens, figures.completion_tokens))
        seconds = (f"{value:.1f} s" for value in (figures.seconds, figures.slow_seconds))
        cost = NO_FIGURE if figures.cost is None else f"{figures.cost:.4f}"
        table.add_row(kind, f"{figures.calls}", *seconds, *tokens, cost)
    return table


def _render_verdicts(counts: Mapping[tuple[Verdict, Verdict], int]) -> RenderableType:
    table = build_table("Claims that are", *(f"called {verdict}" for verdict in Verdict), numbers=range(1, 4))
    for expected in Verdict:
        table.add_row(expected, *(str(counts.get((expected, given), 0)) for given in Verdict))
    return table


def _render_advice(report: ModelReport) -> Sequence[RenderableType]:
    if not report.advice:
        return [Text("The settings suit the model by these figures: there is nothing to change.")]
    reasons = [Text(f"{number}. {sanitize_line(advice.why)}") for number, advice in enumerate(report.advice, start=1)]
    if not report.lines:
        return reasons
    return [*reasons, Text(), Text("In footnote.toml:"), *(Text(f"    {line}") for line in report.lines)]


def format_percent(count: int, among: int) -> str:
    """Format a share in whole percent; a dash if there are no cases."""
    return f"{count / among:.0%}" if among else NO_FIGURE


_FIGURE_NAMES = (
    "cases first readable right cited valid calls prompt_tokens completion_tokens estimated cost cut looped retried "
    "thought trimmed shortened schema"
)


def build_exam_document(report: ModelReport) -> Document:
    return build_document(
        **pick(report, "model server"),
        calls_at_once=report.facts.at_once,
        ways=[
            {
                **pick(variant, "way offered"),
                "kinds": {kind: _build_figures(figures) for kind, figures in variant.figures.items()},
                "cut_short": dict(variant.cut_short),
            }
            for variant in report.facts.measured
        ],
        turn_seconds=estimate_turn_seconds(report.facts.figures),
        advice=[{"why": advice.why, "changes": dict(advice.changes)} for advice in report.advice],
        settings=list(report.lines),
    )


def _build_figures(figures: Figures) -> Document:
    return {
        **pick(figures, _FIGURE_NAMES),
        "seconds": {"median": figures.seconds, "p95": figures.slow_seconds},
        "verdicts": [
            {"expected": expected, "given": given, "count": count}
            for (expected, given), count in figures.verdicts.items()
        ],
        "wrong": dict(figures.wrong),
        "faults": [str(fault) for fault in figures.faults],
    }
