"""Read web pages, without navigation and other parts that all pages of a site repeat, and XML: RSS, Atom and others."""

import re
from collections.abc import Iterator
from datetime import datetime

from ingest.readers import front_matter, html_tree, plain_text, table_rows, template_tags, value_parsers
from ingest.readers.parsed_document import ContentItem, Heading, ParsedDocument
from ingest.readers.value_parsers import Element
from ingest.types import Block
from storage.language.lazy_pattern import lazy_compile

_DECLARED = lazy_compile(
    rb"""<meta[^>]+charset\s*=\s*["']?([\w-]+)|<\?xml[^>]+encoding\s*=\s*["']([\w-]+)""", re.IGNORECASE
)
_HEAD_BYTES = 4096
_MAIN = (".//main", ".//*[@role='main']", ".//article")
_SURROUNDINGS = ".//nav|.//aside|.//footer|.//form|.//*[@role='navigation' or @role='banner' or @role='contentinfo']"
_JUNK = lazy_compile(
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
"""Least share of a page's text in its main part, whatever it is called."""
_SUBPAGE = lazy_compile(r"\s+[|–—·»-]\s+")


def read_web_page(content: bytes) -> ParsedDocument:
    """Read an HTML file, which may be the template of a site generator."""
    return front_matter.read_with_fields(
        decode_markup(content), lambda markup: read_page_markup(template_tags.replace_tags(markup))
    )


def read_page_markup(markup: str) -> ParsedDocument:
    root = html_tree.parse_html(markup)
    if root is None:
        return ParsedDocument(())
    titles = [html_tree.get_element_text(heading) for heading in root.iter("h1")]
    named = root.findtext(".//title") or ""
    return ParsedDocument(
        items=html_tree.read_element(_find_main(root)),
        title=titles[0] if len(titles) == 1 else "",
        fallback_title=_SUBPAGE.split(" ".join(named.split()))[0],
        date=_date(root),
        language=value_parsers.primary_language(root.get("lang") or ""),
    )


def decode_markup(content: bytes) -> str:
    """Decode markup by the encoding that it declares, or else as text."""
    match = _DECLARED.search(content[:_HEAD_BYTES])
    encoding = (match[1] or match[2]).decode("ascii") if match else ""
    try:
        return (
            plain_text.strip_control_characters(content.decode(encoding))
            if encoding and content[:1] == b"<"
            else plain_text.decode_text(content)
        )
    except (LookupError, UnicodeDecodeError):
        return plain_text.decode_text(content)


def _find_main(root: Element) -> Element:
    body = root.find("body")
    page = root if body is None else body
    for surrounding in list(_surroundings(page)):
        if surrounding.getparent() is not None:
            surrounding.drop_tree()
    whole = len(page.text_content())
    for path in _MAIN:
        main = max(page.iterfind(path), key=lambda part: len(part.text_content()), default=None)
        if main is not None and len(main.text_content()) >= whole * _LEAST_SHARE:
            return main
    return page


def _surroundings(page: Element) -> Iterator[Element]:
    yield from page.xpath(_SURROUNDINGS)
    # The header of an article holds its title, that of a page the title of the site.
    yield from (header for header in page.iter("header") if header.getparent() is page)
    for element in page.iter("div", "section", "ul", "ol", "table", "span", "p"):
        names = f"{element.get('class', '')} {element.get('id', '')}"
        if names != " " and _JUNK.search(names):
            yield element


def _date(root: Element) -> datetime | None:
    metadata = {
        (meta.get("property") or meta.get("name") or meta.get("itemprop") or "").lower(): meta.get("content")
        for meta in root.iter("meta")
    }
    times = [time.get("datetime") for time in root.iter("time") if time.get("datetime")]
    candidates = [*(metadata[name] for name in _MODIFIED if name in metadata), *times[:1]]
    return value_parsers.parse_first_date(candidates)


_FEEDS = frozenset({"rss", "feed", "RDF"})
_ENTRY_LEVEL = 2
_BODIES = ("encoded", "content", "description", "summary")


def read_feed(content: bytes) -> ParsedDocument:
    root = value_parsers.parse_xml(content)
    name = value_parsers.local_name(root)
    if name == "html":
        return read_web_page(content)
    if name in _FEEDS:
        channel = next(root.iter("{*}channel"), root)
        return ParsedDocument(
            items=tuple(item for entry in root.iter("{*}item", "{*}entry") for item in _read_entry(entry)),
            title=_child_text(channel, "title"),
            date=value_parsers.parse_date(_child_text(channel, "lastBuildDate", "pubDate", "updated", "date")),
            language=value_parsers.primary_language(_child_text(channel, "language")),
        )
    return ParsedDocument(tuple(_read_texts(root)))


def _read_entry(entry: Element) -> Iterator[ContentItem]:
    yield Heading(_ENTRY_LEVEL, _child_text(entry, "title") or "Untitled")
    if date := value_parsers.parse_date(_child_text(entry, "pubDate", "updated", "published", "date")):
        yield Block(f"Published: {date:%Y-%m-%d}")
    body = max((_child_markup(entry, name) for name in _BODIES), key=len)
    for item in html_tree.read_html(body) if body.strip() else ():
        yield Heading(item.level + _ENTRY_LEVEL, item.text) if isinstance(item, Heading) else item


def _child_markup(entry: Element, name: str) -> str:
    child = entry.find(f"{{*}}{name}")
    if child is None:
        return ""
    return (child.text or "") if not len(child) else str(value_parsers.serialize_xml(child), "utf-8")


def _child_text(parent: Element, *names: str) -> str:
    children = (parent.find(f"{{*}}{name}") for name in names)
    texts = (value_parsers.element_text(child) for child in children if child is not None)
    return next(filter(None, texts), "")


def _read_texts(element: Element) -> Iterator[ContentItem]:
    """Read any XML. Children with only text become a row of facts. Mixed content becomes a paragraph."""
    facts = [(value_parsers.local_name(child), (child.text or "").strip()) for child in element if not len(child)]
    inside = [child for child in element if len(child)]
    own = (element.text or "").strip() or any((child.tail or "").strip() for child in element)
    if own:
        yield Block(value_parsers.element_text(element))
        return
    yield from table_rows.make_row_blocks([name for name, _ in facts], [[" ".join(text.split()) for _, text in facts]])
    for child in inside:
        yield from _read_texts(child)
