"""The benchmark of embedding compares like with like."""

import json
from itertools import islice
from pathlib import Path
from random import Random

import pytest
import typer
from typer.testing import CliRunner

from evaluation.speed.workload import generate_texts
from tools.benchmarks.embedding_rate import embedding


@pytest.fixture
def app() -> typer.Typer:
    """The command by itself."""
    app = typer.Typer()
    app.command()(embedding)
    return app


def test_both_give_the_same_vectors(app: typer.Typer) -> None:
    """Chroma's function, over a graph of its own, agrees with ours to a cosine of .9999."""
    result = CliRunner().invoke(app, ["--texts", "2", "--rounds", "1", "--json"])

    report = json.loads(result.stdout)

    assert [each["words"] for each in report["compared"]] == [55, 120]
    assert all(each["least_cosine"] >= 0.9999 for each in report["compared"])
    assert all(each["ours"] > 0 and each["chromas"] > 0 for each in report["compared"])


def test_too_little_text_is_said(app: typer.Typer, tmp_path: Path) -> None:
    """Instead of a rate over fewer texts than asked for."""
    (tmp_path / "short.md").write_text("word " * 60)

    result = CliRunner().invoke(app, [str(tmp_path), "--texts", "2"])

    assert result.exit_code == 2
    assert "has only 1" in " ".join(result.output.replace("│", " ").split())


def test_made_up_text_is_the_same_for_the_same_seed() -> None:
    """So that two runs measure the same thing."""
    first, second = (list(islice(generate_texts(Random(7), 55), 3)) for _ in range(2))

    assert first == second
    assert len(set(first)) == 3
    assert [len(text.split()) for text in first] == [55] * 3
