"""Report a run of dialogues in tables like those of the papers: `footnote evaluate report`."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.cli.command_context import JsonOption, format_examples, open_bare_command
from bot.cli.terminal_output import build_document
from bot.views.text_formats import format_count
from evaluation.dialogues.dialogue_types import RunManifest
from evaluation.dialogues.judging.people_sheet import read_judgements
from evaluation.dialogues.run_folder import RunFolder, count_planned, describe_missing, replace_file
from evaluation.reports import run_figures as figures
from evaluation.reports.printing import MISSING, format_figure, render_table
from evaluation.reports.report_page import Plot, PlotPoint, render_page
from evaluation.reports.run_figures import FACTUAL, Arm, Comparison, Figure, Measure, MeasuredDialogue, measure
from evaluation.reports.significance import SIGNIFICANT

DEVIATIONS = "“The papers, row by row” in docs/systems.md lists all. Those of this run:"


def report(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="The folder of a run.")],
    against: Annotated[Path | None, typer.Option(help="The folder of an earlier run, to compare with.")] = None,
    leaderboard: Annotated[Path | None, typer.Option(help="A file of results, to which this run is added.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the report of a run again: report.md, and report.html, which needs no other file."""
    with open_bare_command(context, as_json=as_json) as output:
        run, earlier = RunFolder(folder), RunFolder(against) if against else None
        page = write_report(run, earlier)
        if leaderboard:
            enter_run(leaderboard, run)
        output.give(build_document(report=str(page), figures=build_figures(run)), f"The report is {page}.")


EPILOG = format_examples(
    "footnote evaluate report runs/march", "footnote evaluate report runs/may --against runs/march"
)


def write_report(folder: RunFolder, against: RunFolder | None = None) -> Path:
    """Write report.md and report.html into a run's folder; return the path of the page.

    Raises `EvaluationError`, `OSError`.
    """
    manifest, (judgements, people) = folder.read_manifest(), read_judgements(folder)
    dialogues = figures.join_judgements(folder.read_dialogues(), judgements)
    earlier = (against.read_manifest(), _read(against)) if against else None
    text = "\n\n".join(_write_sections(manifest, dialogues, earlier, people))
    page = folder.path / "report.html"
    replace_file(folder.path / "report.md", f"{text}\n")
    replace_file(page, render_page(text, f"Dialogues {manifest.id}", draw_plots(dialogues, manifest.seed)))
    return page


def _read(folder: RunFolder) -> tuple[MeasuredDialogue, ...]:
    return figures.join_judgements(folder.read_dialogues(), read_judgements(folder)[0])


def enter_run(path: Path, folder: RunFolder) -> None:
    """Replace a run's rows in a leaderboard file. The text around the rows stays."""
    manifest, dialogues = folder.read_manifest(), _read(folder)
    text = path.read_text("utf-8") if path.exists() else LEADERBOARD
    before, _, after = text.partition(f"{_ROWS_BEGIN}\n")
    rows, _, rest = after.partition(_ROWS_END)
    others = [line for line in rows.splitlines() if f"| {manifest.id} |" not in line]
    added = [f"| {' | '.join(map(str, row))} |" for row in _list_standings(manifest, dialogues)]
    path.write_text("\n".join((before.rstrip("\n"), _ROWS_BEGIN, *others, *added, _ROWS_END)) + rest, encoding="utf-8")


_ROWS_BEGIN = "|---|---|---|---|---|---|---|---|---|---|---|"
_ROWS_END = "\n<!-- rows end -->"
LEADERBOARD = f"""# Leaderboard

`footnote evaluate report RUN --leaderboard docs/leaderboard.md` adds rows. *Stand-in* lists models that rules replaced: such a row shows that the procedure works, and measures no model.

| run | corpora | dialogues | system | model | judge | stand-in | factual % | citation recall % | says nothing % | seconds a turn |
{_ROWS_BEGIN}
{_ROWS_END}
"""  # noqa: E501 - Markdown


def _list_standings(manifest: RunManifest, dialogues: Sequence[MeasuredDialogue]) -> Iterator[tuple[object, ...]]:
    corpora = ", ".join(corpus.name for corpus in manifest.corpora)
    stand_ins = [note.partition(":")[0] for note in manifest.stand_ins]  # notes such as "the judge: claims are …"
    models = {arm.model for arm in figures.list_arms(dialogues)}
    for arm in figures.list_arms(dialogues):
        own = figures.select(dialogues, arm)
        measured = (FACTUAL, figures.CITATIONS[0], figures.SILENT, figures.COSTS[3])
        cells = (_cell(measure(own, what, manifest.seed), what) for what in measured)
        model = arm.model or "none"
        own_stand_ins = (
            ", ".join(stand_in for stand_in in stand_ins if stand_in == arm.model or stand_in not in models) or "none"
        )
        yield manifest.id, corpora, len(own), arm.system, model, manifest.judge, own_stand_ins, *cells


def build_figures(folder: RunFolder) -> list[dict[str, Any]]:
    """Return all figures of a run as JSON values."""
    seed, dialogues = folder.read_manifest().seed, _read(folder)
    return [
        {
            "system": arm.system,
            "model": arm.model,
            "topics": kind,
            "measure": what.name,
            **asdict(figure.interval),
            "deviation": figure.deviation,
        }
        for arm in figures.list_arms(dialogues)
        for kind in figures.list_kinds(dialogues)
        for what in figures.MEASURES
        if (figure := measure(figures.select(dialogues, arm, kind), what, seed))
    ]


def _write_sections(
    manifest: RunManifest,
    dialogues: Sequence[MeasuredDialogue],
    earlier: tuple[RunManifest, Sequence[MeasuredDialogue]] | None,
    people: str,
) -> Iterator[str]:
    seed = manifest.seed
    compared = figures.compare_arms(dialogues, seed)
    turns = sum(len(dialogue.turns) for dialogue in dialogues)
    judged = sum(judgement is not figures.NOT_JUDGED for dialogue in dialogues for _, judgement in dialogue.turns)
    planned = count_planned(manifest, len(dialogues))
    yield "# Systems in simulated dialogues"
    yield (
        f"{len(dialogues)} dialogues of {format_count(manifest.turns, 'turn')} over {len(manifest.topics)} topics; "
        f"{judged} of {planned} turns judged; seed {seed}. Figures have 95% intervals over dialogues."
    )
    if lacking := describe_missing(planned, turns, judged):
        yield f"> **The run is not whole.** {lacking} Figures cover the existing turns."
    if manifest.stand_ins:
        listed = "\n".join(f"> - {stand_in}" for stand_in in manifest.stand_ins)
        yield f"> **Some models were replaced by rules.** Their figures measure no model:\n>\n{listed}"
    if dialogues:
        yield from _write_tables(dialogues, compared, manifest, people)
    if earlier:
        yield from _write_changes(earlier, dialogues, seed)
    yield "## Deviations from the papers"
    yield DEVIATIONS
    yield "\n".join(f"- {deviation}" for deviation in manifest.deviations)
    yield "## The run"
    yield render_table(("", ""), _list_facts(manifest))


def _write_tables(
    dialogues: Sequence[MeasuredDialogue], compared: Sequence[Comparison], manifest: RunManifest, people: str
) -> Iterator[str]:
    seed, currency = manifest.seed, manifest.currency
    yield "## Factuality and conversation"
    yield (
        "As WikiChat's table 1: the share of claims that passages support, scores from 1 to 5 with their standard "
        "deviation, temporally correct turns, and turns whose model failed, so that they only quote. Over all topics a "
        "`*` marks a system that is better than the model alone (or than the first system) with p ≤ .05 in a paired "
        "randomisation test over topics, adjusted for the number of tests."
    )
    if people:
        yield f"People: {people} Next to them, the judge on the same and on all claims; `*` is by the judge."
    by_people = (figures.PEOPLE, figures.SAMPLE, replace(FACTUAL, title="all claims"))
    shown = (*(by_people if people else (FACTUAL,)), *figures.SCALES, figures.TEMPORAL, figures.FAILED)
    yield _tabulate(dialogues, shown, seed, marks=_find_better(dialogues, compared))
    yield "## Cost and latency"
    yield f"As WikiChat's table 2{f'; costs in {currency}' if currency else ''}."
    yield _tabulate(dialogues, figures.COSTS, seed, kinds=(figures.ALL,))
    yield "## Saying that it does not know"
    yield "As WikiChat's table 11, and whether it was right: by whether the judge finds a passage that answers."
    yield _tabulate(dialogues, figures.ABSTENTION, seed)
    yield "## Where claims come from"
    yield "As WikiChat's table 12: statements a turn from retrieval, claims of the model, and how many are verified."
    yield _tabulate(dialogues, figures.ORIGINS, seed)
    yield "## Claims a turn"
    yield "As WikiChat's table 13."
    kinds = figures.list_kinds(dialogues)
    parts = ((arm, [figures.select(dialogues, arm, kind) for kind in kinds]) for arm in figures.list_arms(dialogues))
    what = figures.CLAIMS
    claims = ((arm, *(_cell(measure(part, what, seed), what) for part in own)) for arm, own in parts)
    yield render_table(("system", *kinds), claims)
    scored = ((arm, figures.score_steps(figures.select(dialogues, arm))) for arm in figures.list_arms(dialogues))
    if rows := [(f"{arm}, {step}", f"{100 * scores[step]:.1f}") for arm, scores in scored for step in scores]:
        yield "## Refinement"
        yield "As WikiChat's table 14, without citations: BLEU-4 with the text before the step as the reference."
        yield render_table(("step", "BLEU-4"), rows)
    if steps := [step for dialogue in dialogues for step in figures.split_steps(dialogue) if step.turns]:
        yield "As WikiChat's table 15: how much better a text is graded than before the step."
        yield _tabulate(steps, figures.GAINS, seed)
    yield "## Citations and knowledge"
    yield "Sentences that their citations support, needed citations, and words in common with the cited passages."
    yield _tabulate(dialogues, figures.CITATIONS, seed, kinds=(figures.ALL,))
    yield from _write_variants(dialogues, seed)
    if compared:
        yield "## Paired tests"
        alike = [comparison for comparison in compared if comparison.test.randomised is None]
        yield (
            "On the same topics, the first less the second; `p` by t-test (none where all differences are one), by "
            f"randomisation, and that adjusted. {len(alike)} more were alike on every topic, or shared fewer than two."
        )
        head = ("first", "second", "measure", "difference", "topics", "p", "randomised", "adjusted")
        yield render_table(head, (_row_of_comparison(comparison) for comparison in compared if comparison not in alike))


def _tabulate(
    dialogues: Sequence[MeasuredDialogue],
    measures: Sequence[Measure],
    seed: int,
    *,
    kinds: Iterable[str] = (),
    marks: Mapping[tuple[Arm, str], str] | None = None,
) -> str:
    """Return a table with a column for each measure, and a row for each kind of topic and arm.

    `marks` are added to the cells of the last kind, which is `all` if there are several kinds.
    """
    chosen, rows = tuple(kinds) or figures.list_kinds(dialogues), list[tuple[object, ...]]()
    for kind in chosen:
        shown = marks or {} if kind == chosen[-1] else {}
        for arm in figures.list_arms(dialogues):
            own = figures.select(dialogues, arm, kind)
            cells = (_cell(measure(own, what, seed), what) + shown.get((arm, what.name), "") for what in measures)
            rows.append((kind, arm, *cells))
    return render_table(("topics", "system", *(what.title for what in measures)), rows)


def _cell(figure: Figure | None, what: Measure) -> str:
    if figure is None:
        return MISSING
    interval = figure.interval
    if what in figures.SCALES:
        return f"{interval.value:.1f} ± {figure.deviation:.1f}"
    low, high = _number(interval.low, what), _number(interval.high, what)
    spread = f" ({low}–{high})" if low != high else ""
    return f"{_number(interval.value, what)}{spread}"


_THOUSANDS = 1_000


def _number(value: float, what: Measure) -> str:
    if what.unit == "%":
        return f"{100 * value:.1f}"
    return f"{value:,.0f}" if abs(value) >= _THOUSANDS else f"{value:.3g}"


def _find_better(dialogues: Sequence[MeasuredDialogue], compared: Sequence[Comparison]) -> dict[tuple[Arm, str], str]:
    """Return a mark for each arm and measure in which the arm is significantly better than its baseline."""
    arms, marks = figures.list_arms(dialogues), dict[tuple[Arm, str], str]()
    for arm in arms:
        baseline = next((other for other in arms if (other.system, other.model) == (figures.ALONE, arm.model)), arms[0])
        for comparison in compared:
            is_pair = {comparison.first, comparison.second} == {arm, baseline}
            if not is_pair or comparison.adjusted is None or comparison.adjusted > SIGNIFICANT:
                continue
            gain = comparison.test.difference if comparison.first == arm else -comparison.test.difference
            if (gain > 0) is comparison.measure.higher_is_better:
                marks[arm, comparison.measure.name] = " *"
    return marks


def _write_variants(dialogues: Sequence[MeasuredDialogue], seed: int) -> Iterator[str]:
    """Yield a table for each system that ran in several variants, like the tables of papers that vary one setting."""
    arms = figures.list_arms(dialogues)
    for base in dict.fromkeys(arm.system.partition(":")[0] for arm in arms):
        variants = [arm for arm in arms if arm.system.partition(":")[0] == base]
        if len(variants) > 1 and any(":" in arm.system for arm in variants):
            yield f"## Variants of `{base}`"
            own = [dialogue for dialogue in dialogues if dialogue.arm in variants]
            cited, costs = figures.CITATIONS, figures.COSTS
            shown = (FACTUAL, figures.SILENT, cited[0], cited[2], cited[4], costs[5], costs[3])
            yield _tabulate(own, shown, seed, kinds=(figures.ALL,))


def _write_probability(value: float | None) -> str:
    return "< .001" if value is not None and value < 0.001 else format_figure(value)


def _row_of_comparison(comparison: Comparison) -> tuple[object, ...]:
    values = (comparison.test.t_test, comparison.test.randomised, comparison.adjusted)
    scale = 100 if comparison.measure.unit == "%" else 1
    return (
        comparison.first,
        comparison.second,
        comparison.measure.title,
        f"{scale * comparison.test.difference:+.2f}",
        comparison.test.topics,
        *map(_write_probability, values),
    )


def _write_changes(
    earlier: tuple[RunManifest, Sequence[MeasuredDialogue]], dialogues: Sequence[MeasuredDialogue], seed: int
) -> Iterator[str]:
    manifest, before = earlier
    yield f"## Against the run `{manifest.id}`"
    yield (
        f"Of {manifest.created[:10]}, commit {manifest.commit[:12] or 'unknown'}; `p` by randomisation over topics, "
        "adjusted for how many measures there are. Seconds also depend on the load of the machine."
    )
    changes = list(figures.compare_runs(before, dialogues, seed))
    adjusted = figures.adjust_randomised([test for *_, test in changes])
    rows = (
        (arm, what.title, _cell(old, what), _cell(new, what), test.topics, _write_probability(p))
        for (arm, what, old, new, test), p in zip(changes, adjusted, strict=True)
    )
    yield render_table(("system", "measure", "before", "now", "topics", "p"), rows)


def _list_facts(manifest: RunManifest) -> Iterator[tuple[str, str]]:
    yield "run", f"{manifest.id}, {manifest.created}"
    yield "code", f"{manifest.version}, commit {manifest.commit or 'unknown'}, Python {manifest.python}"
    yield "prompts, settings", f"{manifest.prompts}, {manifest.settings}"
    yield "systems", ", ".join(manifest.systems)
    yield "models", ", ".join(manifest.models)
    yield "user, judge", f"{manifest.simulator}, {manifest.judge}"
    for corpus in manifest.corpora:
        revision = corpus.digest[:12] or corpus.edition
        yield "corpus", f"{corpus.name}: {corpus.documents:,} documents, {corpus.passages:,} passages, {revision}"
    yield "topics", "; ".join(f"{topic.title} ({topic.kind})" for topic in manifest.topics).replace("|", "/")
    yield "date in prompts, seed", f"{manifest.today}, {manifest.seed}"
    yield "options", ", ".join(f"{name}={value}" for name, value in manifest.options.items()) or "none"
    yield "libraries", ", ".join(f"{name} {version}" for name, version in manifest.versions.items())


def draw_plots(dialogues: Sequence[MeasuredDialogue], seed: int) -> tuple[Plot, ...]:
    """Return two plots with intervals: factuality, and the seconds of a turn."""
    arms, kinds = figures.list_arms(dialogues), figures.list_kinds(dialogues)

    def plot(name: str, own: Sequence[MeasuredDialogue], what: Measure) -> Iterator[PlotPoint]:
        if figure := measure(own, what, seed):
            yield PlotPoint(name, figure.interval.value, figure.interval.low, figure.interval.high)

    shown = kinds if len(arms) <= _FEW_ARMS else kinds[-1:]
    named = [(f"{arm} · {kind}", figures.select(dialogues, arm, kind)) for arm in arms for kind in shown]
    factual = tuple(point for name, own in named for point in plot(name, own, FACTUAL))
    times = tuple(point for arm in arms for point in plot(str(arm), figures.select(dialogues, arm), figures.COSTS[3]))
    top = _round_up(max((point.high for point in times), default=0.0))
    plots = (
        Plot("Claims that passages support, with 95% intervals", factual, 1.0, "{:.0%}".format),
        Plot("Seconds a turn", times, top, "{:.2g} s".format),
    )
    return tuple(plot for plot in plots if plot.points)


_FEW_ARMS = 6  # with more, a plot by kinds of topics is too long; the tables show them


def _round_up(value: float) -> float:
    """Return the next higher number that can end an axis of four parts: .4, .8, 2, 4, 8, 20 ..."""
    size = 10 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(step * size for step in (2, 4, 8, 20) if step * size >= value)
