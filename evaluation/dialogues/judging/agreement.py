"""Measure how well people agree with the judge (`footnote evaluate sheet` and `agreement`)."""

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.command_context import JsonOption, open_bare_command
from bot.cli.terminal_output import build_document
from evaluation import EvaluationError
from evaluation.dialogues.judging.judge_replies import SCALES
from evaluation.dialogues.judging.people_sheet import Label, list_judge_labels, read_sheet, write_sheet
from evaluation.dialogues.run_folder import RunFolder
from evaluation.reports.printing import format_figure, render_table
from evaluation.reports.significance import cohens_kappa

JUDGE = "the judge"
Labels = Mapping[tuple[str, str], Label]


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of two sheets on a column, over the rows that are filled in on both."""

    one: str
    other: str
    column: str
    rows: int
    alike: int
    kappa: float | None


def measure_agreement(sheets: Mapping[str, Labels]) -> Iterator[Agreement]:
    """Yield the agreement of each pair of sheets, for each column with a row that is filled in on both. Pure."""
    for (rater, first), (other, second) in combinations(sheets.items(), 2):
        for column in ("verdict", *SCALES):
            rows = [key for key in first if key[1] == column and key in second]
            pairs = [(first[key], second[key]) for key in rows]
            if pairs:
                alike = sum(label == other_label for label, other_label in pairs)
                yield Agreement(rater, other, column, len(pairs), alike, cohens_kappa(pairs))


def sheet(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    count: Annotated[int, typer.Option(min=1, help="How many claims, and how many turns.")] = 100,
    *,
    as_json: JsonOption = False,
) -> None:
    """Write claims and turns of a run for people to judge, as CSV and as a page; verdicts and systems are hidden.

    Example: footnote evaluate sheet run --count 50
    """
    with open_bare_command(context, as_json=as_json) as output:
        page = write_sheet(RunFolder(run), count)
        output.give(build_document(page=str(page)), str(page))


def agreement(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    files: Annotated[list[Path], typer.Argument(help="Sheets that people filled in, one for each person.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Measure the agreement of people with the judge and with each other, by Cohen's kappa.

    Example: footnote evaluate agreement run anna-claims.csv ben-claims.csv
    """
    with open_bare_command(context, as_json=as_json) as output:
        filled = {path.stem: read_sheet(path) for path in files}
        if empty := [name for name, labels in filled.items() if not labels]:
            raise EvaluationError(
                f"There is no judgement in {', '.join(empty)}.", hint="Fill in the column “verdict” or those of scales."
            )
        sheets = {JUDGE: list_judge_labels(RunFolder(run)), **filled}
        agreements = list(measure_agreement(sheets))
        if not agreements:
            raise EvaluationError(
                f"No row of these sheets is from {run}, or filled in by two people.",
                hint="`footnote evaluate sheet` makes them.",
            )
        rows = [(*astuple(pair)[:5], format_figure(pair.kappa, ".2f")) for pair in agreements]
        documents = [
            {"of": [pair.one, pair.other], "column": pair.column, "rows": pair.rows}
            | {"alike": pair.alike, "kappa": pair.kappa}
            for pair in agreements
        ]
        head = ("one", "other", "what", "rows", "alike", "kappa")
        output.give(build_document(agreement=documents), render_table(head, rows))
