"""Write sheets on which people judge claims and turns, and read them back. They hide verdicts and systems' names.

sheet-claims.csv   one claim per row, with the passages that the judge compared it with
sheet-turns.csv    one turn per row, with the conversation before it
sheet.html         both, to be filled in by clicks and saved as those files
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import cycle
from pathlib import Path
from random import Random
from string import ascii_lowercase

from evaluation import EvaluationError
from evaluation.dialogues.dialogue_types import Dialogue, JudgedTurn
from evaluation.dialogues.judging.judge_replies import SCALES
from evaluation.dialogues.run_folder import RunFolder, TurnKey, replace_file
from evaluation.reports.report_page import render_html
from storage.types import Verdict

CLAIM_COLUMNS = ("row", "said", "claim", "passages", "verdict")
TURN_COLUMNS = ("row", "before", "user", "reply", *SCALES)
LABELS = tuple(verdict.value for verdict in Verdict)
MAX_EARLIER = 1_500  # characters of the conversation before a turn; longer ones lose their beginning

Row = Mapping[str, str]
Label = str | int


def draw_rows(
    dialogues: Sequence[Dialogue], judged: Mapping[TurnKey, JudgedTurn], count: int, seed: int
) -> tuple[list[Row], list[Row]]:
    """Return the rows of at most `count` random claims and `count` random turns. Pure."""
    turns = {
        (dialogue.id, number): (dialogue, number)
        for dialogue in dialogues
        for number in range(1, len(dialogue.turns) + 1)
    }
    keys = [key for key in turns if key in judged]
    claims = [(key, place) for key in keys for place in range(len(judged[key].claims))]
    graded = [key for key in keys if judged[key].relevant is not None]
    random = Random(seed)
    drawn = random.sample(claims, min(count, len(claims)))
    return (
        [_write_claim(*turns[key], key, judged[key], place) for key, place in drawn],
        [_write_turn(*turns[key]) for key in random.sample(graded, min(count, len(graded)))],
    )


def name_row(key: TurnKey, place: int | None = None) -> str:
    """Return the name of a row: a digest of its turn and claim, from which the system cannot be seen."""
    whole = f"{key[0]}\0{key[1]}\0{'' if place is None else place}"
    return sha256(whole.encode()).hexdigest()[:10]


def _write_claim(dialogue: Dialogue, number: int, key: TurnKey, judged: JudgedTurn, place: int) -> Row:
    claim, turn = judged.claims[place], dialogue.turns[number - 1]
    # Letters, because the numbers in the reply belong to other passages, those that it cites.
    passages = "\n\n".join(f"({at}) {text}" for at, text in zip(cycle(ascii_lowercase), claim.passages, strict=False))
    shown = f"User: {turn.user}\nChatbot: {turn.reply}"
    texts = name_row(key, place), shown, claim.text, passages, ""
    return dict(zip(CLAIM_COLUMNS, texts, strict=True))


def _write_turn(dialogue: Dialogue, number: int) -> Row:
    turn = dialogue.turns[number - 1]
    before = "\n".join(f"User: {turn.user}\nChatbot: {turn.reply}" for turn in dialogue.turns[: number - 1])
    texts = name_row((dialogue.id, number)), before[-MAX_EARLIER:], turn.user, turn.reply
    return {**dict(zip(TURN_COLUMNS, texts, strict=False)), **dict.fromkeys(SCALES, "")}


def write_sheet(folder: RunFolder, count: int) -> Path:
    """Write the sheets into a run's folder; return the page. Raises `EvaluationError` if no turn is judged yet."""
    claims, turns = draw_rows(folder.read_dialogues(), folder.read_judgements(), count, folder.read_manifest().seed)
    if not turns:
        raise EvaluationError("Nothing is judged yet.", hint=f"Run `footnote evaluate judge {folder.path}`.")
    for name, columns, rows in (("claims", CLAIM_COLUMNS, claims), ("turns", TURN_COLUMNS, turns)):
        text = io.StringIO()
        writer = csv.DictWriter(text, columns)
        writer.writeheader()
        writer.writerows({name: _disarm(value) for name, value in row.items()} for row in rows)
        replace_file(folder.path / f"sheet-{name}.csv", text.getvalue())
    page = folder.path / "sheet.html"
    replace_file(page, render_sheet(claims, turns))
    return page


def _disarm(value: str) -> str:
    """Return a cell; if a spreadsheet would take it for a formula, with a quotation mark in front."""
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def read_sheet(path: Path) -> Mapping[tuple[str, str], Label]:
    """Return the cells that were filled in, by row and column. Raises `EvaluationError`."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            # Spreadsheets for decimal commas separate cells by semicolons.
            separator = ";" if file.readline().count(";") else ","
            file.seek(0)
            rows = list(csv.DictReader(file, delimiter=separator))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise EvaluationError(f"{path} cannot be read: {error}.", hint="Save it as CSV, in UTF-8.") from error
    if not rows or "row" not in rows[0]:
        raise EvaluationError(f"{path} is not a sheet of a run.", hint="`footnote evaluate sheet` makes one.")
    return dict(_read_labels(rows, path))


def _read_labels(rows: Iterable[Mapping[str, str]], path: Path) -> Iterator[tuple[tuple[str, str], Label]]:
    for number, row in enumerate(rows, start=2):
        for column in ("verdict", *SCALES):
            value = (row.get(column) or "").strip()
            if value:
                yield (row["row"], column), _parse_label(column, value, f"row {number} of {path}")


def _parse_label(column: str, text: str, where: str) -> Label:
    if column == "verdict":
        label = " ".join(text.upper().replace("_", " ").split())
        if label in LABELS:
            return label
        raise EvaluationError(f"{where} has the verdict {text!r}.", hint=f"The verdicts are {', '.join(LABELS)}.")
    lowest, highest = SCALES[column]
    if text.removesuffix(".0").isdigit() and lowest <= int(float(text)) <= highest:
        return int(float(text))
    raise EvaluationError(f"{where} has {text!r} for {column}.", hint=f"Grades go from {lowest} to {highest}.")


def list_judge_labels(folder: RunFolder) -> Mapping[tuple[str, str], Label]:
    """Return the judge's labels by row and column."""
    labels = dict[tuple[str, str], Label]()
    for key, judged in folder.read_judgements().items():
        labels |= {(name_row(key, place), "verdict"): claim.verdict.value for place, claim in enumerate(judged.claims)}
        grades = {scale: getattr(judged, scale) for scale in SCALES}
        labels |= {(name_row(key), scale): grade for scale, grade in grades.items() if grade is not None}
    return labels


_CHOICES: Mapping[str, Sequence[str]] = {
    "verdict": LABELS,
    **{scale: [str(grade) for grade in range(lowest, highest + 1)] for scale, (lowest, highest) in SCALES.items()},
}


def render_sheet(claims: Sequence[Row], turns: Sequence[Row]) -> str:
    """Return a page that people can fill in. It loads nothing, and its script saves the rows as CSV."""
    return render_html(Path(__file__).with_name("sheet.html"), claims=claims, turns=turns, choices=_CHOICES)
