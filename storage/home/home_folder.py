"""The home folder: which process owns its indexes, who may read it, and whether its database file is sound.

One process at a time owns the home: Chroma and tantivy need that, the database does not. The inspection, which the
doctor uses, changes nothing and works even if nothing else does.
"""

import json
import os
import re
import shutil
import sqlite3
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from storage.errors import (
    OTHER_HOME,
    DatabaseUnusable,
    HomeLocked,
    StorageError,
    explain_folder_error,
    explain_sqlite_error,
)


@contextmanager
def lock_home(home: Path) -> Iterator[None]:
    """Own `home`, creating it if missing, until the block or process ends. Raises `HomeLocked`, `HomeUnusable`."""
    make_home(home)
    lock = FileLock(home / "lock", timeout=0)
    owner = home / "lock.owner"
    try:
        lock.acquire()
    except Timeout as error:
        hint = "Wait until it is done, or stop it, and run the command again."
        raise HomeLocked(f"{home} is in use by another Footnote{_describe_owner(owner)}.", hint=hint) from error
    except OSError as error:
        raise explain_folder_error(error, home) from error
    try:
        _write_owner(owner)
        yield
    finally:
        owner.unlink(missing_ok=True)
        lock.release()


def find_lock_owner(home: Path) -> str | None:
    """Describe the process that owns `home`; None if none does. Changes nothing. Raises `HomeUnusable`."""
    lock = FileLock(home / "lock", timeout=0)
    if not (home / "lock").exists():
        return None
    try:
        with lock:
            return None
    except Timeout:
        return _describe_owner(home / "lock.owner").strip(" ()") or "another process"
    except OSError as error:
        raise explain_folder_error(error, home) from error


def read_lock_command(home: Path) -> str:
    """Return the command that owns `home`, such as "footnote serve"; empty if unknown or unowned."""
    owner = _read_owner(home / "lock.owner")
    return owner[1] if owner else ""


def make_home(home: Path, *, instead: str = OTHER_HOME) -> None:
    """Create the folder if it is missing, readable only by its owner. Raises `HomeUnusable` with the hint `instead`."""
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        home.mkdir(mode=0o700, exist_ok=True)
        close_to_others(home)
    except OSError as error:
        raise explain_folder_error(error, home, instead=instead) from error


def close_to_others(path: Path) -> None:
    """Remove other users' permissions on a file or folder that only this user owns and uses. Raises `OSError`."""
    status = path.stat()
    if status.st_mode & 0o077 and status.st_uid == os.geteuid() and not status.st_mode & stat.S_ISVTX:
        path.chmod(stat.S_IMODE(status.st_mode) & 0o700)


def make_private_file(path: Path) -> None:
    """Create a file that only its owner can read. If it exists, only its permissions are corrected.

    An existing file is not opened, because closing it would end SQLite's locks.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    close_to_others(path)


def name_command(arguments: Sequence[str]) -> str:
    """Return program and command of a command line, without arguments that may contain a question or a secret."""
    program, *rest = arguments or [""]
    path = Path(program)
    name = path.parent.name if path.stem == "__main__" else path.stem
    words = (word for before, word in pairwise(["", *rest]) if before != "--config" and not word.startswith("-"))
    command = found if re.fullmatch(r"[a-z]+", found := next(words, "")) else ""
    return f"{name} {command}".strip()


def _write_owner(owner: Path) -> None:
    """Write which process holds the lock. The file is replaced atomically: another process may be reading it."""
    about = {"pid": os.getpid(), "command": name_command(sys.argv), "since": datetime.now(UTC).isoformat()}
    part = owner.with_suffix(".part")
    try:
        part.write_text(json.dumps(about), encoding="utf-8")
        part.replace(owner)
    except OSError as error:
        raise explain_folder_error(error, owner.parent) from error


def _read_owner(file: Path) -> tuple[int, str, datetime] | None:
    """Return process id, command and start of the lock's owner; None just after the lock was taken."""
    try:
        about: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return int(about["pid"]), str(about["command"]), datetime.fromisoformat(about["since"]).astimezone()
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _describe_owner(file: Path) -> str:
    owner = _read_owner(file)
    if owner is None:
        return ""
    pid, command, since = owner
    today = since.date() == datetime.now(UTC).astimezone().date()
    return f" (process {pid}, `{command}`, since {since:{'%H:%M' if today else '%Y-%m-%d %H:%M'}})"


_PROBE_BYTES = 65_536
_LOCK_SECONDS = 2.0
_STEPS_PER_LOOK = 100_000  # SQLite checks the clock after so many steps of its virtual machine


@dataclass(frozen=True, slots=True)
class DatabaseFileState:
    """The result of inspecting a database file."""

    bytes: int
    revision: Literal["fits", "older", "newer", "empty"]
    faults: tuple[str, ...]  # the first faults that SQLite's check found
    whole: bool  # whether the check was completed
    unwritable: StorageError | None  # why it cannot be written; None if it can


def inspect_database_file(file: Path, *, seconds: float, patience: float = _LOCK_SECONDS) -> DatabaseFileState:
    """Inspect SQLite's file; the check of its content stops after this many seconds. Blocks.

    `patience` is how many seconds to wait for a process that locks the file. Raises `StorageError` if it cannot be read
    at all, or is not a Footnote database.
    """
    try:
        with closing(_connect_file(file, "ro", patience)) as connection:
            revision = _revision(connection)
            faults, whole = _run_quick_check(connection, seconds)
    except sqlite3.Error as error:
        raise explain_sqlite_error(error, file) or DatabaseUnusable(f"{file} cannot be read: {error}.") from error
    return DatabaseFileState(file.stat().st_size, revision, faults, whole, _explain_unwritable(file, patience))


def holds_passages(file: Path) -> bool:
    """Return whether SQLite's file has any passage. Blocks.

    If that is unknown, return True: opening the file will then report the reason.
    """
    if not file.exists():
        return False
    try:
        with closing(_connect_file(file, "ro", _LOCK_SECONDS)) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            text_table = next((name for name in ("bodies", "passages") if name in tables), "")
            if not text_table:
                return bool(tables)
            return connection.execute(f"SELECT 1 FROM {text_table} LIMIT 1").fetchone() is not None  # noqa: S608 - as named
    except sqlite3.Error:
        return True


def probe_folder(folder: Path) -> float:
    """Write a file, and return by how many seconds its time is ahead of ours. Blocks; raises `HomeUnusable`."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-") as probe:
            before = time.time()
            probe.write(b"\0" * _PROBE_BYTES)
            probe.flush()
            written = Path(probe.name).stat().st_mtime
            # A file system's clock advances in steps of some milliseconds.
            return min((written - before, written - time.time()), key=abs)
    except OSError as error:
        named = OSError(error.errno, error.strerror, str(folder))  # without the probe's own name
        raise explain_folder_error(named, folder) from error


def free_bytes(folder: Path) -> int:
    """Return the free bytes on the disk of a folder, which need not exist yet."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(existing).free


def used_bytes(folder: Path) -> int:
    return sum(_file_bytes(path) for path in folder.rglob("*"))


def _file_bytes(path: Path) -> int:
    try:
        status = path.lstat()
    except OSError:  # it was deleted meanwhile
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _connect_file(file: Path, mode: str, patience: float) -> sqlite3.Connection:
    address = f"{file.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(address, uri=True, timeout=patience, isolation_level=None)


def _revision(connection: sqlite3.Connection) -> Literal["fits", "older", "newer", "empty"]:
    from storage.database.schema import REVISION  # imports sqlalchemy

    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "alembic_version" in tables and (
        row := connection.execute("SELECT version_num FROM alembic_version").fetchone()
    ):
        return "fits" if row[0] == REVISION else "older" if row[0] < REVISION else "newer"
    if tables:
        hint = "Choose another folder with FOOTNOTE_HOME. Nothing was changed."
        raise DatabaseUnusable("The database belongs to another program.", hint=hint)
    return "empty"


def _run_quick_check(connection: sqlite3.Connection, seconds: float) -> tuple[tuple[str, ...], bool]:
    end = time.monotonic() + seconds
    connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS_PER_LOOK)
    try:
        rows = connection.execute("PRAGMA quick_check(3)").fetchall()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            return (), False
        raise
    # SQLite puts a heading on its own lines before the faults.
    lines = [" ".join(str(row[0]).split()) for row in rows]
    return tuple(line for line in lines if line != "ok"), True


def _explain_unwritable(file: Path, patience: float) -> StorageError | None:
    try:
        with closing(_connect_file(file, "rw", patience)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        return explain_sqlite_error(error, file) or DatabaseUnusable(f"{file} cannot be written: {error}.")
    return None
