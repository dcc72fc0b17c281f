"""Examples from the command line: added, listed, pinned and dropped, in a home as it is."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bot.cli.command_context import CliState
from bot.cli.entry_point import app
from storage.database.engine import open_database
from storage.manifest import Manifest
from storage.record.audit_log import AuditLog
from storage.types import LogEntry
from tests.bot.test_example_pool import turn


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Path]:
    other = [LogEntry("t2", entry.kind, entry.body, at=entry.at) for entry in turn(status="abstained")]
    with open_database("", home=tmp_path / "home") as database:
        asyncio.run(AuditLog(database).append(*turn(), *other))
    file = tmp_path / "footnote.toml"
    file.write_text(f'home = "{tmp_path / "home"}"\n')
    return file


def run(config: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["examples", *arguments], obj=CliState(config=config), prog_name="footnote")


def listed(config: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(config, "list", "--json").stdout)["examples"]
    return found


def test_answer_becomes_an_example_is_pinned_and_dropped(config: Path) -> None:
    assert "No answer is an example yet." in run(config, "list").stdout
    assert "t1 is an example now." in run(config, "add", "t1").stdout
    assert "t1 was an example already." in run(config, "add", "t1").stdout
    (row,) = listed(config)
    assert (row["answer_id"], row["question"], row["by"]) == ("t1", "When?", "terminal")
    assert (row["corpora"], row["pinned"], row["shown"]) == (["handbook"], False, True)
    assert json.loads(run(config, "pin", "t", "--json").stdout)["done"] == "is shown before all others"
    assert "pinned" in run(config, "list").stdout
    run(config, "pin", "t1", "--off")
    assert [row["pinned"] for row in listed(config)] == [False]
    assert "t1 is no longer an example." in run(config, "drop", "t1").stdout
    assert listed(config) == []
    with open_database("", home=config.parent / "home") as database:
        bodies = [entry.body for entry in asyncio.run(AuditLog(database).turn("t1")) if entry.body.get("what")]
    assert [row["state"] for row in bodies] == ["added", "pinned", "unpinned", "dropped"]


def test_example_with_a_forgotten_page_is_listed_as_not_shown(config: Path) -> None:
    run(config, "add", "t1")
    with open_database("", home=config.parent / "home") as database:
        asyncio.run(Manifest(database).forget("handbook", ["light"]))
    assert [row["shown"] for row in listed(config)] == [False]
    run(config, "drop", "t1")
    assert "A page that the answer cites has been forgotten since" in run(config, "add", "t1").stderr


@pytest.mark.parametrize(("arguments", "message"), [
    (("add", "t2"), "That question was not answered."),
    (("add", "zz"), "There is no answer “zz” in the record."),
    (("add", "t"), "Several answers begin with “t”."),
    (("drop", "t1"), "There is no example “t1”."),
    (("pin", ""), "There is no example “”."),
])  # fmt: skip
def test_refused_example_command_prints_the_reason(config: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run(config, *arguments)
    assert done.exit_code == 1
    assert message.rstrip(".") in done.stderr
