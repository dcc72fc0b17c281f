"""Derive the address at which a site generator publishes a file. Pure.

The address is the base followed by a path: the path in the front matter, or else the one that the generator derives.
"""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from ingest.readers import value_parsers
from ingest.types import Site
from storage.language.lazy_pattern import lazy_compile

_PAGES = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx", ".html", ".htm", ".adoc", ".rst", ".ipynb"})
_POST = lazy_compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})[-/](.+)")
_NUMBERED = lazy_compile(r"\A(?!\d{4}-\d\d)(?!\d+\.\d)\d+\s*[-_.]+\s*(?=[^-_.\s])")
_PERMALINKS = {
    "pretty": "/:categories/:year/:month/:day/:title/",
    "date": "/:categories/:year/:month/:day/:title:output_ext",
    "none": "/:categories/:title:output_ext",
}


def build_published_url(base: str, key: str, fields: Mapping[str, Any], site: Site = "") -> str:
    """Return a file's address, by its path in the folder.

    It is empty if there is no base and no address in the front matter.
    """
    stated = _stated_path(base, fields, site)
    if _host(stated) or not base:
        return stated if _host(stated) else ""
    path = stated or (_GENERATORS[site](key, fields) if site and _is_page(key) else _served_path(key, site))
    return f"{base.rstrip('/')}/{quote(path.lstrip('/'))}"


def _is_page(key: str) -> bool:
    return PurePosixPath(key).suffix.lower() in _PAGES


def _stated_path(base: str, fields: Mapping[str, Any], site: Site) -> str:
    """Return the path or address in a page's front matter; empty if there is none, or if it is on another host."""
    for name in ("permalink", "url"):
        stated = str(fields.get(name) or "").strip()
        if host := _host(stated):
            if host == _host(base) or (name == "permalink" and not base):
                return stated
        elif (stated.startswith("/") and not re.search(r"[:{}]", stated)) or (
            stated and site == "hugo" and name == "url"
        ):
            return _clean(unquote(stated))
    return ""


def _host(address: str) -> str:
    """Return the host of a web address; empty for anything else."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return (parts.hostname or "") if parts.scheme in {"http", "https"} else ""


def _clean(path: str) -> str:
    """Return a path from the root of the site, with `..` resolved."""
    parts = [part for part in path.split("/") if part not in {"", ".", ".."}]
    return "/" + "/".join(parts) + ("/" if parts and path.endswith("/") else "")


def _served_path(key: str, site: Site) -> str:
    """Return the path at which a file that is not a page is published; its content is published unchanged."""
    roots = {"hugo": ("content/", "static/"), "mkdocs": ("docs/",), "docusaurus": ("static/",)}.get(site, ())
    return next((key.removeprefix(root) for root in roots if key.startswith(root)), key)


def _split(key: str, *root: str) -> tuple[list[str], str]:
    """Return a page's folders, without a leading `root` (the folder of all pages), and its name without suffix."""
    parts = list(PurePosixPath(key).parts)
    if tuple(parts[: len(root)]) == root:
        parts = parts[len(root) :]
    return parts[:-1], PurePosixPath(parts[-1]).stem if parts else ""


def _jekyll(key: str, fields: Mapping[str, Any]) -> str:
    folders, name = _split(key)
    post = _POST.fullmatch(name) if "_posts" in folders else None
    collection = folders[0][1:] if folders and folders[0].startswith("_") and not post else ""
    above = folders[: folders.index("_posts")] if post else [collection, *folders[1:]] if collection else folders
    index = not post and name.lower() in {"index", "readme"}
    form = str(fields.get("permalink") or "")
    form = _PERMALINKS.get(form, form) if post or form not in _PERMALINKS else {"pretty": "/:path/"}.get(form, "")
    if not form:
        form = _PERMALINKS["date"] if post else "/:folder/" if index else "/:path:output_ext"
    values = _jekyll_values(name, post, fields) | {
        "categories": "/".join([*above, *_names(fields, "categories", "category")] if post else []),
        "folder": "/".join(above),
        "path": "/".join(above if index else [*above, name]),
        "collection": collection,
    }
    return _clean(re.sub(r":([a-z_]+)", lambda part: values.get(part[1], ""), form))


def _jekyll_values(name: str, post: re.Match[str] | None, fields: Mapping[str, Any]) -> dict[str, str]:
    title = str(fields.get("slug") or (post[4] if post else name))
    dated = value_parsers.parse_date(fields.get("date")) if fields.get("date") else None
    year, month, day = (
        (f"{dated:%Y}", f"{dated:%m}", f"{dated:%d}")
        if dated
        else (post[1], f"{int(post[2]):02}", f"{int(post[3]):02}")
        if post
        else ("", "", "")
    )
    short = {"i_month": month.lstrip("0"), "i_day": day.lstrip("0"), "short_year": year[2:]}
    same = dict.fromkeys(("title", "slug", "name"), title)
    return {**same, **short, "year": year, "month": month, "day": day, "basename": name, "output_ext": ".html"}


def _names(fields: Mapping[str, Any], *names: str) -> list[str]:
    """Return the value of the first of these fields that is set, as a list of words in lower case."""
    value: Any = next((fields[name] for name in names if fields.get(name)), [])
    values = value if isinstance(value, list) else str(value).split()
    return [str(name).strip().lower() for name in values]


def _hugo(key: str, fields: Mapping[str, Any]) -> str:
    folders, name = _split(key, "content")
    parts = folders if name in {"_index", "index"} else [*folders, name]
    if parts and (slug := str(fields.get("slug") or "")) and name != "_index":
        parts = [*parts[:-1], slug]
    made = (re.sub(r"[^\w.+~-]", "", re.sub(r"\s+", "-", part.strip())).lower() for part in parts)
    return _clean("/".join(made) + "/")


def _mkdocs(key: str, _fields: Mapping[str, Any]) -> str:
    if PurePosixPath(key).suffix.lower() in {".html", ".htm"}:
        return _served_path(key, "mkdocs")
    folders, name = _split(key, "docs")
    return _clean("/".join(folders if name.lower() in {"index", "readme"} else [*folders, name]) + "/")


def _docusaurus(key: str, fields: Mapping[str, Any]) -> str:
    slug = str(fields.get("slug") or "")
    if key.startswith("blog/"):
        folders, name = _split(key, "blog")
        within = "/".join(folders if name == "index" else [*folders, name])
        post = _POST.search(within)
        dated = f"{post[1]}/{int(post[2]):02}/{int(post[3]):02}/{post[4]}" if post else within
        return _clean(f"blog/{slug or dated}")
    root = "docs" if key.startswith("docs/") else ""
    folders, name = _split(key, "src", "pages") if key.startswith("src/pages/") else _split(key, *filter(None, (root,)))
    folders, name = [_NUMBERED.sub("", folder, count=1) for folder in folders], _NUMBERED.sub("", name, count=1)
    if slug.startswith("/"):
        return _clean(f"{root}{slug}")
    index = name.lower() in {"index", "readme"} or bool(folders and name.lower() == folders[-1].lower())
    own = slug or str(fields.get("id") or "") or ("" if index else name)
    return _clean("/".join([root, *folders, own]))


_GENERATORS = {"jekyll": _jekyll, "hugo": _hugo, "mkdocs": _mkdocs, "docusaurus": _docusaurus}
