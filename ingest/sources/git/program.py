"""The `git` program, run with care: nothing that it would ask, run, follow or trust by itself, and nothing left behind.

It sees no settings of the machine or of its user, runs no hooks, asks for no password, enters no submodules, and speaks
the one protocol that it is meant to. What lets us in travels in its environment, and stands in no argument and no file.
"""

import os
import re
import signal
import subprocess
import threading
from base64 import b64encode
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ingest.sources.git.address import Remote
from ingest.types import SourceUnavailable

OLDEST = (2, 32)
"""The version of git that first let the settings of its user be left aside (GIT_CONFIG_GLOBAL)."""

_KEPT = re.compile(
    r"PATH|HOME|USER|LOGNAME|TMPDIR|SSH_AUTH_SOCK|SSL_CERT_\w+|GIT_SSL_CAINFO|(?:https?|all|no)_proxy", re.IGNORECASE
)
_SSH = "ssh -oBatchMode=yes -oConnectTimeout=15 -oServerAliveInterval=15 -oServerAliveCountMax=4"
_CONFIG = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "credential.helper": "",
    "fetch.recurseSubmodules": "false",
    "gc.autoDetach": "false",
    "maintenance.autoDetach": "false",
    # Whoever sends less than 1,000 bytes a second for a minute sends nothing.
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
}
_BLOCK = 1 << 16


class GitFailed(Exception):
    """The program ended with an error. `str()` is what it said, without secrets."""


class Git:
    """Runs `git` in one repository of ours, for one thread; `stop` may come from another."""

    def __init__(self, repository: Path, remote: Remote, environment: Mapping[str, str]) -> None:
        self._repository = repository
        self._remote = remote
        self._environment = _environment(remote, environment, repository / "trusted.config")
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = threading.Event()
        self._lock = threading.Lock()

    def run(self, *arguments: str, seconds: float = 600.0, at: bool = True) -> bytes:
        """Return what git says. `at`: within the repository.

        Raises:
            GitFailed: It ended with an error.
            SourceUnavailable: It is missing, was stopped, or took longer than `seconds`.
        """
        with self.started(*arguments, at=at, stderr=subprocess.PIPE) as process:
            try:
                said, complaint = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired as error:
                raise SourceUnavailable(
                    f"git {arguments[0]} of {self._remote.shown} took longer than {seconds:.0f} s.",
                    hint="Look whether its server answers; the next night tries again.",
                ) from error
        self.refuse_stopped()
        if process.returncode:
            raise GitFailed(self._remote.redacted(complaint.decode("utf-8", "replace")).strip())
        return said

    def told(self, *arguments: str) -> Generator[bytes, None, None]:
        """Yield what git says between NUL bytes, as it says it. Closing this ends it.

        Raises `GitFailed` at the end of what it says, and `SourceUnavailable`, as `run` does.
        """
        rest = b""
        with self.started(*arguments) as process:
            assert process.stdout is not None  # noqa: S101 - it was started with a pipe
            while block := process.stdout.read1(_BLOCK):  # type: ignore[attr-defined]  # Popen's is a BufferedReader
                *parts, rest = (rest + block).split(b"\0")
                yield from parts
            status = process.wait()
        self.refuse_stopped()
        if status:
            raise GitFailed(f"git {arguments[0]} ended with status {status}")
        if rest:
            yield rest

    @contextmanager
    def started(
        self, *arguments: str, at: bool = True, stdin: int = subprocess.DEVNULL, stderr: int = subprocess.DEVNULL
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Have git run within the block; with it ends whatever it started. Raises `SourceUnavailable`."""
        self.refuse_stopped()
        # Named so, it is not looked for in the folders above, where another repository may be.
        place = (f"--git-dir={self._repository}",) if at else ()
        command = ("git", *place, *arguments)
        try:
            process = subprocess.Popen(  # noqa: S603 - our own words; addresses and names were checked, and follow `--`
                command,
                env=self._environment,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
        except OSError as error:
            raise missing() from error
        with self._lock:
            self._running.add(process)
        try:
            if self._stopped.is_set():
                _end(process)
            yield process
        finally:
            with self._lock:
                self._running.discard(process)
            _end(process)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe:
                    with suppress(OSError):
                        pipe.close()
            process.wait()

    def stop(self) -> None:
        """End what runs, and let nothing run any more."""
        self._stopped.set()
        with self._lock:
            for process in self._running:
                _end(process)

    def refuse_stopped(self) -> None:
        """Raise `SourceUnavailable` once it was stopped."""
        if self._stopped.is_set():
            raise SourceUnavailable(f"Reading {self._remote.shown} was stopped.", hint="Run it again.")


def version(said: str) -> tuple[int, ...]:
    """The numbers in what `git --version` says; empty where there are none. Pure."""
    found = re.search(r"\d+(?:\.\d+)+", said)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def refuse_old(said: str) -> None:
    """Raise `SourceUnavailable` if `git --version` says so of a version that cannot do what is needed."""
    if version(said)[:2] < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise SourceUnavailable(
            f"The git program here is too old ({said.strip()[:40]}).", hint=f"Install git {oldest} or newer."
        )


def missing() -> SourceUnavailable:
    """Return what is said where there is no git."""
    return SourceUnavailable(
        "The git program is not installed, and a corpus has a git repository as its source.",
        hint="Install git (such as `apt-get install git`) for the user that Footnote runs as.",
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _environment(remote: Remote, given: Mapping[str, str], trusted: Path) -> dict[str, str]:
    """A secret of ours, or a setting of whoever started us, reaches git only if it stands here."""
    config = {**_CONFIG, "http.followRedirects": "false" if remote.token else "initial"}
    if remote.token:
        login = remote.token if ":" in remote.token else f"x-access-token:{remote.token}"
        config["http.extraHeader"] = f"Authorization: Basic {b64encode(login.encode()).decode()}"
    made = {name: value for name, value in given.items() if _KEPT.fullmatch(name)}
    made |= {
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(trusted),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_ALLOW_PROTOCOL": remote.protocol,
        "GIT_SSH_COMMAND": _SSH,
        "GIT_CONFIG_COUNT": str(len(config)),
    }
    for at, (key, value) in enumerate(config.items()):
        made |= {f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value}
    return made
