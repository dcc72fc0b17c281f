"""The rules of a wiki's api.php: valid queries, and responses with continuations."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.ingest.servers.mediawiki import Page, Wiki
    from tests.ingest.servers.web import Request

Query = dict[str, str]
Body = tuple[dict[str, Any], dict[str, str]]

_ALWAYS = {"action", "format", "formatversion", "maxlag", "assert", "continue", "curtimestamp"}
_MODULES: dict[str, set[str]] = {
    "siteinfo": {"siprop"},
    "tokens": {"type"},
    "recentchanges": {"rcdir", "rctype", "rcprop", "rclimit", "rcstart", "rcnamespace", "rccontinue"},
    "logevents": {"ledir", "letype", "lelimit", "lestart", "leprop", "lecontinue"},
    "allpages": {"gapnamespace", "gapfilterredir", "gaplimit", "gapcontinue"},
    "info": {"inprop"},
    "revisions": {"rvprop", "rvslots", "rvcontinue"},
    "redirects": {"rdprop", "rdlimit", "rdnamespace", "rdcontinue"},
    "categories": {"cllimit", "clcontinue"},
}


class Refused(Exception):
    """`str()` is MediaWiki's error code."""


def asked(wiki: Wiki, query: Query, request: Request) -> Body:
    if query.get("formatversion") != "2" or query.get("format") != "json":
        raise Refused("badformat")
    if query.get("action") == "login":
        return _login(wiki, query, request)
    if query.get("action") != "query" or request.form:
        raise Refused("badvalue")
    modules, props = _checked(wiki, query)
    if "tokens" in modules:
        return {"batchcomplete": True, "query": {"tokens": {"logintoken": "token+\\"}}}, {}
    if query.get("maxlag") is None:
        raise Refused("maxlag-missing")
    _check_reader(wiki, query, request)
    return _answer(wiki, query, modules, props), {}


def _checked(wiki: Wiki, query: Query) -> tuple[list[str], list[str]]:
    """Return the requested modules and properties; refuse unknown parameters."""
    modules = [query[name] for name in ("meta", "list", "generator") if name in query]
    props = query["prop"].split("|") if "prop" in query else []
    allowed = _ALWAYS | {"meta", "list", "generator", "prop", "titles", "pageids", "redirects"}
    for module in (*modules, *props):
        if module not in _MODULES:
            raise Refused("badvalue")
        allowed |= _MODULES[module]
    if unknown := set(query) - allowed:
        raise Refused(f"unrecognizedparams-{sorted(unknown)}")
    for name, value in query.items():
        if name.endswith("limit") and value != "max" and not 0 < int(value) <= 500:
            raise Refused("toohigh")
        if name.endswith("continue") and value not in wiki.tokens:
            raise Refused("badcontinue")
    return modules, props


def _login(wiki: Wiki, query: Query, request: Request) -> Body:
    if not request.form or "lgpassword" in request.path:
        raise Refused("mustpostparams")
    if query.get("lgtoken") != "token+\\":
        return {"login": {"result": "WrongToken"}}, {}
    if (query.get("lgname"), query.get("lgpassword")) != (wiki.user, wiki.password):
        return {"login": {"result": "Failed", "reason": "Incorrect username or password entered."}}, {}
    session = f"s{len(wiki.sessions)}"
    wiki.sessions.add(session)
    return {"login": {"result": "Success", "lgusername": wiki.user}}, {"Set-Cookie": f"session={session}; path=/"}


def _check_reader(wiki: Wiki, query: Query, request: Request) -> None:
    cookie = request.headers.get("cookie", "").partition("session=")[2].partition(";")[0]
    inside = cookie in wiki.sessions or (
        bool(wiki.bearer) and request.headers.get("authorization") == f"Bearer {wiki.bearer}"
    )
    if query.get("assert") == "user" and not inside:
        raise Refused("assertuserfailed")
    if (wiki.user or wiki.bearer) and not inside:
        raise Refused("readapidenied")
    if inside and query.get("assert") != "user":
        raise Refused("assert-missing")


def _answer(wiki: Wiki, query: Query, modules: Sequence[str], props: Sequence[str]) -> dict[str, Any]:
    body: dict[str, Any] = {"batchcomplete": True, "query": {}}
    if "curtimestamp" in query:
        body["curtimestamp"] = _stamp(wiki.now)
    if "siteinfo" in modules:
        body["query"] = _siteinfo()
    for name, prefix, entries in (("recentchanges", "rc", wiki.changes), ("logevents", "le", wiki.logs)):
        if name in modules:
            _events(wiki, query, prefix, entries, body)
    if "allpages" in modules or "titles" in query or "pageids" in query:
        _pages(wiki, query, props, body)
    return body


def _siteinfo() -> dict[str, Any]:
    general = {
        "lang": "en", "server": "http://wiki.test", "base": "http://wiki.test/wiki/Main_Page", "wikiid": "testwiki",
        "articlepath": "/wiki/$1", "case": "first-letter", "generator": "MediaWiki 1.43.0",
    }  # fmt: skip
    spaces = {0: "", 4: "Project", 12: "Help", 14: "Category"}
    named = {str(number): {"id": number, "name": name, "canonical": name} for number, name in spaces.items()}
    return {"general": general, "namespaces": named, "namespacealiases": [{"id": 4, "alias": "P"}]}


def _events(wiki: Wiki, query: Query, prefix: str, entries: Sequence[dict[str, Any]], body: dict[str, Any]) -> None:
    if query.get(f"{prefix}dir") != "newer":
        raise Refused("invalid-dir")
    if "letype" in query and "|" in query["letype"]:
        raise Refused("multival_letype")
    start = datetime.fromisoformat(query[f"{prefix}start"]) if f"{prefix}start" in query else None
    kinds = set(query.get(f"{prefix}type", "").split("|")) - {""}
    spaces = set(query.get("rcnamespace", "").split("|")) - {""}
    events = [
        entry
        for entry in entries
        if (start is None or entry["at"] >= start)
        and (not kinds or entry["type"] in kinds)
        and (not spaces or str(entry["ns"]) in spaces)
    ]
    limit = query.get(f"{prefix}limit", "10")
    most = min(wiki.most, 500 if limit == "max" else int(limit))
    offset = int(query.get(f"{prefix}continue", "0|0").rpartition("|")[2])
    name = "recentchanges" if prefix == "rc" else "logevents"
    shown = [{**entry, "timestamp": _stamp(entry["at"])} for entry in events[offset : offset + most]]
    body["query"][name] = [{key: value for key, value in entry.items() if key != "at"} for entry in shown]
    if offset + most < len(events):
        body["continue"] = _token(wiki, {f"{prefix}continue": f"20261101|{offset + most}", "continue": "-||"})


def _pages(wiki: Wiki, query: Query, props: Sequence[str], body: dict[str, Any]) -> None:
    chosen, following = _chosen(wiki, query, body)
    pages = [_shown(page) for page in chosen]
    body["query"]["pages"] = pages
    going_on: dict[str, str] = {}
    contents = "content" in query.get("rvprop", "")
    if contents and len(pages) > 50:
        raise Refused("toomanyvalues")
    for prop, prefix in (("revisions", "rv"), ("redirects", "rd"), ("categories", "cl")):
        if prop not in props:
            continue
        items = [(at, item) for at, page in enumerate(chosen) for item in _items(wiki, query, prop, page)]
        most = wiki.contents if contents and prop == "revisions" else wiki.most
        most = len(items) if prop == "revisions" and not contents else most
        # Items of an earlier response are not repeated.
        fresh = "continue" not in query or query["continue"].startswith("gapcontinue")
        if not fresh and f"{prefix}continue" not in query:
            continue
        offset = int(query.get(f"{prefix}continue", "0|0").rpartition("|")[2])
        for at, item in items[offset : offset + most]:
            pages[at].setdefault(prop, []).append(item)
            if contents and prop == "revisions":
                wiki.fetched.append(chosen[at].id)
        if offset + most < len(items):
            going_on[f"{prefix}continue"] = f"{prop}|{offset + most}"
    if going_on:
        del body["batchcomplete"]
        here = {"gapcontinue": query["gapcontinue"]} if "gapcontinue" in query else {}
        body["continue"] = _token(wiki, {**here, **going_on, "continue": "||"})
    elif following:
        body["continue"] = _token(wiki, {"gapcontinue": following, "continue": "gapcontinue||"})


def _chosen(wiki: Wiki, query: Query, body: dict[str, Any]) -> tuple[list[Any], str]:
    """Return the requested pages in the API's order, and the continuation."""
    if "generator" in query:
        if query.get("gapfilterredir") != "nonredirects":
            raise Refused("fake-only-nonredirects")
        pages = [page for page in wiki.pages.values() if str(page.namespace) == query["gapnamespace"]]
        pages = sorted((page for page in pages if page.target is None), key=lambda page: page.title)
        start = query.get("gapcontinue", "")
        pages = [page for page in pages if page.title >= start]
        return pages[: wiki.most], pages[wiki.most].title if len(pages) > wiki.most else ""
    names = (query.get("pageids") or query["titles"]).split("|")
    if len(names) > 50 or len(set(names)) != len(names):
        raise Refused("toomanyvalues")
    if "pageids" in query:
        return [wiki.pages.get(int(name)) or {"pageid": int(name), "missing": True} for name in names], ""
    led: dict[Any, Any] = {}
    for name in names:
        title, hops = name, 0
        while (page := wiki.titled(title)) and page.target is not None and "redirects" in query and hops < 5:
            body["query"].setdefault("redirects", []).append({"from": title, "to": page.target})
            title, hops = page.target, hops + 1
        led[page.id if page else title] = page or {"ns": 0, "title": title, "missing": True}
    return list(led.values()), ""


def _shown(page: Page | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(page, dict):
        return dict(page)
    fields = {
        "pageid": page.id, "ns": page.namespace, "title": page.title, "lastrevid": page.revision,
        "length": len(page.text), "fullurl": f"http://wiki.test/wiki/{page.title.replace(' ', '_')}",
        "canonicalurl": f"http://wiki.test/wiki/{page.title.replace(' ', '_')}",
    }  # fmt: skip
    return {**fields, "redirect": True} if page.target is not None else fields


def _items(wiki: Wiki, query: Query, prop: str, page: Any) -> list[dict[str, Any]]:
    if isinstance(page, dict):
        return []
    if prop == "categories":
        return [{"ns": 14, "title": f"Category:{name}"} for name in page.categories]
    if prop == "redirects":
        spaces = query["rdnamespace"].split("|")
        leading = [other for other in wiki.pages.values() if other.target == page.title]
        return [{"title": other.title} for other in leading if str(other.namespace) in spaces]
    revision: dict[str, Any] = {"revid": page.revision, "timestamp": _stamp(page.changed)}
    if "content" in query["rvprop"]:
        if query.get("rvslots") != "main":
            raise Refused("slots-missing")
        revision["slots"] = {"main": {"contentmodel": wiki.model, "content": page.text}}
    return [revision]


def _token(wiki: Wiki, values: dict[str, str]) -> dict[str, str]:
    wiki.tokens |= set(values.values())
    return values


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
