"""Define the settings of each type of source, and the entry that registers a type; `source_registry` lists them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from bot.settings.errors import SettingsError
from bot.settings.tables.field_types import (
    EMPTY_IS_NONE,
    Contact,
    FullPath,
    SettingsTable,
    WebAddress,
    require,
    validate_web_address,
)
from ingest.readers.external_programs import NO_PROGRAMS, ReaderPrograms
from ingest.sources.default_ignore import DEFAULT_IGNORE
from ingest.sources.git import git_program as git_address
from ingest.sources.git.git_program import may_send_token
from ingest.types import Engine, Site
from ingest.wikitext.wiki_site import resolve_database

VARIABLE_PATTERN = r"[A-Za-z_][A-Za-z0-9_]*"
VariableName = Annotated[str, StringConstraints(pattern=f"^(?:{VARIABLE_PATTERN})?$")]
"""The name of an environment variable that holds a secret; empty for none."""
NewestDays = Annotated[Annotated[float, Field(gt=0)] | None, EMPTY_IS_NONE]
"""The greatest age of a document's last change, in days; None: any."""


def _validate_repository(address: str) -> str:
    if address and (fault := git_address.find_address_fault(address)):
        raise ValueError(fault)
    return address


def _validate_folder(path: str) -> str:
    if any(part in {".", "..", ""} for part in path.strip("/").split("/")) and path.strip("/"):
        raise ValueError('must be the path of a folder in the repository, such as "docs/handbook"')
    if re.search(r"[\x00-\x1f\x7f]", path):
        raise ValueError("must be a path without control characters")
    return path.strip("/")


def _validate_template(url: str) -> str:
    if unknown := set(re.findall(r"\{[^{}]*\}", url)) - {"{path}", "{branch}", "{commit}"}:
        raise ValueError(f"may contain {{path}}, {{branch}} and {{commit}}, but not {min(unknown)}")
    return validate_web_address(url)


_SITE_WANTS_BASE = "must have the url_base of the site whose generator it names"
_HTTPS_ONLY = 'has a token_env, which can only be sent to an address that begins with "https://"'


class SourceSettings(SettingsTable):
    """The settings of one source. `type` is a literal in each subclass, which identifies the type of source."""

    type: str


class GitSettings(SourceSettings):
    """A git repository, on a server or in a folder of this machine."""

    type: Literal["git"]
    url: Annotated[str, AfterValidator(_validate_repository)] = ""
    path: FullPath | None = None
    branch: Annotated[
        str,
        require(lambda name: not name or git_address.is_branch(name), 'must be the name of a branch, such as "main"'),
    ] = ""  # empty: the one that the repository's HEAD names
    folder: Annotated[str, AfterValidator(_validate_folder)] = ""
    url_base: Annotated[str, AfterValidator(_validate_template)] = ""
    """Empty: the file pages of GitHub, GitLab, Gitea, Forgejo, Codeberg and Bitbucket, and no links elsewhere."""
    site: Site = ""  # the generator of the site at `url_base`, which determines its addresses
    include: tuple[str, ...] = ("**/*",)
    exclude: tuple[str, ...] = ()
    ignore: tuple[str, ...] = DEFAULT_IGNORE  # files that are not documents, unless `include` names them
    newest_days: NewestDays = None
    depth: int = Field(default=0, ge=0)  # how many commits of history are fetched; 0 for all
    token_env: VariableName = ""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if bool(self.url) == (self.path is not None):
            raise ValueError("must have either url or path")
        if self.token_env and not git_address.may_send_token(self.url):
            raise ValueError(_HTTPS_ONLY)
        if self.site and (not self.url_base or "{" in self.url_base):
            raise ValueError(_SITE_WANTS_BASE)
        return self


class LlamaIndexSettings(SourceSettings):
    """A reader of LlamaIndex, by its import path."""

    type: Literal["llama_index"]
    reader: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$")]
    """Module and class, such as `llama_index.readers.web:SimpleWebPageReader`."""
    options: Mapping[str, Any] = Field(default_factory=dict)  # arguments of the reader's constructor
    options_env: Mapping[str, Annotated[str, StringConstraints(pattern=f"^{VARIABLE_PATTERN}$")]] = Field(
        default_factory=dict
    )
    """Options that are secrets, by the variables that hold them."""
    load: Mapping[str, Any] = Field(default_factory=dict)  # arguments of its `load_data`
    include: tuple[str, ...] = ("**/*",)
    exclude: tuple[str, ...] = ()
    newest_days: NewestDays = None

    @model_validator(mode="after")
    def _said_once(self) -> Self:
        if twice := sorted(self.options.keys() & self.options_env.keys()):
            raise ValueError(f"names {twice[0]} in options and in options_env")
        return self


class SiteSettings(SourceSettings):
    """A web site by its sitemap."""

    type: Literal["sitemap"]
    url: Annotated[WebAddress, Field(min_length=1)]
    """The address of the sitemap, or of the site whose robots.txt names it."""
    contact: Contact  # for the site's operator
    include: tuple[str, ...] = ("**/*",)  # by the path of a page, without its first slash
    exclude: tuple[str, ...] = ()
    newest_days: NewestDays = None
    gap: float = Field(default=0.5, ge=0.1)  # seconds between two requests; more where robots.txt asks for it
    token_env: VariableName = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if not self.contact:
            raise ValueError("must have a contact, such as an e-mail address: sites want to know who reads them")
        if self.token_env and not self.url.startswith("https://"):
            raise ValueError(_HTTPS_ONLY)
        return self


def _validate_wiki(name: str) -> str:
    return resolve_database(name) if name else ""


class WikipediaSettings(SourceSettings):
    """A dump of Wikipedia or another wiki: a file, or the latest dump on a mirror."""

    type: Literal["wikipedia"]
    dump: FullPath | None = None
    wiki: Annotated[str, AfterValidator(_validate_wiki)] = ""
    """Such as `simple`, or the name of its database: `simplewiki`."""
    mirror: WebAddress = "https://dumps.wikimedia.org"
    cirrus: bool = False  # whether it is a dump of CirrusSearch: plain text, quick to read, without sections
    keep: int = Field(default=1, ge=0)  # how many dumps stay in the home after the latest was ingested
    contact: Contact = ""  # required with `wiki`: mirrors refuse anonymous clients

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if bool(self.wiki) == (self.dump is not None):
            raise ValueError("must have either dump or wiki")
        if self.wiki and not self.mirror:
            raise ValueError("must have the address of a mirror")
        if self.wiki and not self.contact:
            raise ValueError("must have a contact, such as an e-mail address: mirrors want to know who downloads")
        return self


ConfluenceReader = Annotated[str, StringConstraints(pattern="^(user|group):.+$")]
"""A reader of restricted pages in Confluence: `group:staff`, `user:jane`."""
HostName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$", to_lower=True)]
SpaceKey = Annotated[str, StringConstraints(pattern="^~?[A-Za-z0-9_.-]{1,255}$")]


def _validate_wiki_address(url: str) -> str:
    if not url:
        raise ValueError("must have an address")
    parts = urlsplit(validate_web_address(url))
    if parts.username or parts.query or parts.fragment or not parts.hostname:
        raise ValueError("must be an address without user, password, query or fragment")
    return url.rstrip("/")


WikiAddress = Annotated[str, AfterValidator(_validate_wiki_address)]


class MediaWikiSettings(SourceSettings):
    """A wiki read through its api.php: all pages at first, then only changes."""

    type: Literal["mediawiki"]
    api: WikiAddress
    namespaces: tuple[Annotated[int, Field(ge=0)], ...] = Field(default=(0,), min_length=1)
    user: str = ""  # of a bot password, as Special:BotPasswords gives it: `Name@robot`
    password_env: VariableName = ""
    token_env: VariableName = ""  # of an owner-only OAuth consumer, instead of a user
    include: tuple[str, ...] = ("**/*",)
    exclude: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    without_categories: tuple[str, ...] = ()
    newest_days: NewestDays = None
    relist_days: float = Field(default=7.0, gt=0)
    reference: bool = False
    contact: Contact = ""

    @model_validator(mode="after")
    def _let_in(self) -> Self:
        if bool(self.user) != bool(self.password_env):
            raise ValueError("must have both user and password_env, or neither")
        if self.user and self.token_env:
            raise ValueError("must have either a user or a token_env")
        if (self.user or self.token_env) and not may_send_token(self.api):
            raise ValueError('has a secret, which can only be sent to an address that begins with "https://"')
        return self


class ConfluencePages(SourceSettings):
    """Which pages of a Confluence are read, from its API or an export."""

    blog_posts: bool = False
    attachments: bool = False
    statuses: tuple[Literal["current", "archived"], ...] = Field(default=("current",), min_length=1)
    allowed: tuple[ConfluenceReader, ...] = ()
    """Restricted pages are read if one of these may read them; others are left out."""
    include: tuple[str, ...] = ("**/*",)
    exclude: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    without_labels: tuple[str, ...] = ()
    newest_days: NewestDays = None


class ConfluenceSettings(ConfluencePages):
    """Confluence by its REST API, of Cloud (`https://acme.atlassian.net/wiki`) or Data Center."""

    type: Literal["confluence"]
    url: WikiAddress
    edition: Literal["", "cloud", "data center"] = ""  # empty: by the address
    spaces: tuple[SpaceKey, ...] = ()
    email: str = ""  # of the account that the token is of; on Cloud alone
    token_env: VariableName = ""
    attachment_hosts: tuple[HostName, ...] = ()  # other hosts that store its attachments
    contact: Contact = ""

    @model_validator(mode="after")
    def _let_in(self) -> Self:
        if self.email and not self.token_env:
            raise ValueError("must have a token_env if it has an email")
        if self.token_env and not may_send_token(self.url):
            raise ValueError(_HTTPS_ONLY)
        return self


class ConfluenceExportSettings(ConfluencePages):
    """A zip that Confluence exported, of XML or of HTML."""

    type: Literal["confluence_export"]
    path: FullPath
    url_base: WebAddress = ""


class FolderSettings(SourceSettings):
    """A folder of documents."""

    type: Literal["folder"]
    path: FullPath
    url_base: WebAddress = ""
    site: Site = ""  # as of a git repository
    include: tuple[str, ...] = ("**/*",)
    exclude: tuple[str, ...] = ()
    ignore: tuple[str, ...] = DEFAULT_IGNORE  # as in a git repository
    newest_days: NewestDays = None

    @model_validator(mode="after")
    def _based(self) -> Self:
        if self.site and not self.url_base:
            raise ValueError(_SITE_WANTS_BASE)
        return self


@dataclass(frozen=True, slots=True)
class SourceContext:
    """Facts of this process that a source may need, in addition to its settings."""

    home: Path  # where it may store downloads, in a folder of its own
    environment: Mapping[str, str]
    """Where its secrets are: they are neither in the settings nor sent to other processes."""
    engine: Engine | None = None  # reads documents in place of the source's own processes
    programs: ReaderPrograms = NO_PROGRAMS  # of this machine, which readers may call

    def read_secret(self, name: str) -> str:
        """Return the secret in the variable `name`, or in the file that `NAME_FILE` names; empty if `name` is empty.

        Raises `SettingsError` if neither is set, or the file cannot be read. No message contains the value.
        """
        if not name:
            return ""
        if value := self.environment.get(name, "").strip():
            return value
        path = self.environment.get(f"{name}_FILE", "")
        if not path:
            raise SettingsError(f"{name}, which a source names, is not set.", hint=f"Set {name}, or {name}_FILE.")
        try:
            value = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", "") or "it is not UTF-8 text"
            message = f"The file that {name}_FILE names cannot be read: {reason}."
            raise SettingsError(message, hint="Fix the path or its permissions.") from error
        if not value:
            raise SettingsError(f"The file that {name}_FILE names is empty.", hint="Write the secret into it.")
        return value


@dataclass(frozen=True, slots=True)
class IngestCommand:
    """`footnote ingest TYPE`: its help, and the settings that are its options."""

    summary: str
    options: Mapping[str, str]  # by key of the settings: the help of its option
    examples: Sequence[str]
    argument: str = ""  # the key that is typed without an option's name


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """A type of source: its settings, the function that opens it, and its texts for people."""

    settings: type[SourceSettings]
    opener: str
    """`package.module:function`, from its settings and a `SourceContext` to a `LiveSource`; imported when it is opened.
    """
    summary: str
    command: IngestCommand | None = None  # None: it is read from the settings alone, by `footnote ingest all`
