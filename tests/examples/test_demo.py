"""The demonstration, as `make demo` runs it where nobody can type."""

import shutil
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_demonstration_answers_from_the_handbook_and_ends(tmp_path: Path) -> None:
    """It shows what it typed, two dated sources that disagree, the newer first, and what to try next."""
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    command = [sys.executable, "-m", "examples.demo"]
    done = subprocess.run(
        command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 0, done.stderr
    newer, older = (done.stdout.index(text) for text in ("45 euros a day. [1]", "38 euros a day. [2]"))
    assert newer < older
    assert "ingest all" in done.stdout
    assert "Try next: " in done.stdout.splitlines()[-1]
    assert (tmp_path / ".demo" / "footnote.db").exists()
