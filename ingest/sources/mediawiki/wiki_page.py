"""Parse a wiki's site information and listings of pages, fetch the texts, and read them.

A fingerprint contains a short hash of each alias of the page, because the wiki does not say where a deleted redirect
led. Texts are fetched while listing, fifty at a time, so that a failing wiki ends the listing instead of failing every
page.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2s
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from ingest.readers import value_parsers
from ingest.sources.filters import DocumentTraits
from ingest.sources.mediawiki.mediawiki_api import MediaWikiApi, get_pages, join_batches
from ingest.types import Page, UnreadableDocument
from ingest.wikitext.wiki_site import WikiSite, is_disambiguation
from ingest.wikitext.wikitext_parser import WIKITEXT_VERSION, make_sections, parse_wikitext


@dataclass(frozen=True, slots=True)
class WikiInfo:
    site: WikiSite = field(default_factory=WikiSite)
    path: str = ""  # of its pages, such as `/wiki/$1`


def parse_wiki_info(answer: Mapping[str, Any]) -> WikiInfo:
    general = answer.get("general", {})
    names: dict[int, tuple[str, ...]] = {}
    for space in (*answer.get("namespaces", {}).values(), *answer.get("namespacealiases", ())):
        space_names = {
            str(space.get(name) or "").strip().lower().replace(" ", "_") for name in ("name", "canonical", "alias")
        }
        number = int(space.get("id", 0))
        names[number] = (*names.get(number, ()), *sorted(space_names - {""}))
    server = str(general.get("server", ""))
    scheme = urlsplit(str(general.get("base", ""))).scheme or "https"
    site = WikiSite(
        name=str(general.get("wikiid", "")),
        language=str(general.get("lang", "")).partition("-")[0].lower(),
        origin=f"{scheme}:{server}" if server.startswith("//") else server,
        namespaces=names,
        first_letter=general.get("case", "first-letter") == "first-letter",
    )
    return WikiInfo(site, str(general.get("articlepath", "")))


def find_page_query(address: str, known: Mapping[str, str], wiki: WikiInfo, api: str) -> dict[str, str] | None:
    """Return the query for the page with this address, title or known id; None for an address on another site."""
    if address in known:
        return {"pageids": address}
    if "://" not in address:
        return _title_query(address)
    parts = urlsplit(address)
    hosts = {urlsplit(api).netloc.lower(), urlsplit(wiki.site.origin).netloc.lower()}
    parameters = parse_qs(parts.query) if parts.netloc.lower() in hosts else None
    if parameters is None:
        return None
    before, _, after = wiki.path.partition("$1")
    if parameters.get("curid", [""])[0].isdigit():
        return {"pageids": parameters["curid"][0]}
    if "title" in parameters:
        return _title_query(parameters["title"][0])
    inside = bool(before) and parts.path.startswith(before) and parts.path.endswith(after)
    return _title_query(unquote(parts.path[len(before) :].removesuffix(after))) if inside else None


def _title_query(title: str) -> dict[str, str] | None:
    # A bar separates titles, and is invalid in a title.
    return {"titles": title, "redirects": "1"} if title.strip() and "|" not in title else None


_MOST_ALIASES = 50  # listed in a fingerprint; a page with more is checked whenever any redirect changes
_MANY_ALIASES = "*"


@dataclass(frozen=True, slots=True)
class ListedPage:
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
        return str(self.id)

    @property
    def traits(self) -> DocumentTraits:
        return DocumentTraits(self.title, self.categories, changed=self.changed)

    @property
    def fingerprint(self) -> str:
        """Return the page's revision, the reader version, and hashes of its title and aliases."""
        return f"{self.revision}-{WIKITEXT_VERSION}-{_short_hash(self.title)}-{_hash_aliases(self.aliases)}"


def parse_listed_page(page: Mapping[str, Any], site: WikiSite) -> ListedPage | None:
    """Parse a page in the answer to a `prop=info|revisions|redirects` query; None if it does not exist."""
    if page.get("missing") or page.get("invalid") or not page.get("pageid"):
        return None
    revision = (page.get("revisions") or [{}])[0]
    url = str(page.get("canonicalurl") or page.get("fullurl") or "")
    if url.startswith("//"):  # protocol-relative
        url = f"{site.origin.partition(':')[0] or 'https'}:{url}"
    return ListedPage(
        id=int(page["pageid"]),
        title=str(page["title"]),
        namespace=int(page.get("ns", 0)),
        revision=int(page.get("lastrevid") or revision.get("revid") or 0),
        size=int(page.get("length", 0)),
        url=url,
        changed=value_parsers.parse_date(str(revision.get("timestamp", ""))),
        redirect=bool(page.get("redirect")),
        aliases=tuple(sorted({str(other["title"]) for other in page.get("redirects", ())})),
        categories=tuple(str(name["title"]).partition(":")[2] for name in page.get("categories", ())),
    )


def find_redirected_keys(titles: Collection[str], known: Mapping[str, str]) -> Iterator[str]:
    """Yield the keys of known pages that have one of these titles as an alias, according to their fingerprints."""
    hashes = {_short_hash(title) for title in titles}
    for key, fingerprint in known.items():
        names = fingerprint.rpartition("-")[2]
        if names.startswith(_MANY_ALIASES) or not hashes.isdisjoint(names.split(".")):
            yield key


def _hash_aliases(aliases: Iterable[str]) -> str:
    names = sorted(map(_short_hash, aliases))
    if len(names) > _MOST_ALIASES:
        return _MANY_ALIASES + _short_hash("".join(names))
    return ".".join(names) or "0"


def _short_hash(title: str) -> str:
    return blake2s(title.encode(), digest_size=4).hexdigest()


_TEXT_QUERY = {"prop": "revisions", "rvprop": "ids|timestamp|content|contentmodel", "rvslots": "main"}


@dataclass(frozen=True, slots=True)
class PageRevision:
    number: str
    timestamp: str
    text: str
    reason: str


def fetch_texts(api: MediaWikiApi, ids: Sequence[int]) -> dict[int, PageRevision]:
    """Fetch the texts of at most fifty pages. Deleted pages are missing in the result. Raises `SourceUnavailable`."""
    texts: dict[int, PageRevision] = {}
    for part in join_batches(map(str, ids)):
        for batch in api.batches({"pageids": part, **_TEXT_QUERY}):
            texts |= {int(page["pageid"]): _parse_revision(page) for page in get_pages(batch) if page.get("revisions")}
    return texts


def read_page(page: ListedPage, revision: PageRevision | None, site: WikiSite) -> Page:
    """Read one page. Raises `UnreadableDocument`."""
    if revision is None or revision.reason:
        raise UnreadableDocument(revision.reason if revision else "was deleted while the wiki was read")
    outline = parse_wikitext(revision.text, title=page.title, language=site.language, hidden=site.hidden)
    return Page(
        title=page.title,
        sections=make_sections(outline),
        url=page.url or site.url(page.title, ""),
        revision=revision.number,
        date=value_parsers.parse_date(revision.timestamp),
        language=site.language,
        aliases=page.aliases,
        disambiguation=is_disambiguation(page.title, revision.text),
    )


def _parse_revision(page: dict[str, Any]) -> PageRevision:
    revision = page["revisions"][0]
    # Before MediaWiki 1.32 the revision itself contains the text.
    slot = revision.get("slots", {}).get("main", revision)
    text, number = str(slot.get("content") or ""), str(revision.get("revid", ""))
    return PageRevision(number, str(revision.get("timestamp", "")), text, _missing_reason(slot, text))


def _missing_reason(slot: dict[str, Any], text: str) -> str:
    model = slot.get("contentmodel", "wikitext")
    if slot.get("texthidden") or slot.get("textmissing"):
        return "its text is hidden"
    if model != "wikitext":
        return f"it is not wikitext but {model}"
    return "" if text.strip() else "its text is empty"
