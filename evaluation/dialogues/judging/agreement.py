"""Measure how well people agree with the judge, and take their vote (`footnote evaluate sheet` and `agreement`)."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.command_context import JsonOption, open_bare_command
from bot.cli.terminal_output import build_document
from bot.views.text_formats import format_count
from evaluation import EvaluationError
from evaluation.dialogues.dialogue_types import JudgedTurn
from evaluation.dialogues.judging import people_sheet
from evaluation.dialogues.judging.judge_replies import SCALES
from evaluation.dialogues.judging.people_sheet import Label, Labels, list_checks, name_row, read_sheet
from evaluation.dialogues.run_folder import RunFolder, TurnKey, replace_file
from evaluation.reports.printing import format_figure, render_table
from evaluation.reports.run_report import write_report
from evaluation.reports.significance import Interval, estimate_alpha
from storage.types import Verdict

JUDGE, VOTE = "the judge", "people's vote"
MAX_FAILED = 1 / 3  # of the checks; always giving the same verdict fails half of them
STRICTEST = (Verdict.REFUTES.value, Verdict.NOT_ENOUGH_INFO.value, Verdict.SUPPORTS.value)


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of several sheets on a column, over the rows that two of them have filled in."""

    of: tuple[str, ...]
    column: str
    rows: int
    alike: int
    alpha: Interval | None


def measure_agreement(sheets: Mapping[str, Labels], dialogues: Mapping[str, str]) -> Iterator[Agreement]:
    """Yield the agreement of some sheets for each column. `dialogues` are the dialogues of rows. Pure."""
    for column in ("verdict", *SCALES):
        units = defaultdict[str, list[list[Label]]](list)
        for key in dict.fromkeys(key for labels in sheets.values() for key in labels if key[1] == column):
            unit = [labels[key] for labels in sheets.values() if key in labels]
            if len(unit) > 1:
                units[dialogues[key[0]]].append(unit)
        rated = [unit for group in units.values() for unit in group]
        if rated:
            alike = sum(len({*unit}) == 1 for unit in rated)
            yield Agreement((*sheets,), column, len(rated), alike, estimate_alpha(units.values()))


def count_failed(labels: Labels, checks: Labels) -> tuple[int, int]:
    """Return how many checks a rater failed, and how many have an answer. Pure."""
    answered = [key for key in checks if key in labels]
    return sum(labels[key] != checks[key] for key in answered), len(answered)


def take_vote(sheets: Iterable[Labels], adjudicated: Labels) -> tuple[Labels, set[tuple[str, str]]]:
    """Return the verdict of people on each claim that two have judged, and the claims for an adjudicator. Pure.

    The verdict is that of most people. The adjudicator settles ties, which else have the strictest verdict, and looks
    for passages that were not shown if the verdict is that information is missing, as WikiChat's authors did.
    """
    votes, verdicts, left = defaultdict[tuple[str, str], Counter[Label]](Counter), dict[tuple[str, str], Label](), set()
    for key, label in chain.from_iterable(labels.items() for labels in sheets):
        votes[key].update([label] if key[1] == "verdict" else [])
    for key, count in votes.items():
        if count.total() > 1:
            first, *others = (verdict for verdict in STRICTEST if count[verdict] == max(count.values()))
            is_open = bool(others) or first == Verdict.NOT_ENOUGH_INFO.value
            verdicts[key] = adjudicated.get(key, first) if is_open else first
            left |= {key} if is_open else set()
    return verdicts, left


def sheet(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    count: Annotated[int, typer.Option(min=1, help="How many claims, and how many turns.")] = 100,
    raters: Annotated[int, typer.Option(min=1, help="How many people judge each claim and turn.")] = 3,
    *,
    as_json: JsonOption = False,
) -> None:
    """Write claims and turns of a run for people to judge, as CSV and as pages; verdicts and systems are hidden.

    Example: footnote evaluate sheet run --count 50
    """
    with open_bare_command(context, as_json=as_json) as output:
        pages = [str(page) for page in people_sheet.write_sheets(RunFolder(run), count, raters)]
        output.give(build_document(pages=pages), "\n".join(pages))


def agreement(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    files: Annotated[list[Path], typer.Argument(help="Sheets that people filled in, one for each person.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Measure the agreement of people by Krippendorff's alpha, and put their vote on claims into the report.

    People who fail more than a third of the checks are dropped. Fill in sheet-ties.csv, which lists ties and claims
    without enough information, and repeat.

    Example: footnote evaluate agreement run anna-claims.csv ben-claims.csv
    """
    with open_bare_command(context, as_json=as_json) as output:
        folder, filled = RunFolder(run), {path.stem: read_sheet(path) for path in files}
        if empty := [name for name, labels in filled.items() if not labels]:
            raise EvaluationError(
                f"There is no judgement in {', '.join(empty)}.", hint="Fill in the column “verdict” or those of scales."
            )
        judgements = folder.read_judgements()
        judge, checks = people_sheet.list_judge_labels(judgements), list_checks(judgements)
        failed = {name: count_failed(labels, checks) for name, labels in filled.items()}
        dropped = {name: counts for name, counts in failed.items() if counts[0] > MAX_FAILED * counts[1]}
        known = ((name, {key: labels[key] for key in labels if key in judge}) for name, labels in filled.items())
        kept: dict[str, Labels] = {name: labels for name, labels in known if name not in dropped}
        vote, unsettled = _settle_vote(folder, judgements, kept.values())
        groups = [kept, *({JUDGE: judge, name: labels} for name, labels in {VOTE: vote, **kept}.items())]
        rows = people_sheet.name_rows(judgements)
        agreements = [agreement for group in groups for agreement in measure_agreement(group, rows)]
        if not any(kept.values()) and not dropped:
            raise EvaluationError(f"No row of these is from {run}.", hint="`footnote evaluate sheet` makes sheets.")
        left_out = ", ".join(f"{name} ({wrong} of {total} checks failed)" for name, (wrong, total) in dropped.items())
        alpha = next(
            (agreement.alpha for agreement in agreements if agreement.of == (*kept,) and agreement.column == "verdict"),
            None,
        )
        judged = f"{format_count(len(vote), 'claim')} judged by {', '.join(kept)}; {unsettled}; Krippendorff's alpha"
        note = f"{judged} {format_figure(alpha, '.2f')}. Dropped: {left_out or 'none'}."
        verdicts = {row: verdict for (row, _), verdict in vote.items()}
        replace_file(folder.path / people_sheet.PEOPLE, json.dumps({"note": note, "verdicts": verdicts}))
        write_report(folder)
        table = (
            ("; ".join(row.of), row.column, row.rows, row.alike, format_figure(row.alpha, ".2f")) for row in agreements
        )
        text = render_table(("of", "what", "rows", "alike", "alpha"), table)
        document = build_document(
            agreement=[asdict(agreement) for agreement in agreements], dropped=[*dropped], note=note
        )
        output.give(document, f"{text}\n\n{note}")


def _settle_vote(
    folder: RunFolder, judged: Mapping[TurnKey, JudgedTurn], sheets: Iterable[Labels]
) -> tuple[Labels, str]:
    """Return the vote and a remark on the claims that are written to a sheet for an adjudicator."""
    file = folder.path / "sheet-ties.csv"
    settled = read_sheet(file) if file.exists() else {}
    vote, unsettled = take_vote(sheets, settled)
    if file.exists() or unsettled:
        talks = {dialogue.id: dialogue for dialogue in folder.read_dialogues()}
        rows = (
            people_sheet.write_claim(talks[key[0]], key[1], claim, row)
            | {"verdict": str(settled.get((row, "verdict"), ""))}
            for key in judged
            for place, claim in enumerate(judged[key].claims)
            if ((row := name_row(key, place)), "verdict") in {*unsettled, *settled}
        )
        people_sheet.write_rows(file, people_sheet.CLAIM_COLUMNS, rows)
    done = len(unsettled & settled.keys())
    return vote, f"{format_count(len(unsettled), 'tie')} or lack of information, {done} adjudicated"
