"""The packages described in the guides to sources and formats can be installed and used."""

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
    """Return a guide's examples in one language."""
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / guide).read_text(encoding="utf-8"), re.DOTALL)


def install(guide, folder):
    """Install a guide's package as pip does."""
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
    """Run a command in a folder with the packages installed there."""
    path = os.pathsep.join([str(folder / "packages"), str(DOCS.parent)])
    environment = {**os.environ, "PYTHONPATH": path, "FOOTNOTE_HOME": str(folder / "home")}
    command = [sys.executable, "-m", "bot", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )


@pytest.fixture
def folder(tmp_path):
    """Create a folder with both packages, their settings, and documents for them."""
    (tmp_path / "packages").mkdir()
    for guide in ("adding-a-source.md", "adding-a-format.md"):
        install(guide, tmp_path / "packages")
    films = '[[corpus]]\nname = "films"\nreaders = ["*"]\nsource = { type = "folder", path = "films" }\n'
    (tmp_path / "footnote.toml").write_text(blocks("adding-a-source.md", "toml")[1] + films, encoding="utf-8")
    (tmp_path / "faq.txt").write_text("Q: When does the office open?\nA: At nine.\n\nNo question.\n", encoding="utf-8")
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / "first_day.subs").write_text(SUBTITLES, encoding="utf-8")
    return tmp_path


def test_packages_of_the_guides_are_ingested_and_found(folder):
    ingested = footnote(folder, "ingest", "all", "--json")
    assert ingested.returncode == 0, ingested.stderr
    reports = {corpus["corpus"]: corpus for corpus in json.loads(ingested.stdout)["corpora"]}
    assert reports["questions"]["documents"]["added"] == 1
    assert reports["questions"]["failures"] == [{"document": "entry 2", "reason": "has no question and answer"}]
    assert reports["films"]["documents"]["added"] == 1
    assert reports["films"]["failures"] == []

    searched = footnote(folder, "search", "when does the door open", "--json")
    hits = {hit["title"]: hit for hit in json.loads(searched.stdout)["hits"]}
    assert hits["First day"]["text"] == "The door opens at nine. Not before.\n\nBring your badge."
    assert hits["When does the office open?"]["url"] == "https://intranet.example.com/faq"


def test_invalid_setting_of_an_added_source_is_reported(folder):
    text = (folder / "footnote.toml").read_text(encoding="utf-8")
    (folder / "footnote.toml").write_text(text.replace("url = ", "ulr = "), encoding="utf-8")

    failed = footnote(folder, "ingest", "all", "--json")

    assert failed.returncode == 1
    assert "corpus[1].source.ulr" in failed.stdout
    assert "Did you mean" in failed.stdout


def test_broken_package_is_skipped(folder):
    (folder / "packages" / "footnote_subtitles.py").write_text("import nothing_of_this_name\n", encoding="utf-8")

    ingested = footnote(folder, "ingest", "all", "--json")

    reports = {corpus["corpus"]: corpus for corpus in json.loads(ingested.stdout)["corpora"]}
    assert reports["films"]["failures"] == [{"document": "first_day.subs", "reason": ".subs files are not read"}]
    assert reports["questions"]["documents"]["added"] == 1
    assert "subtitles" in ingested.stderr
