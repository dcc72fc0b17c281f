"""Search times of lazy corpora."""

import asyncio
import json
from pathlib import Path

from typer.testing import CliRunner

from evaluation.answers.question_sets import SetText, build_set_source
from evaluation.cli import app
from evaluation.workbench import open_corpus
from storage.types import DenseMode

TEXTS = {"gate": "The harbour gate opens at seven and closes at nine in the evening.", "cat": "A cat sat on the mat."}


def test_lazy_command_reports_times(tmp_path: Path) -> None:
    async def fill() -> None:
        source = build_set_source([SetText(key, "", text) for key, text in TEXTS.items()], "en")
        async with open_corpus(source, "wikipedia", tmp_path / "home", dense=DenseMode.LAZY):
            pass

    asyncio.run(fill())
    timed = CliRunner().invoke(app, ["speed", "lazy", str(tmp_path / "home"), "--questions", "2", "--json"])
    report = json.loads(timed.stdout)

    assert (report["passages"], report["kept"]) == (2, 1)
    assert report["cold"]["p95_ms"] > 0
