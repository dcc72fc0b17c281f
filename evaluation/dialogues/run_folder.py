"""Store a run's files, so that a run that was killed can be continued.

run.json          the manifest
dialogues.jsonl   one line for each turn
judgements.jsonl  one line for each judgement
calls/            cached replies of models
"""

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from pathlib import Path
from threading import Lock
from typing import Any

from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError

from evaluation import EvaluationError
from evaluation.dialogues.dialogue_types import Dialogue, DialogueTurn, JudgedTurn, RunManifest

TurnKey = tuple[str, int]
"""A turn by its dialogue's id and its number, from 1."""

_APPENDING = Lock()  # threads append lines, which must not be mixed
_LINE, _DIALOGUE = TypeAdapter(dict[str, Any]), TypeAdapter(Dialogue)
_TURN, _JUDGED = TypeAdapter(DialogueTurn), TypeAdapter(JudgedTurn)
_HEAD = ("id", "topic", "system", "model", "simulator")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of a run."""

    path: Path

    @property
    def calls(self) -> Path:
        return self.path / "calls"

    @property
    def exists(self) -> bool:
        return (self.path / "run.json").exists()

    @property
    def _turns(self) -> Path:
        return self.path / "dialogues.jsonl"

    @property
    def _judgements(self) -> Path:
        return self.path / "judgements.jsonl"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder against other commands. Raises `EvaluationError` if another command has locked it."""
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.path / "lock", timeout=0):
                yield
        except Timeout as error:
            raise EvaluationError(f"Another command writes into {self.path}.", hint="Wait until it ends.") from error

    def write_manifest(self, manifest: RunManifest) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        replace_file(self.path / "run.json", json.dumps(asdict(manifest), ensure_ascii=False, indent=1) + "\n")

    def read_manifest(self) -> RunManifest:
        """Return the manifest. Raises `EvaluationError` if it is missing or unreadable."""
        file = self.path / "run.json"
        if not file.exists():
            raise EvaluationError(
                f"{self.path} has no run in it.", hint="`footnote evaluate dialogues --out` makes one."
            )
        try:
            return TypeAdapter(RunManifest).validate_json(file.read_bytes())
        except ValidationError as error:
            raise EvaluationError(
                f"{file} cannot be read: {_name_fault(error)}.",
                hint="Restore a copy of it, or start another run: --out FOLDER.",
            ) from error

    def refuse_lost_manifest(self) -> None:
        """Raise `EvaluationError` if the folder has turns, but no manifest."""
        if self._turns.exists() and not self.exists:
            raise EvaluationError(
                f"{self.path} has dialogues of a run whose run.json is missing.",
                hint="Restore it, or start another run: --out FOLDER.",
            )

    def append_turn(self, dialogue: Dialogue, turn: DialogueTurn) -> None:
        """Append the next turn of a dialogue, and write it to disk at once."""
        head = asdict(dialogue) | {"turn": len(dialogue.turns) + 1}
        del head["turns"]
        _append_line(self._turns, {**head, **asdict(turn)})

    def read_dialogues(self) -> tuple[Dialogue, ...]:
        """Return the dialogues, sorted by id. If a turn is missing, later turns are left out."""
        heads, turns = dict[str, Dialogue](), defaultdict[str, dict[int, DialogueTurn]](dict)

        def take(line: dict[str, Any]) -> None:
            head = _DIALOGUE.validate_python({name: line.pop(name, None) for name in _HEAD})
            if heads.setdefault(head.id, head) != head:
                raise ValueError(f"{head.id} has another topic in an earlier line")
            number = int(line.pop("turn", 0))
            turns[head.id][number] = _TURN.validate_python(line)

        _read_lines(self._turns, take)
        return tuple(replace(head, turns=_list_first(turns[name])) for name, head in sorted(heads.items()))

    def append_judgement(self, key: TurnKey, judged: JudgedTurn) -> None:
        _append_line(self._judgements, {"id": key[0], "turn": key[1], **asdict(judged)})

    def read_judgements(self) -> Mapping[TurnKey, JudgedTurn]:
        """Return the last judgement of each judged turn."""
        judgements = dict[TurnKey, JudgedTurn]()

        def take(line: dict[str, Any]) -> None:
            key = str(line.pop("id", "")), int(line.pop("turn", 0))
            judgements[key] = _JUDGED.validate_python(line)

        _read_lines(self._judgements, take)
        return judgements

    def drop_unconnected(self) -> int:
        """Remove turns after a missing one, and judgements of missing turns. Return the number of removed turns.

        A dialogue is continued at its first missing turn, and later turns would not follow from that.
        """
        keys = list_keys(self.read_dialogues())
        _keep_lines(self._judgements, keys)
        return _keep_lines(self._turns, keys)


def list_keys(dialogues: Iterable[Dialogue]) -> Sequence[TurnKey]:
    return [(dialogue.id, number) for dialogue in dialogues for number in range(1, len(dialogue.turns) + 1)]


def count_planned(manifest: RunManifest, held: int = 0) -> int:
    """Return how many turns a finished run has. `held` is used if the manifest has no number of dialogues."""
    return (manifest.dialogues or held) * manifest.turns


def describe_missing(planned: int, held: int, judged: int | None = None) -> str:
    """Describe how many turns, and how many judgements if `judged` is set, a run lacks; empty if none."""
    parts = [f"{planned - held} of {planned} turns were not held"] if held < planned else []
    if judged is not None and judged < held:
        parts.append(f"{held - judged} of {held} turns were not judged")
    return f"{' and '.join(parts)}." if parts else ""


def replace_file(path: Path, text: str) -> None:
    """Replace a text file atomically."""
    scratch = path.with_name(f"{path.name}.{os.getpid()}.part")
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(path)


def _list_first(turns: Mapping[int, DialogueTurn]) -> tuple[DialogueTurn, ...]:
    return tuple(turns[number] for number in takewhile(turns.__contains__, range(1, len(turns) + 1)))


def _append_line(path: Path, document: Mapping[str, Any]) -> None:
    line = json.dumps(document, ensure_ascii=False).encode() + b"\n"
    with _APPENDING, path.open("ab+", buffering=0) as file:
        _drop_torn_line(file.fileno())
        if file.write(line) != len(line):
            raise OSError(f"{path}: cannot write a whole line")
        os.fsync(file.fileno())


def _drop_torn_line(handle: int) -> None:
    """Remove an incomplete last line from a file: a killed process may have written a part of it."""
    size = os.fstat(handle).st_size
    if not size or os.pread(handle, 1, size - 1) == b"\n":
        return
    whole = os.pread(handle, size, 0).rfind(b"\n") + 1
    os.ftruncate(handle, whole)


def _split_lines(path: Path) -> Sequence[bytes]:
    """Return the complete lines of a file."""
    whole = path.read_bytes().rpartition(b"\n")[0] if path.exists() else b""
    return whole.split(b"\n") if whole else ()


def _keep_lines(path: Path, keys: Iterable[TurnKey]) -> int:
    """Remove all lines of a file except those of these turns. Return how many were removed."""
    known, lines = {*keys}, _split_lines(path)
    chosen = [line for line in lines if (row := json.loads(line)) and (row["id"], row["turn"]) in known]
    if len(chosen) < len(lines):
        replace_file(path, "".join(f"{line.decode()}\n" for line in chosen))
    return len(lines) - len(chosen)


_MOST_NAMED = 20


def _read_lines(path: Path, take: Callable[[dict[str, Any]], None]) -> None:
    """Pass each complete line to `take`. Raises `EvaluationError` with the numbers of all unreadable lines."""
    faults = list[tuple[int, str]]()
    for number, line in enumerate(_split_lines(path), start=1):
        try:
            take(_LINE.validate_json(line))
        except ValidationError as error:
            faults.append((number, _name_fault(error)))
        except ValueError as error:
            faults.append((number, str(error)))
    if faults:
        named = ", ".join(str(number) for number, _ in faults[:_MOST_NAMED])
        rest = f" and {len(faults) - _MOST_NAMED} more" if len(faults) > _MOST_NAMED else ""
        is_single = len(faults) == 1
        raise EvaluationError(
            f"{'line' if is_single else 'lines'} {named}{rest} of {path} cannot be read: {faults[0][1]}.",
            hint=f"Remove {'it' if is_single else 'them'} from the file, and run the command again.",
        )


def _name_fault(error: ValidationError) -> str:
    fault = error.errors()[0]
    return f"{fault['loc']}: {fault['msg']}" if fault["loc"] else str(fault["msg"])
