"""The figures of a tree's structure, with a tree of a few files."""

from pathlib import Path

import pytest

from tools.structure import ROOMS, is_module, print_folders, print_names, print_rooms


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    for room in ROOMS:
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text('"""A room."""\n')
        (tmp_path / room / f"{room}_answering.py").write_text("class Answer:\n    pass\n")
    for place in range(11):
        (tmp_path / "bot" / f"module{place}.py").write_text("class _Private:\n    pass\n")
    return tmp_path


def test_file_with_only_a_docstring_is_not_counted(repo: Path) -> None:
    assert not is_module(repo / "bot" / "__init__.py")
    assert is_module(repo / "bot" / "module0.py")


def test_lines_and_modules_are_counted_by_package(repo: Path, capsys: pytest.CaptureFixture) -> None:
    print_rooms(repo)
    rows = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert rows["bot"] == ["25", "12", "2", "2"]
    assert rows["five"] == ["rooms", "37", "16", "2", "2"]


def test_crowded_folders_and_repeated_names_are_listed(repo: Path, capsys: pytest.CaptureFixture) -> None:
    print_folders(repo)
    print_names(repo)
    printed = capsys.readouterr().out
    assert printed.count("crowded") == 1
    assert "gerunds: 5" in printed
    assert "public class names used more than once: 1  Answer 5" in printed
