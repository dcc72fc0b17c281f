"""Web pages (.html) -> a reading: the main part of the page, without what surrounds it on every page of its site."""

import re
from collections.abc import Iterator
from datetime import datetime

from ingest.formats import dates, elements, plain, tree
from ingest.formats.elements import Element
from ingest.formats.reading import Reading

_DECLARED = re.compile(
    rb"""<meta[^>]+charset\s*=\s*["']?([\w-]+)|<\?xml[^>]+encoding\s*=\s*["']([\w-]+)""", re.IGNORECASE
)
_HEAD = 4096
_MAIN = (".//main", ".//*[@role='main']", ".//article")
_SURROUNDINGS = ".//nav|.//aside|.//footer|.//form|.//*[@role='navigation' or @role='banner' or @role='contentinfo']"
_JUNK = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navbox|navigation|menu|sidebar|breadcrumbs?|toc|footer|cookies?|newsletter|subscribe|"
    r"share|social|advert\w*|ads?|related|pagination|pager|skip|editsection|mw-editsection|noprint|printfooter|catlinks|"
    r"jump-to-nav|reflist|references|metadata|hatnote|theme-doc-toc\w*)(?:$|[\s_-])",
    re.IGNORECASE,
)
_MODIFIED = (
    "article:modified_time", "og:updated_time", "last-modified", "datemodified", "dcterms.modified",
    "article:published_time", "datepublished", "dcterms.date", "date",
)  # fmt: skip
_LEAST_SHARE = 0.3
"""Of the page's text; a part that holds less is not the main part, whatever it is called."""
_SUBPAGE = re.compile(r"\s+[|–—·»-]\s+")


def read(content: bytes) -> Reading:
    """Read a page's bytes in the encoding that it declares, else the one that they are in."""
    return read_text(decode(content))


def read_text(markup: str) -> Reading:
    """Read a page's markup."""
    root = elements.html(markup)
    if root is None:
        return Reading(())
    titles = [tree.plain(heading) for heading in root.iter("h1")]
    named = root.findtext(".//title") or ""
    return Reading(
        items=tree.read(_main(root)),
        title=titles[0] if len(titles) == 1 else "",
        fallback_title=_SUBPAGE.split(" ".join(named.split()))[0],
        date=_date(root),
        language=re.split(r"[-_]", root.get("lang") or "")[0].lower()[:2],
    )


def decode(content: bytes) -> str:
    """The text of markup, which may declare its encoding."""
    match = _DECLARED.search(content[:_HEAD])
    encoding = (match[1] or match[2]).decode("ascii") if match else ""
    try:
        return plain.cleaned(content.decode(encoding)) if encoding and content[:1] == b"<" else plain.decode(content)
    except (LookupError, UnicodeDecodeError):
        return plain.decode(content)


def _main(root: Element) -> Element:
    body = root.find("body")
    page = root if body is None else body
    for surrounding in list(_surroundings(page)):
        if surrounding.getparent() is not None:
            surrounding.drop_tree()
    whole = _length(page)
    for path in _MAIN:
        found = max(page.iterfind(path), key=_length, default=None)
        if found is not None and _length(found) >= whole * _LEAST_SHARE:
            return found
    return page


def _surroundings(page: Element) -> Iterator[Element]:
    yield from page.xpath(_SURROUNDINGS)
    # A header of an article holds its title; that of a page, the site's.
    yield from (header for header in page.iter("header") if header.getparent() is page)
    for element in page.iter("div", "section", "ul", "ol", "table", "span", "p"):
        names = f"{element.get('class', '')} {element.get('id', '')}"
        if names != " " and _JUNK.search(names):
            yield element


def _length(element: Element) -> int:
    return len(element.text_content())


def _date(root: Element) -> datetime | None:
    said = {
        (meta.get("property") or meta.get("name") or meta.get("itemprop") or "").lower(): meta.get("content")
        for meta in root.iter("meta")
    }
    times = [time.get("datetime") for time in root.iter("time") if time.get("datetime")]
    candidates = [*(said[name] for name in _MODIFIED if name in said), *times[:1]]
    return next((date for candidate in candidates if (date := dates.parsed(candidate))), None)
