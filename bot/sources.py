"""Makes of what the settings say of a source the source itself, which a refresh reads."""

from bot.source_settings import SourceSettings, WikipediaSettings
from ingest.sources.folder import Folder
from ingest.sources.wikipedia_dump import WikipediaDump
from ingest.types import LiveSource


def opened(given: SourceSettings) -> LiveSource:
    """Return the source. Raises an error that says what to do where there is none."""
    if isinstance(given, WikipediaSettings):
        return WikipediaDump(given.dump)
    return Folder(given.path, url_base=given.url_base, include=given.include, exclude=given.exclude)
