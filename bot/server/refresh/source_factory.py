"""Open the source that a corpus's settings describe.

A secret is named by its variable, or a file by `_FILE` at its end. It is looked up when the source is opened, so that
it stands neither in the settings nor in what other processes are sent.
"""

import pkgutil
from functools import partial
from pathlib import Path

from bot import read_version
from bot.settings.source_settings import (
    SOURCE_ENTRIES,
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
from ingest.sources.confluence.confluence_api import ConfluenceAddress, is_cloud
from ingest.sources.confluence.confluence_export import ConfluenceExport, ExportScope
from ingest.sources.confluence.confluence_source import ConfluenceScope, ConfluenceSource
from ingest.sources.dumps import cirrus_dump, dump_mirror
from ingest.sources.dumps.cirrus_dump import CirrusDump
from ingest.sources.dumps.dump_mirror import DumpMirror, make_article_finder
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.sources.filters import SelectionRules
from ingest.sources.folder import FolderSource
from ingest.sources.git import git_program as git_address
from ingest.sources.git.git_mirror import GitMirror
from ingest.sources.git.git_program import GitRemote
from ingest.sources.git.git_source import GitSource, RepositoryScope
from ingest.sources.llama_index_source import LlamaIndexSource, LlamaReader
from ingest.sources.mediawiki.mediawiki_api import WikiLogin
from ingest.sources.mediawiki.mediawiki_source import MediaWikiSource, WikiScope
from ingest.sources.sites import site_source
from ingest.sources.sites.site_source import SiteSource
from ingest.types import LiveSource
from ingest.web.web_client import RequestPolicy, WebClient, build_user_agent

_NO_CONTACT = "no contact given"


def open_mediawiki(given: MediaWikiSettings, around: SourceContext) -> MediaWikiSource:
    token = around.read_secret(given.token_env)
    login = WikiLogin(given.user, around.read_secret(given.password_env), token, given.password_env or given.token_env)
    rules = SelectionRules(
        given.include, given.exclude, given.categories, given.without_categories, newest_days=given.newest_days
    )
    web = WebClient(
        RequestPolicy(build_user_agent(given.contact or _NO_CONTACT, read_version())),
        headers={"Authorization": f"Bearer {token}"} if token else {},
        credential=login.credential,
    )
    wiki = WikiScope(given.api, given.namespaces, rules, login, given.relist_days, given.reference)
    return MediaWikiSource(wiki, web)


def open_confluence(given: ConfluenceSettings, around: SourceContext) -> ConfluenceSource:
    token = around.read_secret(given.token_env)
    cloud = given.edition == "cloud" or (not given.edition and is_cloud(given.url))
    basic = bool(token and given.email)
    web = WebClient(
        RequestPolicy(build_user_agent(given.contact or _NO_CONTACT, read_version())),
        headers={"Authorization": f"Bearer {token}"} if token and not basic else {},
        auth=(given.email, token) if basic else None,
        credential=given.token_env,
    )
    spaces = ConfluenceScope(
        place=ConfluenceAddress(given.url, cloud),
        spaces=given.spaces,
        blog_posts=given.blog_posts,
        attachments=given.attachments,
        statuses=given.statuses,
        allowed=given.allowed,
        rules=_build_confluence_rules(given),
        credential=given.token_env,
    )
    return ConfluenceSource(spaces, web)


def open_confluence_export(given: ConfluenceExportSettings, _around: SourceContext) -> ConfluenceExport:
    export = ExportScope(
        path=given.path,
        base=given.url_base,
        blog_posts=given.blog_posts,
        attachments=given.attachments,
        statuses=given.statuses,
        allowed=given.allowed,
        rules=_build_confluence_rules(given),
    )
    return ConfluenceExport(export)


def _build_confluence_rules(given: ConfluencePages) -> SelectionRules:
    return SelectionRules(
        given.include, given.exclude, given.labels, given.without_labels, newest_days=given.newest_days
    )


def open_source(given: SourceSettings, around: SourceContext) -> LiveSource:
    """Return the source. Raises an error that says what to do where there is none."""
    opened: LiveSource = pkgutil.resolve_name(SOURCE_ENTRIES[given.type].opener)(given, around)
    return opened


def open_folder(given: FolderSettings, _around: SourceContext) -> LiveSource:
    return FolderSource(
        given.path, url_base=given.url_base, include=given.include, exclude=given.exclude, newest_days=given.newest_days
    )


def open_git(given: GitSettings, around: SourceContext) -> LiveSource:
    remote = GitRemote(given.url or str(given.path), around.read_secret(given.token_env))
    mirror = GitMirror(remote, around.home / "git", around.environment, branch=given.branch, depth=given.depth)
    rules = SelectionRules(given.include, given.exclude, newest_days=given.newest_days)
    return GitSource(
        mirror, RepositoryScope(given.folder, git_address.choose_url_template(given.url_base, remote.address), rules)
    )


def open_llama_index(given: LlamaIndexSettings, around: SourceContext) -> LiveSource:
    secrets = {option: around.read_secret(name) for option, name in given.options_env.items()}
    reader = LlamaReader(given.reader, {**given.options, **secrets}, given.load, tuple(secrets.values()))
    return LlamaIndexSource(reader, SelectionRules(given.include, given.exclude, newest_days=given.newest_days))


def open_wikipedia(given: WikipediaSettings, around: SourceContext) -> LiveSource:
    if given.dump:
        return CirrusDump(given.dump) if given.cirrus else WikipediaDump(given.dump)
    web, folder = WebClient(RequestPolicy(build_user_agent(given.contact, read_version()))), around.home / "dumps"
    if not given.cirrus:
        return DumpMirror(given.wiki, web, folder, find=make_article_finder(given.mirror, given.wiki), keep=given.keep)
    find = dump_mirror.make_cirrus_finder(given.mirror, given.wiki)
    read = partial(_read_cirrus, given.wiki)
    there = folder / "cirrus"
    return DumpMirror(given.wiki, web, there, find=find, read=read, version=cirrus_dump.CIRRUS_VERSION, keep=given.keep)


def _read_cirrus(wiki: str, paths: tuple[Path, ...]) -> CirrusDump:
    return CirrusDump(*paths, wiki=wiki)


def open_site(given: SiteSettings, around: SourceContext) -> LiveSource:
    token = around.read_secret(given.token_env)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    manners = RequestPolicy(build_user_agent(given.contact, read_version()), gap=given.gap)
    rules = SelectionRules(given.include, given.exclude, newest_days=given.newest_days)
    return SiteSource(
        site_source.SiteScope(given.url, rules), WebClient(manners, headers=headers, credential=given.token_env)
    )
