"""Makes of what the settings say of a source the source itself, which a refresh reads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bot.source_settings import FolderSettings, SourceSettings, WikipediaSettings
from ingest.sources.folder import Folder
from ingest.sources.wikipedia_dump import WikipediaDump
from ingest.types import LiveSource


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a source may need of this process besides its settings."""

    home: Path
    """Where it may keep what it fetched, in a folder of its own."""
    environment: Mapping[str, str]
    """Where its secrets are."""


def opened(given: SourceSettings, around: Surroundings) -> LiveSource:
    """Return the source. Raises an error that says what to do where there is none."""
    return _OPENINGS[type(given)](given, around)


def _folder(given: FolderSettings, _around: Surroundings) -> LiveSource:
    return Folder(given.path, url_base=given.url_base, include=given.include, exclude=given.exclude)


def _wikipedia(given: WikipediaSettings, _around: Surroundings) -> LiveSource:
    return WikipediaDump(given.dump)


_OPENINGS: Mapping[type[SourceSettings], Callable[[Any, Surroundings], LiveSource]] = MappingProxyType(
    {FolderSettings: _folder, WikipediaSettings: _wikipedia}
)
