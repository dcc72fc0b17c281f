"""What the `git` program says of a repository -> values: branches, files, and when each was last changed. Pure."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

_ENTRY = re.compile(rb"(\d+) (\w+) ([0-9a-f]{40,64}) +(\d+|-)\t(.+)", re.DOTALL)
_COMMIT = re.compile(rb"\x01([0-9a-f]{40,64}) (\d+)")

LINK = b"120000"


class Head(NamedTuple):
    """Where a branch of the remote repository stands."""

    branch: str
    """Empty where its HEAD is on no branch."""
    commit: str


class Entry(NamedTuple):
    """A file, a link or a submodule of a commit."""

    path: bytes
    """Below the folder that is read."""
    kind: str
    """`file`, `link` or `submodule`."""
    blob: str
    """What identifies the content."""
    size: int
    """Bytes."""


class Change(NamedTuple):
    """The commit that last changed a file on the way to the one that is read."""

    commit: str
    date: datetime
    exact: bool = True
    """False where the history that is here begins with it, so that the file may be older."""


def head(said: bytes, branch: str) -> Head | None:
    """Read `git ls-remote --symref`: of the branch, else of HEAD; None if it is not there."""
    symbolic, commits = "", {}
    for line in said.decode("utf-8", "replace").splitlines():
        value, _, name = line.partition("\t")
        if value.startswith("ref: ") and name == "HEAD":
            symbolic = value.removeprefix("ref: refs/heads/")
        elif value:
            commits[name] = value
    commit = commits.get(f"refs/heads/{branch}" if branch else "HEAD")
    return Head(branch or symbolic, commit) if commit else None


def entries(said: bytes) -> Iterator[Entry]:
    """Read `git ls-tree -r -z -l`."""
    for line in said.split(b"\0"):
        if found := _ENTRY.fullmatch(line):
            mode, kind, blob, size, path = found.groups()
            sort = "submodule" if kind == b"commit" else "link" if mode == LINK else "file"
            yield Entry(path, sort, blob.decode(), 0 if size == b"-" else int(size))


def changes(said: Iterable[bytes], wanted: set[bytes], first: frozenset[str]) -> Iterator[tuple[bytes, Change]]:
    """Read `git log -z --name-only --format=%x01%H %ct`, newest first, until the last change of all wanted is found.

    Args:
        said: The parts between NUL bytes.
        wanted: Paths; those that were found are taken out.
        first: The commits before which the history is not here.
    """
    commit = Change("", datetime.min.replace(tzinfo=UTC))
    for part in said:
        if header := _COMMIT.fullmatch(part):
            name = header[1].decode()
            commit = Change(name, _moment(int(header[2])), name not in first)
            continue
        path = part.removeprefix(b"\n")
        if path in wanted:
            wanted.discard(path)
            yield path, commit
        if not wanted:
            return


def _moment(seconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.max.replace(tzinfo=UTC)  # a commit may claim any date; cleaning takes it out
