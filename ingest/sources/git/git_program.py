"""Run the `git` program: nothing that it would ask, run, follow or trust by itself, and nothing left behind."""

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

from ingest.types import SourceUnavailable
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
"""Where a host shows a file, by the first part of the host's name, as in `gitlab.example.com`."""


@dataclass(frozen=True, slots=True)
class GitRemote:
    """Say where a repository is fetched from."""

    address: str  # A URL, `user@host:path`, or the absolute path of a folder on this machine
    token: str = field(default="", repr=False)

    @property
    def protocol(self) -> str:
        """Return the one protocol that is spoken, as git calls it."""
        if self.address.startswith("/"):
            return "file"
        return urlsplit(self.address).scheme if "://" in self.address else "ssh"

    @property
    def shown(self) -> str:
        """Return the address without whatever might let somebody in."""
        if "://" not in self.address:
            return self.address
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def redact(self, output: str) -> str:
        """Strip the token, and what stands before `@` in addresses, from what a program said."""
        without = output.replace(self.token, "…") if self.token else output
        return re.sub(r"(://)[^/@\s]*@", r"\1", without)


def find_address_fault(address: str) -> str:
    """Return what is wrong with the address of a repository; empty if nothing is."""
    if not address or address.startswith("-") or _CONTROL_SIGNS.search(address):
        return "must be the address of a repository"
    if "://" not in address:
        return "" if _SCP.fullmatch(address) else 'must begin with "https://" or "ssh://", or be like "git@host:path"'
    return _find_url_fault(urlsplit(address))


def _find_url_fault(url: SplitResult) -> str:
    if url.scheme not in {"https", "http", "ssh"}:
        return 'must begin with "https://", "http://" or "ssh://"; a folder of this machine is set as path'
    if not url.hostname or not re.match(r"[A-Za-z0-9\[]", url.netloc.rpartition("@")[2]):
        return "must name a host"
    if url.query or url.fragment:
        return "must have nothing after ? or #"
    if url.password or (url.username and url.scheme != "ssh"):
        return "must hold no name or password; name the variable that holds a token as token_env"
    return ""


def may_send_token(address: str) -> bool:
    """Tell whether a token can be sent there and read by nobody else: by https, or to this machine."""
    parts = urlsplit(address)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOCAL_HOSTS)


def is_branch(name: str) -> bool:
    """Tell whether git would take it for the name of a branch."""
    return bool(_BRANCH.fullmatch(name))


def choose_url_template(given: str, address: str) -> str:
    """Return the template of the files' web addresses: what is given, else a known host's; empty if none is known."""
    if given:
        return given
    host, path = _host_and_path(address)
    form = URL_TEMPLATES.get(host.split(".")[0], "")
    return form.replace("{repository}", f"https://{host}/{path.strip('/').removesuffix('.git')}") if form else ""


def build_file_url(form: str, *, path: str, within: str, branch: str, commit: str) -> str:
    """Build the address of a file, by its `path` in the repository, or `within` the folder that is read."""
    if not form:
        return ""
    if "{path}" not in form:
        return f"{form.rstrip('/')}/{quote(within)}"
    values = {"path": path, "branch": branch, "commit": commit}
    return re.sub(r"\{(path|branch|commit)\}", lambda sign: quote(values[sign[1]]), form)


def _host_and_path(address: str) -> tuple[str, str]:
    if address.startswith("/"):
        return "", ""
    if "://" in address:
        parts = urlsplit(address)
        return parts.hostname or "", unquote(parts.path)
    host, _, path = address.partition(":")
    return host.rpartition("@")[2], path


OLDEST_GIT = (2, 32)
"""The version of git that first let the settings of its user be left aside (GIT_CONFIG_GLOBAL)."""

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
    # Whoever sends less than 1,000 bytes a second for a minute sends nothing.
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
}
_BLOCK = 1 << 16


class GitFailed(Exception):
    """The program ended with an error. `str()` is what it said, without secrets."""


class GitProgram:
    """Run `git` in one repository of ours, for one thread; `stop` may come from another."""

    def __init__(self, repository: Path, remote: GitRemote, environment: Mapping[str, str]) -> None:
        self._repository = repository
        self._remote = remote
        self._environment = _environment(remote, environment, repository / "trusted.config")
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = threading.Event()
        self._lock = threading.Lock()

    def run(self, *arguments: str, seconds: float = 600.0, at: bool = True) -> bytes:
        """Return what git says, `at` the repository. Raises `GitFailed`, or `SourceUnavailable` after `seconds`."""
        with self.start(*arguments, at=at, stderr=subprocess.PIPE) as process:
            try:
                output, complaint = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired as error:
                raise SourceUnavailable(
                    f"git {arguments[0]} of {self._remote.shown} took longer than {seconds:.0f} s.",
                    hint="Look whether its server answers; the next night tries again.",
                ) from error
        self.refuse_stopped()
        if process.returncode:
            raise GitFailed(self._remote.redact(complaint.decode("utf-8", "replace")).strip())
        return output

    def stream(self, *arguments: str) -> Generator[bytes, None, None]:
        """Yield what git says between NUL bytes, as it says it. Closing this ends it. Raises as `run`, at the end."""
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
        self, *arguments: str, at: bool = True, stdin: int = subprocess.DEVNULL, stderr: int = subprocess.DEVNULL
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Run git within the block; whatever it started ends with it. Raises `SourceUnavailable`."""
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
            raise SourceUnavailable(f"Reading {self._remote.shown} was stopped.", hint="Run it again.")


def parse_git_version(output: str) -> tuple[int, ...]:
    """Return the numbers in what `git --version` says; empty where there are none."""
    found = re.search(r"\d+(?:\.\d+)+", output)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def refuse_old_git(output: str) -> None:
    """Raise `SourceUnavailable` if `git --version` says so of a version that cannot do what is needed."""
    if parse_git_version(output)[:2] < OLDEST_GIT:
        oldest = ".".join(map(str, OLDEST_GIT))
        raise SourceUnavailable(
            f"The git program here is too old ({output.strip()[:40]}).", hint=f"Install git {oldest} or newer."
        )


def make_git_missing() -> SourceUnavailable:
    return SourceUnavailable(
        "The git program is not installed, and a corpus has a git repository as its source.",
        hint="Install git (such as `apt-get install git`) for the user that Footnote runs as.",
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _environment(remote: GitRemote, given: Mapping[str, str], trusted: Path) -> dict[str, str]:
    """Return git's environment: a secret of ours, or a setting of our starter, reaches git only from here."""
    config = {**_CONFIG, "http.followRedirects": "false" if remote.token else "initial"}
    if remote.token:
        login = remote.token if ":" in remote.token else f"x-access-token:{remote.token}"
        config["http.extraHeader"] = f"Authorization: Basic {b64encode(login.encode()).decode()}"
    made = {name: value for name, value in given.items() if _KEPT_VARIABLES.fullmatch(name)}
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
