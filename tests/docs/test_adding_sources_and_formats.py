"""The guides to sources and formats are held to the code: what they tell to write is installed, and then it works."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SUBTITLES = """1
00:00:01,000 --> 00:00:02,500
The door opens at nine.

2
00:00:03,000 --> 00:00:04,000
Not before.

3
00:01:00,000 --> 00:01:02,000
Bring your badge.
"""


def blocks(guide, language):
    """Return the examples of a guide in a language."""
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / guide).read_text(encoding="utf-8"), re.DOTALL)


def install(guide, folder):
    """Write what a guide tells to write, as pip leaves it in the folder of packages."""
    (code,), package = blocks(guide, "python"), tomllib.loads(blocks(guide, "toml")[0])
    (module,) = package["tool"]["setuptools"]["py-modules"]
    (folder / f"{module}.py").write_text(code, encoding="utf-8")
    info = folder / f"{module}-{package['project']['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package['project']['name']}\nVersion: 1\n")
    ((group, entries),) = package["project"]["entry-points"].items()
    lines = "".join(f"{name} = {value}\n" for name, value in entries.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{lines}")


def footnote(folder, *arguments):
    """Run a command in a folder, with the packages in it."""
    there = os.pathsep.join([str(folder / "packages"), str(DOCS.parent)])
    environment = {**os.environ, "PYTHONPATH": there, "FOOTNOTE_HOME": str(folder / "home")}
    command = [sys.executable, "-m", "bot", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )


@pytest.fixture
def place(tmp_path):
    """Give a folder in which both packages are installed and set, with something for them to read."""
    (tmp_path / "packages").mkdir()
    for guide in ("adding-a-source.md", "adding-a-format.md"):
        install(guide, tmp_path / "packages")
    films = '[[corpus]]\nname = "films"\nreaders = ["*"]\nsource = { type = "folder", path = "films" }\n'
    (tmp_path / "footnote.toml").write_text(blocks("adding-a-source.md", "toml")[1] + films, encoding="utf-8")
    (tmp_path / "faq.txt").write_text("Q: When does the office open?\nA: At nine.\n\nNo question.\n", encoding="utf-8")
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / "first_day.subs").write_text(SUBTITLES, encoding="utf-8")
    return tmp_path


def test_what_the_guides_write_is_read_in_and_found(place):
    """The settings take it, `ingest` reads it, and what it read can be searched."""
    ingested = footnote(place, "ingest", "all", "--json")
    assert ingested.returncode == 0, ingested.stderr
    reports = {one["corpus"]: one for one in json.loads(ingested.stdout)["corpora"]}
    assert reports["questions"]["documents"]["added"] == 1
    assert reports["questions"]["failures"] == [{"document": "entry 2", "reason": "has no question and answer"}]
    assert reports["films"]["documents"]["added"] == 1
    assert reports["films"]["failures"] == []

    found = footnote(place, "search", "when does the door open", "--json")
    hits = {hit["title"]: hit for hit in json.loads(found.stdout)["hits"]}
    assert hits["First day"]["text"] == "The door opens at nine. Not before.\n\nBring your badge."
    assert hits["When does the office open?"]["url"] == "https://intranet.example.com/faq"


def test_a_wrong_setting_of_an_added_source_is_told_as_any_other(place):
    """Its keys are known to the errors, and so is its type."""
    text = (place / "footnote.toml").read_text(encoding="utf-8")
    (place / "footnote.toml").write_text(text.replace("url = ", "ulr = "), encoding="utf-8")

    failed = footnote(place, "ingest", "all", "--json")

    assert failed.returncode == 1
    assert "corpus[1].source.ulr" in failed.stdout
    assert "Did you mean" in failed.stdout


def test_a_package_that_cannot_be_loaded_is_left_out(place):
    """What is broken in it is told, and all else works."""
    (place / "packages" / "footnote_subtitles.py").write_text("import nothing_of_this_name\n", encoding="utf-8")

    ingested = footnote(place, "ingest", "all", "--json")

    reports = {one["corpus"]: one for one in json.loads(ingested.stdout)["corpora"]}
    assert reports["films"]["failures"] == [{"document": "first_day.subs", "reason": ".subs files are not read"}]
    assert reports["questions"]["documents"]["added"] == 1
    assert "subtitles" in ingested.stderr
