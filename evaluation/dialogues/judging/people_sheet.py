"""Give people claims and turns to judge without the judge's verdict or the system's name, and read their sheets back.

sheet-claims.csv   a claim a row, with the passages that it was held against
sheet-turns.csv    a turn a row, with the conversation before it
sheet.html         the same to be filled in by clicks, and saved as those files
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from itertools import cycle
from pathlib import Path
from random import Random
from string import ascii_lowercase

from evaluation import EvaluationError
from evaluation.dialogues.dialogue_types import Dialogue, JudgedTurn
from evaluation.dialogues.judging.judge_replies import SCALES
from evaluation.dialogues.run_folder import RunFolder, TurnKey, replace_file
from storage.types import Verdict

CLAIM_COLUMNS = ("row", "said", "claim", "passages", "verdict")
TURN_COLUMNS = ("row", "before", "user", "reply", *SCALES)
LABELS = tuple(verdict.value for verdict in Verdict)
MAX_EARLIER = 1_500  # characters of the conversation before a turn: its end

Row = Mapping[str, str]
Label = str | int


def draw_rows(
    dialogues: Sequence[Dialogue], judged: Mapping[TurnKey, JudgedTurn], count: int, seed: int
) -> tuple[list[Row], list[Row]]:
    """Draw at most `count` random claims and as many turns, without the names of systems. Pure."""
    turns = {
        (dialogue.id, number): (dialogue, number)
        for dialogue in dialogues
        for number in range(1, len(dialogue.turns) + 1)
    }
    keys = [key for key in turns if key in judged]
    claims = [(key, place) for key in keys for place in range(len(judged[key].claims))]
    graded = [key for key in keys if judged[key].relevant is not None]
    random = Random(seed)
    chosen = random.sample(claims, min(count, len(claims))), random.sample(graded, min(count, len(graded)))
    return (
        [_write_claim(*turns[key], key, judged[key], place) for key, place in chosen[0]],
        [_write_turn(*turns[key]) for key in chosen[1]],
    )


def name_row(key: TurnKey, place: int | None = None) -> str:
    """Return a row name that hides its system and identifies its turn."""
    whole = f"{key[0]}\0{key[1]}\0{'' if place is None else place}"
    return sha256(whole.encode()).hexdigest()[:10]


def _write_claim(dialogue: Dialogue, number: int, key: TurnKey, judged: JudgedTurn, place: int) -> Row:
    claim, turn = judged.claims[place], dialogue.turns[number - 1]
    # By letters: the numbers in the reply are those of what it cites, which are other passages.
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
    """Write the files into a run's folder; return the page. Raises `EvaluationError` where nothing is judged yet."""
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
    """Return a cell that spreadsheets do not interpret as a formula."""
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def read_sheet(path: Path) -> Mapping[tuple[str, str], Label]:
    """Return the filled-in cells of a sheet by row and column. Raises `EvaluationError`."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            # Spreadsheets with decimal commas write semicolons between cells.
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
        raise EvaluationError(f"{where} has the verdict {text!r}.", hint=f"There are {', '.join(LABELS)}.")
    lowest, highest = SCALES[column]
    if text.removesuffix(".0").isdigit() and lowest <= int(float(text)) <= highest:
        return int(float(text))
    raise EvaluationError(f"{where} has {text!r} for {column}.", hint=f"It goes from {lowest} to {highest}.")


def list_judge_labels(folder: RunFolder) -> Mapping[tuple[str, str], Label]:
    """Return the judge's labels, by row and column."""
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
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;"
    "background:#fff}pre{white-space:pre-wrap;font:inherit;background:#f4f4f2;padding:.75rem;margin:.5rem 0}"
    "fieldset{border:0;padding:0;margin:.25rem 0}label{margin-right:1rem}article{border-top:1px solid #bbb;"
    "padding:1rem 0}button{font:inherit;padding:.4rem 1rem;margin-right:.5rem}"
)
_SCRIPT = (
    "function save(name){const rows=JSON.parse(document.getElementById(name).textContent);"
    "const columns=Object.keys(rows[0]||{});"
    "for(const row of rows)for(const column of columns){"
    'const chosen=document.querySelector(`input[name="${row.row}-${column}"]:checked`);'
    "if(chosen)row[column]=chosen.value}"
    "const cell=v=>'\"'+(/^[=+@\\t\\r-]/.test(v)?\"'\"+v:v).replaceAll('\"','\"\"')+'\"';"
    "const text=[columns,...rows.map(row=>columns.map(c=>row[c]))].map(r=>r.map(cell).join()).join('\\r\\n');"
    "const a=document.createElement('a');"
    "a.href=URL.createObjectURL(new Blob([text],{type:'text/csv'}));a.download=`sheet-${name}.csv`;a.click()}"
)


def render_sheet(claims: Sequence[Row], turns: Sequence[Row]) -> str:
    """Return a page to fill in that loads nothing and keeps its cells until they are saved."""
    parts = [
        *(
            f"<h2>{title}</h2>\n{''.join(map(_render_row, rows))}"
            for title, rows in (("Claims", claims), ("Turns", turns))
        )
    ]
    data = "".join(
        f'<script type="application/json" id="{name}">{json.dumps(rows).replace("<", chr(92) + "u003c")}</script>'
        for name, rows in (("claims", claims), ("turns", turns))
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Judge claims and turns</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head><body>'
        "<h1>Judge claims and turns</h1><p>A claim is supported only if the passages say all of it, refuted if they "
        "contradict it. Turns are graded from 1 (bad) to 5 (good); temporally correct is 1 or 0."
        "</p><p><button onclick=\"save('claims')\">Save claims</button><button onclick=\"save('turns')\">Save turns"
        f"</button></p>\n{''.join(parts)}{data}<script>{_SCRIPT}</script></body></html>\n"
    )


def _render_row(row: Row) -> str:
    shown = (
        f"<h3>{name.capitalize()}</h3><pre>{escape(text)}</pre>" for name, text in row.items() if _is_shown(name, text)
    )
    choices = (_render_choice(row["row"], name) for name in row if name in _CHOICES)
    return f"<article>{''.join(shown)}{''.join(choices)}</article>\n"


def _is_shown(name: str, text: str) -> bool:
    return name != "row" and name not in _CHOICES and bool(text)


def _render_choice(row: str, name: str) -> str:
    choices = (
        f'<label><input type="radio" name="{row}-{name}" value="{value}"> {value}</label>' for value in _CHOICES[name]
    )
    return f"<fieldset><legend>{name.replace('_', ' ')}</legend>{''.join(choices)}</fieldset>"
