"""Define how the web is searched, and how passages of several corpora are ranked."""

from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, StringConstraints, model_validator

from bot.settings.platform_registry import ReaderId
from bot.settings.tables.field_types import LIVE, RESTART, SCOPE, Contact, SettingsTable, WebAddress, require
from ingest.sources.git.git_program import may_send_token
from storage.language.lazy_pattern import lazy_compile
from storage.types import WEB_PREFIX

BRAVE_ADDRESS = "https://api.search.brave.com/res/v1/web/search"
_HOST = lazy_compile(r"[a-z0-9.-]+(:\d{1,5})?")
_HostName = Annotated[
    str,
    StringConstraints(to_lower=True),
    require(_HOST.fullmatch, 'must be a host without https://, such as "wiki.lan" or "10.0.0.5:8080"'),
]


class SearchEngineSettings(SettingsTable):
    """The search engine by which the web is searched, and by which systems."""

    type: Annotated[Literal["corpora", "searxng", "brave"], RESTART] = "corpora"
    url: Annotated[WebAddress, RESTART] = Field(default="", repr=False)
    api_key: Annotated[SecretStr, RESTART] = SecretStr("")
    visible_to: Annotated[tuple[ReaderId, ...], SCOPE] = ()
    """Whose questions the web is searched for; empty: only the terminal's."""
    every_system: Annotated[bool, SCOPE] = False
    """Whether every system with a model searches the web, next to the corpora, or `search-engine` alone does."""
    wait_seconds: Annotated[float, LIVE] = Field(default=4.0, gt=0, le=60)
    """How long these wait for the web; then they go on with the corpora's passages."""
    hosts: Annotated[tuple[_HostName, ...], RESTART] = ()
    """Hosts outside the public web whose pages are read."""
    seconds: Annotated[float, RESTART] = Field(default=10.0, gt=0, le=120)  # for the engine and the pages together
    page_tokens: Annotated[int, RESTART] = Field(default=256, ge=32, le=4_096)  # of a page's beginning that are read
    contact: Annotated[Contact, RESTART] = ""

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        if self.type == "searxng" and not self.url:
            raise ValueError("must have the url of your SearXNG")
        if self.type == "brave" and not self.api_key.get_secret_value():
            raise ValueError("must have the api_key of Brave's search API")
        if self.api_key.get_secret_value() and not may_send_token(self.address):
            raise ValueError('has an api_key, which can only be sent to an address that begins with "https://"')
        return self

    @property
    def address(self) -> str:
        return self.url or (BRAVE_ADDRESS if self.type == "brave" else "")

    @property
    def corpus(self) -> str:
        """The corpus of the web pages that the engine finds; empty if the web is not searched."""
        return "" if self.type == "corpora" else f"{WEB_PREFIX}{self.type}"


class RankingSettings(SettingsTable):
    """How passages of several corpora are ranked."""

    own_first: float = Field(default=2.5, ge=0, le=10)
    """How far the team's own passages rank above works of reference; 0 ranks all equally."""
