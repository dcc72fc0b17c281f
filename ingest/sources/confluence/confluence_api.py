"""Ask Confluence's REST API, of Cloud and of Data Center: listings page by page, and what each says of a page."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import httpx

from ingest.readers import value_parsers
from ingest.sources.filters import DocumentTraits
from ingest.types import SourceUnavailable
from ingest.web.http_reply import RETRY_HINT, format_url, is_same_site
from ingest.web.web_client import QueryParams, WebClient, WebResponse

ReaderSet = frozenset[str]
"""Who may read, as `user:jane` and `group:staff`, in lower case; empty where everyone may."""


@dataclass(frozen=True, slots=True)
class PageNode:
    id: str
    title: str
    space: str
    version: str
    status: str = "current"
    changed: datetime | None = None
    labels: tuple[str, ...] = ()
    url: str = ""
    above: tuple[str, ...] = ()  # the ids of the pages above it, outermost first
    readers: ReaderSet | None = frozenset()  # None where nobody can tell


class PageTree:
    def __init__(self, nodes: Mapping[str, PageNode], allowed: ReaderSet) -> None:
        self._nodes = nodes
        self._allowed = allowed

    def readable(self, node: PageNode) -> bool:
        """Tell whether every restriction on it and above it names one of those who are allowed."""
        return all(
            (one.readers is not None and (not one.readers or not one.readers.isdisjoint(self._allowed)))
            for one in self._ancestry(node)
        )

    def unknown(self, node: PageNode) -> tuple[str, ...]:
        """Return the ids of what stands above it whose readers nobody can tell."""
        return tuple(one.id for one in self._ancestry(node)[:-1] if one.readers is None)

    def path(self, node: PageNode) -> str:
        titles = (self._nodes[one].title for one in node.above if one in self._nodes)
        return "/".join(part.replace("/", "-") for part in (node.space, *titles, node.title) if part)

    def traits(self, node: PageNode) -> DocumentTraits:
        return DocumentTraits(self.path(node), node.labels, node.status, node.changed)

    def chosen(self, wanted: Callable[[DocumentTraits], bool]) -> Iterator[PageNode]:
        return (node for node in self._nodes.values() if self.readable(node) and wanted(self.traits(node)))

    def _ancestry(self, node: PageNode) -> tuple[PageNode, ...]:
        above = (self._nodes.get(one, PageNode(one, "", "", "", readers=None)) for one in node.above)
        return (*above, node)


def parse_subjects(named: tuple[str, ...]) -> ReaderSet:
    return frozenset(name.casefold() for name in named)


Content = dict[str, Any]

BATCH_SIZE = 50  # texts in one answer: Data Center gives no more
_LISTING_SIZE = 100
_READ_RESTRICTIONS = "restrictions.read.restrictions"
_DETAILS = f"version,space,ancestors,metadata.labels,{_READ_RESTRICTIONS}.user,{_READ_RESTRICTIONS}.group"
_OK, _NOT_FOUND = 200, 404
_CLOUD_MEDIA = ("api.media.atlassian.com", "media-cdn.atlassian.com")  # where Cloud keeps attachments


@dataclass(frozen=True, slots=True)
class ConfluenceAddress:
    url: str  # as `https://acme.atlassian.net/wiki`, or `https://confluence.acme.org`
    cloud: bool
    hosts: tuple[str, ...] = ()  # others that keep its attachments

    def address(self, path: str) -> str:
        return self.url.rstrip("/") + path

    def may_follow(self, url: str) -> bool:
        """Return whether the download of an attachment may be redirected there: to a host of its own, or of settings.

        Whoever may attach a file could otherwise have this process read from any server that it can reach.
        """
        target = httpx.URL(url)
        if is_same_site(httpx.URL(self.url), target):
            return True
        allowed = (*self.hosts, *(_CLOUD_MEDIA if self.cloud else ()))
        return target.scheme == "https" and target.port is None and target.host in allowed


def is_cloud(url: str) -> bool:
    """Whether an address is one of Atlassian's own."""
    host = urlsplit(url).hostname or ""
    return host.endswith(".atlassian.net") or host == "api.atlassian.com"


class ConfluenceApi:
    def __init__(self, web: WebClient, place: ConfluenceAddress, *, credential: str = "") -> None:
        self._web = web
        self._place = place
        self._credential = credential

    def check(self, spaces: tuple[str, ...]) -> None:
        """Raise `SourceUnavailable` unless the credential is accepted and may see these spaces.

        Whoever is not let in is shown a Confluence with less in it, and what we do not see would be taken for gone.
        """
        if self._credential and self._get_object("/rest/api/user/current").get("type") == "anonymous":
            hint = f"Check {self._credential}: it may be wrong or have lapsed."
            raise SourceUnavailable(f"{format_url(self._place.url)} treats us as anonymous.", hint=hint)
        for space in spaces:
            if not self._can_see(space):
                hint = "Check its key, and what the account may see: Confluence tells neither sandbox."
                raise SourceUnavailable(f"{format_url(self._place.url)} shows us no space {space}.", hint=hint)

    def pages(self, space: str, kind: str, statuses: tuple[str, ...]) -> Iterator[Content]:
        """List a space's pages (`page`) or blog posts (`blogpost`), or those of all spaces if none is given."""
        if self._place.cloud:
            yield from self._search(_also_of(kind, space), _DETAILS, statuses)
            return
        for status in statuses:
            if status == "current":
                asked: dict[str, str | int] = {
                    "type": kind,
                    "status": status,
                    "limit": _LISTING_SIZE,
                    "expand": _DETAILS,
                }
                yield from self._follow_pages("/rest/api/content", {**asked, **({"spaceKey": space} if space else {})})

    def attachments(self, space: str) -> Iterator[Content]:
        return self._search(_also_of("attachment", space), "version,container,metadata.labels", ("current",))

    def by_id(self, ids: Iterable[str], *, texts: bool) -> Iterator[Content]:
        """Look up contents, as listed or with their texts; those that are not shown to us are missing."""
        cql = f"id in ({','.join(ids)})"
        return self._search(cql, "body.storage,version" if texts else _DETAILS, ("current", "archived"))

    def text(self, number: str) -> Content | None:
        """Get one content with its text, past the search index; None if it is not shown to us."""
        reply = self._web.get(
            self._place.address(f"/rest/api/content/{quote(number)}"), {"expand": "body.storage,version"}
        )
        return _parse_json(reply) if reply.status == _OK else None

    def readers(self, number: str) -> ReaderSet | None:
        """Return who may read what is no page of a listing, such as a folder; None where nobody can tell."""
        path = f"/rest/api/content/{quote(number)}/restriction/byOperation/read"
        reply = self._web.get(self._place.address(path), {"expand": "restrictions.user,restrictions.group"})
        return parse_readers(_parse_json(reply)) if reply.status == _OK else None

    def download(self, path: str) -> bytes:
        """Download an attachment. Those that are kept on another host come without our credential."""
        reply = self._web.get(self._place.address(path), follow=self._place.may_follow)
        if reply.status != _OK:
            raise SourceUnavailable(f"{format_url(reply.url)} answers HTTP {reply.status}.", hint=RETRY_HINT)
        return reply.content

    def _can_see(self, space: str) -> bool:
        if self._place.cloud:
            found = self._get_object("/api/v2/spaces", {"keys": space})
            return any(one.get("key") == space for one in found.get("results", ()))
        return self._web.get(self._place.address(f"/rest/api/space/{quote(space)}")).status == _OK

    def _search(self, cql: str, expand: str, statuses: tuple[str, ...]) -> Iterator[Content]:
        asked: dict[str, str | int] = {
            "cql": cql,
            "limit": BATCH_SIZE if "body" in expand else _LISTING_SIZE,
            "expand": expand,
        }
        if self._place.cloud and statuses != ("current",):
            asked["cqlcontext"] = json.dumps({"contentStatuses": list(statuses)})
        return self._follow_pages("/rest/api/content/search", asked)

    def _follow_pages(self, path: str, asked: QueryParams) -> Iterator[Content]:
        while True:
            answer = self._get_object(path, asked)
            yield from answer.get("results", ())
            links = answer.get("_links") or {}
            if not (following := links.get("next")):
                return
            # Only its path and query are taken: it may name no other host, and often names the context once more.
            parts = urlsplit(str(following))
            further = dict(parse_qsl(parts.query, keep_blank_values=True))
            if further == asked:
                raise SourceUnavailable(
                    f"{format_url(self._place.url)} repeats the same page of results.", hint=RETRY_HINT
                )
            path, asked = "/rest/" + parts.path.partition("/rest/")[2], further

    def _get_object(self, path: str, asked: QueryParams | None = None) -> Content:
        reply = self._web.get(self._place.address(path), asked, "application/json")
        if reply.status != _OK:
            hint = "Check the address; on Cloud it ends in /wiki." if reply.status == _NOT_FOUND else RETRY_HINT
            raise SourceUnavailable(f"{format_url(reply.url)} answers HTTP {reply.status}.", hint=hint)
        return _parse_json(reply)


def parse_node(content: Content, url: str) -> PageNode:
    version = content.get("version") or {}
    restrictions = (content.get("restrictions") or {}).get("read")
    labels = ((content.get("metadata") or {}).get("labels") or {}).get("results", ())
    webui = str((content.get("_links") or {}).get("webui", ""))
    return PageNode(
        id=str(content["id"]),
        title=str(content.get("title", "")),
        space=str((content.get("space") or {}).get("key", "")),
        version=str(version.get("number", "")),
        status=str(content.get("status", "current")),
        changed=value_parsers.parse_date(str(version.get("when", ""))),
        labels=tuple(str(label.get("name", "")) for label in labels),
        url=url.rstrip("/") + webui if webui.startswith("/") else "",
        above=tuple(str(one["id"]) for one in content.get("ancestors") or ()),
        readers=None if restrictions is None else parse_readers(restrictions),
    )


def parse_readers(content: Content) -> ReaderSet | None:
    """Return who may read, of one operation's restrictions; None where these are not told."""
    named = content.get("restrictions")
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


def parse_people(content: Content) -> Iterator[tuple[str, str]]:
    by = (content.get("version") or {}).get("by") or {}
    for key in ("accountId", "userKey", "username"):
        if by.get(key) and by.get("displayName"):
            yield str(by[key]), str(by["displayName"])


def _also_of(kind: str, space: str) -> str:
    return f'type = {kind} and space = "{space}"' if space else f"type = {kind}"


def _parse_json(reply: WebResponse) -> Content:
    try:
        answer = json.loads(reply.content)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        hint = "Check the address; a page to log in may have come instead."
        raise SourceUnavailable(f"{format_url(reply.url)} answers what is no JSON.", hint=hint)
    return answer


def find_page_id(address: str, place: ConfluenceAddress) -> str:
    """Return the id of the page that an address of this Confluence means; empty if it means none."""
    parts, here = urlsplit(address), urlsplit(place.url)
    if parts.netloc.lower() != here.netloc.lower() or not parts.path.startswith(here.path.rstrip("/")):
        return ""
    asked: Mapping[str, str] = dict(parse_qsl(parts.query))
    steps = parts.path.split("/")
    after = steps[steps.index("pages") + 1 :] if "pages" in steps else []
    number = asked.get("pageId") or next((step for step in after if step.isdigit()), "")
    return number if number.isdigit() else ""
