"""Define the settings of the search engine: what the system `search-engine` searches."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, StringConstraints, model_validator

from bot.settings.platform_registry import ReaderId
from bot.settings.tables.field_types import RESTART, SCOPE, Contact, SettingsTable, require, validate_web_address
from ingest.sources.git.git_program import may_send_token
from storage.types import WEB_PREFIX

BRAVE_ADDRESS = "https://api.search.brave.com/res/v1/web/search"

_HOST = re.compile(r"[a-z0-9.-]+(:\d{1,5})?")
_HostName = Annotated[
    str,
    StringConstraints(to_lower=True),
    require(_HOST.fullmatch, 'must be a host without https://, such as "wiki.lan" or "10.0.0.5:8080"'),
]


class SearchEngineSettings(SettingsTable):
    """What the system `search-engine` searches: the corpora, or the web by an engine."""

    type: Annotated[Literal["corpora", "searxng", "brave"], RESTART] = "corpora"
    url: Annotated[str, AfterValidator(validate_web_address), RESTART] = Field(default="", repr=False)
    api_key: Annotated[SecretStr, RESTART] = SecretStr("")
    visible_to: Annotated[tuple[ReaderId, ...], SCOPE] = ()
    """Whose questions the web is searched for; empty: nobody's but the terminal's."""
    hosts: Annotated[tuple[_HostName, ...], RESTART] = ()
    """Hosts whose pages are read though they are not on the public web."""
    seconds: Annotated[float, RESTART] = Field(default=10.0, gt=0, le=120)  # for the engine and the pages together
    page_tokens: Annotated[int, RESTART] = Field(default=256, ge=32, le=4_096)  # how much of a page's beginning is read
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
        """The corpus of the pages that it finds; empty where it searches no web."""
        return "" if self.type == "corpora" else f"{WEB_PREFIX}{self.type}"
