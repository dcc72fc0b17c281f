"""Makes of what the settings say of a source the source itself, which a refresh reads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bot.refreshing.source_secrets import secret
from bot.refreshing.wiki_sources import confluence, confluence_export, mediawiki
from bot.settings_of.git import GitSettings
from bot.settings_of.llama_index import LlamaIndexSettings
from bot.settings_of.site import SiteSettings
from bot.settings_of.sources import FolderSettings, SourceSettings
from bot.settings_of.wikipedia import WikipediaSettings
from bot.settings_of.wikis import ConfluenceExportSettings, ConfluenceSettings, MediaWikiSettings
from bot.versions import VERSION
from ingest.choosing import Rules
from ingest.sources.dumps import cirrus as cirrus_dump
from ingest.sources.dumps import cirrus_listing
from ingest.sources.dumps.cirrus import CirrusDump
from ingest.sources.dumps.mirror import DumpMirror, articles
from ingest.sources.dumps.wikipedia import WikipediaDump
from ingest.sources.folder import Folder
from ingest.sources.git import address as git_address
from ingest.sources.git.address import Remote
from ingest.sources.git.mirror import Mirror
from ingest.sources.git.source import Repository, Wanted
from ingest.sources.llama_index.source import LlamaIndex, Reader
from ingest.sources.sites import sitemap
from ingest.sources.sites.sitemap import Sitemap
from ingest.types import LiveSource
from ingest.web.fetching import Manners, Web, agent


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
    return Folder(
        given.path, url_base=given.url_base, include=given.include, exclude=given.exclude, newest_days=given.newest_days
    )


def _git(given: GitSettings, around: Surroundings) -> LiveSource:
    remote = Remote(given.url or str(given.path), secret(given.token_env, around.environment))
    mirror = Mirror(remote, around.home / "git", around.environment, branch=given.branch, depth=given.depth)
    rules = Rules(given.include, given.exclude, newest_days=given.newest_days)
    return Repository(mirror, Wanted(given.folder, git_address.template(given.url_base, remote.address), rules))


def _llama_index(given: LlamaIndexSettings, around: Surroundings) -> LiveSource:
    secrets = {option: secret(name, around.environment) for option, name in given.options_env.items()}
    reader = Reader(given.reader, {**given.options, **secrets}, given.load, tuple(secrets.values()))
    return LlamaIndex(reader, Rules(given.include, given.exclude, newest_days=given.newest_days))


def _wikipedia(given: WikipediaSettings, around: Surroundings) -> LiveSource:
    if given.dump:
        return CirrusDump(given.dump) if given.cirrus else WikipediaDump(given.dump)
    web, folder = Web(Manners(agent(given.contact, VERSION))), around.home / "dumps"
    if not given.cirrus:
        return DumpMirror(given.wiki, web, folder, find=articles(given.mirror, given.wiki), keep=given.keep)
    find = cirrus_listing.content(given.mirror, given.wiki)
    read = partial(_cirrus, given.wiki)
    there = folder / "cirrus"
    return DumpMirror(given.wiki, web, there, find=find, read=read, version=cirrus_dump.VERSION, keep=given.keep)


def _cirrus(wiki: str, paths: tuple[Path, ...]) -> CirrusDump:
    return CirrusDump(*paths, wiki=wiki)


def _site(given: SiteSettings, around: Surroundings) -> LiveSource:
    token = secret(given.token_env, around.environment)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    manners = Manners(agent(given.contact, VERSION), gap=given.gap)
    rules = Rules(given.include, given.exclude, newest_days=given.newest_days)
    return Sitemap(sitemap.Wanted(given.url, rules), Web(manners, headers=headers, credential=given.token_env))


_OPENINGS: Mapping[type[SourceSettings], Callable[[Any, Surroundings], LiveSource]] = MappingProxyType(
    {
        FolderSettings: _folder,
        WikipediaSettings: _wikipedia,
        GitSettings: _git,
        LlamaIndexSettings: _llama_index,
        SiteSettings: _site,
        MediaWikiSettings: lambda given, around: mediawiki(given, around.environment),
        ConfluenceSettings: lambda given, around: confluence(given, around.environment),
        ConfluenceExportSettings: lambda given, _around: confluence_export(given),
    }
)
