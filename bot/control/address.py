"""Where the control socket stands: in the home, in a folder that is its owner's alone.

A socket's path may have only some 100 characters, and not every file system can hold one. The home then names the
place, in a private folder for what lives as long as a process.
"""

import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FOLDER = "control"
SOCKET = "socket"
ELSEWHERE = "elsewhere"
_PREFIX = "footnote-"
_RUNTIME = "XDG_RUNTIME_DIR"


@contextmanager
def listening(home: Path) -> Iterator[socket.socket]:
    """Listen for this user alone, until the end of the block. Only the home's owner may do so.

    Raises:
        OSError: There is no place for a socket.
    """
    folder = home / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    _clear(folder)  # what a killed process left
    try:
        with _bound(folder) as bound:
            yield bound
    finally:
        _clear(folder)


def socket_of(home: Path) -> Path | None:
    """Return where the socket of a home stands; None where there is none that this user may trust."""
    folder = home / FOLDER
    named = _elsewhere(folder)
    path = named or folder / SOCKET
    return path if _is_ours(path.parent) and path.is_socket() else None


def _bound(folder: Path) -> socket.socket:
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        try:
            _bind(bound, folder / SOCKET)
        except OSError:
            path = _private_folder() / SOCKET
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
    """Return whether a folder is this user's and nobody else can enter it: who can, might answer in our place."""
    try:
        found = folder.stat()
    except (OSError, ValueError):
        return False
    return found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077


def _clear(folder: Path) -> None:
    named = _elsewhere(folder)
    # Only a folder that is named as ours are is removed, whatever a file in the home may say.
    if named and named.name == SOCKET and named.parent.name.startswith(_PREFIX) and _is_ours(named.parent):
        shutil.rmtree(named.parent, ignore_errors=True)
    for name in (SOCKET, ELSEWHERE):
        (folder / name).unlink(missing_ok=True)
