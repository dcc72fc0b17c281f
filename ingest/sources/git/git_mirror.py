"""Keep a bare mirror of one branch of a git repository: update it, repair it, and read it without a checkout.

Only changes are fetched, and nothing at all if the branch has not moved.
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
    branch: str  # empty if HEAD is detached
    commit: str


class TreeEntry(NamedTuple):
    """A file, link or submodule in a commit."""

    path: bytes  # relative to the folder that is read
    kind: str  # `file`, `link` or `submodule`
    blob: str  # id of the content
    size: int  # bytes


class LastChange(NamedTuple):
    """The last commit in the history that changed a file."""

    commit: str
    date: datetime
    exact: bool = True  # False for the first commit of a shallow history: the file may be older


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
        if match := _ENTRY_LINE.fullmatch(line):
            mode, object_type, blob, size, path = match.groups()
            kind = "submodule" if object_type == b"commit" else "link" if mode == LINK_MODE else "file"
            yield TreeEntry(path, kind, blob.decode(), 0 if size == b"-" else int(size))


def parse_changes(
    output: Iterable[bytes], paths: set[bytes], first: frozenset[str]
) -> Iterator[tuple[bytes, LastChange]]:
    """Parse `git log -z --name-only --format=%x01%H %ct`, newest first, until each of `paths` has its last change.

    Paths are removed from `paths` once they are found. `first` are the oldest commits of a shallow history.
    """
    commit = LastChange("", datetime.min.replace(tzinfo=UTC))
    for part in output:
        if header := _COMMIT_LINE.fullmatch(part):
            name = header[1].decode()
            commit = LastChange(name, _commit_date(int(header[2])), name not in first)
            continue
        path = part.removeprefix(b"\n")
        if path in paths:
            paths.discard(path)
            yield path, commit
        if not paths:
            return


def _commit_date(seconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.max.replace(tzinfo=UTC)  # a commit may claim any date; cleanup removes this one


_REF = "refs/footnote/head"
_FETCH_SECONDS = 3600.0
_ASK_SECONDS = 90.0
_LOCK_SECONDS = 600.0
_WALK_SECONDS = 120.0  # for finding dates in the history; files not reached have no date

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
    """A mirror of one branch, as of the last `update`. One thread uses it; others may call `stop`."""

    def __init__(
        self, remote: GitRemote, home: Path, environment: Mapping[str, str], *, branch: str, depth: int
    ) -> None:
        """Set up a mirror below `home`. `depth` is the number of commits to fetch; 0 means all."""
        self._remote = remote
        self._branch = branch
        self._depth = depth
        name = hashlib.sha256(f"{remote.address}\n{branch}\n{depth}".encode()).hexdigest()[:16]
        self.path = home / f"{_readable_name(remote.address)}-{name}"
        self.git = GitProgram(self.path, remote, environment)

    def update(self) -> BranchHead:
        """Fetch the branch, and return its head. Raises `SourceUnavailable`."""
        git_program.refuse_old_git(
            self.git.run("--version", in_mirror=False, seconds=_ASK_SECONDS).decode("utf-8", "replace")
        )
        with self._lock():
            self._prepare()
            head = self._ask_head()
            if self._current_commit() != head.commit:
                self._fetch(head)
            return head

    def entries(self, commit: str, folder: str) -> tuple[TreeEntry, ...]:
        """List the files in a folder of a commit, and in its subfolders.

        Raises `SourceUnavailable` if there is no such folder.
        """
        try:
            output = self.git.run("ls-tree", "-r", "-z", "-l", "--full-tree", f"{commit}:{folder}", "--")
        except GitFailed as error:
            if not folder or not self._has_object(f"{commit}^{{tree}}"):
                raise self._explain_failure(error) from error
            raise SourceUnavailable(
                f"{self._remote.shown} has no folder {folder}.", hint="Check the folder setting of its [[corpus]]."
            ) from error
        return tuple(parse_tree_entries(output))

    def changes(
        self, commit: str, paths: set[bytes], *, clock: Callable[[], float] = time.monotonic
    ) -> dict[bytes, LastChange]:
        """Return the last change of each of these paths; paths that are not in the available history are missing."""
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
        """Yield a function that returns a blob's bytes. It raises `UnreadableDocument` or `SourceUnavailable`."""
        with self.git.start("cat-file", "--batch", stdin=subprocess.PIPE) as process:
            assert process.stdin is not None  # noqa: S101 - it was started with pipes
            assert process.stdout is not None  # noqa: S101
            requests, output = process.stdin, process.stdout

            def read(blob: str) -> bytes:
                content = _read_blob(requests, output, blob)
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
            message = f"Another process has been fetching {self._remote.shown} for a while."
            raise SourceUnavailable(message, hint="Try again when it is done.") from error

    def _prepare(self) -> None:
        if not self._is_repository():
            shutil.rmtree(self.path, ignore_errors=True)
            with self._explained():
                self.git.run("init", "--quiet", "--bare", "--template=", "--", str(self.path), in_mirror=False)
        # This process holds the mirror's lock, so these are left over from killed processes.
        for lock in (*self.path.glob("*.lock"), *(self.path / "refs").rglob("*.lock")):
            lock.unlink(missing_ok=True)
        # Trust a configured folder whatever its owner: reading it runs nothing in it.
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
        ref = f"refs/heads/{self._branch}" if self._branch else "HEAD"
        with self._explained():
            output = self.git.run("ls-remote", "--symref", "--", self._remote.address, ref, seconds=_ASK_SECONDS)
        if head := parse_branch_head(output, self._branch):
            return head
        missing = f"no branch {self._branch}" if self._branch else "no commits"
        hint = "Check the branch setting of its [[corpus]]."
        raise SourceUnavailable(f"{self._remote.shown} has {missing}.", hint=hint)

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
            hint = "Check token_env (https), or the key and known hosts (ssh) of the user that runs Footnote."
            return SourceUnavailable(f"The server of {shown} denies access: {_one_line(message)}.", hint=hint)
        if _ABSENT.search(message):
            hint = "Check its address; servers also answer this if access is denied."
            return SourceUnavailable(f"There is no repository {shown}: {_one_line(message)}.", hint=hint)
        hint = "Try git by hand on this machine, as the user that runs Footnote."
        return SourceUnavailable(f"{shown} cannot be fetched: {_one_line(message)}.", hint=hint)


def _read_blob(requests: IO[bytes], output: IO[bytes], blob: str) -> bytes | None:
    """Request a blob and return its bytes; None if the process has ended or does not have the blob."""
    try:
        requests.write(f"{blob}\n".encode())
        requests.flush()
        header = output.readline().split()
        if len(header) != 3 or header[1] != b"blob":  # noqa: PLR2004 - id, kind and size
            return None
        content = output.read(int(header[2]))
        output.read(1)
    except (OSError, ValueError):  # the process ended, or its pipes were closed after the listing
        return None
    return content if len(content) == int(header[2]) else None


def _one_line(message: str) -> str:
    """Return the line of git's output that states the reason, without its prefix."""
    lines = [line.strip() for line in message.splitlines() if line.strip()] or ["git printed no reason"]
    reasons = (line for line in lines if line.startswith(("fatal:", "error:", "ERROR", "remote:")))
    line = re.sub(r"^(?:(?:fatal|error|remote): ?)+", "", next(reasons, lines[0]))
    return line.rstrip(".")[:200]


def _readable_name(address: str) -> str:
    stem = address.rstrip("/").removesuffix(".git").rpartition("/")[2].rpartition(":")[2]
    return re.sub(r"[^A-Za-z0-9_-]+", "-", stem)[:40].strip("-") or "repository"
