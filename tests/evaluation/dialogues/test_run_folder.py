"""Runs are stored after each turn: a killed run loses at most its current turn."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from evaluation import EvaluationError
from evaluation.dialogues.dialogue_types import JudgedTurn
from evaluation.dialogues.run_folder import RunFolder
from tests.evaluation.runs import DIALOGUE, JUDGED, MANIFEST, TURN


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.write_manifest(MANIFEST)
    return folder


def test_stored_run_is_read_back(folder):
    folder.append_turn(DIALOGUE, TURN)
    folder.append_turn(replace(DIALOGUE, turns=(TURN,)), replace(TURN, user="And then?", cost=None))
    folder.append_judgement((DIALOGUE.id, 1), JudgedTurn())
    folder.append_judgement((DIALOGUE.id, 1), JUDGED)
    assert folder.read_manifest() == MANIFEST
    assert folder.read_dialogues() == (replace(DIALOGUE, turns=(TURN, replace(TURN, user="And then?", cost=None))),)
    assert folder.read_judgements() == {(DIALOGUE.id, 1): JUDGED}


def test_torn_last_line_is_dropped(folder):
    folder.append_turn(DIALOGUE, TURN)
    file = folder.path / "dialogues.jsonl"
    whole = file.read_bytes()
    for cut in range(1, len(whole), 97):
        file.write_bytes(whole + whole[:cut])
        assert folder.read_dialogues() == (replace(DIALOGUE, turns=(TURN,)),)
        folder.append_turn(replace(DIALOGUE, turns=(TURN,)), TURN)
        assert folder.read_dialogues() == (replace(DIALOGUE, turns=(TURN, TURN)),)


def test_dialogues_are_read_in_a_fixed_order(folder, tmp_path):
    other = RunFolder(tmp_path / "other")
    other.path.mkdir()
    dialogues = (DIALOGUE, replace(DIALOGUE, id="fast/m/2"), replace(DIALOGUE, id="alone/m/1"))
    for first, second in zip(dialogues, reversed(dialogues), strict=True):
        folder.append_turn(first, TURN)
        other.append_turn(second, TURN)
    assert folder.read_dialogues() == other.read_dialogues()


def test_concurrent_appends_are_complete(folder):
    size = 10_000
    turn, names = replace(TURN, reply="x" * size), [f"fast/m/{number:03}" for number in range(80)]

    def keep(name):
        folder.append_turn(replace(DIALOGUE, id=name), turn)
        folder.append_judgement((name, 1), replace(JUDGED, failure="x" * size))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(keep, names))
    assert [(dialogue.id, dialogue.turns) for dialogue in folder.read_dialogues()] == [
        (name, (turn,)) for name in names
    ]
    assert len(folder.read_judgements()) == len(names)


def test_dialogue_continues_at_its_first_missing_turn(folder):
    turns = tuple(replace(TURN, user=f"Question {number}?") for number in range(1, 5))
    for number, turn in enumerate(turns):
        folder.append_turn(replace(DIALOGUE, turns=turns[:number]), turn)
        folder.append_judgement((DIALOGUE.id, number + 1), replace(JUDGED, relevant=number + 1))
    file = folder.path / "dialogues.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join((lines[0], *lines[2:])))
    assert folder.read_dialogues() == (replace(DIALOGUE, turns=turns[:1]),)
    assert folder.drop_unconnected() == 2
    assert folder.drop_unconnected() == 0
    folder.append_turn(replace(DIALOGUE, turns=turns[:1]), TURN)
    assert folder.read_dialogues() == (replace(DIALOGUE, turns=(turns[0], TURN)),)
    assert list(folder.read_judgements()) == [(DIALOGUE.id, 1)]


def test_run_folder_is_locked(folder):
    with folder.lock(), pytest.raises(EvaluationError, match="Another command writes"), RunFolder(folder.path).lock():
        pass


def test_every_unreadable_line_is_named(folder):
    folder.append_turn(DIALOGUE, TURN)
    file = folder.path / "dialogues.jsonl"
    whole = file.read_text()
    file.write_text('{"id": "a", "turn": 1}\n' + whole + "no\n[1]\n" + whole.replace("Pier", "Harbour"))
    with pytest.raises(EvaluationError, match=r"lines 1, 3, 4, 5 of .*dialogues.jsonl cannot be read"):
        folder.read_dialogues()


def test_unreadable_manifest_is_reported_with_a_hint(folder):
    (folder.path / "run.json").write_text("{")
    with pytest.raises(EvaluationError, match=r"run.json cannot be read") as error:
        folder.read_manifest()
    assert "copy" in error.value.hint


def test_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(EvaluationError, match="has no run in it"):
        RunFolder(tmp_path).read_manifest()
