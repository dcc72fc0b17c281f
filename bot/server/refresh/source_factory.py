"""Open the source that a corpus's settings describe.

Settings name a secret by its environment variable, or by a file if the name ends in `_FILE`. It is looked up when the
source is opened, so it is neither in the settings nor sent to other processes.
"""

import hashlib
import pkgutil
from functools import partial
from pathlib import Path
from typing import Any

from bot import read_version
from bot.settings.tables.source_registry import SOURCE_ENTRIES
from bot.settings.tables.source_settings import (
    ConfluenceExportSettings,
    ConfluencePages,
    ConfluenceSettings,
    FolderSettings,
    GitSettings,
    LlamaIndexSettings,
    MediaWikiSettings,
    SiteSettings,
    SourceContext,
    SourceSettings,
    WikipediaSettings,
)
from ingest.readers.external_programs import ReaderPrograms
from ingest.sandbox import Sandbox
from ingest.sources.confluence.confluence_api import ConfluenceAddress, is_cloud
from ingest.sources.confluence.confluence_export import ConfluenceExport, ExportScope
from ingest.sources.confluence.confluence_source import ConfluenceScope, ConfluenceSource
from ingest.sources.dumps.cirrus_dump import CIRRUS_VERSION, CirrusDump
from ingest.sources.dumps.dump_mirror import DumpMirror, make_article_finder, make_cirrus_finder, open_wikitext_dump
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.sources.filters import SelectionRules
from ingest.sources.folder import FolderSource
from ingest.sources.git.git_mirror import GitMirror
from ingest.sources.git.git_program import GitRemote, choose_url_template
from ingest.sources.git.git_source import GitSource, RepositoryScope
from ingest.sources.llama_index_source import LlamaIndexSource, LlamaReader
from ingest.sources.mediawiki.mediawiki_api import WikiLogin
from ingest.sources.mediawiki.mediawiki_source import MediaWikiSource, WikiScope
from ingest.sources.sites.site_source import SiteScope, SiteSource
from ingest.types import LiveSource
from ingest.web.web_client import RequestPolicy, WebClient, build_user_agent


def open_source(given: SourceSettings, around: SourceContext) -> LiveSource:
    """Return the source of a corpus. If it cannot be opened, the error says what to do."""
    opened: LiveSource = pkgutil.resolve_name(SOURCE_ENTRIES[given.type].opener)(given, around)
    return opened


def _make_rules(given: Any, labels: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> SelectionRules:
    ignore = getattr(given, "ignore", ())
    return SelectionRules(given.include, given.exclude, ignore, labels, without, newest_days=given.newest_days)


def _make_client(
    given: Any, *, bearer: str = "", basic: tuple[str, str] | None = None, credential: str = "", gap: float = 0.1
) -> WebClient:
    policy = RequestPolicy(build_user_agent(given.contact or "no contact given", read_version()), gap=gap)
    headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
    return WebClient(policy, headers=headers, auth=basic, credential=credential)


def open_folder(given: FolderSettings, around: SourceContext) -> LiveSource:
    return build_folder(given, around.programs)


def build_folder(given: FolderSettings, programs: ReaderPrograms) -> FolderSource:
    return FolderSource(
        given.path,
        url_base=given.url_base,
        site=given.site,
        include=given.include,
        exclude=given.exclude,
        ignore=given.ignore,
        newest_days=given.newest_days,
        sandbox=Sandbox(programs=programs),
    )


def open_git(given: GitSettings, around: SourceContext) -> LiveSource:
    remote = GitRemote(given.url or str(given.path), around.read_secret(given.token_env))
    mirror = GitMirror(remote, around.home / "git", around.environment, branch=given.branch, depth=given.depth)
    template = choose_url_template(given.url_base, remote.address)
    scope = RepositoryScope(given.folder, template, given.site, _make_rules(given))
    return GitSource(mirror, scope, sandbox=Sandbox(programs=around.programs))


def open_llama_index(given: LlamaIndexSettings, around: SourceContext) -> LiveSource:
    secrets = {option: around.read_secret(name) for option, name in given.options_env.items()}
    reader = LlamaReader(given.reader, {**given.options, **secrets}, given.load, tuple(secrets.values()))
    return LlamaIndexSource(reader, _make_rules(given))


def open_wikipedia(given: WikipediaSettings, around: SourceContext) -> LiveSource:
    folder = around.home / "dumps"
    if given.dump:
        if given.cirrus:
            return CirrusDump(given.dump)
        named = hashlib.sha256(str(given.dump.absolute()).encode()).hexdigest()[:12]
        return WikipediaDump(given.dump, engine=around.engine, survey=folder / f"{named}.survey")
    web = _make_client(given)
    if not given.cirrus:
        parse = partial(open_wikitext_dump, engine=around.engine, survey=folder / f"{given.wiki}.survey")
        find = make_article_finder(given.mirror, given.wiki)
        return DumpMirror(given.wiki, web, folder, find=find, read=parse, keep=given.keep)

    def read(paths: tuple[Path, ...]) -> CirrusDump:
        return CirrusDump(*paths, wiki=given.wiki)

    find, folder = make_cirrus_finder(given.mirror, given.wiki), folder / "cirrus"
    return DumpMirror(given.wiki, web, folder, find=find, read=read, version=CIRRUS_VERSION, keep=given.keep)


def open_site(given: SiteSettings, around: SourceContext) -> LiveSource:
    token = around.read_secret(given.token_env)
    web = _make_client(given, bearer=token, credential=given.token_env, gap=given.gap)
    return SiteSource(SiteScope(given.url, _make_rules(given)), web, sandbox=Sandbox(programs=around.programs))


def open_mediawiki(given: MediaWikiSettings, around: SourceContext) -> LiveSource:
    token, password = around.read_secret(given.token_env), around.read_secret(given.password_env)
    login = WikiLogin(given.user, password, token, given.password_env or given.token_env)
    rules = _make_rules(given, given.categories, given.without_categories)
    wiki = WikiScope(given.api, given.namespaces, rules, login, given.relist_days, given.reference)
    return MediaWikiSource(wiki, _make_client(given, bearer=token, credential=login.credential))


def open_confluence(given: ConfluenceSettings, around: SourceContext) -> LiveSource:
    token = around.read_secret(given.token_env)
    cloud = given.edition == "cloud" or (not given.edition and is_cloud(given.url))
    login = (given.email, token) if token and given.email else None
    web = _make_client(given, bearer="" if login else token, basic=login, credential=given.token_env)
    scope = ConfluenceScope(
        site=ConfluenceAddress(given.url, cloud, given.attachment_hosts),
        spaces=given.spaces,
        credential=given.token_env,
        **_read_page_options(given),
    )
    return ConfluenceSource(scope, web, sandbox=Sandbox(programs=around.programs))


def open_confluence_export(given: ConfluenceExportSettings, around: SourceContext) -> LiveSource:
    scope = ExportScope(path=given.path, base=given.url_base, **_read_page_options(given))
    return ConfluenceExport(scope, sandbox=Sandbox(programs=around.programs))


def _read_page_options(given: ConfluencePages) -> dict[str, Any]:
    names = ("blog_posts", "attachments", "statuses", "allowed")
    rules = _make_rules(given, given.labels, given.without_labels)
    return {**{name: getattr(given, name) for name in names}, "rules": rules}
