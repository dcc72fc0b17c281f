"""The example platform of the guide is installed, served and asked."""

import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

from tests.platforms.example_app import ANSWERS, BUILT

ROOT = Path(__file__).parents[2]


def blocks(language: str) -> list[str]:
    guide = (ROOT / "docs" / "adding-a-platform.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", guide, re.DOTALL)


def install(folder: Path) -> None:
    """Write the package of the guide as pip installs it."""
    project = tomllib.loads(blocks("toml")[0])
    (package,) = project["tool"]["setuptools"]["packages"]
    (folder / package).mkdir(parents=True)
    for name, code in zip(("__init__.py", "notes.py"), blocks("python"), strict=True):
        (folder / package / name).write_text(code, encoding="utf-8")
    info = folder / f"{package}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['project']['name']}\nVersion: 1\n")
    ((group, entries),) = project["project"]["entry-points"].items()
    lines = "".join(f"{name} = {value}\n" for name, value in entries.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{lines}")


def test_paths_in_the_guide_exist() -> None:
    guide = (ROOT / "docs" / "adding-a-platform.md").read_text(encoding="utf-8")
    paths = [one for one in re.findall(r"`([\w./]+)`", guide) if one.startswith(("bot/", "tests/")) or "toml" in one]
    names = ("slack", "discord", "mattermost")
    named = {re.sub(r"\bx(?=[/_])", name, path) for path in paths for name in names} - {"footnote.toml"}

    assert len(named) > 20
    assert [one for one in sorted(named) if not (ROOT / one).exists()] == []


def test_example_platform_of_the_guide_answers_only_readers(tmp_path: Path) -> None:
    install(tmp_path / "packages")
    (tmp_path / "footnote.toml").write_text(blocks("toml")[1] + "[http]\nport = 0\n", encoding="utf-8")
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "light.md").write_text(f"# Skarholm lighthouse\n\n{ANSWERS[BUILT]}\n", encoding="utf-8")
    for channel in ("office", "quay"):
        (tmp_path / "shared" / channel).mkdir(parents=True)
        (tmp_path / "shared" / channel / "lighthouse.txt").write_text(BUILT, encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "packages"), str(ROOT)]),
        "FOOTNOTE_HOME": str(tmp_path / "home"),
    }
    ingest = [sys.executable, "-m", "bot", "ingest", "folder", "pages", "--corpus", "handbook"]
    subprocess.run(ingest, cwd=tmp_path, env=environment, check=True, capture_output=True)
    with subprocess.Popen([sys.executable, "-m", "bot", "serve"], cwd=tmp_path, env=environment) as server:
        try:
            answers = {channel: wait_for(tmp_path / "shared" / channel, server) for channel in ("office", "quay")}
        finally:
            server.send_signal(signal.SIGTERM)

    assert server.returncode == 0
    assert f"{ANSWERS[BUILT]}" in answers["office"]
    assert "[1] Skarholm lighthouse" in answers["office"]
    assert ANSWERS[BUILT] not in answers["quay"]


def wait_for(channel: Path, server: "subprocess.Popen[bytes]") -> str:
    """Return the answer when it is final."""
    answer, last, until = channel / "lighthouse.answer.txt", "", time.monotonic() + 60
    while time.monotonic() < until and server.poll() is None:
        now = answer.read_text("utf-8") if answer.exists() else ""
        if now and now == last:
            return now
        last = now
        time.sleep(1)
    raise AssertionError("there was no answer")
