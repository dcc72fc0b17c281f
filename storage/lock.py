"""One owner of the home's indexes at a time. The database needs no such lock; Chroma and tantivy do."""

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from storage.errors import HomeLocked
from storage.faults import folder_fault


@contextmanager
def hold(home: Path) -> Iterator[None]:
    """Own `home` until the end of the block; it is made if it is missing. The lock ends with the process, however.

    Raises:
        HomeLocked: Another process owns it, or this one already.
        HomeUnusable: It cannot be made or written.
    """
    make_home(home)
    lock = FileLock(home / "lock", timeout=0)
    owner = home / "lock.owner"
    try:
        lock.acquire()
    except Timeout as error:
        hint = "Wait until it is done, or stop it, and run the command again."
        raise HomeLocked(f"{home} is in use by another Footnote{_described(owner)}.", hint=hint) from error
    except OSError as error:
        raise folder_fault(error, home) from error
    try:
        _introduce(owner)
        yield
    finally:
        owner.unlink(missing_ok=True)
        lock.release()


def holder(home: Path) -> str | None:
    """Say who owns `home`, as far as is known; None where nobody does. It is not made, and not owned afterwards.

    Raises:
        HomeUnusable: Its lock cannot be tried.
    """
    lock = FileLock(home / "lock", timeout=0)
    if not (home / "lock").exists():
        return None
    try:
        with lock:
            return None
    except Timeout:
        return _described(home / "lock.owner").strip(" ()") or "another process"
    except OSError as error:
        raise folder_fault(error, home) from error


def held_by(home: Path) -> str:
    """Return the command that owns `home`, such as "footnote serve"; empty where it has not said so, or nobody does."""
    try:
        about: dict[str, Any] = json.loads((home / "lock.owner").read_text(encoding="utf-8"))
        return str(about["command"])
    except (OSError, ValueError, LookupError, TypeError):
        return ""


def make_home(home: Path) -> None:
    """Make the folder if it is missing, readable for its owner alone.

    Raises:
        HomeUnusable: It cannot be made, or there is a file of its name.
    """
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        home.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise folder_fault(error, home) from error


def command_name(arguments: Sequence[str]) -> str:
    """Name a command line by its program and command; what follows may hold a question or a secret."""
    program, *rest = arguments or [""]
    path = Path(program)
    name = path.parent.name if path.stem == "__main__" else path.stem
    command = rest[0] if rest and re.fullmatch(r"[a-z]+", rest[0]) else ""
    return f"{name} {command}".strip()


def _introduce(owner: Path) -> None:
    """Write who holds the lock, whole or not at all: another process may be reading."""
    about = {"pid": os.getpid(), "command": command_name(sys.argv), "since": datetime.now(UTC).isoformat()}
    part = owner.with_suffix(".part")
    try:
        part.write_text(json.dumps(about), encoding="utf-8")
        part.replace(owner)
    except OSError as error:
        raise folder_fault(error, owner.parent) from error


def _described(owner: Path) -> str:
    """Tell who holds the lock in parentheses; nothing when it has only just taken it and has not yet said so."""
    try:
        about: dict[str, Any] = json.loads(owner.read_text(encoding="utf-8"))
        pid, command, since = about["pid"], about["command"], datetime.fromisoformat(about["since"]).astimezone()
    except (OSError, ValueError, LookupError, TypeError):
        return ""
    today = since.date() == datetime.now(UTC).astimezone().date()
    return f" (process {pid}, `{command}`, since {since:{'%H:%M' if today else '%Y-%m-%d %H:%M'}})"
