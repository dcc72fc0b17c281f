"""Runs are kept a turn at a time: what was killed loses no more than the turn it was at."""

from dataclasses import replace

import pytest

from evaluation import EvaluationError
from evaluation.dialogues.dialogue_types import (
    CitationCounts,
    CorpusState,
    Dialogue,
    DialogueTurn,
    JudgedClaim,
    JudgedTurn,
    RepliedSentence,
    RunManifest,
    ShownPassage,
    Topic,
    TopicKind,
    TurnClaim,
)
from evaluation.dialogues.run_folder import RunFolder
from storage.types import Verdict

TOPIC = Topic("Harbour", "The harbour is old.", "town", TopicKind.TAIL, "harbour.md")
DIALOGUE = Dialogue("fast/m/1", TOPIC, "fast", "m", "stand-in")
TURN = DialogueTurn(
    "How old?",
    "It was built in 1804. [1]",
    "answered",
    sentences=(RepliedSentence("It was built in 1804.", (1,)),),
    passages=(ShownPassage(1, "p", "town", "harbour.md", "Harbour", "It was built in 1804.", "It was built in 1804."),),
    knowledge=("It was built in 1804.",),
    claims=(TurnClaim("It was built in 1805.", "model", Verdict.REFUTES),),
    cost=0.25,
    first_sentence_seconds=0.5,
)
JUDGED = JudgedTurn(
    (JudgedClaim("It was built in 1804.", Verdict.SUPPORTS, ("p",), "It says so."),),
    relevant=5,
    temporally_correct=1,
    reasons={"relevant": "It answers."},
    citations=CitationCounts(1, 1, 1, 1),
)
MANIFEST = RunManifest(
    id="r",
    created="2026-01-01",
    commit="c",
    version="0.1.0",
    python="3.11",
    prompts="p",
    settings="s",
    systems=("fast",),
    models=("m",),
    simulator="stand-in",
    judge="stand-in",
    corpora=(CorpusState("town", 2, 3),),
    topics=(TOPIC,),
    turns=2,
    seed=7,
    today="2026-01-01",
    options={"count": 3},
)


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.write_manifest(MANIFEST)
    return folder


def test_what_was_kept_is_read_back(folder):
    folder.append_turn(DIALOGUE, TURN)
    folder.append_turn(replace(DIALOGUE, turns=(TURN,)), replace(TURN, user="And then?", cost=None))
    folder.append_judgement((DIALOGUE.id, 1), JudgedTurn())
    folder.append_judgement((DIALOGUE.id, 1), JUDGED)
    assert folder.read_manifest() == MANIFEST
    assert folder.read_dialogues() == (replace(DIALOGUE, turns=(TURN, replace(TURN, user="And then?", cost=None))),)
    assert folder.read_judgements() == {(DIALOGUE.id, 1): JUDGED}


def test_a_turn_that_was_killed_in_the_middle_of_its_line_was_never_kept(folder):
    folder.append_turn(DIALOGUE, TURN)
    file = folder.path / "dialogues.jsonl"
    whole = file.read_bytes()
    for cut in range(1, len(whole), 97):
        file.write_bytes(whole + whole[:cut])
        assert folder.read_dialogues() == (replace(DIALOGUE, turns=(TURN,)),)
        folder.append_turn(replace(DIALOGUE, turns=(TURN,)), TURN)
        assert folder.read_dialogues() == (replace(DIALOGUE, turns=(TURN, TURN)),)


def test_dialogues_come_in_one_order_whichever_ended_first(folder, tmp_path):
    other = RunFolder(tmp_path / "other")
    other.path.mkdir()
    dialogues = (DIALOGUE, replace(DIALOGUE, id="fast/m/2"), replace(DIALOGUE, id="alone/m/1"))
    for one, another in zip(dialogues, reversed(dialogues), strict=True):
        folder.append_turn(one, TURN)
        other.append_turn(another, TURN)
    assert folder.read_dialogues() == other.read_dialogues()


def test_a_line_that_cannot_be_read_is_named(folder):
    (folder.path / "dialogues.jsonl").write_text('{"id": "a", "turn": 1}\n')
    with pytest.raises(EvaluationError, match=r"line 1 of .*dialogues.jsonl cannot be read"):
        folder.read_dialogues()


def test_a_folder_without_a_run_is_told(tmp_path):
    with pytest.raises(EvaluationError, match="holds no run"):
        RunFolder(tmp_path).read_manifest()
