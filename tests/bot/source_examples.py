"""Example settings for each kind of source."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from bot.settings.tables.source_registry import SOURCE_ENTRIES
from bot.settings.tables.source_settings import SourceSettings

WRITTEN: Mapping[str, dict[str, Any]] = MappingProxyType({
    "folder": {"path": "/srv/hand book/é", "include": ["*.md"], "newest_days": 30},
    "wikipedia": {"wiki": "simple", "contact": "ada@example.com", "cirrus": True},
    "git": {"url": "https://example.com/docs.git", "branch": "main", "token_env": "DOCS_TOKEN"},
    "llama_index": {"reader": "llama_index.readers.web:SimpleWebPageReader"},
    "mediawiki": {"api": "https://wiki.example.com/w/api.php", "user": "Ada@bot", "password_env": "WIKI_PASSWORD"},
    "confluence": {"url": "https://acme.atlassian.net/wiki", "spaces": ["HR"], "allowed": ["group:staff"]},
    "confluence_export": {"path": "/srv/export.zip", "url_base": "https://wiki.example.com", "labels": ["public"]},
    "sitemap": {"url": "https://docs.example.com/sitemap.xml", "contact": "ada@example.com", "exclude": ["blog/**"]},
})  # fmt: skip


def examples() -> Mapping[str, SourceSettings]:
    return {
        kind: SOURCE_ENTRIES[kind].settings.model_validate({"type": kind, **given}) for kind, given in WRITTEN.items()
    }  # type: ignore[misc]
