"""Find and bind the control socket, which is in a folder of the home that only its owner can enter.

A socket's path may have only some 100 characters, and not every file system can hold a socket. Then the socket is in a
private temporary folder, whose path is written in the home.
"""

import os
import shutil
import socket
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.server.control.remote_service import RemoteService  # imports httpx

SOCKET_FOLDER = "control"
SOCKET_NAME = "socket"
ELSEWHERE = "elsewhere"
_PREFIX = "footnote-"
_RUNTIME = "XDG_RUNTIME_DIR"


@contextmanager
def open_socket(home: Path) -> Iterator[socket.socket]:
    """Listen within the block; only the home's owner can connect. Raises `OSError` if no socket can be created."""
    folder = home / SOCKET_FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    _clear(folder)  # what a killed process left
    try:
        with _bound(folder) as bound:
            yield bound
    finally:
        _clear(folder)


def find_socket(home: Path) -> Path | None:
    """Return the path of a home's socket; None if there is none that this user may trust."""
    folder = home / SOCKET_FOLDER
    named = _elsewhere(folder)
    path = named or folder / SOCKET_NAME
    return path if _is_ours(path.parent) and path.is_socket() else None


def _bound(folder: Path) -> socket.socket:
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        try:
            _bind(bound, folder / SOCKET_NAME)
        except OSError:
            path = _private_folder() / SOCKET_NAME
            (folder / ELSEWHERE).write_text(str(path), encoding="utf-8")
            _bind(bound, path)
    except BaseException:
        bound.close()
        raise
    return bound


def _bind(bound: socket.socket, path: Path) -> None:
    bound.bind(str(path))
    path.chmod(0o600)


def _private_folder() -> Path:
    for place in (os.environ.get(_RUNTIME), tempfile.gettempdir()):
        with suppress(OSError):
            if place:
                return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir="/tmp"))


def _elsewhere(folder: Path) -> Path | None:
    try:
        return Path((folder / ELSEWHERE).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


def _is_ours(folder: Path) -> bool:
    """Return whether a folder belongs to this user, and no other user can enter it and answer in our place."""
    try:
        status = folder.stat()
    except (OSError, ValueError):
        return False
    return status.st_uid == os.getuid() and not stat.S_IMODE(status.st_mode) & 0o077


def _clear(folder: Path) -> None:
    named = _elsewhere(folder)
    # Only a folder with our prefix is removed, whatever path a file in the home names.
    if named and named.name == SOCKET_NAME and named.parent.name.startswith(_PREFIX) and _is_ours(named.parent):
        shutil.rmtree(named.parent, ignore_errors=True)
    for name in (SOCKET_NAME, ELSEWHERE):
        (folder / name).unlink(missing_ok=True)


@asynccontextmanager
async def connect_service(home: Path) -> AsyncIterator["RemoteService | None"]:
    """Yield the service of the server that has the home open, or None. Raises `VersionMismatch`."""
    path = find_socket(home)
    if not path:
        yield None
        return
    from bot.server.control.remote_service import open_remote_service

    async with open_remote_service(path) as remote:
        yield remote
