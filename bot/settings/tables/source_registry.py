"""Register the types of source: those of Footnote, and those of installed packages.

The settings, their errors, `footnote ingest`, `footnote doctor` and the control socket read the registry.
"""

import logging
from collections.abc import Iterator, Mapping
from functools import reduce
from importlib.metadata import entry_points
from operator import or_
from types import MappingProxyType
from typing import Annotated, get_args

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from bot.settings.tables.source_settings import (
    ConfluenceExportSettings,
    ConfluenceSettings,
    FolderSettings,
    GitSettings,
    IngestCommand,
    LlamaIndexSettings,
    MediaWikiSettings,
    SiteSettings,
    SourceEntry,
    SourceSettings,
    WikipediaSettings,
)

log = logging.getLogger(__name__)

_INGEST_FOLDER = IngestCommand(
    "Ingest a folder of documents: md, rst, txt, html, pdf, docx, pptx, xlsx, epub, e-mail and more.",
    {
        "path": "The folder; everything beneath it is read.",
        "url_base": "Footnotes link to this address plus the file's path.",
        "site": "The generator that publishes it at --url-base: jekyll, hugo, mkdocs or docusaurus.",
        "include": "Only files that match, such as '**/*.md'.",
        "exclude": "Skip files that match, such as 'drafts/**'.",
        "ignore": "Replace the default ignore list; '' for none: see docs/sources.md.",
    },
    (
        "footnote ingest folder handbook --corpus handbook",
        "footnote ingest folder docs --corpus docs --url-base https://docs.example.com --exclude 'drafts/**'",
        "footnote ingest folder handbook --dry-run",
    ),
    argument="path",
)
_INGEST_WIKIPEDIA = IngestCommand(
    "Ingest a dump of Wikipedia or of another wiki: its articles, with redirects as alternative titles.",
    {
        "dump": "A file: pages-articles, as .xml, .xml.bz2 or .xml.gz, or CirrusSearch's.",
        "wiki": "Download the latest dump of this wiki: simple, en, dewiki ...",
        "contact": "With --wiki: an address at which its mirror can reach you.",
        "mirror": "With --wiki: a mirror other than Wikimedia's.",
        "cirrus": "The dump is CirrusSearch's: plain text, quick to read.",
    },
    (
        "footnote ingest wikipedia --dump enwiki-20260101.xml.bz2 --corpus wikipedia",
        "footnote ingest wikipedia --wiki simple --contact you@example.com --corpus wikipedia",
        "footnote ingest wikipedia --dump enwiki-20260101.xml.bz2 --corpus wikipedia --engine ray",
        "footnote ingest wikipedia --dump enwiki-20260101.xml.bz2 --estimate",
    ),
)
PLUGIN_GROUP = "footnote.sources"  # entry points under which other packages bring a `SourceEntry`
_FACTORY = "bot.server.refresh.source_factory"
_BUILT_IN = (
    SourceEntry(FolderSettings, f"{_FACTORY}:open_folder", "a folder of documents", _INGEST_FOLDER),
    SourceEntry(
        WikipediaSettings, f"{_FACTORY}:open_wikipedia", "a dump of Wikipedia, or of another wiki", _INGEST_WIKIPEDIA
    ),
    SourceEntry(GitSettings, f"{_FACTORY}:open_git", "the files of a git repository"),
    SourceEntry(LlamaIndexSettings, f"{_FACTORY}:open_llama_index", "any reader of LlamaIndex"),
    SourceEntry(SiteSettings, f"{_FACTORY}:open_site", "a web site by its sitemap"),
    SourceEntry(MediaWikiSettings, f"{_FACTORY}:open_mediawiki", "a MediaWiki by its API"),
    SourceEntry(ConfluenceSettings, f"{_FACTORY}:open_confluence", "Confluence by its REST API"),
    SourceEntry(ConfluenceExportSettings, f"{_FACTORY}:open_confluence_export", "an export of Confluence"),
)


def _load_entries() -> Iterator[SourceEntry]:
    yield from _BUILT_IN
    for plugin in entry_points(group=PLUGIN_GROUP):
        try:
            yield plugin.load()
        except Exception as error:  # noqa: BLE001 - another package must not keep ours from starting
            log.warning("source %s failed to load: %r", plugin.name, error)


SOURCE_ENTRIES: Mapping[str, SourceEntry] = MappingProxyType(
    {str(get_args(entry.settings.model_fields["type"].annotation)[0]): entry for entry in _load_entries()}
)
"""The types of source by their `type` in the settings."""


class _ByType:
    """Makes pydantic validate a source by the settings of its registered type."""

    def __get_pydantic_core_schema__(self, _: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        union = reduce(or_, (entry.settings for entry in SOURCE_ENTRIES.values()))
        return handler.generate_schema(Annotated[union, Field(discriminator="type")])


AnySource = Annotated[SourceSettings, _ByType()]
