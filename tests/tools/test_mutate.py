"""Mutations: what is changed, and that a switch that is off changes nothing."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tools.mutate import find_mutations, sample, write_copy

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


def test_what_runs_inside_functions_is_changed_and_no_more(repo: Path) -> None:
    found = {(one.before, one.after) for one in find_mutations(repo, repo / "bot" / "module.py")}
    assert found == {
        ("number > 10 and not number in known", "number > 10 or not number in known"),
        ("number > 10", "number >= 10"),
        ("10", "11"),
        ("not number in known", "number in known"),
        ("number in known", "number not in known"),
        ('f"{number + 1}"', "None"),
        ('"small"', "None"),
    }


def test_a_sample_is_the_same_for_a_seed_and_does_not_overlap(repo: Path) -> None:
    chosen = sample(repo, 1, 10)
    assert chosen == sample(repo, 1, 10)
    assert all(one.end <= two.start for one, two in pairwise(chosen))


@pytest.mark.parametrize(("active", "said"), [("-1", "small"), ("0", "None")])
def test_a_mutation_is_there_once_it_is_switched_on(repo: Path, tmp_path: Path, active: str, said: str) -> None:
    returned = [one for one in find_mutations(repo, repo / "bot" / "module.py") if one.before == '"small"']
    write_copy(repo, tmp_path / "copy", returned)
    done = subprocess.run(
        [sys.executable, "-c", "from bot.module import classify; print(classify(5))"],
        cwd=tmp_path / "copy", env={"MUTATE_ACTIVE": active}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == said
