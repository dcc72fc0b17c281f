"""Tests of the control socket's path and its access rights."""

import os
import socket
import stat
from pathlib import Path

import pytest

from bot.server.control.control_socket import find_socket, open_socket


def answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def long_home(tmp_path: Path) -> Path:
    """Return a home whose path is too long for a socket."""
    home = tmp_path / ("h" * 100) / ("o" * 100)
    home.mkdir(parents=True)
    return home


@pytest.mark.parametrize("long", [False, True])
def test_control_socket_is_accessible_only_to_its_user(tmp_path: Path, *, long: bool) -> None:
    home = long_home(tmp_path) if long else tmp_path
    home.chmod(0o755)
    with open_socket(home) as bound:
        bound.listen()
        path = find_socket(home)

        assert path
        assert answers(path)
        assert len(os.fsencode(path)) < 104
        assert (mode(path), mode(path.parent), mode(home / "control")) == (0o600, 0o700, 0o700)

    assert find_socket(home) is None
    assert not path.exists()
    assert [*(home / "control").iterdir()] == []
    if long:
        assert not path.parent.exists()


@pytest.mark.parametrize("long", [False, True])
def test_leftovers_of_a_killed_server_are_replaced(tmp_path: Path, *, long: bool) -> None:
    home = long_home(tmp_path) if long else tmp_path
    child = os.fork()
    if not child:
        with open_socket(home):
            os._exit(0)
    os.waitpid(child, 0)
    left = find_socket(home)

    assert left
    assert not answers(left)
    with open_socket(home) as bound:
        bound.listen()
        path = find_socket(home)
        assert path
        assert answers(path)
    assert not left.exists()


def test_socket_in_a_folder_open_to_others_is_not_trusted(tmp_path: Path) -> None:
    with open_socket(tmp_path) as bound:
        bound.listen()
        (tmp_path / "control").chmod(0o755)

        assert find_socket(tmp_path) is None


def test_socket_folder_that_the_server_did_not_create_is_not_removed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir(mode=0o700)
    (tmp_path / "control").mkdir(mode=0o700)
    (tmp_path / "control" / "elsewhere").write_text(str(precious / "socket"))
    with open_socket(tmp_path):
        pass

    assert precious.exists()


def test_no_socket_is_found_without_a_server(tmp_path: Path) -> None:
    assert find_socket(tmp_path) is None
    (tmp_path / "control").mkdir(mode=0o700)
    (tmp_path / "control" / "socket").touch()
    assert find_socket(tmp_path) is None
