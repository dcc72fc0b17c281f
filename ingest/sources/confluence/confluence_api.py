"""Query Confluence's REST API (Cloud and Data Center), and parse its page listings."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import httpx

from ingest.readers import value_parsers
from ingest.sources.filters import DocumentTraits
from ingest.types import DeletedDocument, SourceUnavailable
from ingest.web.http_reply import RETRY_HINT, format_url, is_same_site, parse_json_object, refuse_repeated_query
from ingest.web.web_client import QueryParams, WebClient, WebResponse

ReaderSet = frozenset[str]  # users and groups, as `user:jane` and `group:staff` in lower case; empty: everyone


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
    above: tuple[str, ...] = ()  # ids of its ancestors, outermost first
    readers: ReaderSet | None = frozenset()  # None if unknown


class PageTree:
    def __init__(self, nodes: Mapping[str, PageNode], allowed: ReaderSet) -> None:
        self._nodes = nodes
        self._allowed = allowed

    def readable(self, node: PageNode) -> bool:
        """Return whether an allowed user or group passes every restriction on the page and its ancestors."""
        readers = [ancestor.readers for ancestor in self._ancestry(node)]
        return all(names is not None and (not names or not names.isdisjoint(self._allowed)) for names in readers)

    def unknown(self, node: PageNode) -> tuple[str, ...]:
        """Return the ids of those ancestors of the page whose readers are unknown."""
        return tuple(ancestor.id for ancestor in self._ancestry(node)[:-1] if ancestor.readers is None)

    def path(self, node: PageNode) -> str:
        titles = (self._nodes[number].title for number in node.above if number in self._nodes)
        return "/".join(part.replace("/", "-") for part in (node.space, *titles, node.title) if part)

    def traits(self, node: PageNode) -> DocumentTraits:
        return DocumentTraits(self.path(node), node.labels, node.status, node.changed)

    def chosen(self, is_selected: Callable[[DocumentTraits], bool]) -> Iterator[PageNode]:
        return (node for node in self._nodes.values() if self.readable(node) and is_selected(self.traits(node)))

    def list_withheld(self, nodes: Mapping[str, PageNode], known: Iterable[str]) -> Iterator[DeletedDocument]:
        """Yield known pages that may no longer be read, as deleted documents."""
        return (DeletedDocument(key, withheld=True) for key in known if key in nodes and not self.readable(nodes[key]))

    def _ancestry(self, node: PageNode) -> tuple[PageNode, ...]:
        above = (self._nodes.get(number, PageNode(number, "", "", "", readers=None)) for number in node.above)
        return (*above, node)


def parse_subjects(named: tuple[str, ...]) -> ReaderSet:
    return frozenset(name.casefold() for name in named)


Content = dict[str, Any]

BATCH_SIZE = 50  # texts per response, Data Center's limit
_LISTING_SIZE = 100
_READ_RESTRICTIONS = "restrictions.read.restrictions"
_DETAILS = f"version,space,ancestors,metadata.labels,{_READ_RESTRICTIONS}.user,{_READ_RESTRICTIONS}.group"
_OK, _NOT_FOUND = 200, 404
_CLOUD_MEDIA = ("api.media.atlassian.com", "media-cdn.atlassian.com")  # hosts of Cloud's attachments


@dataclass(frozen=True, slots=True)
class ConfluenceAddress:
    url: str  # as `https://acme.atlassian.net/wiki`, or `https://confluence.acme.org`
    cloud: bool
    hosts: tuple[str, ...] = ()  # further hosts of its attachments

    def address(self, path: str) -> str:
        return self.url.rstrip("/") + path

    def may_follow(self, url: str) -> bool:
        """Return whether an attachment's download may be redirected to `url`: only to its own or configured hosts.

        Otherwise, an author of attachments could make this process read from any server that it can reach.
        """
        target = httpx.URL(url)
        if is_same_site(httpx.URL(self.url), target):
            return True
        allowed = (*self.hosts, *(_CLOUD_MEDIA if self.cloud else ()))
        return target.scheme == "https" and target.port is None and target.host in allowed


def is_cloud(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host.endswith(".atlassian.net") or host == "api.atlassian.com"


class ConfluenceApi:
    def __init__(self, web: WebClient, site: ConfluenceAddress, *, credential: str = "") -> None:
        self._web, self._site, self._credential = web, site, credential

    def check(self, spaces: tuple[str, ...]) -> None:
        """Raise `SourceUnavailable` unless the credential is accepted and may see these spaces.

        Confluence shows fewer pages to anonymous callers, and missing pages would count as deleted.
        """
        if self._credential and self._get_object("/rest/api/user/current").get("type") == "anonymous":
            hint = f"Check {self._credential}: it may be wrong or expired."
            raise SourceUnavailable(f"{format_url(self._site.url)} treats this account as anonymous.", hint=hint)
        for space in spaces:
            if not self._can_see(space):
                hint = "Check its key, and the account's permissions: Confluence does not say which is wrong."
                raise SourceUnavailable(f"{format_url(self._site.url)} shows no space {space}.", hint=hint)

    def pages(self, space: str, kind: str, statuses: tuple[str, ...]) -> Iterator[Content]:
        """List the pages (`page`) or blog posts (`blogpost`) of a space; of all spaces if `space` is empty."""
        if self._site.cloud:
            yield from self._search(_build_cql(kind, space), _DETAILS, statuses)
            return
        if "current" in statuses:
            query: QueryParams = {"type": kind, "status": "current", "limit": _LISTING_SIZE, "expand": _DETAILS}
            yield from self._follow_pages("/rest/api/content", {**query, **({"spaceKey": space} if space else {})})

    def attachments(self, space: str) -> Iterator[Content]:
        return self._search(_build_cql("attachment", space), "version,container,metadata.labels", ("current",))

    def by_id(self, ids: Iterable[str], *, texts: bool) -> Iterator[Content]:
        """Look up contents by their ids, with their texts if `texts`. Hidden contents are missing in the result."""
        cql = f"id in ({','.join(ids)})"
        return self._search(cql, "body.storage,version" if texts else _DETAILS, ("current", "archived"))

    def text(self, number: str) -> Content | None:
        """Get one content with its text, without the search index, which may be behind. None if it is hidden."""
        address = self._site.address(f"/rest/api/content/{quote(number)}")
        reply = self._web.get(address, {"expand": "body.storage,version"})
        return _parse_json(reply) if reply.status == _OK else None

    def readers(self, number: str) -> ReaderSet | None:
        """Return who may read a content that listings omit, such as a folder; None if unknown."""
        path = f"/rest/api/content/{quote(number)}/restriction/byOperation/read"
        reply = self._web.get(self._site.address(path), {"expand": "restrictions.user,restrictions.group"})
        return parse_readers(_parse_json(reply)) if reply.status == _OK else None

    def download(self, path: str) -> bytes:
        """Download an attachment. The credential is never sent to other hosts."""
        reply = self._web.get(self._site.address(path), follow=self._site.may_follow)
        if reply.status != _OK:
            raise SourceUnavailable(f"{format_url(reply.url)} answers HTTP {reply.status}.", hint=RETRY_HINT)
        return reply.content

    def _can_see(self, space: str) -> bool:
        if self._site.cloud:
            spaces = self._get_object("/api/v2/spaces", {"keys": space}).get("results", ())
            return any(shown.get("key") == space for shown in spaces)
        return self._web.get(self._site.address(f"/rest/api/space/{quote(space)}")).status == _OK

    def _search(self, cql: str, expand: str, statuses: tuple[str, ...]) -> Iterator[Content]:
        limit = BATCH_SIZE if "body" in expand else _LISTING_SIZE
        query: dict[str, str | int] = {"cql": cql, "limit": limit, "expand": expand}
        if self._site.cloud and statuses != ("current",):
            query["cqlcontext"] = json.dumps({"contentStatuses": list(statuses)})
        return self._follow_pages("/rest/api/content/search", query)

    def _follow_pages(self, path: str, query: QueryParams) -> Iterator[Content]:
        while True:
            answer = self._get_object(path, query)
            yield from answer.get("results", ())
            links = answer.get("_links") or {}
            if not (following := links.get("next")):
                return
            # Use only its path and query: it must not name another host, and often repeats the context path.
            parts = urlsplit(str(following))
            next_query = dict(parse_qsl(parts.query, keep_blank_values=True))
            refuse_repeated_query(self._site.url, query, next_query)
            path = "/rest/" + parts.path.partition("/rest/")[2]
            query = next_query

    def _get_object(self, path: str, query: QueryParams | None = None) -> Content:
        reply = self._web.get(self._site.address(path), query, "application/json")
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
        above=tuple(str(ancestor["id"]) for ancestor in content.get("ancestors") or ()),
        readers=None if restrictions is None else parse_readers(restrictions),
    )


def parse_readers(content: Content) -> ReaderSet | None:
    """Return who may read a content, by its restrictions of the read operation; None if the answer lacks these."""
    restrictions = content.get("restrictions")
    if not isinstance(restrictions, dict):
        return None
    readers: set[str] = set()
    for kind, names in (("user", ("username", "accountId", "email")), ("group", ("name", "id"))):
        subjects = restrictions.get(kind)
        if not isinstance(subjects, dict) or "results" not in subjects:
            return None
        for subject in subjects["results"]:
            readers |= {f"{kind}:{subject[name]}".casefold() for name in names if subject.get(name)} or {f"{kind}:?"}
    return frozenset(readers)


def parse_people(content: Content) -> Iterator[tuple[str, str]]:
    by = (content.get("version") or {}).get("by") or {}
    for key in ("accountId", "userKey", "username"):
        if by.get(key) and by.get("displayName"):
            yield str(by[key]), str(by["displayName"])


def _build_cql(kind: str, space: str) -> str:
    return f'type = {kind} and space = "{space}"' if space else f"type = {kind}"


def _parse_json(reply: WebResponse) -> Content:
    answer = parse_json_object(reply.content)
    if answer is None:
        hint = "Check the address; it may return a login page."
        raise SourceUnavailable(f"{format_url(reply.url)} does not answer with JSON.", hint=hint)
    return answer


def find_page_id(address: str, site: ConfluenceAddress) -> str:
    """Return the id of the page at an address of this Confluence; empty for other addresses."""
    parts, base = urlsplit(address), urlsplit(site.url)
    if parts.netloc.lower() != base.netloc.lower() or not parts.path.startswith(base.path.rstrip("/")):
        return ""
    steps = parts.path.split("/")
    after = steps[steps.index("pages") + 1 :] if "pages" in steps else []
    number = dict(parse_qsl(parts.query)).get("pageId") or next((step for step in after if step.isdigit()), "")
    return number if number.isdigit() else ""
