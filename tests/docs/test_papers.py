"""The tables that compare the papers with the code: every row has a kind, a reason and code that exists."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = (ROOT / "docs/systems.md").read_text("utf-8").partition("\n## The papers, row by row\n")[2].split("\n### ")[1:]
ROWS = [
    (part.partition(",")[0], *line.strip("|").split("|"))
    for part in PARTS
    for line in part.splitlines()
    if line.startswith("|") and not line.startswith(("|where|", "|---|"))
]
MISSING = 13


@cache
def list_names(file: Path) -> frozenset[str]:
    """Return the names that a module defines, with those in its classes as `Class.name`; macros of a template."""
    text = file.read_text("utf-8")
    if file.suffix == ".py":
        return frozenset(_walk(ast.parse(text).body))
    return frozenset(first or second for first, second in re.findall(r'macro (\w+)\(|"(\w+)":', text))


def _walk(body: list[ast.stmt], prefix: str = ""):
    for node in body:
        match node:
            case ast.ClassDef():
                yield prefix + node.name
                yield from _walk(node.body, f"{prefix}{node.name}.")
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield prefix + node.name
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                yield prefix + name


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_row_has_a_reason_and_code_that_exists(row):
    _, where, theirs, here, code = row
    assert where
    assert theirs
    assert re.match(r"faithful\b|(adapted|missing): .", here)
    path, _, name = code.strip("`").partition(":")
    assert (ROOT / path).is_file()
    assert not name or name in list_names(ROOT / path)


def test_five_texts_are_compared_and_little_is_missing():
    kinds = Counter((paper, re.match(r"\w+", here)[0]) for paper, _, _, here, _ in ROWS)
    assert len({paper for paper, _ in kinds}) == 5
    assert len(ROWS) >= 100
    assert sum(count for (_, kind), count in kinds.items() if kind == "missing") <= MISSING
