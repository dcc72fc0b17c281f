"""Opens what the settings say of wikis: MediaWiki, Confluence and its exports."""

from collections.abc import Mapping

from bot.refreshing.source_secrets import secret
from bot.settings_of.wikis import ConfluenceExportSettings, ConfluencePages, ConfluenceSettings, MediaWikiSettings
from bot.versions import VERSION
from ingest.choosing import Rules
from ingest.sources.confluence.api import Place, is_cloud
from ingest.sources.confluence.export import ConfluenceExport, Export
from ingest.sources.confluence.source import Confluence, Spaces
from ingest.sources.mediawiki.api import Login
from ingest.sources.mediawiki.source import MediaWiki, Wiki
from ingest.web.fetching import Manners, Web, agent

_NOBODY = "no contact given"


def mediawiki(given: MediaWikiSettings, environment: Mapping[str, str]) -> MediaWiki:
    """Return a wiki by its API. Raises `SettingsError` where its secret is missing."""
    token = secret(given.token_env, environment)
    login = Login(given.user, secret(given.password_env, environment), token, given.password_env or given.token_env)
    rules = Rules(
        given.include, given.exclude, given.categories, given.without_categories, newest_days=given.newest_days
    )
    web = Web(
        Manners(agent(given.contact or _NOBODY, VERSION)),
        headers={"Authorization": f"Bearer {token}"} if token else {},
        credential=login.credential,
    )
    wiki = Wiki(given.api, given.namespaces, rules, login, given.relist_days, given.reference)
    return MediaWiki(wiki, web)


def confluence(given: ConfluenceSettings, environment: Mapping[str, str]) -> Confluence:
    """Return a Confluence by its REST API. Raises `SettingsError` where its secret is missing."""
    token = secret(given.token_env, environment)
    cloud = given.edition == "cloud" or (not given.edition and is_cloud(given.url))
    basic = bool(token and given.email)
    web = Web(
        Manners(agent(given.contact or _NOBODY, VERSION)),
        headers={"Authorization": f"Bearer {token}"} if token and not basic else {},
        auth=(given.email, token) if basic else None,
        credential=given.token_env,
    )
    spaces = Spaces(
        place=Place(given.url, cloud),
        spaces=given.spaces,
        blog_posts=given.blog_posts,
        attachments=given.attachments,
        statuses=given.statuses,
        allowed=given.allowed,
        rules=_rules(given),
        credential=given.token_env,
    )
    return Confluence(spaces, web)


def confluence_export(given: ConfluenceExportSettings) -> ConfluenceExport:
    """Return an export of Confluence."""
    export = Export(
        path=given.path,
        base=given.url_base,
        blog_posts=given.blog_posts,
        attachments=given.attachments,
        statuses=given.statuses,
        allowed=given.allowed,
        rules=_rules(given),
    )
    return ConfluenceExport(export)


def _rules(given: ConfluencePages) -> Rules:
    return Rules(given.include, given.exclude, given.labels, given.without_labels, newest_days=given.newest_days)
