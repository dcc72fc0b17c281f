"""Split a stream of MediaWiki's export XML, schemas 0.3 to 0.11, into pages, and parse each page."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from html import unescape
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

from ingest.sources.dumps.dump_file import DumpTruncated
from ingest.wikitext.wiki_site import WikiSite, load_other_names
from storage.language.lazy_pattern import lazy_compile

_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_TITLE = lazy_compile(rb"<title>([^<]*)</title>")
_NAMESPACE = lazy_compile(rb"<ns>\s*(-?\d+)\s*</ns>")
_ID = lazy_compile(rb"<id>\s*(\d+)\s*</id>")
_REDIRECT = lazy_compile(rb"<redirect(?:\s+title=\"([^\"]*)\")?\s*/?>")
_REDIRECTING = lazy_compile(rb"<text[^>]*>\s*#\s*([^\s\[\]:<]{2,60})\s*+(?::\s*+)?\[\[([^\[\]|<]{1,500})")


@dataclass(frozen=True, slots=True)
class PageHead:
    """The elements of a page before its text. `redirect` is the target if the page is a redirect, or else None."""

    id: str
    title: str
    namespace: int
    revision: str
    redirect: str | None
    stamp: str  # changes with the page: its revision, or a hash if the export has no revision numbers

    @property
    def key(self) -> str:
        """Return the page's id, which stays the same if it is renamed; if the export has no ids, its title."""
        return self.id or self.title


@dataclass(frozen=True, slots=True)
class PageText:
    wikitext: str = ""
    timestamp: str = ""
    reason: str = ""


def parse_site(header: bytes) -> WikiSite:
    """Parse the header before the first page. If it is invalid, return an unknown wiki."""
    start = header.find(b"<mediawiki")
    try:
        # Parsing starts at the element, so that no document type, and no entities, can be declared.
        root = ET.fromstring(header[start:] + b"</mediawiki>") if start >= 0 else None  # noqa: S314 - see above
    except ET.ParseError:
        root = None
    if root is None:
        return WikiSite()
    fields = {element.tag.rpartition("}")[2]: (element.text or "").strip() for element in root.iter()}
    names: dict[int, tuple[str, ...]] = {}
    for element in root.iterfind(".//{*}namespace"):
        if element.text:
            number = int(element.get("key", "0"))
            names[number] = (*names.get(number, ()), element.text.strip().lower().replace(" ", "_"))
    language = root.get(_XML_LANG, "").partition("-")[0].lower()
    return WikiSite(
        name=fields.get("dbname", ""),
        language=language,
        origin=_make_origin(fields.get("base", ""), language),
        namespaces=names,
        first_letter=fields.get("case", "first-letter") == "first-letter",
    )


def _make_origin(base: str, language: str) -> str:
    address = urlsplit(base)
    if not address.netloc:
        return f"https://{language}.wikipedia.org" if language else ""
    secure = address.netloc.endswith((".wikipedia.org", ".wikimedia.org"))
    return f"{'https' if secure else address.scheme or 'https'}://{address.netloc}"


def parse_head(xml: bytes, site: WikiSite) -> PageHead | None:
    """Parse the elements of a page before its text; None if it has no title."""
    start = xml.find(b"<revision>")
    before = xml[: start if start >= 0 else len(xml)]
    named = parse_title(before)
    if not named:
        return None
    number = _NAMESPACE.search(before)
    revision = _ID.search(xml, start) if start >= 0 else None
    saved = revision[1].decode() if revision else ""
    return PageHead(
        id=parse_page_id(before),
        title=named,
        namespace=int(number[1]) if number else _namespace_of(named, site),
        revision=saved,
        redirect=_redirect_target(xml, before),
        stamp=saved or sha256(xml).hexdigest()[:16],
    )


def parse_title(xml: bytes) -> str:
    title = _TITLE.search(xml)
    return unescape(title[1].decode(errors="replace")).strip() if title else ""


def parse_page_id(xml: bytes) -> str:
    page_id = _ID.search(xml)
    return page_id[1].decode() if page_id else ""


def _namespace_of(title: str, site: WikiSite) -> int:
    """Return the namespace of a page by its title, for export schemas without an element for it."""
    prefix, colon, _ = title.partition(":")
    if not colon:
        return 0
    name = prefix.strip().lower().replace(" ", "_")
    return next((number for number, names in site.namespaces.items() if name in names), 0)


def _redirect_target(xml: bytes, before: bytes) -> str | None:
    """Return the target if the page is a redirect, or else None. In older schemas, only the text states it."""
    element = _REDIRECT.search(before)
    if element and element[1]:
        return unescape(element[1].decode(errors="replace"))
    match = _REDIRECTING.search(xml, len(before), len(before) + 4096)
    if match and (element or match[1].decode(errors="replace").lower() in load_other_names("redirect")):
        return unescape(match[2].decode(errors="replace")).strip()
    return "" if element else None


def parse_text(xml: bytes) -> PageText:
    """Parse the element of one page. Never raises: `reason` describes an error."""
    try:
        page = ET.fromstring(xml)  # noqa: S314 - one element of a document can declare no entities
    except ET.ParseError as error:
        return PageText(reason=f"its XML is broken ({error})")
    revision = page.find("revision")
    if revision is None:
        return PageText(reason="the dump holds no revision of it")
    text = revision.find("text")
    timestamp = revision.findtext("timestamp", "").strip()
    return PageText("" if text is None else text.text or "", timestamp, _missing_reason(revision, text))


def _missing_reason(revision: ET.Element, text: ET.Element | None) -> str:
    model = revision.findtext("model", "wikitext").strip()
    if text is None:
        return "it has no <text> element"
    if text.get("vast"):  # set by `XmlExport`
        return "its text is longer than any wiki page can be"
    if model != "wikitext":
        return f"it is not wikitext but {model}"
    if text.get("deleted"):
        return "its text was deleted"
    return "" if (text.text or "").strip() else "its text is empty"


LARGEST_REVISION = 64 << 20  # bytes; MediaWiki allows two megabytes, so a longer one has lost its end
_COMPACT_AT = 4 << 20  # bytes of a page after which older revisions are dropped while it is read
_FIRST_BYTES = 1 << 16  # bytes of a page that contain its elements before its text
_PAGE_END = lazy_compile(rb"</page>|<page>")
_HEADER_END = lazy_compile(rb"<page>|(?<=</siteinfo>)|</mediawiki>")
_TIMESTAMP = lazy_compile(rb"<timestamp>\s*([^<]*?)\s*</timestamp>")


@dataclass(frozen=True, slots=True)
class RawPage:
    """One unparsed `<page>` element, and where it begins: its byte, counted from 0, and its line, counted from 1."""

    xml: bytes
    byte: int
    line: int

    @property
    def place(self) -> str:
        return f"line {self.line:,}, byte {self.byte:,} of the XML"


class XmlExport:
    """Reads an export as a stream: first its `site`, then its `pages`."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        """Read the header. Raises `DumpError` if `blocks` does; a truncated dump is reported only by `pages`."""
        self._blocks = iter(blocks)
        self._buffer = bytearray()
        self._byte = 0
        self._line = 1
        self._broken: DumpTruncated | None = None
        try:
            while not _HEADER_END.search(self._buffer) and self._more():
                pass
        except DumpTruncated as error:
            self._broken = error
        end = _HEADER_END.search(self._buffer)
        self.site = parse_site(bytes(self._buffer[: end.start() if end else len(self._buffer)]))

    def pages(self) -> Iterator[RawPage]:
        """Yield each page with only its latest revision. Raises `DumpTruncated` after all readable pages."""
        while True:
            start = self._buffer.find(b"<page>")
            if start < 0:
                ended = self._buffer.rfind(b"</mediawiki>") >= 0
                self._drop(max(len(self._buffer) - len(b"</mediawiki>"), 0))
                if self._more():
                    continue
                if ended or b"</mediawiki>" in self._buffer:
                    return
                raise DumpTruncated(f"the XML ends without </mediawiki>, in line {self._line:,}, byte {self._byte:,}")
            self._drop(start)
            yield self._page()

    def _page(self) -> RawPage:
        byte, line, searched, compact = self._byte, self._line, 0, _COMPACT_AT
        place = f"line {line:,}, byte {byte:,} of the XML"
        while (end := self._buffer.find(b"</page>", searched)) < 0:
            searched = max(len(self._buffer) - len(b"</page>"), 0)
            if len(self._buffer) > compact:
                whole = bytes(self._buffer)
                self._buffer = bytearray(_latest_revision(whole))
                self._byte += len(whole) - len(self._buffer)
                self._line += whole.count(b"\n") - self._buffer.count(b"\n")
                # A single revision cannot shrink: retrying at each block would copy it each time.
                searched, compact = 0, max(_COMPACT_AT, 2 * len(self._buffer))
            if len(self._buffer) > LARGEST_REVISION:
                return self._vast(place, byte, line)
            try:
                more = self._more()
            except DumpTruncated as error:
                raise DumpTruncated(f"{error}, within {_page_name(self._buffer)} ({place})") from error
            if not more:
                raise DumpTruncated(f"the XML ends within {_page_name(self._buffer)} ({place})")
        # A page that begins within a page: only the first one has lost its end.
        again = self._buffer.rfind(b"<page>", 1, end)
        end = again if again > 0 else end + len(b"</page>")
        xml = bytes(self._buffer[:end])
        self._drop(end)
        return RawPage(_latest_revision(xml) if xml.count(b"<revision>") > 1 else xml, byte, line)

    def _vast(self, place: str, byte: int, line: int) -> RawPage:
        """Skip a page that is too large for memory, and return its elements before the text."""
        start = bytes(self._buffer[:_FIRST_BYTES])
        named = _page_name(start)
        while not (end := _PAGE_END.search(self._buffer, 1)):
            self._drop(max(len(self._buffer) - len(b"</page>"), 0))
            if not self._more():
                raise DumpTruncated(f"{named} ({place}) does not end")
        self._drop(end.end() if end[0] == b"</page>" else end.start())
        head = start.partition(b"<text")[0]
        return RawPage(head + b'<text vast="vast" /></revision></page>', byte, line)

    def _drop(self, length: int) -> None:
        self._line += self._buffer.count(b"\n", 0, length)
        self._byte += length
        del self._buffer[:length]

    def _more(self) -> bool:
        if self._broken:
            raise self._broken
        block = next(self._blocks, b"")
        self._buffer += block
        return bool(block)


def _page_name(xml: bytes | bytearray) -> str:
    named = parse_title(bytes(xml[:4096]))
    return f"the page “{named}”" if named else "a page without a title"


def _latest_revision(xml: bytes) -> bytes:
    """Return a page with only the latest of its complete revisions. An incomplete revision at the end stays."""
    head, start, rest = xml.partition(b"<revision>")
    revisions = (start + rest).split(b"</revision>")
    tail = revisions.pop()
    if not revisions:
        return xml
    # ISO 8601 in one time zone sorts by time. A missing timestamp is the earliest.
    latest = max(revisions, key=lambda xml: found[1] if (found := _TIMESTAMP.search(xml)) else b"")
    return head + latest.lstrip() + b"</revision>" + tail
