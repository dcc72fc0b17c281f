"""The names of Wikimedia's databases, such as `simplewiki`: what people write for them, and where they are. Pure."""

import re

from ingest.sources.mediawiki.page import Site

_PROJECTS = {
    "wiki": "wikipedia", "wiktionary": "wiktionary", "wikibooks": "wikibooks", "wikinews": "wikinews",
    "wikiquote": "wikiquote", "wikisource": "wikisource", "wikiversity": "wikiversity", "wikivoyage": "wikivoyage",
}  # fmt: skip
_ALONE = {
    "commons": "commons",
    "meta": "meta",
    "species": "species",
    "incubator": "incubator",
    "wikimania": "wikimania",
}
"""Wikis of their own, below wikimedia.org."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,60}")
_PARTS = re.compile(rf"(?P<language>[a-z][a-z0-9_]*?)(?P<project>{'|'.join(_PROJECTS)})")


def database(name: str) -> str:
    """Return the name of a wiki's database: `simplewiki` of `simple`, `simplewiki` or `zh-yue`.

    Raises `ValueError` if it can be none: it becomes part of addresses and paths.
    """
    plain = name.strip().lower().replace("-", "_")
    if not _NAME.fullmatch(plain):
        raise ValueError('must be the name of a wiki, such as "simple" or "simplewiki"')
    return plain if _PARTS.fullmatch(plain) else plain + "wiki"


def site(name: str) -> Site:
    """Return what the name of a database tells of its wiki; nothing of one that is not Wikimedia's."""
    found = _PARTS.fullmatch(name)
    if not found:
        return Site(name)
    language = found["language"].replace("_", "-")
    if language in _ALONE:
        return Site(name, origin=f"https://{language}.wikimedia.org")
    if name == "wikidatawiki":
        return Site(name, origin="https://www.wikidata.org")
    spoken = "en" if language == "simple" else language.partition("-")[0]
    return Site(name, language=spoken, origin=f"https://{language}.{_PROJECTS[found['project']]}.org")
