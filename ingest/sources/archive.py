"""A zip archive that somebody gave us, read in place: nothing in it is written anywhere, and it cannot grow at will.

What stands in it under a name that leads out of it, is a link, or unpacks to absurd amounts is told and left alone.
"""

import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from ingest.types import SourceUnavailable, Unreadable

MOST_ENTRIES = 500_000
LARGEST = 64 << 30
"""Bytes that all entries may unpack to together."""
_RATIO = 400
"""Of unpacked to packed bytes. Markup comes to a tenth or a thirtieth; a bomb of one layer to a thousandth."""
_SMALL = 1 << 20
_ENCRYPTED = 0x1


class Archive:
    """An open archive. `refused` is what in it is left alone, and why."""

    def __init__(self, path: Path, opened: zipfile.ZipFile) -> None:
        self._path = path
        self._zip = opened
        self._entries: dict[str, zipfile.ZipInfo] = {}
        self.refused: list[Unreadable] = []
        for entry in opened.infolist():
            if entry.is_dir():
                continue
            if reason := _fault(entry):
                self.refused.append(Unreadable(_shown(entry.filename), reason))
            else:
                self._entries.setdefault(entry.filename, entry)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of what can be read, in the archive's order."""
        return tuple(self._entries)

    def holds(self, name: str) -> bool:
        """Whether there is something of this name that can be read."""
        return name in self._entries

    def size(self, name: str) -> int:
        """How many bytes it unpacks to, as the archive says."""
        return self._entries[name].file_size

    def read(self, name: str) -> bytes:
        """Unpack one entry. Raises `SourceUnavailable` if it is damaged."""
        with self.open(name) as file:
            return file.read()

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Unpack one entry bit by bit; no more comes than the archive says. Raises `SourceUnavailable` also within."""
        try:
            with self._zip.open(self._entries[name]) as file:
                yield file
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise _damaged(self._path, f"{name} cannot be unpacked") from error


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Open an archive. Raises `SourceUnavailable` in one line if it is none, or none that is to be read."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as there:
            _check(path, there)
            yield Archive(path, there)
    except FileNotFoundError as error:
        raise SourceUnavailable(f"There is no file {path}.", hint="Check the path.") from error
    except zipfile.BadZipFile as error:
        raise _damaged(path, "it is damaged, cut short, or no zip archive") from error
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise SourceUnavailable(f"{path} cannot be read: {reason}.", hint="Check its permissions.") from error


def stamp(path: Path) -> str:
    """Return what tells one version of a file from another without reading it; empty if there is none."""
    try:
        there = path.stat()
    except OSError:
        return ""
    return f"{there.st_size}-{there.st_mtime_ns}"


def _check(path: Path, there: zipfile.ZipFile) -> None:
    entries = there.infolist()
    if any(entry.flag_bits & _ENCRYPTED for entry in entries):
        raise SourceUnavailable(f"{path} is protected by a password.", hint="Export it again without one.")
    total = sum(entry.file_size for entry in entries)
    if len(entries) > MOST_ENTRIES or total > LARGEST:
        what = f"{len(entries):,} files of {total / 2**30:,.0f} GB together"
        raise SourceUnavailable(f"{path} holds {what}, which is too much.", hint="Export a space at a time.")


def _fault(entry: zipfile.ZipInfo) -> str:
    """Why an entry is left alone; empty if it is not."""
    name = entry.filename
    if name.startswith("/") or "\\" in name or name[1:2] == ":" or ".." in PurePosixPath(name).parts or "\0" in name:
        return "its name leads out of the archive"
    if stat.S_ISLNK(entry.external_attr >> 16):
        return "it is a link"
    if entry.file_size > _SMALL and entry.file_size > _RATIO * max(entry.compress_size, 1):
        return f"it would unpack to {entry.file_size / max(entry.compress_size, 1):,.0f} times its size"
    return ""


def _shown(name: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in name)[:200]


def _damaged(path: Path, what: str) -> SourceUnavailable:
    return SourceUnavailable(f"{path}: {what}.", hint="Export or copy it again; what was read before still answers.")
