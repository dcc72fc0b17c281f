"""Mutations: which expressions change, and that an inactive mutation changes nothing."""

import json
import subprocess
import sys
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import pytest

from tools.mutate import find_mutations, find_same, sample, write_copy

SOURCE = '''"""A module; 1 < 2 of it is no code."""
LIMIT = 3


def classify(number: int, known: tuple[int, ...] = (1, 2)) -> str:
    if number > 10 and not number in known:
        return f"{number + 1}"
    return "small"
'''


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    for room in ("bot", "pipeline", "ingest", "storage", "evaluation"):
        (tmp_path / room).mkdir()
    (tmp_path / "bot" / "module.py").write_text(SOURCE)
    return tmp_path


def test_only_expressions_inside_functions_are_mutated(repo: Path) -> None:
    pairs = {(mutation.before, mutation.after) for mutation in find_mutations(repo, repo / "bot" / "module.py")}
    assert pairs == {
        ("number > 10 and not number in known", "number > 10 or not number in known"),
        ("number > 10", "number >= 10"),
        ("10", "11"),
        ("not number in known", "number in known"),
        ("number in known", "number not in known"),
        ('f"{number + 1}"', "None"),
        ('"small"', "None"),
    }


def test_sample_is_repeatable_and_does_not_overlap(repo: Path) -> None:
    chosen = sample(repo, 1, 10)
    assert chosen == sample(repo, 1, 10)
    assert len(sample(repo, 1, 2)) == 2
    assert all(first.end <= second.start for first, second in pairwise(chosen))


def test_same_places_are_found_in_a_moved_function(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    earlier = sample(repo, 1, 10)
    outcomes = repo / "outcomes.json"
    outcomes.write_text(json.dumps([{**asdict(mutation), "outcome": "caught"} for mutation in earlier]))
    (repo / "bot" / "module.py").rename(repo / "storage" / "other.py")
    moved = (repo / "storage" / "other.py").read_text().replace("number + 1", "number").replace('"small"', '"tiny"')
    (repo / "storage" / "other.py").write_text(f"import os\n{moved}")

    same, before = find_same(repo, outcomes)

    assert {mutation.path for mutation in same} == {"storage/other.py"}
    assert len(same) == len(before) == len(earlier) - 2
    assert capsys.readouterr().out.count("not found: ") == 2


@pytest.mark.parametrize(("active", "said"), [("-1", "small"), ("0", "None")])
def test_mutation_applies_only_if_switched_on(repo: Path, tmp_path: Path, active: str, said: str) -> None:
    returned = [
        mutation for mutation in find_mutations(repo, repo / "bot" / "module.py") if mutation.before == '"small"'
    ]
    write_copy(repo, tmp_path / "copy", returned)
    done = subprocess.run(
        [sys.executable, "-c", "from bot.module import classify; print(classify(5))"],
        cwd=tmp_path / "copy", env={"MUTATE_ACTIVE": active}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == said
