"""Read the bodies of Confluence's pages: XHTML with `ac:` and `ri:` elements, fetched in batches of fifty."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape
from html.parser import HTMLParser

from ingest.readers import file_formats, html_tree, template_tags
from ingest.readers.parsed_document import ContentItem, ParsedDocument
from ingest.sandbox import Sandbox
from ingest.sources.confluence.confluence_api import ConfluenceApi, PageNode
from ingest.types import EMPTY, Page, UnreadableDocument
from ingest.web.http_reply import ResponseTooLarge
from storage.language.lazy_pattern import lazy_compile

_CDATA = lazy_compile(r"<!\[CDATA\[")
_CDATA_END = lazy_compile(r"\]\] ?>")  # inside their own CDATA, exports put a space before the last bracket
_UNENDED = lazy_compile(r"<(?![^<>]*>)")
_COMMENT, _COMMENT_END = lazy_compile(r"<!--"), lazy_compile(r"-->")
_MACROS = frozenset({"ac:structured-macro", "ac:macro"})
_CODE = frozenset({"code", "noformat", "code-block"})
_TITLED = frozenset({"info", "note", "tip", "warning", "panel", "expand", "code", "ui-expand", "details"})
_INCLUDING = frozenset({"include", "excerpt-include"})
_SILENT_MACROS = frozenset({"html", "html-include", "style", "toc", "anchor", "gadget"})  # their text is not content
_PARTS = frozenset({"ac:parameter", "ac:default-parameter"})
_SILENT_ELEMENTS = frozenset({
    "ac:task-id", "ac:task-uuid", "ac:placeholder", "ac:adf-attribute", "ac:adf-parameter", "ac:adf-mark",
})  # fmt: skip
_INLINE = frozenset({
    "ac:inline-comment-marker", "ac:link-body", "ac:plain-text-link-body", "ac:link", "ac:image", "ac:emoticon",
    *_MACROS,
})  # fmt: skip
_TAGS = {"ac:task-list": "ul", "ac:task": "li", "ac:task-body": "span", "ac:caption": "p"}
_STATES = {"complete": "☑ ", "incomplete": "☐ "}
_NAMING = {
    "ri:page": "ri:content-title", "ri:blog-post": "ri:content-title", "ri:attachment": "ri:filename",
    "ri:space": "ri:space-key", "ri:shortcut": "ri:parameter",
}  # fmt: skip
_USER = ("ri:account-id", "ri:userkey", "ri:username")


def read_storage_format(markup: str, users: Mapping[str, str] = EMPTY) -> tuple[ContentItem, ...]:
    """Read a page's body. `users` maps the keys or ids in mentions to names. Never raises."""
    return html_tree.read_html(convert_to_html(markup, users))


def convert_to_html(markup: str, users: Mapping[str, str] = EMPTY) -> str:
    writer = _HtmlWriter(users)
    plain = _replace_between(markup, _CDATA, _CDATA_END, lambda inside: escape(inside, quote=False))
    plain = _replace_between(plain, _COMMENT, _COMMENT_END, lambda _: "")
    # Other declarations are invalid here, and broken ones confuse the parser below. For each unclosed tag it would
    # rescan the rest of the text.
    writer.feed(_UNENDED.sub("&lt;", plain).replace("<!", "&lt;!").replace("<?", "&lt;?"))
    writer.close()
    return "".join(writer.out)


def _replace_between(text: str, begin: re.Pattern[str], end: re.Pattern[str], replace: Callable[[str], str]) -> str:
    """Replace each part between a match of `begin` and the next match of `end`; the matches are dropped."""
    pieces: list[str] = []
    position = 0
    while (opened := begin.search(text, position)) and (closed := end.search(text, opened.end())):
        pieces += [text[position : opened.start()], replace(text[opened.end() : closed.start()])]
        position = closed.end()
    return "".join([*pieces, text[position:]])


@dataclass
class _OpenMacro:
    name: str
    start: int = 0
    parameters: dict[str, str] = field(default_factory=dict)
    parameter: str = ""


@dataclass
class _OpenLink:
    """An open link: its target, and the position in the output where its own text begins."""

    start: int
    target: str = ""


class _HtmlWriter(HTMLParser):
    """Writes HTML while parsing. It counts open elements whose text is not written."""

    def __init__(self, users: Mapping[str, str]) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self._users = users
        self._macros: list[_OpenMacro] = []
        self._links: list[_OpenLink] = []
        self._silent = 0
        self._parameter = 0
        self._state = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag in _MACROS:
            self._macros.append(_OpenMacro(attributes.get("ac:name", ""), len(self.out)))
        elif tag in _PARTS:
            self._parameter += 1
            if self._macros:
                self._macros[-1].parameter = attributes.get("ac:name", "")
        elif tag in _SILENT_ELEMENTS:
            self._silent += 1
        elif tag == "ac:task-status":
            self._state = True
        elif tag.startswith("ri:"):
            self._read_resource(tag, attributes)
        elif tag.startswith("ac:"):
            self._write_own(tag, attributes)
        elif not self._is_silent:
            self._write_element(tag, attributes)

    def handle_endtag(self, tag: str) -> None:
        if tag in _MACROS:
            self._close_macro()
        elif tag in _PARTS:
            self._parameter = max(self._parameter - 1, 0)
        elif tag in _SILENT_ELEMENTS:
            self._silent = max(self._silent - 1, 0)
        elif tag == "ac:task-status":
            self._state = False
        elif tag == "ac:link":
            self._close_link()
        elif tag == "ac:plain-text-body":
            self._write("</pre>" if self._is_code else "</p>")
        elif not tag.startswith("ri:") and tag not in _INLINE:
            self._write(f"</{_TAGS.get(tag, 'div' if ':' in tag else tag)}>")

    def handle_data(self, data: str) -> None:
        if self._state:
            self.out.append(_STATES.get(data.strip(), ""))
        elif self._parameter:
            if self._macros and not self._silent:
                macro = self._macros[-1]
                macro.parameters[macro.parameter] = macro.parameters.get(macro.parameter, "") + data
        else:
            self._write(escape(data, quote=False))

    @property
    def _is_silent(self) -> bool:
        return bool(self._silent or self._parameter) or any(macro.name in _SILENT_MACROS for macro in self._macros)

    @property
    def _is_code(self) -> bool:
        return bool(self._macros) and self._macros[-1].name in _CODE

    def _write(self, text: str) -> None:
        if not self._is_silent:
            self.out.append(text)

    def _write_element(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "time":
            self._write(escape(attributes.get("datetime", "")))
        plain = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items() if ":" not in name)
        self._write(f"<{tag}{plain}>")

    def _write_own(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "ac:link":
            self._links.append(_OpenLink(len(self.out)))
        elif tag == "ac:image":
            self._write(escape(attributes.get("ac:alt") or attributes.get("ac:title", "")))
        elif tag == "ac:emoticon":
            fallback = attributes.get("ac:emoji-fallback", "")
            self._write("" if fallback.isascii() else escape(fallback))
        elif tag in {"ac:rich-text-body", "ac:plain-text-body"}:
            self._open_body(tag)
        elif tag not in _INLINE:
            self._write(f"<{_TAGS.get(tag, 'div')}>")

    def _open_body(self, tag: str) -> None:
        macro = self._macros[-1] if self._macros else _OpenMacro("")
        if macro.name in _TITLED and (title := macro.parameters.get("title", "").strip()):
            self._write(f"<p>{escape(title)}</p>")
        if tag == "ac:plain-text-body":
            self._write("<pre>" if self._is_code else "<p>")
        else:
            self._write("<div>")

    def _read_resource(self, tag: str, attributes: Mapping[str, str]) -> None:
        name = attributes.get(_NAMING.get(tag, ""), "")
        if tag == "ri:user":
            key = next((attributes[name] for name in _USER if attributes.get(name)), "")
            known = self._users.get(key) or attributes.get("ri:username", "")
            name = f"@{known}" if known else ""
        if self._parameter:
            if self._macros and name:
                self._macros[-1].parameters.setdefault("page", name)
        elif self._links and not self._links[-1].target:
            self._links[-1].target = name

    def _close_link(self) -> None:
        link = self._links.pop() if self._links else _OpenLink(len(self.out))
        if not "".join(self.out[link.start :]).strip():
            self._write(escape(link.target) or template_tags.make_gap())

    def _close_macro(self) -> None:
        macro = self._macros.pop() if self._macros else _OpenMacro("")
        if macro.name == "status":
            self._write(escape(macro.parameters.get("title", "")))
        elif macro.name in _INCLUDING and (page := macro.parameters.get("page") or macro.parameters.get("")):
            self._write(f"<p>“{escape(page.strip())}”</p>")
        elif len(self.out) == macro.start and macro.name not in _SILENT_MACROS:
            self._write(template_tags.make_gap(macro.parameters.get("key", "")))


BODY_NAME = "page.html"  # the file name that decides whether a body is read in the sandbox


@dataclass(frozen=True, slots=True)
class PageBody:
    """A page's text in storage format, or the reason if there is none."""

    text: str = ""
    reason: str = ""


_MISSING_BODY = PageBody(reason="was deleted or hidden while Confluence was read")
_LARGE_BODY = PageBody(reason="is larger than the largest page that is read")


def fetch_bodies(api: ConfluenceApi, ids: Sequence[str]) -> dict[str, PageBody]:
    """Fetch the bodies of at most fifty pages. Hidden pages are missing in the result. Raises `SourceUnavailable`."""
    try:
        contents = {str(content["id"]): content for content in api.by_id(ids, texts=True)}
        for number in ids:
            # The search index may lag behind new pages.
            if number not in contents and (content := api.text(number)):
                contents[number] = content
    except ResponseTooLarge:
        if len(ids) == 1:
            return {ids[0]: _LARGE_BODY}
        half = len(ids) // 2
        return fetch_bodies(api, ids[:half]) | fetch_bodies(api, ids[half:])
    return {
        number: PageBody(str(((content.get("body") or {}).get("storage") or {}).get("value") or ""))
        for number, content in contents.items()
        if content.get("status") != "trashed"
    }


def read_page(node: PageNode, body: PageBody | None, people: Mapping[str, str], sandbox: Sandbox) -> Page:
    """Read one page. Raises `UnreadableDocument`, and the errors of the sandbox."""
    body = body or _MISSING_BODY
    if body.reason:
        raise UnreadableDocument(body.reason)
    harmless = file_formats.is_harmless(BODY_NAME, len(body.text))
    return sandbox.call(partial(build_page, node, body.text, people), harmless=harmless)


def build_page(node: PageNode, body: str, people: Mapping[str, str]) -> Page:
    """Build a page from its body in storage format. Raises `UnreadableDocument` if it contains no text."""
    reading = ParsedDocument(read_storage_format(body, people), title=node.title, date=node.changed, dated=True)
    return file_formats.build_page(reading, node.title, url=node.url, revision=node.version)
