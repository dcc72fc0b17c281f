"""The XML that MediaWiki exports, schemas 0.3 to 0.11: its header, and its pages one by one.

The stream is cut at page ends, which costs next to nothing, and each page is then XML of its own: a page that is broken
costs itself alone, pages can be read on other cores, and no more than one of them is held.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from html import unescape
from urllib.parse import quote, urlsplit

from lxml import etree

from ingest.sources.dump_file import DumpCutShort

LARGEST_REVISION = 64 << 20
"""Bytes. MediaWiki refuses articles of more than two megabytes; what is so much longer has lost its end."""

_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_COMPACT = 8 << 20
_TIMESTAMP = re.compile(rb"<timestamp>\s*([^<]*?)\s*</timestamp>")
_TITLE = re.compile(rb"<title>([^<]*)</title>")
_NAMESPACE = re.compile(rb"<ns>\s*(-?\d+)\s*</ns>")
_ID = re.compile(rb"<id>\s*(\d+)\s*</id>")
_REDIRECT = re.compile(rb"<redirect(?:\s+title=\"([^\"]*)\")?\s*/?>")
_REDIRECTING = re.compile(rb"<text[^>]*>\s*#\s*([^\s\[\]:<]{2,60})\s*:?\s*\[\[([^\[\]|<]{1,500})")
_WORDS = frozenset(
    # How a page says that it is a redirect, for schemas that do not say it themselves.
    "redirect redirection weiterleitung redirección redireccion rinvia rinvio rimando redirecionamento doorverwijzing "
    "omdirigering omdiriger patrz przekieruj tam перенаправление перенапр перенаправлення пренасочване преусмери виж "
    "preusmjeri preusmeritev přesměruj presmeruj átirányítás ohjaus uudelleenohjaus yönlendirme yönləndirmə redirecteaza "
    "redirecció birzuzendu alidirektu alih lencong đổi ανακατευθυνση suuna peradresavimas tilvísun перанакіраванне "
    "айдау გადამისამართება վերահղում 転送 リダイレクト 重定向 넘겨주기 تحويل تغییر_مسیر تغییرمسیر הפניה เปลี่ยนทาง अनुप्रेषित "
    "পুনর্নির্দেশ வழிமாற்று".split()
)


@dataclass(frozen=True, slots=True)
class Site:
    """What a dump's header says of its wiki."""

    name: str = ""
    """Its database: `enwiki`."""
    language: str = ""
    origin: str = ""
    """`https://en.wikipedia.org`."""
    namespaces: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Their names by number, in lower case with underscores."""
    first_letter: bool = True
    """Whether titles begin with a capital whatever is written."""

    @property
    def hidden(self) -> frozenset[str]:
        """The names of the namespaces whose links show nothing in a text: media, files, categories."""
        return frozenset(name for number in (-2, 6, 14) for name in self.namespaces.get(number, ()))

    def title(self, written: str) -> str:
        """A title as the wiki stores it, of what a link or a redirect says."""
        plain = " ".join(written.partition("#")[0].replace("_", " ").split()).lstrip(":")
        return plain[:1].upper() + plain[1:] if self.first_letter else plain

    def url(self, title: str, revision: str) -> str:
        """Where a person can read one revision of a page; empty if the wiki's address is not known."""
        if not self.origin:
            return ""
        named = quote(title.replace(" ", "_"), safe="/:(),!*'")
        return f"{self.origin}/w/index.php?title={named}&oldid={revision}" if revision else f"{self.origin}/wiki/{named}"


@dataclass(frozen=True, slots=True)
class RawPage:
    """One `<page>` element, not yet parsed, and where it begins in the XML: byte, counted from 0, and line, from 1."""

    xml: bytes
    byte: int
    line: int

    @property
    def place(self) -> str:
        """For messages."""
        return f"line {self.line:,}, byte {self.byte:,} of the XML"


@dataclass(frozen=True, slots=True)
class Head:
    """What can be told of a page without parsing it. `redirect` is the target of a redirect, None for other pages."""

    id: str
    title: str
    namespace: int | None
    revision: str
    redirect: str | None
    stamp: str
    """What changes when the page does: its revision, or a hash where the export has no numbers."""

    @property
    def key(self) -> str:
        """Its id, which outlives a change of title; its title where the export has no ids."""
        return self.id or self.title


@dataclass(frozen=True, slots=True)
class Text:
    """A page's text, and when it was saved, as the export writes it. `reason` says why there is none."""

    wikitext: str = ""
    timestamp: str = ""
    reason: str = ""


def site(header: bytes) -> Site:
    """Read what stands before the first page. A header that says nothing is an unknown wiki's."""
    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True)
    root = etree.fromstring(header.rstrip() + b"</mediawiki>", parser)
    if root is None:
        return Site()
    found = {_plain(element.tag): (element.text or "").strip() for element in root.iter() if isinstance(element.tag, str)}
    names: dict[int, tuple[str, ...]] = {}
    for element in root.iter("{*}namespace"):
        if element.text:
            number = int(element.get("key", "0"))
            names[number] = (*names.get(number, ()), element.text.strip().lower().replace(" ", "_"))
    language = root.get(_XML_LANG, "").partition("-")[0].lower()
    return Site(
        name=found.get("dbname", ""),
        language=language,
        origin=_origin(found.get("base", ""), language),
        namespaces=names,
        first_letter=found.get("case", "first-letter") == "first-letter",
    )


def _origin(base: str, language: str) -> str:
    address = urlsplit(base)
    if not address.netloc:
        return f"https://{language}.wikipedia.org" if language else ""
    secure = address.netloc.endswith((".wikipedia.org", ".wikimedia.org"))
    return f"{'https' if secure else address.scheme or 'https'}://{address.netloc}"


def _plain(tag: str) -> str:
    return tag.rpartition("}")[2]


class Export:
    """An export as it streams by: its `site`, then its `pages`."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        """Reads up to the first page. Raises what the blocks raise."""
        self._blocks = iter(blocks)
        self._buffer = bytearray()
        self._byte = 0
        self._line = 1
        while (start := self._buffer.find(b"<page>")) < 0 and self._more():
            pass
        header = bytes(self._buffer[: start if start >= 0 else len(self._buffer)])
        self.site = site(header.replace(b"</mediawiki>", b""))

    def pages(self) -> Iterator[RawPage]:
        """Each page with its last revision alone.

        Raises:
            DumpCutShort: the stream broke off, or ended without its end; after all pages before that.
        """
        while True:
            start = self._buffer.find(b"<page>")
            if start < 0:
                ended = self._buffer.rfind(b"</mediawiki>") >= 0
                self._drop(max(len(self._buffer) - len(b"</mediawiki>"), 0))
                if self._more():
                    continue
                if ended or b"</mediawiki>" in self._buffer:
                    return
                raise DumpCutShort(f"the XML ends without </mediawiki>, in line {self._line:,}, byte {self._byte:,}")
            self._drop(start)
            yield self._page()

    def _page(self) -> RawPage:
        """The page that the buffer begins with."""
        byte, line, searched = self._byte, self._line, 0
        place = f"line {line:,}, byte {byte:,} of the XML"
        while (end := self._buffer.find(b"</page>", searched)) < 0:
            searched = max(len(self._buffer) - len(b"</page>"), 0)
            if len(self._buffer) > _COMPACT:
                self._compact()
                searched = 0
            if len(self._buffer) > LARGEST_REVISION:
                raise DumpCutShort(f"{_named(self._buffer)} ({place}) does not end")
            try:
                more = self._more()
            except DumpCutShort as error:
                raise DumpCutShort(f"{error}, within {_named(self._buffer)} ({place})") from error
            if not more:
                raise DumpCutShort(f"the XML ends within {_named(self._buffer)} ({place})")
        # A page that begins within a page: the first one lost its end, and is broken alone.
        again = self._buffer.rfind(b"<page>", 1, end)
        end = again if again > 0 else end + len(b"</page>")
        xml = bytes(self._buffer[:end])
        self._drop(end)
        return RawPage(_without_history(xml) if xml.count(b"<revision>") > 1 else xml, byte, line)

    def _compact(self) -> None:
        whole = bytes(self._buffer)
        self._buffer = bytearray(_without_history(whole))
        self._byte += len(whole) - len(self._buffer)
        self._line += whole.count(b"\n") - self._buffer.count(b"\n")

    def _drop(self, length: int) -> None:
        self._line += self._buffer.count(b"\n", 0, length)
        self._byte += length
        del self._buffer[:length]

    def _more(self) -> bool:
        block = next(self._blocks, b"")
        self._buffer += block
        return bool(block)


def _named(xml: bytes | bytearray) -> str:
    title = _TITLE.search(xml, 0, 4096)
    return f"the page “{unescape(title[1].decode(errors='replace'))}”" if title else "a page without a title"


def _without_history(xml: bytes) -> bytes:
    """A page, whole or cut off, with the latest of its revisions alone and what follows the last."""
    head, start, rest = xml.partition(b"<revision>")
    revisions = (start + rest).split(b"</revision>")
    tail = revisions.pop()
    if not revisions:
        return xml
    latest = max(revisions, key=_saved)
    return head + latest.lstrip() + b"</revision>" + tail


def _saved(revision: bytes) -> bytes:
    # ISO 8601 in one time zone: later is greater. What says nothing is earlier than anything.
    timestamp = _TIMESTAMP.search(revision)
    return timestamp[1] if timestamp else b""


def head(xml: bytes, site: Site) -> Head | None:
    """What a page's element says before its text; None if it has no title."""
    start = xml.find(b"<revision>")
    before = xml[: start if start >= 0 else len(xml)]
    title = _TITLE.search(before)
    if not title or not title[1].strip():
        return None
    named = unescape(title[1].decode(errors="replace")).strip()
    number = _NAMESPACE.search(before)
    page, revision = _ID.search(before), _ID.search(xml, start) if start >= 0 else None
    saved = revision[1].decode() if revision else ""
    return Head(
        id=page[1].decode() if page else "",
        title=named,
        namespace=int(number[1]) if number else _by_prefix(named, site),
        revision=saved,
        stamp=saved or sha256(xml).hexdigest()[:16],
        redirect=_redirect(xml, before),
    )


def _redirect(xml: bytes, before: bytes) -> str | None:
    """The target of a redirect, None for other pages: older schemas have it in the text alone."""
    element = _REDIRECT.search(before)
    if element and element[1]:
        return unescape(element[1].decode(errors="replace"))
    said = _REDIRECTING.search(xml, len(before), len(before) + 4096)
    if said and (element or said[1].decode(errors="replace").lower() in _WORDS):
        return unescape(said[2].decode(errors="replace")).strip()
    return "" if element else None


def page_id(xml: bytes) -> str:
    """The number of a page that has no title; empty if it has none of these either."""
    found = _ID.search(xml)
    return found[1].decode() if found else ""


def _by_prefix(title: str, site: Site) -> int:
    """The namespace of a title in schemas that do not write it."""
    prefix, colon, _ = title.partition(":")
    if not colon:
        return 0
    name = prefix.strip().lower().replace(" ", "_")
    return next((number for number, names in site.namespaces.items() if name in names), 0)


def text(xml: bytes) -> Text:
    """Parse one page's element. Never raises: what is broken is its reason."""
    try:
        page = etree.fromstring(xml, etree.XMLParser(huge_tree=True, resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError as error:
        return Text(reason=f"its XML is broken: {error.msg}")
    revision = page.find("revision")
    if revision is None:
        return Text(reason="the dump holds no revision of it")
    found = revision.find("text")
    model = revision.findtext("model", "wikitext").strip()
    timestamp = revision.findtext("timestamp", "").strip()
    if found is None:
        return Text(reason="the dump holds no text of it: it has no <text> element", timestamp=timestamp)
    if model != "wikitext":
        return Text(reason=f"it is not wikitext but {model}", timestamp=timestamp)
    if found.get("deleted"):
        return Text(reason="its text was deleted", timestamp=timestamp)
    if not (found.text or "").strip():
        return Text(reason="its text is empty", timestamp=timestamp)
    return Text(wikitext=found.text or "", timestamp=timestamp)
