"""A fake wiki with an api.php on 127.0.0.1, which refuses all queries that it does not know.

Pages, redirects, recent changes and logs behave as in MediaWiki: moving leaves a redirect and makes a revision,
deleting removes a page's recent changes, restoring keeps its id. Tests set its clock.

    wiki = Wiki()
    wiki.edit("Holidays", "Thirty days.")
    with serve(wiki.answer) as server: ...  # server.url + "/w/api.php"
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.ingest.servers.mediawiki_queries import Refused, asked
from tests.ingest.servers.web import Answer, Request, answer_json

SPACES = {0: "", 4: "Project", 12: "Help", 14: "Category"}


@dataclass
class Page:
    id: int
    title: str
    namespace: int
    text: str
    revision: int
    changed: datetime
    categories: tuple[str, ...] = ()

    @property
    def target(self) -> str | None:
        if not self.text.startswith("#REDIRECT [["):
            return None
        return self.text.partition("[[")[2].partition("]]")[0].partition("#")[0]


@dataclass
class Wiki:
    most: int = 3  # entries of a list per response
    contents: int = 2  # texts per response
    user: str = ""
    password: str = ""  # name of the only reader; empty: everyone may read
    bearer: str = ""
    model: str = "wikitext"
    pages: dict[int, Page] = field(default_factory=dict)
    deleted: dict[int, Page] = field(default_factory=dict)
    changes: list[dict[str, Any]] = field(default_factory=list)
    logs: list[dict[str, Any]] = field(default_factory=list)
    now: datetime = datetime(2026, 11, 1, 8, 0, tzinfo=UTC)
    faults: list[Answer] = field(default_factory=list)  # sent once each instead of responses
    rejected: list[str] = field(default_factory=list)
    fetched: list[int] = field(default_factory=list)  # ids of pages whose text was requested, in order
    requests: list[dict[str, str]] = field(default_factory=list)
    before: Callable[[Mapping[str, str]], None] = lambda _: None  # called before each response
    tokens: set[str] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)
    _last: int = 0

    def tick(self, *, hours: float = 1) -> None:
        self.now += timedelta(hours=hours)

    def expire(self, *, days: float) -> None:
        """Drop older recent changes, as wikis do."""
        since = self.now - timedelta(days=days)
        self.changes = [entry for entry in self.changes if entry["at"] >= since]

    def titled(self, title: str) -> Page | None:
        return next((page for page in self.pages.values() if page.title == title), None)

    def edit(self, title: str, text: str, *categories: str) -> Page:
        page = self.titled(title)
        kind = "edit" if page else "new"
        if page is None:
            page = self._page(title)
        page.text, page.categories = text, categories
        self._revised(page)
        self.changes.append(self._entry(page, type=kind, revid=page.revision))
        return page

    def move(self, title: str, new: str, *, redirect: bool = True) -> bool:
        page, target = self.titled(title), self.titled(new)
        if page is None or title == new or (target and target.target != title):
            return False
        if target:
            del self.pages[target.id]
            self._log(target, "delete", "delete_redir")
        page.title, page.namespace = new, _namespace(new)
        self._revised(page)
        self._log(page, "move", "move_redir" if target else "move", title=title, params={"target_title": new})
        if redirect:
            self._revised(left := self._page(title))
            left.text = f"#REDIRECT [[{new}]]"
        return True

    def delete(self, title: str) -> bool:
        page = self.titled(title)
        if page is None:
            return False
        del self.pages[page.id]
        self.deleted[page.id] = page
        self.changes = [entry for entry in self.changes if entry["pageid"] != page.id]
        self._log(page, "delete", "delete")
        return True

    def restore(self, title: str, *, same_id: bool = True) -> bool:
        page = next((page for page in self.deleted.values() if page.title == title), None)
        if page is None or self.titled(title):
            return False
        del self.deleted[page.id]
        if not same_id:
            self._last += 1
            page.id = self._last
        self.pages[page.id] = page
        self._log(page, "delete", "restore", pageid=page.id)
        return True

    def protect(self, title: str) -> bool:
        page = self.titled(title)
        if page:
            self._revised(page)
            self._log(page, "protect", "protect", pageid=page.id)
        return page is not None

    def answer(self, request: Request) -> Answer:
        parts = urlsplit(request.path)
        fields = dict(parse_qsl((parts.query + "&" + request.form.decode()).strip("&"), keep_blank_values=True))
        if parts.path != "/w/api.php":
            return Answer(404, b"<!doctype html><title>Not found</title>")
        self.before(fields)
        if self.faults and fields.get("action") == "query" and fields.get("meta") != "tokens":
            return self.faults.pop(0)
        self.requests.append(fields)
        try:
            body, headers = asked(self, fields, request)
        except Refused as error:
            self.rejected.append(f"{error}: {fields}")
            body, headers = {"error": {"code": str(error), "info": "No."}}, {}
        return answer_json(body, **headers)

    def _page(self, title: str) -> Page:
        self._last += 1
        self.pages[self._last] = made = Page(self._last, title, _namespace(title), "", 0, self.now)
        return made

    def _revised(self, page: Page) -> None:
        self._last += 1
        page.revision, page.changed = self._last, self.now

    def _entry(self, page: Page, **more: Any) -> dict[str, Any]:
        fields = {"at": self.now, "ns": page.namespace, "title": page.title, "pageid": page.id}
        return {**fields, **more}

    def _log(self, page: Page, kind: str, action: str, **more: Any) -> None:
        fields = {"pageid": 0 if kind == "delete" else page.id, "logpage": page.id, "params": {}, **more}
        self.logs.append(self._entry(page, type=kind, action=action, **fields))


def _namespace(title: str) -> int:
    prefix = title.partition(":")[0] if ":" in title else ""
    return next((number for number, name in SPACES.items() if name == prefix), 0)


def busy(code: str = "maxlag", seconds: str = "") -> Answer:
    """Return an error response of a busy wiki."""
    headers = {"Retry-After": seconds} if seconds else {}
    return answer_json({"error": {"code": code, "info": "Waiting."}, "servedby": "here"}, **headers)
