"""Where a git repository is, and at which web addresses its files are shown. Pure."""

import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, quote, unquote, urlsplit

_SCP = re.compile(r"(?:[A-Za-z0-9._][\w.-]*@)?[A-Za-z0-9][\w.-]*:(?!/?/)(?!:)[\w./~+-]+")
_BRANCH = re.compile(r"(?![-/.])(?!.*(?:\.\.|//|@\{|/\.|\.lock(?:/|$)))[^\x00-\x20\x7f~^:?*\[\\]+(?<![/.])")
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_SIGNS = re.compile(r"[\x00-\x20\x7f]")

TEMPLATES = {
    "github": "{repository}/blob/{branch}/{path}",
    "gitlab": "{repository}/-/blob/{branch}/{path}",
    "gitea": "{repository}/src/branch/{branch}/{path}",
    "forgejo": "{repository}/src/branch/{branch}/{path}",
    "codeberg": "{repository}/src/branch/{branch}/{path}",
    "bitbucket": "{repository}/src/{branch}/{path}",
}
"""Where a host shows a file, by the first part of the host's name, as in `gitlab.example.com`."""


@dataclass(frozen=True, slots=True)
class Remote:
    """Where a repository is fetched from."""

    address: str
    """A URL, `user@host:path`, or the absolute path of a folder on this machine."""
    token: str = field(default="", repr=False)

    @property
    def protocol(self) -> str:
        """The one protocol that is spoken, as git calls it."""
        if self.address.startswith("/"):
            return "file"
        return urlsplit(self.address).scheme if "://" in self.address else "ssh"

    @property
    def shown(self) -> str:
        """The address without whatever might let somebody in."""
        if "://" not in self.address:
            return self.address
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def redacted(self, said: str) -> str:
        """What a program said, without the token and without what stands before `@` in addresses."""
        without = said.replace(self.token, "…") if self.token else said
        return re.sub(r"(://)[^/@\s]*@", r"\1", without)


def fault_of(address: str) -> str:
    """What is wrong with the address of a repository; empty if nothing is."""
    if not address or address.startswith("-") or _SIGNS.search(address):
        return "must be the address of a repository"
    if "://" not in address:
        return "" if _SCP.fullmatch(address) else 'must begin with "https://" or "ssh://", or be like "git@host:path"'
    return _fault_of_url(urlsplit(address))


def _fault_of_url(url: SplitResult) -> str:
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
    """Whether a token can be sent there and read by nobody else: by https, or to this machine."""
    parts = urlsplit(address)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOCAL)


def is_branch(name: str) -> bool:
    """Whether git would take it for the name of a branch."""
    return bool(_BRANCH.fullmatch(name))


def template(given: str, address: str) -> str:
    """The template of the files' web addresses: what is given, else what a known host uses; empty if none is known."""
    if given:
        return given
    host, path = _host_and_path(address)
    form = TEMPLATES.get(host.split(".")[0], "")
    return form.replace("{repository}", f"https://{host}/{path.strip('/').removesuffix('.git')}") if form else ""


def web_address(form: str, *, path: str, within: str, branch: str, commit: str) -> str:
    """The web address of a file: the template's signs replaced, or the path within the folder appended.

    `path` is the file's in the repository, `within` its path below the folder that is read.
    """
    if not form:
        return ""
    if "{path}" not in form:
        return f"{form.rstrip('/')}/{quote(within)}"
    said = {"path": path, "branch": branch, "commit": commit}
    return re.sub(r"\{(path|branch|commit)\}", lambda sign: quote(said[sign[1]]), form)


def _host_and_path(address: str) -> tuple[str, str]:
    if address.startswith("/"):
        return "", ""
    if "://" in address:
        parts = urlsplit(address)
        return parts.hostname or "", unquote(parts.path)
    host, _, path = address.partition(":")
    return host.rpartition("@")[2], path
