"""What a wiki's API says of one page before its text is asked for, and the fingerprint that is made of it. Pure.

A fingerprint names, by short hashes, the titles under which a page is also known: when a redirect goes, the wiki no
longer tells where it led, and the fingerprints do.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2s
from typing import Any

from ingest.choosing import Traits
from ingest.formats import dates
from ingest.sources.mediawiki.page import Site
from ingest.wikitext.reading import VERSION

_MOST = 50
"""Aliases that are named one by one in a fingerprint; a page with more is looked at whenever any redirect changes."""
_MANY = "*"


@dataclass(frozen=True, slots=True)
class Listed:
    """One page, as a wiki lists it."""

    id: int
    title: str
    namespace: int
    revision: int
    size: int
    url: str
    changed: datetime | None
    redirect: bool = False
    aliases: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Its id, which outlives a change of title."""
        return str(self.id)

    @property
    def traits(self) -> Traits:
        """What rules are held against: the title is the path, the categories are labels."""
        return Traits(self.title, self.categories, changed=self.changed)

    @property
    def fingerprint(self) -> str:
        """Of the revision, of how we read, of the title and of the aliases: none of these needs the others."""
        return f"{self.revision}-{VERSION}-{_short(self.title)}-{_names(self.aliases)}"


def listed(page: Mapping[str, Any], site: Site) -> Listed | None:
    """Understand a page of an answer to `prop=info|revisions|redirects`; None if there is no such page."""
    if page.get("missing") or page.get("invalid") or not page.get("pageid"):
        return None
    revision = (page.get("revisions") or [{}])[0]
    return Listed(
        id=int(page["pageid"]),
        title=str(page["title"]),
        namespace=int(page.get("ns", 0)),
        revision=int(page.get("lastrevid") or revision.get("revid") or 0),
        size=int(page.get("length", 0)),
        url=_address(page, site),
        changed=dates.parsed(str(revision.get("timestamp", ""))),
        redirect=bool(page.get("redirect")),
        aliases=tuple(sorted({str(other["title"]) for other in page.get("redirects", ())})),
        categories=tuple(str(name["title"]).partition(":")[2] for name in page.get("categories", ())),
    )


def _address(page: Mapping[str, Any], site: Site) -> str:
    """Where people read it: a wiki may give its own address without saying whether it is https."""
    given = str(page.get("canonicalurl") or page.get("fullurl") or "")
    if given.startswith("//"):
        return f"{site.origin.partition(':')[0] or 'https'}:{given}"
    return given


def led_by(titles: Collection[str], known: Mapping[str, str]) -> Iterator[str]:
    """Return the keys of the known pages that one of these titles led to, by their fingerprints."""
    wanted = {_short(title) for title in titles}
    for key, fingerprint in known.items():
        names = fingerprint.rpartition("-")[2]
        if names.startswith(_MANY) or not wanted.isdisjoint(names.split(".")):
            yield key


def _names(aliases: Iterable[str]) -> str:
    names = sorted(map(_short, aliases))
    if len(names) > _MOST:
        return _MANY + _short("".join(names))
    return ".".join(names) or "0"


def _short(title: str) -> str:
    return blake2s(title.encode(), digest_size=4).hexdigest()
