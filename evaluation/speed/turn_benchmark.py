"""Measure single turns of several systems against a simulated server (`footnote evaluate speed turn`).

The example handbook's pages are joined into passages of full length, because such passages are typical. The timeline of
each turn is shown as text or as a picture.
"""

import asyncio
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from PIL import Image, ImageDraw, ImageFont

from evaluation.answers.question_sets import SetText, build_set_source, read_exam
from evaluation.reports.printing import AsJson, fail_unless, print_report, render_table
from evaluation.simulated_model.model_pace import ServerPace, SimulatedModel
from evaluation.speed.turn_figures import (
    CACHED_FROM,
    CACHED_STEP,
    DISCOUNTS,
    IN_ROUNDS,
    MARKS,
    WIKICHAT_2_1,
    PathLeg,
    SystemRuns,
    compute_figures,
    critical_path,
)
from evaluation.speed.turn_trace import (
    MeasuredTurn,
    TraceStep,
    TurnBench,
    measure_turn,
    open_bench,
    open_second_server,
    time_plain_call,
)
from evaluation.system_variants import SystemVariant, parse_variant
from evaluation.workbench import EXAMPLE_QUESTIONS
from pipeline.systems import SYSTEMS

WIDTH = 72
SHORTEST = 0.02  # seconds; shorter steps are not shown
_PIXELS, _ROW, _LABELS = 1_500, 24, 230
_ON_PATH, _ASIDE, _INK, _PAPER = "#2563c9", "#b9d0f5", "#1f2430", "#ffffff"


@dataclass(frozen=True, slots=True)
class TimelineBar:
    """A step in a timeline. Times are in seconds from the start of the turn."""

    label: str
    span: tuple[float, float]
    critical: tuple[float, float] | None  # the part on the critical path, if any


@dataclass(frozen=True, slots=True)
class Timeline:
    """The steps of a turn, by their start, and marked moments; the last moment is the end of the turn."""

    title: str
    bars: Sequence[TimelineBar]
    moments: Sequence[tuple[str, float]]


def build_timeline(system: str, turn: MeasuredTurn) -> Timeline:
    """Return the timeline of a turn. Steps that are too short to be shown are left out."""
    path = critical_path(turn.steps, turn.last, turn.began, turn.ended)
    legs = {leg.step.id: leg for leg in path if leg.step}
    numbers, bars = Counter[str](), []

    def place(part: TraceStep | PathLeg) -> tuple[float, float]:
        return part.began - turn.began, part.ended - turn.began

    for step in turn.steps:
        if step.ended - step.began >= SHORTEST:
            name = f"prompt of {step.name}" if step.kind == "prompt" else step.name
            numbers[name] += 1
            critical = place(legs[step.id]) if step.id in legs else None
            bars.append(TimelineBar(f"{name} {numbers[name]}", place(step), critical))
    moments = [("first sentence", turn.first_seconds)] if turn.said else []
    return Timeline(system, bars, (*moments, ("end", turn.seconds)))


def render_timeline(timeline: Timeline) -> str:
    """Render a timeline as text: `#` marks the critical path, `-` the steps that run next to it."""
    end = timeline.moments[-1][1]
    wide = max((len(bar.label) for bar in timeline.bars), default=0)

    def draw(label: str, note: str, *parts: tuple[str, tuple[float, float] | None]) -> str:
        marks = [" "] * (WIDTH + 1)
        for mark, span in parts:
            first, last = (min(WIDTH, round(at / end * WIDTH)) if end else 0 for at in span or ())
            marks[first : max(last, first + 1)] = mark * (max(last, first + 1) - first)
        return f"{label:<{wide}} |{''.join(marks)}| {note}"

    return "\n".join(
        (
            f"{timeline.title}: what the end waited for (#), and what ran meanwhile (-)",
            *(
                draw(
                    bar.label,
                    f"{bar.span[0]:6.2f} {bar.span[1]:6.2f}",
                    ("-", bar.span),
                    ("#", bar.critical or bar.span),
                )
                for bar in timeline.bars
            ),
            *(draw("", f"{at:6.2f} {label}", ("^", (at, at))) for label, at in timeline.moments),
        )
    )


def draw_timelines(timelines: Sequence[Timeline], unit: float, path: Path) -> None:
    """Draw timelines as one PNG, on one scale.

    Each moment is labelled with its seconds, and with these as a multiple of a plain call, which takes `unit` seconds.
    """
    rows = sum(len(timeline.bars) + len(timeline.moments) + 2 for timeline in timelines)
    image = Image.new("RGB", (_PIXELS, rows * _ROW), _PAPER)
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(15)
    scale = (_PIXELS - _LABELS - 260) / max(timeline.moments[-1][1] for timeline in timelines)
    top = 0
    for timeline in timelines:
        pen.text((10, top + 6), timeline.title, _INK, ImageFont.load_default(20))
        top += _ROW + 6
        first = top
        for bar in timeline.bars:
            pen.text((10, top), bar.label, _INK, font)
            for span, colour in ((bar.span, _ASIDE), (bar.critical, _ON_PATH)):
                if span:
                    start, stop = (_LABELS + at * scale for at in span)
                    pen.rectangle((start, top, max(start + 2, stop), top + _ROW - 6), colour)
            top += _ROW
        for label, at in timeline.moments:
            pen.line((_LABELS + at * scale, first, _LABELS + at * scale, top + _ROW), _INK)
            pen.text((_LABELS + at * scale + 5, top), f"{label}: {at:.2f} s, {at / unit:.2f} plain calls", _INK, font)
            top += _ROW
        top += _ROW - 6
    image.save(path, "PNG", optimize=True)


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
    ("verdicts of claims after the draft began, of all turns", "late_verdicts", "{:.0f}".format),
    ("verdicts of claims, of all turns", "verdicts", "{:.0f}".format),
)


def render_figures(reports: Sequence[Mapping[str, Any]]) -> str:
    head = ["", *(figures["system"] for figures in reports), "WikiChat 2.1"]
    compared = (*reports, WIKICHAT_2_1)
    return render_table(
        head, ((label, *(_render_cell(figures, key, shown) for figures in compared)) for label, key, shown in _ROWS)
    )


def _render_cell(report: Mapping[str, Any], key: str, shown: Callable[[float], str]) -> str:
    value = report.get(key, math.nan)
    if isinstance(value, float) and math.isnan(value):
        return ""
    text = shown(value)
    if key == "end_ratio" and "end_ratio_refined" in report:
        text += f" ({report['end_ratio_refined']:.2f} refined)"
    if key not in report.get("marks", {}):
        return text
    way, mark = MARKS[report["system"]][key]
    return f"{text} ({'keeps' if report['marks'][key] else 'MISSES'} {way} {shown(mark)})"


def render_stages(report: Mapping[str, Any]) -> str:
    rows = (
        (name, sent.calls, f"{sent.tokens:,}", f"{sent.stable:,}", f"{sent.stable / max(1, sent.tokens):.0%}")
        for name, sent in report["stages"].items()
    )
    head = ("stage", "calls", "tokens", "stable prefix", "of these")
    return f"{report['system']}: prompt tokens of a turn by stage\n\n{render_table(head, rows)}"


def render_bills(report: Mapping[str, Any]) -> str:
    """Render the bill of a provider that gives a discount for cached prompts, for each arrangement of prompts."""
    shares = [f"at {discount:.0%} off" for discount in DISCOUNTS]
    rows = []
    for name, bill in report["bills"].items():
        alone, after = ([f"{bill.billed(off, alone=way):,.0f}" for off in DISCOUNTS] for way in (True, False))
        rows.append((name, f"{bill.tokens:,}", f"{bill.cached_alone:,}", *alone, f"{bill.cached:,}", *after))
    return (
        f"{report['system']}: prompt tokens of a turn, and the bill, in tokens at full price, of a provider with a\n"
        f"discount for prefixes of earlier calls: from {CACHED_FROM:,} tokens on, in steps of {CACHED_STEP}\n\n"
        + render_table(("arrangement", "sent", "known in a turn alone", *shares, "after others", *shares), rows)
    )


def render_parts(report: Mapping[str, Any]) -> str:
    """Render how a system's seconds are divided among server, index and our own work."""
    lines = []
    for key, until in (("to_the_first", "first sentence"), ("to_the_end", "end")):
        ways = report[key]
        ours = {name: seconds for name, seconds in ways.items() if name not in {"server", "search"}}
        detail = ", ".join(f"{name} {seconds * 1000:.0f}" for name, seconds in ours.items())
        lines.append(
            f"{report['system']}, to the {until}: server {ways.get('server', math.nan):.2f} s, "
            f"index {ways.get('search', math.nan):.2f} s, ours {sum(ours.values()) * 1000:.0f} ms ({detail})"
        )
    return "\n".join(lines)


HANDBOOK = Path(__file__).parents[2] / "examples" / "handbook"
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_NO_PROSE = re.compile(r"^(?:#|\||\s*[-*]\s|\s*\d+\.\s|```|>)")


def _folder_pages(handbook: Path) -> Iterator[SetText]:
    """Yield one long page for each folder of the handbook."""
    for folder in sorted(handbook.iterdir()):
        paragraphs = [prose for file in sorted(folder.rglob("*.md")) for prose in _page_prose(file.read_text("utf-8"))]
        if paragraphs:
            yield SetText(folder.name, folder.name.capitalize(), " ".join(paragraphs))


def _page_prose(page: str) -> Iterator[str]:
    """Yield the paragraphs of a page, each on one line; headings, lists and tables are left out."""
    for block in re.split(r"\n\s*\n", _FRONT.sub("", page)):
        if not _NO_PROSE.match(block):
            yield " ".join(block.split())


def turn(
    system: Annotated[
        list[str] | None, typer.Option(help="Such as wikichat-fast:effort=quick; default: all that use a model.")
    ] = None,
    count: Annotated[int, typer.Option("--turns", min=2, help="Turns of each system, each with another question.")] = 5,
    question: Annotated[
        list[str] | None,
        typer.Option(help="Give two or more, as the first is not measured. Default: some on the example handbook."),
    ] = None,
    first_token: Annotated[float, typer.Option(min=0, help="Seconds to a reply's first token.")] = 0.4,
    out: Annotated[float, typer.Option(min=1, help="Tokens a second of a reply.")] = 60.0,
    prompt: Annotated[float, typer.Option("--in", min=1, help="Tokens a second of a prompt.")] = 4_000.0,
    search: Annotated[float, typer.Option(min=0, help="Seconds that a search takes at least.")] = 0.05,
    cache: Annotated[
        bool, typer.Option("--cache", help="Let the server cache prompts; cached tokens take no time.")
    ] = False,
    picture: Annotated[Path | None, typer.Option(help="Draw the timelines as a PNG file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Time single turns against a simulated server, and show their critical paths.

    Prompts are the real ones over the example handbook; replies have set lengths. Times are ratios to the end of one
    plain call (200 tokens in, 120 out), and also computed from the pace of server and index alone, independent of other
    load on this machine. The exit status is 1 if a figure misses its limit; limits are for the defaults only.

    Example: footnote evaluate speed turn --system wikichat --turns 5 --picture turn.png
    """
    if question and len(question) < 2:
        raise typer.BadParameter("give at least two questions", param_hint="--question")
    pace = ServerPace(first_token=first_token, out=out, prompt=prompt, cache=cache)
    before = os.getloadavg()[0]
    variants = [parse_variant(label) for label in system or [name for name, entry in SYSTEMS.items() if entry.calls]]
    runs = asyncio.run(_measure_systems(variants, question or _pose(count + 1), pace, search))
    figures = [compute_figures(run) for run in runs]
    if pace != ServerPace() or question:
        figures = [measured | {"marks": {}} for measured in figures]  # they hold for the default pace and questions
    if picture:
        draw_timelines([_median_timeline(run) for run in runs], runs[0].plain, picture)
    document = {"pace": asdict(pace), "load": before, "systems": [_system_document(measured) for measured in figures]}
    print_report(_drop_infinite(document), _render_report(runs, figures, before), as_json=as_json)
    fail_unless(holds for measured in figures for holds in measured["marks"].values())


def _pose(count: int) -> list[str]:
    return [*dict.fromkeys(posed.text for posed in read_exam(EXAMPLE_QUESTIONS).questions)][:count]


async def _measure_systems(
    variants: Sequence[SystemVariant], asked: Sequence[str], pace: ServerPace, search: float
) -> list[SystemRuns]:
    async with (
        open_bench(SimulatedModel(pace), search, build_set_source(tuple(_folder_pages(HANDBOOK)), "en")) as on,
        open_second_server(on, SimulatedModel(IN_ROUNDS), 0.0) as rounds,
        open_second_server(on, SimulatedModel(pace), search, shared="always") as sharing,
    ):
        await time_plain_call(on)
        plain = median([await time_plain_call(on) for _ in range(3)])
        return [await _run_system(variant, asked, (on, rounds, sharing), pace, plain) for variant in variants]


async def _run_system(
    variant: SystemVariant, asked: Sequence[str], benches: Sequence[TurnBench], pace: ServerPace, plain: float
) -> SystemRuns:
    on, rounds, sharing = (replace(bench, app=variant.apply(bench.app)) for bench in benches)
    turns = await _measure_turns(on, variant.name, asked)
    in_rounds = await _measure_turns(rounds, variant.name, asked[:3])
    shared = await _measure_turns(sharing, variant.name, asked)
    return SystemRuns(variant.label, turns, in_rounds, pace, on.search, plain, shared)


async def _measure_turns(on: TurnBench, system: str, asked: Sequence[str]) -> list[MeasuredTurn]:
    """Run a turn for each question. Return all but the first turn, which only loads everything."""
    return [await measure_turn(on, system, question) for question in asked][1:]


def _render_report(runs: Sequence[SystemRuns], reports: Sequence[dict[str, Any]], before: float) -> str:
    blocks = (render(report) for render in (render_stages, render_bills, render_parts) for report in reports)
    timelines = (render_timeline(_median_timeline(run)) for run in runs)
    load = f"load of this machine: {before:.1f} before, {os.getloadavg()[0]:.1f} after, of {os.cpu_count()} cores"
    return "\n\n".join((render_figures(reports), *blocks, *timelines, load))


def _median_timeline(runs: SystemRuns) -> Timeline:
    return build_timeline(runs.system, sorted(runs.turns, key=lambda turn: turn.seconds)[len(runs.turns) // 2])


def _system_document(report: dict[str, Any]) -> dict[str, Any]:
    return report | {key: {name: asdict(part) for name, part in report[key].items()} for key in ("stages", "bills")}


def _drop_infinite(value: Any) -> Any:
    """Return a JSON value in which None replaces infinity and NaN: JSON has neither."""
    if isinstance(value, dict):
        return {name: _drop_infinite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_drop_infinite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
