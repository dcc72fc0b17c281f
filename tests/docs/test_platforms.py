"""The guide to a further platform names what there is: every path, every name, every method, every line elsewhere."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from bot.platforms.shared.platform_contract import Platform

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
KNOWN = ("slack", "discord")
NAMED = list(dict.fromkeys(re.findall(r"`([^`\n]+)`", GUIDE)))
PATHS = [one for one in NAMED if "/" in one.strip("/") or one.endswith((".py", ".toml"))]
NAMES = [one for one in NAMED if re.fullmatch(r"[A-Za-z_][\w.]*", one) and one not in {*PATHS, *KNOWN, "x"}]
OTHERS = {'"*"', "[[channel]]", "/readyz", "Page", "Part", "Run"}
FOREIGN = {"nonce"}
"""Discord's own."""


def sources() -> Iterator[Path]:
    for folder in ("bot", "tests/platforms"):
        yield from sorted((ROOT / folder).rglob("*.py"))


@cache
def defined() -> frozenset[str]:
    """Return every name that the bot or the platforms' tests define, members of classes with their class."""
    found = set[str]()
    for source in sources():
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            found |= set(names(node))
            if isinstance(node, ast.ClassDef):
                found |= {f"{node.name}.{member}" for inner in node.body for member in names(inner)}
                fields = [inner for inner in ast.walk(node) if isinstance(inner, ast.Attribute)]
                found |= {f"{node.name}.{one.attr}" for one in fields if isinstance(one.ctx, ast.Store)}
    return frozenset(found)


def names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.Assign(targets=targets):
            yield from (one.id for one in targets if isinstance(one, ast.Name))
        case ast.arg(arg=name):
            yield name


def branches(source: Path) -> bool:
    """Return whether a module has something of Discord's own in it."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        match node:
            case ast.Constant(value="discord") | ast.Attribute(attr="discord"):
                return True
            case ast.ImportFrom(module=str(module)) if module.startswith(
                ("bot.platforms.discord", "bot.settings.platform_settings")
            ):
                return True
            case ast.ImportFrom(names=found) if "discord_settings" in {one.name for one in found}:
                return True
    return False


@pytest.mark.parametrize("path", PATHS)
def test_every_path_exists(path: str) -> None:
    """One with an x in it exists for each platform that there is."""
    for platform in KNOWN:
        assert (ROOT / re.sub(r"(?<=/)x(?=/|$)", platform, path)).exists()


@pytest.mark.parametrize("name", [one for one in NAMES if one not in FOREIGN])
def test_every_name_is_defined(name: str) -> None:
    """In the bot, or in the platforms' tests."""
    assert name in defined()


def test_whatever_else_stands_there_as_code_is_known() -> None:
    """So that nothing is left out of these tests by its looks."""
    assert {one for one in NAMED if one not in {*PATHS, *NAMES, *KNOWN, "x"}} <= OTHERS


def test_the_table_of_methods_is_whole() -> None:
    """In the order in which `Platform` has them."""
    table = GUIDE.split("### What each method owes")[1].split("\n\n")[1]
    (listed,) = [re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)]

    assert listed == [name for name in vars(Platform) if not name.startswith("_")]


def test_the_list_of_lines_elsewhere_is_whole() -> None:
    """Every module of the bot that knows Discord by name is told, beside Discord's own."""
    own = {"bot/settings/platform_settings.py"}
    modules = [one for one in (ROOT / "bot").rglob("*.py") if (ROOT / "bot" / "discord") not in one.parents]
    knowing = {one.relative_to(ROOT).as_posix() for one in modules if branches(one)}
    table = GUIDE.split("## The lines elsewhere")[1].split("## What is never")[0]

    assert knowing - own <= set(re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE))
