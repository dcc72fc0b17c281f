"""What is set of a git repository whose files are read."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from bot.values import EMPTY_IS_NONE, FullPath, Values, web_address
from ingest.sources.git import address as git_address

VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
VariableName = Annotated[str, StringConstraints(pattern=f"^(?:{VARIABLE})?$")]
"""The name of an environment variable that holds a secret; empty for none."""
NewestDays = Annotated[Annotated[float, Field(gt=0)] | None, EMPTY_IS_NONE]
"""How many days ago a document may have been changed last; None: however long."""


def _repository(address: str) -> str:
    if address and (fault := git_address.fault_of(address)):
        raise ValueError(fault)
    return address


def _branch(name: str) -> str:
    if name and not git_address.is_branch(name):
        raise ValueError('must be the name of a branch, such as "main"')
    return name


def _folder(path: str) -> str:
    if any(part in {".", "..", ""} for part in path.strip("/").split("/")) and path.strip("/"):
        raise ValueError('must be the path of a folder in the repository, such as "docs/handbook"')
    if re.search(r"[\x00-\x1f\x7f]", path):
        raise ValueError("must be a path without control characters")
    return path.strip("/")


def _template(url: str) -> str:
    if unknown := set(re.findall(r"\{[^{}]*\}", url)) - {"{path}", "{branch}", "{commit}"}:
        raise ValueError(f"knows {{path}}, {{branch}} and {{commit}}, not {min(unknown)}")
    return web_address(url)


class GitSettings(Values):
    """A git repository, on a server or in a folder of this machine."""

    type: Literal["git"]
    url: Annotated[str, AfterValidator(_repository)] = ""
    path: FullPath | None = None
    branch: Annotated[str, AfterValidator(_branch)] = ""
    """Empty: the one that the repository's HEAD names."""
    folder: Annotated[str, AfterValidator(_folder)] = ""
    url_base: Annotated[str, AfterValidator(_template)] = ""
    """Empty: as GitHub, GitLab, Gitea, Forgejo, Codeberg and Bitbucket show files; none elsewhere."""
    include: tuple[str, ...] = ("**/*",)
    exclude: tuple[str, ...] = ()
    newest_days: NewestDays = None
    depth: int = Field(default=0, ge=0)
    """How many commits of history are fetched; 0 for all."""
    token_env: VariableName = ""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if bool(self.url) == (self.path is not None):
            raise ValueError("must have either url or path")
        if self.token_env and not git_address.may_send_token(self.url):
            raise ValueError('has a token_env, which can only be sent to an address that begins with "https://"')
        return self
