"""A fake Confluence, Cloud or Data Center, that refuses unknown requests.

It has pages in a tree, restrictions, spaces that the account does not see, and two ways of paging: by offset on
Data Center, where deletions shift the rest, and by cursor on Cloud.

    fake = Confluence(cloud=True)
    fake.write("1", "Holidays", "<p>Thirty days.</p>")
    with serve(fake.answer) as server: ...  # server.url + fake.context
"""

import base64
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.ingest.servers.web import Answer, Request, answer_json

DETAILS = {
    "version", "space", "ancestors", "metadata.labels", "container", "body.storage",
    "restrictions.read.restrictions.user", "restrictions.read.restrictions.group",
}  # fmt: skip


@dataclass
class Content:
    id: str
    title: str
    body: str
    space: str = "HR"
    parent: str = ""
    kind: str = "page"
    status: str = "current"
    version: int = 1
    when: datetime = datetime(2026, 11, 1, tzinfo=UTC)
    labels: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    container: str = ""


CLOUD_MEDIA = "https://api.media.atlassian.com/file"


@dataclass
class Confluence:
    cloud: bool = False
    most: int = 3  # largest number of contents per response
    spaces: set[str] = field(default_factory=lambda: {"HR", "OPS"})  # visible to the account
    password: str = "t0k3n"
    contents: dict[str, Content] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)  # ids invisible to the account
    unindexed: set[str] = field(default_factory=set)  # ids that the search does not find yet
    faults: list[Answer] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)  # ids of contents whose body was sent, in order
    paths: list[str] = field(default_factory=list)
    media: str = ""  # where downloads are redirected to
    hosts: set[str] = field(default_factory=set)  # other hosts that received requests
    before: Callable[[str], None] = lambda _: None
    now: datetime = datetime(2026, 11, 2, tzinfo=UTC)
    _cursors: dict[str, tuple[dict[str, str], int]] = field(default_factory=dict)
    _versions: Counter[str] = field(default_factory=Counter)

    @property
    def context(self) -> str:
        return "/wiki" if self.cloud else "/confluence"

    def write(self, number: str, title: str, body: str, **more: Any) -> Content:
        """Create a page, or a new version; other fields stay."""
        self.now += timedelta(minutes=5)
        page = self.contents.setdefault(number, Content(number, title, body))
        self._versions[number] += 1  # a deleted id does not return to version 1
        page.version = self._versions[number]
        page.title, page.body, page.when = title, body, self.now
        for name, value in more.items():
            setattr(page, name, value)
        return page

    def answer(self, request: Request) -> Answer:
        parts = urlsplit(request.path)
        self.before(request.path)
        if self.faults:
            return self.faults.pop(0)
        self.paths.append(request.path)
        path = unquote(parts.path)
        host = request.headers["host"]
        if host.partition(":")[0] not in {"confluence.test", "127.0.0.1"}:
            return self._media(host, path, request)
        if not path.startswith(self.context + "/"):
            return answer_json({"message": "no such page"}, 404)
        inside = self._inside(request)
        if not inside and not self.cloud:
            return Answer(401, b"<html>Basic Authentication Failure</html>")
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        try:
            return self._route(path.removeprefix(self.context), query, inside=inside)
        except Refused as error:
            self.rejected.append(f"{error}: {request.path}")
            return answer_json({"statusCode": 400, "message": str(error)}, 400)

    def _media(self, host: str, path: str, request: Request) -> Answer:
        """Answer as the host of attachments, which must receive no credential."""
        self.hosts.add(host)
        if "authorization" in request.headers:
            raise Refused(f"a credential is sent to {host}")
        return Answer(200, self.contents[path.rpartition("/")[2]].body.encode())

    def _inside(self, request: Request) -> bool:
        fields = request.headers.get("authorization", "")
        if self.cloud:
            return fields == "Basic " + base64.b64encode(f"ann@acme.test:{self.password}".encode()).decode()
        return fields == f"Bearer {self.password}"

    def _route(self, path: str, query: dict[str, str], *, inside: bool) -> Answer:
        if path == "/rest/api/user/current":
            return answer_json({"type": "known", "displayName": "Bot"} if inside else {"type": "anonymous"})
        if path == "/rest/api/content/search":
            return self._search(query, inside=inside)
        if match := re.fullmatch(r"/rest/api/content/([\w]+)/restriction/byOperation/read", path):
            return self._restriction(match[1], query)
        return self._cloud(path, query, inside=inside) if self.cloud else self._data_center(path, query)

    def _cloud(self, path: str, query: dict[str, str], *, inside: bool) -> Answer:
        if inside and (match := re.fullmatch(r"/rest/api/content/(\w+)/child/attachment/(\w+)/download", path)):
            if self.contents[match[2]].container != match[1]:
                return answer_json({}, 404)
            return Answer(302, b"", {"Location": f"{self.media or CLOUD_MEDIA}/{match[2]}"})
        if path != "/api/v2/spaces":
            return answer_json({"message": "This endpoint has been removed."}, 410)
        _only(query, {"keys"})
        keys = set(query["keys"].split(",")) & self.spaces if inside else set()
        return answer_json({"results": [{"id": "9", "key": key} for key in keys], "_links": {}})

    def _data_center(self, path: str, query: dict[str, str]) -> Answer:
        if path == "/rest/api/content":
            return self._list(query)
        if path.startswith("/rest/api/space/"):
            return (
                answer_json({"key": path[16:]})
                if path[16:] in self.spaces
                else answer_json({"message": "No space"}, 404)
            )
        if match := re.fullmatch(r"/rest/api/content/(\w+)", path):
            _only(query, {"expand"})
            page = self.contents.get(match[1])
            return answer_json(self._shown(page, query)) if page and self._visible(page) else answer_json({}, 404)
        if match := re.fullmatch(r"/download/attachments/(\w+)/.*", path):
            if self.media:
                return Answer(302, b"", {"Location": f"{self.media}/{match[1]}"})
            return Answer(200, self.contents[match[1]].body.encode(), {"Content-Type": "application/octet-stream"})
        return answer_json({"message": "null for uri"}, 404)

    def _restriction(self, number: str, query: dict[str, str]) -> Answer:
        if query != {"expand": "restrictions.user,restrictions.group"}:
            raise Refused("expand")
        page = self.contents.get(number)
        return answer_json(_restricted(page)) if page and self._visible(page) else answer_json({}, 404)

    def _visible(self, page: Content) -> bool:
        return page.id not in self.hidden and page.space in self.spaces

    def _list(self, query: dict[str, str]) -> Answer:
        _only(query, {"type", "status", "limit", "expand", "spaceKey", "start"})
        if query.get("status") not in {"current", "trashed", "draft"} or query.get("type") not in {"page", "blogpost"}:
            raise Refused("status or type")
        match = [
            page for page in self.contents.values()
            if page.status == query["status"] and page.kind == query["type"] and self._visible(page)
            and query.get("spaceKey", page.space) == page.space
        ]  # fmt: skip
        return self._results(match, query, int(query.get("start", 0)), "/rest/api/content")

    def _search(self, query: dict[str, str], *, inside: bool) -> Answer:
        start = 0
        if "cursor" in query:
            if query["cursor"] not in self._cursors:
                raise Refused("cursor")
            query, start = self._cursors[query["cursor"]]
        _only(query, {"cql", "limit", "expand"} | ({"cqlcontext"} if self.cloud else {"start"}))
        statuses = json.loads(query.get("cqlcontext", '{"contentStatuses": ["current"]}'))["contentStatuses"]
        match = [
            page for page in self.contents.values()
            if inside and self._visible(page) and page.id not in self.unindexed and page.status in statuses
            and _matches(page, query["cql"])
        ]  # fmt: skip
        context = "" if self.cloud else self.context
        return self._results(match, query, int(query.get("start", start)), f"{context}/rest/api/content/search")

    def _results(self, match: list[Content], query: dict[str, str], start: int, path: str) -> Answer:
        limit = int(query.get("limit", 25))
        if not 0 < limit <= (50 if "body" in query.get("expand", "") else 200):
            raise Refused("limit")
        end = start + min(limit, self.most)
        links = {"base": "https://elsewhere.test/wiki", "context": self.context}
        if end < len(match) and self.cloud:
            cursor = f"c{len(self._cursors)}"
            links["next"] = f"{path}?next=true&cursor={cursor}"
            self._cursors[cursor] = (query, end)
        elif end < len(match):
            links["next"] = f"{path}?{'&'.join(f'{name}={value}' for name, value in (query | {'start': end}).items())}"
        return answer_json({"results": [self._shown(page, query) for page in match[start:end]], "_links": links})

    def _shown(self, page: Content, query: dict[str, str]) -> dict[str, Any]:
        wanted = set(query.get("expand", "").split(",")) - {""}
        if unknown := wanted - DETAILS:
            raise Refused(f"expand {unknown}")
        fields: dict[str, Any] = {"id": page.id, "type": page.kind, "status": page.status, "title": page.title}
        webui = f"/spaces/{page.space}/pages/{page.id}" if self.cloud else f"/pages/viewpage.action?pageId={page.id}"
        fields["_links"] = {"webui": webui}
        if page.kind == "attachment":
            fields["_links"]["download"] = f"/download/attachments/{page.id}/{page.title}?version={page.version}"
            fields["extensions"] = {"fileSize": len(page.body)}
        fields["version"] = {
            "number": page.version, "when": page.when.isoformat(),
            "by": {"type": "known", "accountId": "5b:1", "displayName": "Ann Lee"},
        }  # fmt: skip
        fields["space"] = {"key": page.space}
        fields["ancestors"] = [{"id": ancestor, "type": "page"} for ancestor in self._above(page)]
        fields["metadata"] = {"labels": {"results": [{"prefix": "global", "name": name} for name in page.labels]}}
        fields["restrictions"] = {"read": _restricted(page)}
        fields["container"] = {"id": page.container}
        fields["body"] = {"storage": {"value": page.body, "representation": "storage"}}
        if "body.storage" in wanted:
            self.fetched.append(page.id)
        firsts = {name.partition(".")[0] for name in wanted} | {"id", "type", "status", "title", "_links", "extensions"}
        return {name: value for name, value in fields.items() if name in firsts}

    def _above(self, page: Content) -> list[str]:
        line: list[str] = []
        while page.parent:
            line.insert(0, page.parent)
            if page.parent not in self.contents:
                break
            page = self.contents[page.parent]
        return line


class Refused(Exception):
    """`str()` says what was wrong."""


def _only(query: dict[str, str], allowed: set[str]) -> None:
    if unknown := set(query) - allowed:
        raise Refused(f"unknown {sorted(unknown)}")


def _matches(page: Content, cql: str) -> bool:
    if match := re.fullmatch(r"id in \((\w+(?:,\w+)*)\)", cql):
        ids = match[1].split(",")
        if len(ids) > 50 or len(ids) != len(set(ids)):
            raise Refused("ids")
        return page.id in ids
    match = re.fullmatch(r'type = (page|blogpost|attachment)(?: and space = "(\w+)")?', cql)
    if not match:
        raise Refused("cql")
    return page.kind == match[1] and match[2] in {None, page.space}


def _restricted(page: Content) -> dict[str, Any]:
    users = [{"type": "known", "username": name[5:]} for name in page.readers if name.startswith("user:")]
    groups = [{"type": "group", "name": name[6:]} for name in page.readers if name.startswith("group:")]
    return {"operation": "read", "restrictions": {"user": {"results": users}, "group": {"results": groups}}}
