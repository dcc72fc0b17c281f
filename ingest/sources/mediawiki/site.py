"""What a wiki says of itself, and which page of it an address means. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from ingest.sources.mediawiki.page import Site


@dataclass(frozen=True, slots=True)
class About:
    """A wiki's names and addresses."""

    site: Site = field(default_factory=Site)
    path: str = ""
    """Of its pages, such as `/wiki/$1`."""


def about(told: Mapping[str, Any]) -> About:
    """Understand an answer to `meta=siteinfo`."""
    general = told.get("general", {})
    names: dict[int, tuple[str, ...]] = {}
    for space in (*told.get("namespaces", {}).values(), *told.get("namespacealiases", ())):
        said = {str(space.get(name) or "").strip().lower().replace(" ", "_") for name in ("name", "canonical", "alias")}
        number = int(space.get("id", 0))
        names[number] = (*names.get(number, ()), *sorted(said - {""}))
    server = str(general.get("server", ""))
    scheme = urlsplit(str(general.get("base", ""))).scheme or "https"
    site = Site(
        name=str(general.get("wikiid", "")),
        language=str(general.get("lang", "")).partition("-")[0].lower(),
        origin=f"{scheme}:{server}" if server.startswith("//") else server,
        namespaces=names,
        first_letter=general.get("case", "first-letter") == "first-letter",
    )
    return About(site, str(general.get("articlepath", "")))


def named(address: str, known: Mapping[str, str], wiki: About, api: str) -> dict[str, str] | None:
    """Return the parameters of a query that name the page at an address, of a title, or with an id that is known.

    None if the address is none of this wiki's pages.
    """
    if address in known:
        return {"pageids": address}
    if "://" not in address:
        return _titled(address)
    parts = urlsplit(address)
    here = {urlsplit(api).netloc.lower(), urlsplit(wiki.site.origin).netloc.lower()}
    said = parse_qs(parts.query) if parts.netloc.lower() in here else None
    if said is None:
        return None
    before, _, after = wiki.path.partition("$1")
    if said.get("curid", [""])[0].isdigit():
        return {"pageids": said["curid"][0]}
    if "title" in said:
        return _titled(said["title"][0])
    inside = bool(before) and parts.path.startswith(before) and parts.path.endswith(after)
    return _titled(unquote(parts.path[len(before) :].removesuffix(after))) if inside else None


def _titled(title: str) -> dict[str, str] | None:
    # A bar would make two titles of one; none may hold any.
    return {"titles": title, "redirects": "1"} if title.strip() and "|" not in title else None
