"""Run the `git` program without prompts, hooks, untrusted settings or leftover processes."""

import os
import re
import signal
import subprocess
import threading
from base64 import b64encode
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit

from ingest.types import ReadingStopped, SourceUnavailable
from storage.language.lazy_pattern import lazy_compile

_SCP = lazy_compile(r"(?:[A-Za-z0-9._][\w.-]*@)?[A-Za-z0-9][\w.-]*:(?!/?/)(?!:)[\w./~+-]+")
_BRANCH = lazy_compile(r"(?![-/.])(?!.*(?:\.\.|//|@\{|/\.|\.lock(?:/|$)))[^\x00-\x20\x7f~^:?*\[\\]+(?<![/.])")
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
_CONTROL_SIGNS = lazy_compile(r"[\x00-\x20\x7f]")

URL_TEMPLATES = {
    "github": "{repository}/blob/{branch}/{path}",
    "gitlab": "{repository}/-/blob/{branch}/{path}",
    "gitea": "{repository}/src/branch/{branch}/{path}",
    "forgejo": "{repository}/src/branch/{branch}/{path}",
    "codeberg": "{repository}/src/branch/{branch}/{path}",
    "bitbucket": "{repository}/src/{branch}/{path}",
}
"""Addresses of files, by the first part of the host's name, as in `gitlab.example.com`."""


@dataclass(frozen=True, slots=True)
class GitRemote:
    """The address from which a repository is fetched, and the credential for it."""

    address: str  # A URL, `user@host:path`, or the absolute path of a folder on this machine
    token: str = field(default="", repr=False)

    @property
    def protocol(self) -> str:
        """Return the name of the only protocol that git may use."""
        if self.address.startswith("/"):
            return "file"
        return urlsplit(self.address).scheme if "://" in self.address else "ssh"

    @property
    def shown(self) -> str:
        """Return the address for messages, without credentials."""
        if "://" not in self.address:
            return self.address
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def redact(self, output: str) -> str:
        """Remove the token, and user names and passwords in addresses, from a program's output."""
        without = output.replace(self.token, "…") if self.token else output
        return re.sub(r"(://)[^/@\s]*@", r"\1", without)


def find_address_fault(address: str) -> str:
    """Return the reason why a repository's address is invalid; empty if it is valid."""
    if not address or address.startswith("-") or _CONTROL_SIGNS.search(address):
        return "must be the address of a repository"
    if "://" not in address:
        return "" if _SCP.fullmatch(address) else 'must begin with "https://" or "ssh://", or be like "git@host:path"'
    return _find_url_fault(urlsplit(address))


def _find_url_fault(url: SplitResult) -> str:
    if url.scheme not in {"https", "http", "ssh"}:
        return 'must begin with "https://", "http://" or "ssh://"; set a folder of this machine as path'
    if not url.hostname or not re.match(r"[A-Za-z0-9\[]", url.netloc.rpartition("@")[2]):
        return "must name a host"
    if url.query or url.fragment:
        return "must have nothing after ? or #"
    if url.password or (url.username and url.scheme != "ssh"):
        return "must not contain a name or password; set token_env to the variable that contains a token"
    return ""


def may_send_token(address: str) -> bool:
    """Return whether a token can be sent to this address safely: by https, or to this machine."""
    parts = urlsplit(address)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOCAL_HOSTS)


def is_branch(name: str) -> bool:
    """Return whether `name` can be the name of a git branch."""
    return bool(_BRANCH.fullmatch(name))


def choose_url_template(configured: str, address: str) -> str:
    """Return the template for addresses of files: the configured one, or a known host's; empty if unknown."""
    if configured:
        return configured
    host, path = _host_and_path(address)
    template = URL_TEMPLATES.get(host.split(".")[0], "")
    return template.replace("{repository}", f"https://{host}/{path.strip('/').removesuffix('.git')}")


def build_file_url(template: str, *, path: str, branch: str, commit: str) -> str:
    """Return the address of the file at `path` in the repository. `template` contains `{path}`."""
    values = {"path": path, "branch": branch, "commit": commit}
    return re.sub(r"\{(path|branch|commit)\}", lambda match: quote(values[match[1]]), template)


def _host_and_path(address: str) -> tuple[str, str]:
    if address.startswith("/"):
        return "", ""
    if "://" in address:
        parts = urlsplit(address)
        return parts.hostname or "", unquote(parts.path)
    host, _, path = address.partition(":")
    return host.rpartition("@")[2], path


OLDEST_GIT = (2, 32)  # introduced GIT_CONFIG_GLOBAL, which disables the user's settings

_KEPT_VARIABLES = lazy_compile(
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
    # Below 1,000 bytes a second for a minute, the transfer counts as stalled.
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
}
_BLOCK = 1 << 16


class GitFailed(Exception):
    """The program failed. `str()` is its output without secrets."""


class GitProgram:
    """Runs `git` in one mirror. One thread uses it; others may call `stop`."""

    def __init__(self, repository: Path, remote: GitRemote, environment: Mapping[str, str]) -> None:
        self._repository = repository
        self._remote = remote
        self._environment = _environment(remote, environment, repository / "trusted.config")
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = threading.Event()
        self._lock = threading.Lock()

    def run(self, *arguments: str, seconds: float = 600.0, in_mirror: bool = True) -> bytes:
        """Run git and return its output. Raises `GitFailed`, or `SourceUnavailable` after `seconds`."""
        with self.start(*arguments, in_mirror=in_mirror, stderr=subprocess.PIPE) as process:
            try:
                output, errors = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired as error:
                raise SourceUnavailable(
                    f"git {arguments[0]} of {self._remote.shown} took longer than {seconds:.0f} s.",
                    hint="Check whether its server answers; the next refresh tries again.",
                ) from error
        self.refuse_stopped()
        if process.returncode:
            raise GitFailed(self._remote.redact(errors.decode("utf-8", "replace")).strip())
        return output

    def stream(self, *arguments: str) -> Generator[bytes, None, None]:
        """Yield git's output as it arrives, split at NUL bytes. Closing the generator ends git.

        Raises `GitFailed` or `SourceUnavailable`, at the end.
        """
        rest = b""
        with self.start(*arguments) as process:
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
    def start(
        self, *arguments: str, in_mirror: bool = True, stdin: int = subprocess.DEVNULL, stderr: int = subprocess.DEVNULL
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Run git for the duration of the block; its child processes end with it. Raises `SourceUnavailable`."""
        self.refuse_stopped()
        # Explicit, so that git does not search parent folders, which may contain another repository.
        git_dir = (f"--git-dir={self._repository}",) if in_mirror else ()
        command = ("git", *git_dir, *arguments)
        try:
            process = subprocess.Popen(  # noqa: S603 - fixed arguments; addresses and names were validated, and follow `--`
                command,
                env=self._environment,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
        except OSError as error:
            raise make_git_missing() from error
        with self._lock:
            self._running.add(process)
        try:
            if self._stopped.is_set():
                _kill(process)
            yield process
        finally:
            with self._lock:
                self._running.discard(process)
            _kill(process)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe:
                    with suppress(OSError):
                        pipe.close()
            process.wait()

    def stop(self) -> None:
        self._stopped.set()
        with self._lock:
            for process in self._running:
                _kill(process)

    def refuse_stopped(self) -> None:
        if self._stopped.is_set():
            raise ReadingStopped(self._remote.shown)


def parse_git_version(output: str) -> tuple[int, ...]:
    version = re.search(r"\d+(?:\.\d+)+", output)
    return tuple(int(part) for part in version[0].split(".")) if version else ()


def refuse_old_git(output: str) -> None:
    """Raise `SourceUnavailable` if the version in the output of `git --version` is too old."""
    if parse_git_version(output)[:2] < OLDEST_GIT:
        oldest = ".".join(map(str, OLDEST_GIT))
        raise SourceUnavailable(
            f"The git program here is too old ({output.strip()[:40]}).", hint=f"Install git {oldest} or newer."
        )


def make_git_missing() -> SourceUnavailable:
    return SourceUnavailable(
        "The git program is not installed, and a corpus has a git repository as its source.",
        hint="Install git (such as `apt-get install git`) for the user that runs Footnote.",
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _environment(remote: GitRemote, inherited: Mapping[str, str], trusted: Path) -> dict[str, str]:
    """Return the environment for git, without other secrets and settings of this process."""
    config = {**_CONFIG, "http.followRedirects": "false" if remote.token else "initial"}
    if remote.token:
        login = remote.token if ":" in remote.token else f"x-access-token:{remote.token}"
        config["http.extraHeader"] = f"Authorization: Basic {b64encode(login.encode()).decode()}"
    environment = {name: value for name, value in inherited.items() if _KEPT_VARIABLES.fullmatch(name)}
    environment |= {
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
    for number, (key, value) in enumerate(config.items()):
        environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return environment
