"""Recognise the addresses of Wikipedia's articles, in each of their spellings. Pure."""

import re
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

from storage.language.lazy_pattern import lazy_compile
from storage.types import Document, QueryTime

_HOST = lazy_compile(r"(?P<language>[a-z]{2,}(?:-[a-z]+)*)(?:\.m)?\.wikipedia\.org", re.IGNORECASE)
_NO_LANGUAGES = frozenset({"www", "m"})  # hosts that redirect by the reader's language
_OTHER_VIEWS = frozenset({"action", "curid", "diff", "search", "section", "variant"})  # parameters


@dataclass(frozen=True, slots=True)
class WikiAddress:
    host: str  # for desktops: `en.wikipedia.org`
    title: str  # as the article may have it, or a redirect to it
    revision: str = ""  # empty: the current one


def parse_wiki_address(url: str) -> WikiAddress | None:
    """Return the article at an address; None if the address is of something else."""
    try:
        parts = urlsplit(url)
        host = _HOST.fullmatch(parts.hostname or "")
    except ValueError:
        return None
    if not host or host["language"].lower() in _NO_LANGUAGES:
        return None
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    written = unquote(parts.path.removeprefix("/wiki/")) if parts.path.startswith("/wiki/") else ""
    if parts.path == "/w/index.php":
        written = query.get("title", "")
    title = " ".join(written.replace("_", " ").split())
    if not title or not _OTHER_VIEWS.isdisjoint(query):
        return None
    name = f"{host['language'].lower()}.wikipedia.org"
    return WikiAddress(name, title[:1].upper() + title[1:], query.get("oldid", ""))


def is_article(document: Document, address: WikiAddress, time: QueryTime) -> bool:
    """Return whether a stored document is the article at an address, and new enough for a question about a time."""
    if urlsplit(document.url).hostname != address.host or address.revision not in {"", document.revision}:
        return False
    if isinstance(time, int):
        return document.date is not None and document.date.year >= time
    return time is None  # for recent things, the page is fetched
