"""`make install` links `footnote` into a folder of the path, and never removes other files."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")


def run_make(goal: str, folder: Path, path: str = os.defpath) -> subprocess.CompletedProcess[str]:
    """Run a goal with an environment and a folder of links under `folder`, as if the environment already existed."""
    own = [f"VENV={folder}/venv", f"BINDIR={folder}/bin"]
    command = [shutil.which("make"), "--directory", ROOT, "--assume-old", f"{folder}/venv/run.stamp", goal, *own]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": path})


def test_link_is_made_and_removed(tmp_path):
    for _ in range(2):
        assert run_make("install", tmp_path).returncode == 0
    link = tmp_path / "bin" / "footnote"
    assert link.readlink() == tmp_path / "venv" / "bin" / "footnote"

    run_make("uninstall", tmp_path)

    assert not link.is_symlink()


def test_missing_folder_on_the_path_is_reported(tmp_path):
    line = f'export PATH="{tmp_path}/bin:$PATH"'
    assert line in run_make("install", tmp_path).stdout
    assert line not in run_make("install", tmp_path, f"{os.defpath}:{tmp_path}/bin").stdout


def test_replaced_link_is_reported(tmp_path):
    link = tmp_path / "bin" / "footnote"
    link.parent.mkdir()
    link.symlink_to("/srv/other/.venv/bin/footnote")

    assert f"{link} led to /srv/other/.venv/bin/footnote" in run_make("install", tmp_path).stdout
    assert "led to" not in run_make("install", tmp_path).stdout


def test_existing_program_is_kept(tmp_path):
    other = tmp_path / "bin" / "footnote"
    other.parent.mkdir()
    other.write_text("mine")

    assert run_make("install", tmp_path).returncode != 0
    run_make("uninstall", tmp_path)

    assert other.read_text() == "mine"
