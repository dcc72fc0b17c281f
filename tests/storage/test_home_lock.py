"""Tests that a home has one owner at a time, and that a second one gets an error with the owner's name."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from storage.database.engine import open_database
from storage.errors import HomeLocked, HomeUnusable
from storage.home.home_folder import lock_home, name_command

OWNER = """
import sys
from pathlib import Path
sys.argv = ["/somewhere/bin/footnote", "ingest", "folder", "secret"]
from storage.home.home_folder import lock_home
with lock_home(Path({home!r})):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_owner(home: Path) -> Iterator["subprocess.Popen[str]"]:
    """Run a process that locks `home` until its standard input is closed."""
    code = OWNER.format(home=str(home))
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as it:
        assert it.stdout is not None
        assert it.stdout.readline() == "held\n"
        yield it


@pytest.mark.parametrize("there", [False, True])
def test_home_and_database_are_private(tmp_path: Path, *, there: bool) -> None:
    home = tmp_path / "a" / "b"
    database = home / "footnote.db"
    if there:
        home.mkdir(parents=True, mode=0o755)
        database.touch(mode=0o644)

    with lock_home(home), open_database("", home=home):
        assert {stat.S_IMODE(file.stat().st_mode) for file in home.glob("footnote.db*")} == {0o600}
        assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_shared_folder_keeps_its_permissions(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)

    with lock_home(tmp_path):
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777


def test_second_owner_learns_the_holder_without_secrets(tmp_path: Path) -> None:
    with another_owner(tmp_path) as owner, pytest.raises(HomeLocked) as caught, lock_home(tmp_path):
        pass

    message = str(caught.value)
    assert f"(process {owner.pid}, `footnote ingest`, since " in message
    assert "secret" not in message
    assert caught.value.hint


def test_same_process_cannot_lock_the_home_twice(tmp_path: Path) -> None:
    """Two owners in one process would damage the indexes as two processes would."""
    with lock_home(tmp_path), pytest.raises(HomeLocked), lock_home(tmp_path):
        pass


def test_released_home_can_be_locked_again(tmp_path: Path) -> None:
    with lock_home(tmp_path):
        pass
    with lock_home(tmp_path):
        pass

    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_killed_owner_does_not_block_others(tmp_path: Path) -> None:
    with another_owner(tmp_path) as owner:
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()

    with lock_home(tmp_path):
        assert str(os.getpid()) in (tmp_path / "lock.owner").read_text()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}', '{"pid": 1, "command": "x", "since": "soon"}'])
def test_unreadable_owner_file_keeps_the_lock(tmp_path: Path, content: str) -> None:
    with another_owner(tmp_path):
        (tmp_path / "lock.owner").write_text(content)

        with pytest.raises(HomeLocked, match=r"another Footnote\."), lock_home(tmp_path):
            pass


def test_file_in_place_of_the_home_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    for home in (file, file / "home"):
        with pytest.raises(HomeUnusable, match="file is a file, not a folder") as caught, lock_home(home):
            pass
        assert caught.value.hint


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["/venv/bin/footnote", "ask", "What is our password?"], "footnote ask"),
        (["/checkout/bot/__main__.py", "serve"], "bot serve"),
        (["footnote"], "footnote"),
        (["footnote", "--config", "secret.toml", "ask", "this"], "footnote ask"),
        (["footnote", "--config=secret.toml", "--debug", "serve"], "footnote serve"),
        ([""], ""),
        ([], ""),
    ],
)
def test_command_name_omits_its_arguments(arguments: list[str], name: str) -> None:
    assert name_command(arguments) == name
