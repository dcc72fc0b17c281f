"""Labels of published conversations, and the rule for self-contained messages."""

import json
from pathlib import Path

import pytest

from evaluation.answers.standalone_messages import LABELS, count_accepted, read_messages, standalone

ASKED = ("Which ferries sail to Skarholm?", "Which of them is faster?", "Does Larkspur Ferries carry bicycles?")


def test_message_is_standalone_if_its_rewrite_has_the_same_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rewritten = (ASKED[0], "Which ferry to Skarholm is faster?", "Utterance: does larkspur ferries carry bicycles")
    turns = [
        {"raw_utterance": asked, "manual_rewritten_utterance": other}
        for asked, other in zip(ASKED, rewritten, strict=True)
    ]
    (path := tmp_path / "cast.json").write_text(json.dumps([{"turn": turns}]), encoding="utf-8")

    messages = read_messages(path)
    assert [message.standalone for message in messages] == [True, False, True]
    assert [message.accepted for message in messages] == [True, False, True]
    assert count_accepted(messages) == (3, 2, 2, "1.000", "1.000")
    standalone([path], listed=True)
    assert "| cast | later | 2 | 1 | 1 | 1.000 | 1.000 |" in (said := capsys.readouterr().out)
    assert f"accepted: {ASKED[2]}" in said


def test_published_messages_have_labels(tmp_path: Path) -> None:
    labels = json.loads(LABELS.read_text(encoding="utf-8"))
    dialogue, task = (next(key for key in labels if ("_" in key) == under) for under in (True, False))
    inscit = {dialogue: {"turns": [{"context": [ASKED[0]]}, {"context": [ASKED[0], "Two.", ASKED[1]]}]}}
    messages = [{"text": ASKED[0]}, {"text": "Two."}, {"text": ASKED[1]}]
    mtrag = {
        "tasks": [
            {"task_id": f"{task}<::>{turn}", "Turn": str(turn), "input": messages[: 2 * turn - 1]} for turn in (1, 2)
        ]
    }
    for name, labelled, key in (("inscit", inscit, dialogue), ("mtrag", mtrag, task)):
        (path := tmp_path / name).write_text(json.dumps(labelled), encoding="utf-8")
        read = read_messages(path)
        assert [message.standalone for message in read] == [True, labels[key][1] == "1"]
        assert [turn.speaker for turn in read[1].talk.turns] == ["user", "bot", "user"]
