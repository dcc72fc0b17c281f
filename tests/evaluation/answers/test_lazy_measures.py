"""Recall and search times of lazy corpora."""

import asyncio
import json
from pathlib import Path

from typer.testing import CliRunner

from evaluation.answers.question_sets import build_set_source, read_set
from evaluation.cli import app
from evaluation.workbench import open_corpus
from storage.types import DenseMode

TEXTS = {"gate": "The harbour gate opens at seven and closes at nine in the evening.", "cat": "A cat sat on the mat."}


def test_lazy_commands_report_recall_and_times(tmp_path: Path) -> None:
    file = tmp_path / "set.json"
    texts = [{"id": key, "title": "", "text": text} for key, text in TEXTS.items()]
    question = {"id": "1", "text": "When does the gate open?", "relevant": {"gate": 1}}
    file.write_text(json.dumps({"name": "tiny", "language": "en", "texts": texts, "questions": [question]}))

    shown = CliRunner().invoke(app, ["lazy", str(file), "--json"])
    (recall,) = json.loads(shown.stdout)["sets"]

    async def fill() -> None:
        source = build_set_source(read_set(file).texts, "en")
        async with open_corpus(source, "wikipedia", tmp_path / "home", dense=DenseMode.LAZY):
            pass

    asyncio.run(fill())
    timed = CliRunner().invoke(app, ["speed", "lazy", str(tmp_path / "home"), "--questions", "2", "--json"])
    report = json.loads(timed.stdout)

    assert {depth["R@1"] for depth in recall["depths"].values()} == {1.0}
    assert (report["passages"], report["kept"]) == (2, 1)
    assert report["cold"]["p95_ms"] > 0
