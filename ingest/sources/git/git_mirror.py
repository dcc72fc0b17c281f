"""Keep a bare copy of one branch of a git repository: bring it up to date, mend it, read it without a checkout.

Only what changed is fetched, and nothing at all where the branch stands where it stood.
"""

import hashlib
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import IO, NamedTuple

from filelock import FileLock, Timeout

from ingest.sources.git import git_program
from ingest.sources.git.git_program import GitFailed, GitProgram, GitRemote
from ingest.types import SourceUnavailable, UnreadableDocument
from storage.language.lazy_pattern import lazy_compile

_ENTRY_LINE = lazy_compile(rb"(\d+) (\w+) ([0-9a-f]{40,64}) +(\d+|-)\t(.+)", re.DOTALL)
_COMMIT_LINE = lazy_compile(rb"\x01([0-9a-f]{40,64}) (\d+)")

LINK_MODE = b"120000"


class BranchHead(NamedTuple):
    branch: str  # empty where its HEAD is on no branch
    commit: str


class TreeEntry(NamedTuple):
    """Describe a file, a link or a submodule of a commit."""

    path: bytes  # below the folder that is read
    kind: str  # `file`, `link` or `submodule`
    blob: str  # what identifies the content
    size: int  # bytes


class LastChange(NamedTuple):
    """Name the commit that last changed a file on the way to the one that is read."""

    commit: str
    date: datetime
    exact: bool = True
    """False where the history that is here begins with it, so that the file may be older."""


def parse_branch_head(output: bytes, branch: str) -> BranchHead | None:
    symbolic, commits = "", {}
    for line in output.decode("utf-8", "replace").splitlines():
        value, _, name = line.partition("\t")
        if value.startswith("ref: ") and name == "HEAD":
            symbolic = value.removeprefix("ref: refs/heads/")
        elif value:
            commits[name] = value
    commit = commits.get(f"refs/heads/{branch}" if branch else "HEAD")
    return BranchHead(branch or symbolic, commit) if commit else None


def parse_tree_entries(output: bytes) -> Iterator[TreeEntry]:
    for line in output.split(b"\0"):
        if found := _ENTRY_LINE.fullmatch(line):
            mode, kind, blob, size, path = found.groups()
            sort = "submodule" if kind == b"commit" else "link" if mode == LINK_MODE else "file"
            yield TreeEntry(path, sort, blob.decode(), 0 if size == b"-" else int(size))


def parse_changes(
    output: Iterable[bytes], wanted: set[bytes], first: frozenset[str]
) -> Iterator[tuple[bytes, LastChange]]:
    """Parse `git log -z --name-only --format=%x01%H %ct`, newest first, until the last change of all wanted is found.

    Of `wanted`, those that were found are taken out; `first` are the commits before which the history is not here.
    """
    commit = LastChange("", datetime.min.replace(tzinfo=UTC))
    for part in output:
        if header := _COMMIT_LINE.fullmatch(part):
            name = header[1].decode()
            commit = LastChange(name, _commit_date(int(header[2])), name not in first)
            continue
        path = part.removeprefix(b"\n")
        if path in wanted:
            wanted.discard(path)
            yield path, commit
        if not wanted:
            return


def _commit_date(seconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.max.replace(tzinfo=UTC)  # a commit may claim any date; cleaning takes it out


_REF = "refs/footnote/head"
_FETCH_SECONDS = 3600.0
_ASK_SECONDS = 90.0
_LOCK_SECONDS = 600.0
_WALK_SECONDS = 120.0
"""How long the history is walked through for dates; files that changed before have none then."""

_REFUSED = lazy_compile(
    r"authentication failed|could not read (?:username|password)|permission denied|error: 40[13]|host key|"
    r"terminal prompts disabled|access denied|not authorized",
    re.IGNORECASE,
)
_ABSENT = lazy_compile(r"not found|does not exist|does not appear to be|error: 404|no such", re.IGNORECASE)
_BROKEN = lazy_compile(
    r"corrupt|bad object|not a git repository|unable to read|inflate|missing (?:blob|tree|commit)|index-pack|"
    r"did not send all necessary|invalid sha1|loose object|bad tree|packfile|non-empty",
    re.IGNORECASE,
)


class GitMirror:
    """Mirror one branch of one repository, as of the last `update`. For one thread; `stop` may come from another."""

    def __init__(
        self, remote: GitRemote, home: Path, environment: Mapping[str, str], *, branch: str, depth: int
    ) -> None:
        """Keep mirrors in `home`; `depth` is how many commits of history are fetched, 0 for all."""
        self._remote, self._branch, self._depth = remote, branch, depth
        name = hashlib.sha256(f"{remote.address}\n{branch}\n{depth}".encode()).hexdigest()[:16]
        self.path = home / f"{_readable_name(remote.address)}-{name}"
        self.git = GitProgram(self.path, remote, environment)

    def update(self) -> BranchHead:
        """Bring it up to date, and return where the branch stands. Raises `SourceUnavailable`."""
        git_program.refuse_old_git(self.git.run("--version", at=False, seconds=_ASK_SECONDS).decode("utf-8", "replace"))
        with self._lock():
            self._prepare()
            head = self._ask_head()
            if self._current_commit() != head.commit:
                self._fetch(head)
            return head

    def entries(self, commit: str, folder: str) -> tuple[TreeEntry, ...]:
        """Return all that a folder of a commit holds, at any depth. Raises `SourceUnavailable` if there is none."""
        try:
            output = self.git.run("ls-tree", "-r", "-z", "-l", "--full-tree", f"{commit}:{folder}", "--")
        except GitFailed as error:
            if not folder or not self._has_object(f"{commit}^{{tree}}"):
                raise self._explain_failure(error) from error
            raise SourceUnavailable(
                f"{self._remote.shown} has no folder {folder}.", hint="Check folder under its [[corpus]]."
            ) from error
        return tuple(parse_tree_entries(output))

    def changes(
        self, commit: str, paths: set[bytes], *, clock: Callable[[], float] = time.monotonic
    ) -> dict[bytes, LastChange]:
        """Return when each of these files, by its path in the repository, was last changed, as far as history tells."""
        if not paths:
            return {}
        walk = ("--first-parent", "-m", "--no-renames", "--name-only", "-z", "--format=%x01%H %ct")
        until = clock() + _WALK_SECONDS
        with closing(self.git.stream("log", *walk, commit, "--")) as output:
            in_time = takewhile(lambda _: clock() < until, output)
            with self._explained():
                return dict(parse_changes(in_time, set(paths), self._shallow_commits()))

    @contextmanager
    def blobs(self) -> Iterator[Callable[[str], bytes]]:
        """Yield what returns a blob's bytes; it raises `UnreadableDocument` or `SourceUnavailable`."""
        with self.git.start("cat-file", "--batch", stdin=subprocess.PIPE) as process:
            assert process.stdin is not None  # noqa: S101 - it was started with pipes
            assert process.stdout is not None  # noqa: S101
            asked, output = process.stdin, process.stdout

            def read(blob: str) -> bytes:
                content = _read_blob(asked, output, blob)
                self.git.refuse_stopped()
                return self.blob(blob) if content is None else content

            yield read

    def blob(self, blob: str) -> bytes:
        try:
            return self.git.run("cat-file", "blob", blob)
        except GitFailed as error:
            raise UnreadableDocument("cannot be read from the mirror of its repository") from error

    @contextmanager
    def _lock(self) -> Iterator[None]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self.path}.lock", timeout=_LOCK_SECONDS):
                yield
        except Timeout as error:
            raise SourceUnavailable(
                f"Another process has been fetching {self._remote.shown} for a while.",
                hint="Try again when it is done.",
            ) from error

    def _prepare(self) -> None:
        if not self._is_repository():
            shutil.rmtree(self.path, ignore_errors=True)
            with self._explained():
                self.git.run("init", "--quiet", "--bare", "--template=", "--", str(self.path), at=False)
        # We are alone, so whoever made these is dead.
        for lock in (*self.path.glob("*.lock"), *(self.path / "refs").rglob("*.lock")):
            lock.unlink(missing_ok=True)
        # A folder that the settings name is trusted, whoever owns it: git reads it without running what it holds.
        if self._remote.protocol == "file":
            quoted = self._remote.address.replace("\\", "\\\\").replace('"', '\\"')
            lines = "".join(f'\tdirectory = "{quoted}{end}"\n' for end in ("", "/.git"))
            (self.path / "trusted.config").write_text(f"[safe]\n{lines}", encoding="utf-8")

    def _is_repository(self) -> bool:
        try:
            return self.git.run("rev-parse", "--is-bare-repository").strip() == b"true"
        except GitFailed:
            return False

    def _ask_head(self) -> BranchHead:
        wanted = f"refs/heads/{self._branch}" if self._branch else "HEAD"
        with self._explained():
            output = self.git.run("ls-remote", "--symref", "--", self._remote.address, wanted, seconds=_ASK_SECONDS)
        if found := parse_branch_head(output, self._branch):
            return found
        what = f"no branch {self._branch}" if self._branch else "no commits"
        raise SourceUnavailable(f"{self._remote.shown} has {what}.", hint="Check branch under its [[corpus]].")

    def _fetch(self, head: BranchHead) -> None:
        try:
            self._run_fetch(head)
        except GitFailed as error:
            if not _BROKEN.search(str(error)):
                raise self._explain_failure(error) from error
        if self._has_object(f"{_REF}^{{tree}}"):
            return
        shutil.rmtree(self.path, ignore_errors=True)
        self._prepare()
        with self._explained():
            self._run_fetch(head)

    def _run_fetch(self, head: BranchHead) -> None:
        named = f"refs/heads/{self._branch or head.branch}" if self._branch or head.branch else "HEAD"
        shallow = (f"--depth={self._depth}",) if self._depth else ()
        options = ("--quiet", "--no-tags", "--prune", "--no-recurse-submodules", "--no-write-fetch-head", *shallow)
        self.git.run("fetch", *options, "--", self._remote.address, f"+{named}:{_REF}", seconds=_FETCH_SECONDS)

    def _current_commit(self) -> str:
        try:
            commit = self.git.run("rev-parse", "--verify", "--quiet", f"{_REF}^{{commit}}").decode().strip()
        except GitFailed:
            return ""
        return commit if self._has_object(f"{commit}^{{tree}}") else ""

    def _has_object(self, name: str) -> bool:
        try:
            self.git.run("cat-file", "-e", name)
        except GitFailed:
            return False
        return True

    def _shallow_commits(self) -> frozenset[str]:
        with suppress(OSError):
            return frozenset((self.path / "shallow").read_text(encoding="ascii").split())
        return frozenset()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except GitFailed as error:
            raise self._explain_failure(error) from error

    def _explain_failure(self, error: GitFailed) -> SourceUnavailable:
        message = str(error)
        shown = self._remote.shown
        if _REFUSED.search(message):
            hint = "Look at token_env (https), or at the key and known hosts (ssh) of the user that Footnote runs as."
            return SourceUnavailable(f"The server of {shown} denies us access: {_one_line(message)}.", hint=hint)
        if _ABSENT.search(message):
            hint = "Check its address; a server may also say so of what we may not see."
            return SourceUnavailable(f"There is no repository {shown} for us: {_one_line(message)}.", hint=hint)
        hint = "Try git by hand on this machine, as the user that Footnote runs as."
        return SourceUnavailable(f"{shown} cannot be fetched: {_one_line(message)}.", hint=hint)


def _read_blob(asked: IO[bytes], output: IO[bytes], blob: str) -> bytes | None:
    """Ask for a blob and return it; None where the process is gone or has no such blob."""
    try:
        asked.write(f"{blob}\n".encode())
        asked.flush()
        header = output.readline().split()
        if len(header) != 3 or header[1] != b"blob":  # noqa: PLR2004 - id, kind and size
            return None
        content = output.read(int(header[2]))
        output.read(1)
    except (OSError, ValueError):  # it ended, or is read from after the listing has
        return None
    return content if len(content) == int(header[2]) else None


def _one_line(message: str) -> str:
    """Return the line of a complaint that says why, without git's own mark before it."""
    lines = [line.strip() for line in message.splitlines() if line.strip()] or ["git ended without a word"]
    why: Iterable[str] = (line for line in lines if line.startswith(("fatal:", "error:", "ERROR", "remote:")))
    line = re.sub(r"^(?:(?:fatal|error|remote): ?)+", "", next(iter(why), lines[0]))
    return line.rstrip(".")[:200]


def _readable_name(address: str) -> str:
    stem = address.rstrip("/").removesuffix(".git").rpartition("/")[2].rpartition(":")[2]
    return re.sub(r"[^A-Za-z0-9_-]+", "-", stem)[:40].strip("-") or "repository"
