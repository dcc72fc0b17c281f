"""Confluence's REST API, of Cloud and of Data Center: listings page by page, and what each says of a page.

Both are asked by the content resources of version 1: these alone tell the restrictions, labels and ancestors of pages
along with them, and Cloud's search of content is none of those that its version 2 replaces. On Data Center pages are
listed from the database, as its search index may lag or be under repair.
https://docs.atlassian.com/ConfluenceServer/rest/latest and
https://developer.atlassian.com/cloud/confluence/rest/v1/api-group-content describe them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from ingest.formats import dates
from ingest.sources.confluence.tree import Leaf, Readers
from ingest.types import SourceUnavailable
from ingest.web.errors import AGAIN, shown
from ingest.web.fetching import Reply, Web
from ingest.web.line import Params

Content = dict[str, Any]

MOST = 50
"""Texts in one answer: Data Center gives no more."""
_LISTED = 100
_READ = "restrictions.read.restrictions"
_DETAILS = f"version,space,ancestors,metadata.labels,{_READ}.user,{_READ}.group"
_OK, _NOT_FOUND = 200, 404


@dataclass(frozen=True, slots=True)
class Place:
    """Where a Confluence is."""

    url: str
    """As `https://acme.atlassian.net/wiki`, or `https://confluence.acme.org`."""
    cloud: bool

    def address(self, path: str) -> str:
        """Return the address of a path within it."""
        return self.url.rstrip("/") + path


def is_cloud(url: str) -> bool:
    """Whether an address is one of Atlassian's own."""
    host = urlsplit(url).hostname or ""
    return host.endswith(".atlassian.net") or host == "api.atlassian.com"


class Api:
    """Asks one Confluence, for one thread."""

    def __init__(self, web: Web, place: Place, *, credential: str = "") -> None:
        self._web = web
        self._place = place
        self._credential = credential

    def check(self, spaces: tuple[str, ...]) -> None:
        """Raise `SourceUnavailable` unless we are who we say, and may see these spaces.

        Whoever is not let in is shown a Confluence with less in it, and what we do not see would be taken for gone.
        """
        if self._credential and self._object("/rest/api/user/current").get("type") == "anonymous":
            hint = f"Check {self._credential}: it may be wrong or have lapsed."
            raise SourceUnavailable(f"{shown(self._place.url)} does not know who we are.", hint=hint)
        for space in spaces:
            if not self._sees(space):
                hint = "Check its key, and what the account may see: Confluence tells neither apart."
                raise SourceUnavailable(f"{shown(self._place.url)} shows us no space {space}.", hint=hint)

    def pages(self, space: str, kind: str, statuses: tuple[str, ...]) -> Iterator[Content]:
        """List a space's pages (`page`) or blog posts (`blogpost`), or those of all spaces if none is given."""
        if self._place.cloud:
            yield from self._searched(_and(kind, space), _DETAILS, statuses)
            return
        for status in statuses:
            if status == "current":
                asked: dict[str, str | int] = {"type": kind, "status": status, "limit": _LISTED, "expand": _DETAILS}
                yield from self._all("/rest/api/content", {**asked, **({"spaceKey": space} if space else {})})

    def attachments(self, space: str) -> Iterator[Content]:
        """List what is attached to a space's pages."""
        return self._searched(_and("attachment", space), "version,container,metadata.labels", ("current",))

    def by_id(self, ids: Iterable[str], *, texts: bool) -> Iterator[Content]:
        """Look up contents, as listed or with their texts; those that are not shown to us are missing."""
        cql = f"id in ({','.join(ids)})"
        return self._searched(cql, "body.storage,version" if texts else _DETAILS, ("current", "archived"))

    def text(self, number: str) -> Content | None:
        """Get one content with its text, past the search index; None if it is not shown to us."""
        reply = self._web.get(
            self._place.address(f"/rest/api/content/{quote(number)}"), {"expand": "body.storage,version"}
        )
        return _parsed(reply) if reply.status == _OK else None

    def readers(self, number: str) -> Readers | None:
        """Return who may read what is no page of a listing, such as a folder; None where nobody can tell."""
        path = f"/rest/api/content/{quote(number)}/restriction/byOperation/read"
        reply = self._web.get(self._place.address(path), {"expand": "restrictions.user,restrictions.group"})
        return readers(_parsed(reply)) if reply.status == _OK else None

    def download(self, path: str) -> bytes:
        """Get an attachment. Cloud keeps these on another host, which is not told who we are."""
        reply = self._web.get(self._place.address(path), follow=lambda url: url.startswith("https://"))
        if reply.status != _OK:
            raise SourceUnavailable(f"{shown(reply.url)} answers HTTP {reply.status}.", hint=AGAIN)
        return reply.content

    def _sees(self, space: str) -> bool:
        if self._place.cloud:
            found = self._object("/api/v2/spaces", {"keys": space})
            return any(one.get("key") == space for one in found.get("results", ()))
        return self._web.get(self._place.address(f"/rest/api/space/{quote(space)}")).status == _OK

    def _searched(self, cql: str, expand: str, statuses: tuple[str, ...]) -> Iterator[Content]:
        asked: dict[str, str | int] = {"cql": cql, "limit": MOST if "body" in expand else _LISTED, "expand": expand}
        if self._place.cloud and statuses != ("current",):
            asked["cqlcontext"] = json.dumps({"contentStatuses": list(statuses)})
        return self._all("/rest/api/content/search", asked)

    def _all(self, path: str, asked: Params) -> Iterator[Content]:
        """Go through all answers, each of which says what to ask next."""
        while True:
            answer = self._object(path, asked)
            yield from answer.get("results", ())
            links = answer.get("_links") or {}
            if not (following := links.get("next")):
                return
            # Only its path and query are taken: it may name no other host, and often names the context once more.
            parts = urlsplit(str(following))
            further = dict(parse_qsl(parts.query, keep_blank_values=True))
            if further == asked:
                raise SourceUnavailable(f"{shown(self._place.url)} goes round in circles.", hint=AGAIN)
            path, asked = "/rest/" + parts.path.partition("/rest/")[2], further

    def _object(self, path: str, asked: Params | None = None) -> Content:
        reply = self._web.get(self._place.address(path), asked, "application/json")
        if reply.status != _OK:
            hint = "Check the address; on Cloud it ends in /wiki." if reply.status == _NOT_FOUND else AGAIN
            raise SourceUnavailable(f"{shown(reply.url)} answers HTTP {reply.status}.", hint=hint)
        return _parsed(reply)


def leaf(content: Content, url: str) -> Leaf:
    """Understand what a listing says of one page. Pure. `url` is that of the Confluence."""
    version = content.get("version") or {}
    restrictions = (content.get("restrictions") or {}).get("read")
    labels = ((content.get("metadata") or {}).get("labels") or {}).get("results", ())
    webui = str((content.get("_links") or {}).get("webui", ""))
    return Leaf(
        id=str(content["id"]),
        title=str(content.get("title", "")),
        space=str((content.get("space") or {}).get("key", "")),
        version=str(version.get("number", "")),
        status=str(content.get("status", "current")),
        changed=dates.parsed(str(version.get("when", ""))),
        labels=tuple(str(label.get("name", "")) for label in labels),
        url=url.rstrip("/") + webui if webui.startswith("/") else "",
        above=tuple(str(one["id"]) for one in content.get("ancestors") or ()),
        readers=None if restrictions is None else readers(restrictions),
    )


def readers(said: Content) -> Readers | None:
    """Return who may read, of one operation's restrictions; None where these are not told. Pure."""
    named = said.get("restrictions")
    if not isinstance(named, dict):
        return None
    found: set[str] = set()
    for kind, names in (("user", ("username", "accountId", "email")), ("group", ("name", "id"))):
        listed = named.get(kind)
        if not isinstance(listed, dict) or "results" not in listed:
            return None
        for one in listed["results"]:
            found |= {f"{kind}:{one[name]}".casefold() for name in names if one.get(name)} or {f"{kind}:?"}
    return frozenset(found)


def people(content: Content) -> Iterator[tuple[str, str]]:
    """Return the names of those whom a listing happens to name, by the keys that mentions use. Pure."""
    by = (content.get("version") or {}).get("by") or {}
    for key in ("accountId", "userKey", "username"):
        if by.get(key) and by.get("displayName"):
            yield str(by[key]), str(by["displayName"])


def _and(kind: str, space: str) -> str:
    return f'type = {kind} and space = "{space}"' if space else f"type = {kind}"


def _parsed(reply: Reply) -> Content:
    try:
        answer = json.loads(reply.content)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        hint = "Check the address; a page to log in may have come instead."
        raise SourceUnavailable(f"{shown(reply.url)} answers what is no JSON.", hint=hint)
    return answer


def named(address: str, place: Place) -> str:
    """Return the id of the page that an address of this Confluence means; empty if it tells none. Pure."""
    parts, here = urlsplit(address), urlsplit(place.url)
    if parts.netloc.lower() != here.netloc.lower() or not parts.path.startswith(here.path.rstrip("/")):
        return ""
    asked: Mapping[str, str] = dict(parse_qsl(parts.query))
    steps = parts.path.split("/")
    after = steps[steps.index("pages") + 1 :] if "pages" in steps else []
    number = asked.get("pageId") or next((step for step in after if step.isdigit()), "")
    return number if number.isdigit() else ""
