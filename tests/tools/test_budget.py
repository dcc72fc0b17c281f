"""The budget: figures of a small tree, circular imports, and the comparison with limits."""

from pathlib import Path

import pytest

from tools.budget import compare_figures, find_circles, measure_tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for room in ("bot", "pipeline", "ingest", "storage", "evaluation", "tools", "examples", "tests", "docs"):
        (tmp_path / room).mkdir()
    (tmp_path / "bot" / "desk.py").write_text("from bot import queue\n")
    (tmp_path / "bot" / "queue.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from bot.desk import Desk\n"
        "def open():\n    import json\n"
    )
    (tmp_path / "docs" / "guide.md").write_text("one two three\n")
    return tmp_path


def test_lines_words_and_imports_of_a_tree_are_measured(tree: Path) -> None:
    figures = measure_tree(tree)

    assert (figures["lines"]["bot"], figures["lines"]["rooms and tools"]) == (6, 6)
    assert figures["entries"]["bot"] == 2
    assert figures["words"] == {"documentation": 3}
    assert figures["imports"] == {"modules in circles": 2, "blocks for type checking": 1, "inside functions": 1}


@pytest.mark.parametrize(
    ("graph", "circles"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}, [{"a", "b", "c"}]),
        ({"a": {"b"}, "b": {"a"}, "c": {"d", "a"}, "d": {"c"}}, [{"a", "b"}, {"c", "d"}]),
    ],
)
def test_circular_imports_are_found(graph: dict[str, set[str]], circles: list[set[str]]) -> None:
    assert find_circles(graph) == circles


def test_figures_above_their_limit_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    figures = {"lines": {"bot": 11, "ingest": 7}, "entries": {"bot": 3, "bot/desk": 12}}
    budget = {"lines": {"bot": 10, "ingest": 7}, "entries": {"bot": 3, "others": 10}, "words": {"documentation": 5}}

    exceeded = list(compare_figures(figures, budget))

    assert exceeded == ["lines: bot is 11, and 10 is allowed", "entries: others is 12, and 10 is allowed"]
    assert capsys.readouterr().out.count("ABOVE") == 2
