"""What is set of a wiki that is read page by page: MediaWiki by its API, Confluence by its own or from an export."""

from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from bot.settings_of.git import NewestDays, VariableName
from bot.values import Contact, FullPath, Values, web_address
from ingest.sources.git.address import may_send_token

Reader = Annotated[str, StringConstraints(pattern="^(user|group):.+$")]
"""One of those whom Confluence lets read a restricted page: `group:staff`, `user:jane`."""
SpaceKey = Annotated[str, StringConstraints(pattern="^~?[A-Za-z0-9_.-]{1,255}$")]


def _wiki_address(url: str) -> str:
    if not url:
        raise ValueError("must have an address")
    parts = urlsplit(web_address(url))
    if parts.username or parts.query or parts.fragment or not parts.hostname:
        raise ValueError("must be an address without user, password, query and fragment")
    return url.rstrip("/")


WikiAddress = Annotated[str, AfterValidator(_wiki_address)]


class MediaWikiSettings(Values):
    """A wiki by its api.php: all its pages once, then what changes."""

    type: Literal["mediawiki"]
    api: WikiAddress
    namespaces: tuple[Annotated[int, Field(ge=0)], ...] = Field(default=(0,), min_length=1)
    user: str = ""
    """Of a bot password, as Special:BotPasswords gives it: `Name@robot`."""
    password_env: VariableName = ""
    token_env: VariableName = ""
    """Of an owner-only OAuth consumer, in place of a user."""
    include: tuple[str, ...] = ("**/*",)
    exclude: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    without_categories: tuple[str, ...] = ()
    newest_days: NewestDays = None
    relist_days: float = Field(default=7, gt=0)
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


class ConfluencePages(Values):
    """Which pages of a Confluence are read, wherever they come from."""

    blog_posts: bool = False
    attachments: bool = False
    statuses: tuple[Literal["current", "archived"], ...] = Field(default=("current",), min_length=1)
    allowed: tuple[Reader, ...] = ()
    """Who of those that pages are restricted to is let in; else what is restricted is left out."""
    include: tuple[str, ...] = ("**/*",)
    exclude: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    without_labels: tuple[str, ...] = ()
    newest_days: NewestDays = None


class ConfluenceSettings(ConfluencePages):
    """Confluence by its REST API, of Cloud (`https://acme.atlassian.net/wiki`) or Data Center."""

    type: Literal["confluence"]
    url: WikiAddress
    edition: Literal["", "cloud", "data center"] = ""
    """Empty: by the address."""
    spaces: tuple[SpaceKey, ...] = ()
    email: str = ""
    """Of the account that the token is of; on Cloud alone."""
    token_env: VariableName = ""
    contact: Contact = ""

    @model_validator(mode="after")
    def _let_in(self) -> Self:
        if self.email and not self.token_env:
            raise ValueError("must have a token_env where it has an email")
        if self.token_env and not may_send_token(self.url):
            raise ValueError('has a token_env, which can only be sent to an address that begins with "https://"')
        return self


class ConfluenceExportSettings(ConfluencePages):
    """A zip that Confluence exported, of XML or of HTML."""

    type: Literal["confluence_export"]
    path: FullPath
    url_base: Annotated[str, AfterValidator(web_address)] = ""
