"""Keep a run's files so that a run that was killed goes on: one line a turn, one line a judgement.

run.json          the manifest
dialogues.jsonl   each turn as it ended
judgements.jsonl  each judged turn
calls/            replies of models, by what was asked
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from evaluation import EvaluationError
from evaluation.dialogues.dialogue_types import Dialogue, DialogueTurn, JudgedTurn, RunManifest

T = TypeVar("T")
TurnKey = tuple[str, int]
"""A turn by its dialogue's id and its number, from 1."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    path: Path

    @property
    def calls(self) -> Path:
        return self.path / "calls"

    @property
    def exists(self) -> bool:
        return (self.path / "run.json").exists()

    def write_manifest(self, manifest: RunManifest) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        replace_file(self.path / "run.json", json.dumps(asdict(manifest), ensure_ascii=False, indent=1) + "\n")

    def read_manifest(self) -> RunManifest:
        """Return the manifest. Raises `EvaluationError` where there is none that can be read."""
        file = self.path / "run.json"
        if not file.exists():
            raise EvaluationError(f"{self.path} holds no run.", hint="`footnote evaluate dialogues --out` makes one.")
        return _parse(RunManifest, file.read_bytes(), str(file))

    def append_turn(self, dialogue: Dialogue, turn: DialogueTurn) -> None:
        """Keep the next turn of a dialogue. It is on the disk when this returns."""
        head = asdict(dialogue) | {"turn": len(dialogue.turns) + 1}
        del head["turns"]
        _append_line(self.path / "dialogues.jsonl", {**head, **asdict(turn)})

    def read_dialogues(self) -> tuple[Dialogue, ...]:
        """Return the dialogues with the turns they have so far, in an order that no clock and no kill changes."""
        heads, turns = dict[str, dict[str, Any]](), defaultdict[str, dict[int, DialogueTurn]](dict)
        file = self.path / "dialogues.jsonl"
        for where, line in _read_lines(file):
            head = {name: line.pop(name, None) for name in ("id", "topic", "system", "model", "simulator")}
            turns[str(head["id"])][line.pop("turn", 0)] = _parse(DialogueTurn, line, where)
            heads.setdefault(str(head["id"]), head)
        return tuple(
            _parse(Dialogue, {**head, "turns": [asdict(turns[name][one]) for one in sorted(turns[name])]}, str(file))
            for name, head in sorted(heads.items())
        )

    def append_judgement(self, key: TurnKey, judged: JudgedTurn) -> None:
        _append_line(self.path / "judgements.jsonl", {"id": key[0], "turn": key[1], **asdict(judged)})

    def read_judgements(self) -> Mapping[TurnKey, JudgedTurn]:
        """Return the judged turns; of one that was judged again the last judgement."""
        found = dict[TurnKey, JudgedTurn]()
        for where, line in _read_lines(self.path / "judgements.jsonl"):
            key = str(line.pop("id", "")), int(line.pop("turn", 0))
            found[key] = _parse(JudgedTurn, line, where)
        return found


def replace_file(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all."""
    scratch = path.with_name(f"{path.name}.{os.getpid()}.part")
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(path)


def _append_line(path: Path, document: Mapping[str, Any]) -> None:
    line = json.dumps(document, ensure_ascii=False).encode() + b"\n"
    with path.open("ab+") as file:
        _drop_torn_line(file.fileno())
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def _drop_torn_line(handle: int) -> None:
    """Cut a file back to its last whole line: what was killed in the middle of one has not ended its turn."""
    size = os.fstat(handle).st_size
    if not size or os.pread(handle, 1, size - 1) == b"\n":
        return
    kept = os.pread(handle, size, 0).rfind(b"\n") + 1
    os.ftruncate(handle, kept)


def _read_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each whole line with the words that say where it stands; a last line without its end is left out."""
    if not path.exists():
        return
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    for number, line in enumerate(whole.splitlines(), start=1):
        where = f"line {number} of {path}"
        try:
            found = json.loads(line)
        except ValueError as error:
            raise _damaged(where, error) from error
        if not isinstance(found, dict):
            raise _damaged(where, "it is no object")
        yield where, found


def _parse(kind: type[T], document: object, where: str) -> T:
    adapter = TypeAdapter(kind)
    try:
        return adapter.validate_json(document) if isinstance(document, bytes) else adapter.validate_python(document)
    except ValidationError as error:
        raise _damaged(where, f"{error.errors()[0]['loc']}: {error.errors()[0]['msg']}") from error


def _damaged(where: str, why: object) -> EvaluationError:
    return EvaluationError(
        f"{where} cannot be read: {why}.", hint="Take it out of the file, and run the command again."
    )
