"""Write sheets on which people judge claims and turns, and read them back. They hide verdicts and systems' names.

sheet-claims-1.csv   one claim per row, with the passages that the judge compared it with; the same rows for each rater
sheet-turns-1.csv    one turn per row, with the conversation before it
sheet-1.html         both, to be filled in by clicks and saved as those files

Among the claims are checks with a known verdict: quotations with their passage, claims with passages of another topic.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import cycle
from pathlib import Path
from random import Random
from string import ascii_lowercase

from evaluation import EvaluationError
from evaluation.dialogues.dialogue_types import Dialogue, JudgedClaim, JudgedTurn
from evaluation.dialogues.judging.judge_replies import SCALES
from evaluation.dialogues.run_folder import RunFolder, TurnKey, list_keys, replace_file
from evaluation.reports.report_page import render_html
from evaluation.reports.word_measures import f1
from storage.types import Verdict

CLAIM_COLUMNS = ("row", "said", "claim", "passages", "verdict")
TURN_COLUMNS = ("row", "before", "user", "reply", *SCALES)
LABELS = tuple(verdict.value for verdict in Verdict)
MAX_EARLIER = 1_500  # characters of the conversation before a turn; longer ones lose their beginning
QUOTED = 100  # about how many characters the quotation of a check has
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")

Row = Mapping[str, str]
Label = str | int
Labels = Mapping[tuple[str, str], Label]
"""Labels by row and column."""
PEOPLE = "people.json"


def draw_rows(
    dialogues: Sequence[Dialogue], judged: Mapping[TurnKey, JudgedTurn], count: int, seed: int
) -> tuple[list[Row], list[Row]]:
    """Return the rows of at most `count` random claims and `count` random turns. Pure."""
    turns = {(talk.id, at): (talk, at) for talk in dialogues for at in range(1, len(talk.turns) + 1)}
    keys = [key for key in turns if key in judged]
    claims = [(key, place) for key in keys for place in range(len(judged[key].claims))]
    graded = [key for key in keys if judged[key].relevant is not None]
    random = Random(seed)
    drawn = random.sample(claims, min(count, len(claims)))
    return (
        [write_claim(*turns[key], judged[key].claims[place], name_row(key, place)) for key, place in drawn],
        [_write_turn(*turns[key]) for key in random.sample(graded, min(count, len(graded)))],
    )


def plant_checks(
    dialogues: Sequence[Dialogue], judged: Mapping[TurnKey, JudgedTurn], drawn: Sequence[Row], seed: int
) -> Iterator[Row]:
    """Yield checks, if possible of claims that are not drawn: one of each kind for 15 claims, at least two. Pure."""
    talks, names, random = {talk.id: talk for talk in dialogues}, {row["row"] for row in drawn}, Random(seed)
    keys = [(key, place) for key in list_keys(dialogues) if key in judged for place in range(len(judged[key].claims))]
    claims = {at: claim for at in keys if (claim := judged[at[0]].claims[at[1]]).passages}
    shuffled = sorted(random.sample([*claims], len(claims)), key=lambda at: name_row(*at) in names)
    planted = shuffled[: 2 * max(2, len(drawn) // 15)]
    for number, (key, place) in enumerate(planted):
        claim, talk = claims[key, place], talks[key[0]]
        texts = {*claim.passages}
        apart = [at for at, other in claims.items() if not texts & {*other.passages}]
        others = [claims[at] for at in apart if talks[at[0][0]].topic.title != talk.topic.title]
        if number % 2 == 0:
            text = claim.passages[0].partition("\n")[2] or claim.passages[0]
            parts = (part.lstrip("-* ") for part in _SENTENCE.split(text))
            quote = max(parts, key=lambda part: (part.endswith("."), -abs(len(part) - QUOTED)))
            row = write_claim(talk, key[1], replace(claim, text=quote), name_row(key, place, Verdict.SUPPORTS))
            yield {**row, "said": f"{row['said']} {quote}"}
        elif others:
            # The passages of another topic with the fewest words in common, out of ten.
            far = min(random.sample(others, min(10, len(others))), key=lambda o: f1(claim.text, " ".join(o.passages)))
            foreign = replace(claim, passages=far.passages)
            yield write_claim(talk, key[1], foreign, name_row(key, place, Verdict.NOT_ENOUGH_INFO))


def name_row(key: TurnKey, place: int | None = None, known: str = "") -> str:
    """Return the name of a row: a digest of its turn, claim and known verdict, from which these cannot be seen."""
    whole = f"{key[0]}\0{key[1]}\0{'' if place is None else place}{known and f'{chr(0)}{known}'}"
    return sha256(whole.encode()).hexdigest()[:10]


def write_claim(dialogue: Dialogue, number: int, claim: JudgedClaim, name: str) -> dict[str, str]:
    turn = dialogue.turns[number - 1]
    # Letters, because the numbers in the reply belong to other passages, those that it cites.
    passages = "\n\n".join(f"({at}) {text}" for at, text in zip(cycle(ascii_lowercase), claim.passages, strict=False))
    texts = name, f"User: {turn.user}\nChatbot: {turn.reply}", claim.text, passages, ""
    return dict(zip(CLAIM_COLUMNS, texts, strict=True))


def _write_turn(dialogue: Dialogue, number: int) -> Row:
    turn = dialogue.turns[number - 1]
    before = "\n".join(f"User: {turn.user}\nChatbot: {turn.reply}" for turn in dialogue.turns[: number - 1])
    texts = name_row((dialogue.id, number)), before[-MAX_EARLIER:], turn.user, turn.reply
    return {**dict(zip(TURN_COLUMNS, texts, strict=False)), **dict.fromkeys(SCALES, "")}


def write_sheets(folder: RunFolder, count: int, raters: int) -> list[Path]:
    """Write the sheets of each rater into a run's folder, in an order of his or her own; return the pages.

    Raises `EvaluationError` if no turn is judged yet.
    """
    dialogues, judged, seed = folder.read_dialogues(), folder.read_judgements(), folder.read_manifest().seed
    claims, turns = draw_rows(dialogues, judged, count, seed)
    if not turns:
        raise EvaluationError("Nothing is judged yet.", hint=f"Run `footnote evaluate judge {folder.path}`.")
    claims += plant_checks(dialogues, judged, claims, seed)
    pages = [folder.path / f"sheet-{rater}.html" for rater in range(1, raters + 1)]
    for rater, page in enumerate(pages, start=1):
        own = Random(f"{seed} {rater}").sample(claims, len(claims))
        write_rows(folder.path / f"sheet-claims-{rater}.csv", CLAIM_COLUMNS, own)
        write_rows(folder.path / f"sheet-turns-{rater}.csv", TURN_COLUMNS, turns)
        replace_file(page, render_sheet(own, turns, rater))
    return pages


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows({name: _disarm(value) for name, value in row.items()} for row in rows)
    replace_file(path, text.getvalue())


def _disarm(value: str) -> str:
    """Return a cell; if a spreadsheet would take it for a formula, with a quotation mark in front."""
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def read_sheet(path: Path) -> Labels:
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


def list_judge_labels(judgements: Mapping[TurnKey, JudgedTurn]) -> Labels:
    """Return the judge's labels by row and column."""
    labels = dict[tuple[str, str], Label]()
    for key, judged in judgements.items():
        labels |= {(name_row(key, place), "verdict"): claim.verdict.value for place, claim in enumerate(judged.claims)}
        grades = {scale: getattr(judged, scale) for scale in SCALES}
        labels |= {(name_row(key), scale): grade for scale, grade in grades.items() if grade is not None}
    return labels


def list_checks(judgements: Mapping[TurnKey, JudgedTurn]) -> Labels:
    """Return the known verdicts of all checks that `plant_checks` can make of a run."""
    places = [(key, place) for key, judged in judgements.items() for place in range(len(judged.claims))]
    known = (Verdict.SUPPORTS, Verdict.NOT_ENOUGH_INFO)
    return {(name_row(*at, verdict), "verdict"): verdict.value for at in places for verdict in known}


def name_rows(judgements: Mapping[TurnKey, JudgedTurn]) -> Mapping[str, str]:
    """Return the dialogue of each row, by the row's name."""
    places = ((key, at) for key, judged in judgements.items() for at in (None, *range(len(judged.claims))))
    return {name_row(*at): at[0][0] for at in places}


def read_judgements(folder: RunFolder) -> tuple[Mapping[TurnKey, JudgedTurn], str]:
    """Return the judgements of a run, with the verdicts of people on claims, and a note on these; empty if none."""
    file, judgements = folder.path / PEOPLE, folder.read_judgements()
    if not file.exists():
        return judgements, ""
    people = json.loads(file.read_text("utf-8"))
    verdicts = {row: Verdict(verdict) for row, verdict in people["verdicts"].items()}

    def add(key: TurnKey, judged: JudgedTurn) -> JudgedTurn:
        named = ((claim, name_row(key, place)) for place, claim in enumerate(judged.claims))
        return replace(judged, claims=tuple(replace(claim, people=verdicts.get(name)) for claim, name in named))

    return {key: add(key, judged) for key, judged in judgements.items()}, people["note"] if verdicts else ""


_CHOICES: Mapping[str, Sequence[str]] = {
    "verdict": LABELS,
    **{scale: [str(grade) for grade in range(lowest, highest + 1)] for scale, (lowest, highest) in SCALES.items()},
}


def render_sheet(claims: Sequence[Row], turns: Sequence[Row], rater: int) -> str:
    """Return a page that people can fill in. It loads nothing, and its script saves the rows as CSV."""
    page = Path(__file__).with_name("sheet.html")
    return render_html(page, claims=claims, turns=turns, rater=rater, choices=_CHOICES)
