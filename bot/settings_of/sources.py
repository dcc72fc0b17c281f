"""Where a corpus can be read from, as typed and frozen values: one class a kind of source.

A kind that is added here is known to the settings, their errors and the control socket; it is opened by
`bot.refreshing.sources`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from bot.settings_of.git import GitSettings, NewestDays
from bot.settings_of.llama_index import LlamaIndexSettings
from bot.settings_of.site import SiteSettings
from bot.settings_of.wikipedia import WikipediaSettings
from bot.settings_of.wikis import ConfluenceExportSettings, ConfluenceSettings, MediaWikiSettings
from bot.values import FullPath, Values, web_address


class FolderSettings(Values):
    """A folder of documents."""

    type: Literal["folder"]
    path: FullPath
    url_base: Annotated[str, AfterValidator(web_address)] = ""
    include: tuple[str, ...] = ("**/*",)
    exclude: tuple[str, ...] = ()
    newest_days: NewestDays = None


SourceSettings = (
    FolderSettings
    | WikipediaSettings
    | GitSettings
    | LlamaIndexSettings
    | SiteSettings
    | MediaWikiSettings
    | ConfluenceSettings
    | ConfluenceExportSettings
)
OneSource = Annotated[SourceSettings, Field(discriminator="type")]
SOURCES: Mapping[str, type[BaseModel]] = MappingProxyType({
    "folder": FolderSettings,
    "wikipedia": WikipediaSettings,
    "git": GitSettings,
    "llama_index": LlamaIndexSettings,
    "sitemap": SiteSettings,
    "mediawiki": MediaWikiSettings,
    "confluence": ConfluenceSettings,
    "confluence_export": ConfluenceExportSettings,
})  # fmt: skip
"""The kinds of source by the `type` that says so."""
