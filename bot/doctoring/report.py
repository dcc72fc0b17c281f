"""The doctor's findings for people. Pure; `document` has the same for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from bot.doctoring.advice.advising import advise
from bot.doctoring.advice.facts import Advice, Facts
from bot.doctoring.figures import Figures, turn_seconds, verdicts
from bot.doctoring.settings_lines import lines
from bot.doctoring.ways import AS_SET, Measured
from bot.printing.tables import table
from bot.sanitizing import one_line
from storage.types import Verdict

NO_FIGURE = "–"


@dataclass(frozen=True, slots=True)
class Report:
    """What was found about a model."""

    model: str
    server: str
    facts: Facts

    @property
    def advice(self) -> tuple[Advice, ...]:
        """What follows from it."""
        return advise(self.facts)

    @property
    def lines(self) -> tuple[str, ...]:
        """The same as lines of `footnote.toml`."""
        return lines(self.advice, self.facts.settings.stages)


def view(report: Report) -> RenderableType:
    """Show what was measured, and then what follows."""
    heading = Text(f"{report.model} at {report.server}, {report.facts.at_once} calls at once", style="bold")
    parts: list[RenderableType] = [heading, Text()]
    for found in report.facts.measured:
        parts += _measured(found)
    seconds = turn_seconds(report.facts.figures)
    if seconds is not None:
        parts += [Text(f"By these an answer takes about {seconds:.1f} s; what runs at once is counted once."), Text()]
    return Group(*parts, *_advice(report))


def _measured(found: Measured) -> Sequence[RenderableType]:
    title = [] if found.way == AS_SET else [Text(f"Asked as {found.way}:")]
    stopped = [Text(f"{kind} was cut short: {one_line(why)}") for kind, why in found.cut_short.items()]
    given = verdicts(found.figures)
    tables = [_replies(found.figures), _calls(found.figures), *([_verdicts(given)] if given else [])]
    return [*title, *(part for one in tables for part in (one, Text())), *stopped, *([Text()] if stopped else [])]


def _replies(found: Mapping[str, Figures]) -> RenderableType:
    rows = table("Replies", "Cases", "1st try", "Readable", "Right", "Cited right", numbers=range(1, 6))
    for kind, one in found.items():
        shares = (percent(count, one.cases) for count in (one.first, one.readable, one.right))
        rows.add_row(kind, f"{one.cases}", *shares, percent(one.valid, one.cited))
    return rows


def _calls(found: Mapping[str, Figures]) -> RenderableType:
    rows = table("Calls", "Number", "Median", "95 %", "Read", "Written", "Cost", numbers=range(1, 7))
    for kind, one in found.items():
        about = "~" if one.estimated else ""
        tokens = (f"{about}{count:,}" for count in (one.prompt_tokens, one.completion_tokens))
        seconds = (f"{value:.1f} s" for value in (one.seconds, one.slow_seconds))
        rows.add_row(kind, f"{one.calls}", *seconds, *tokens, NO_FIGURE if one.cost is None else f"{one.cost:.4f}")
    return rows


def _verdicts(found: Mapping[tuple[Verdict, Verdict], int]) -> RenderableType:
    rows = table("Claims that are", *(f"called {verdict}" for verdict in Verdict), numbers=range(1, 4))
    for expected in Verdict:
        rows.add_row(expected, *(str(found.get((expected, given), 0)) for given in Verdict))
    return rows


def _advice(report: Report) -> Sequence[RenderableType]:
    if not report.advice:
        return [Text("By these figures the settings suit the model: there is nothing to change.")]
    said = [Text(f"{number}. {one_line(one.why)}") for number, one in enumerate(report.advice, start=1)]
    if not report.lines:
        return said
    return [*said, Text(), Text("In footnote.toml:"), *(Text(f"    {line}") for line in report.lines)]


def percent(count: int, among: int) -> str:
    """Write a share in whole percent; a dash where there is nothing to have a share of."""
    return f"{count / among:.0%}" if among else NO_FIGURE
