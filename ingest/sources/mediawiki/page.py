"""What the XML of one page says, and what an export's header says of its wiki. Pure.

`mediawiki_xml` cuts a dump into pages; here one is understood: in a glance (`head`), or wholly (`text`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from html import unescape
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree as ET

from ingest.wikitext.names import redirecting

_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_TITLE = re.compile(rb"<title>([^<]*)</title>")
_NAMESPACE = re.compile(rb"<ns>\s*(-?\d+)\s*</ns>")
_ID = re.compile(rb"<id>\s*(\d+)\s*</id>")
_REDIRECT = re.compile(rb"<redirect(?:\s+title=\"([^\"]*)\")?\s*/?>")
_REDIRECTING = re.compile(rb"<text[^>]*>\s*#\s*([^\s\[\]:<]{2,60})\s*:?\s*\[\[([^\[\]|<]{1,500})")
_HIDING = (-2, 6, 14)
"""The namespaces of media, files and categories."""


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
        """The names of the namespaces whose links show nothing in a text."""
        return frozenset(name for number in _HIDING for name in self.namespaces.get(number, ()))

    def title(self, written: str) -> str:
        """A title as the wiki stores it, of what a link or a redirect says."""
        plain = " ".join(written.partition("#")[0].replace("_", " ").split()).lstrip(":")
        return plain[:1].upper() + plain[1:] if self.first_letter else plain

    def url(self, title: str, revision: str) -> str:
        """Where a person can read one revision of a page; empty if the wiki's address is not known."""
        if not self.origin:
            return ""
        named = quote(title.replace(" ", "_"), safe="/:(),!*'")
        return (
            f"{self.origin}/w/index.php?title={named}&oldid={revision}" if revision else f"{self.origin}/wiki/{named}"
        )


@dataclass(frozen=True, slots=True)
class Head:
    """What can be told of a page without parsing it. `redirect` is the target of a redirect, None for other pages."""

    id: str
    title: str
    namespace: int
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
    start = header.find(b"<mediawiki")
    try:
        # Nothing before the element is read: no document type, and so no entities, can be declared.
        root = ET.fromstring(header[start:] + b"</mediawiki>") if start >= 0 else None  # noqa: S314 - as just said
    except ET.ParseError:
        root = None
    if root is None:
        return Site()
    said = {element.tag.rpartition("}")[2]: (element.text or "").strip() for element in root.iter()}
    names: dict[int, tuple[str, ...]] = {}
    for element in root.iterfind(".//{*}namespace"):
        if element.text:
            number = int(element.get("key", "0"))
            names[number] = (*names.get(number, ()), element.text.strip().lower().replace(" ", "_"))
    language = root.get(_XML_LANG, "").partition("-")[0].lower()
    return Site(
        name=said.get("dbname", ""),
        language=language,
        origin=_origin(said.get("base", ""), language),
        namespaces=names,
        first_letter=said.get("case", "first-letter") == "first-letter",
    )


def _origin(base: str, language: str) -> str:
    address = urlsplit(base)
    if not address.netloc:
        return f"https://{language}.wikipedia.org" if language else ""
    secure = address.netloc.endswith((".wikipedia.org", ".wikimedia.org"))
    return f"{'https' if secure else address.scheme or 'https'}://{address.netloc}"


def head(xml: bytes, site: Site) -> Head | None:
    """What a page's element says before its text; None if it has no title."""
    start = xml.find(b"<revision>")
    before = xml[: start if start >= 0 else len(xml)]
    named = title(before)
    if not named:
        return None
    number = _NAMESPACE.search(before)
    revision = _ID.search(xml, start) if start >= 0 else None
    saved = revision[1].decode() if revision else ""
    return Head(
        id=page_id(before),
        title=named,
        namespace=int(number[1]) if number else _by_prefix(named, site),
        revision=saved,
        redirect=_redirect(xml, before),
        stamp=saved or sha256(xml).hexdigest()[:16],
    )


def title(xml: bytes) -> str:
    """A page's title, empty if it has none."""
    found = _TITLE.search(xml)
    return unescape(found[1].decode(errors="replace")).strip() if found else ""


def page_id(xml: bytes) -> str:
    """A page's number, empty if it has none."""
    found = _ID.search(xml)
    return found[1].decode() if found else ""


def _by_prefix(title: str, site: Site) -> int:
    """The namespace of a title, for schemas that do not write it."""
    prefix, colon, _ = title.partition(":")
    if not colon:
        return 0
    name = prefix.strip().lower().replace(" ", "_")
    return next((number for number, names in site.namespaces.items() if name in names), 0)


def _redirect(xml: bytes, before: bytes) -> str | None:
    """The target of a redirect, None for other pages: older schemas have it in the text alone."""
    element = _REDIRECT.search(before)
    if element and element[1]:
        return unescape(element[1].decode(errors="replace"))
    said = _REDIRECTING.search(xml, len(before), len(before) + 4096)
    if said and (element or said[1].decode(errors="replace").lower() in redirecting()):
        return unescape(said[2].decode(errors="replace")).strip()
    return "" if element else None


def text(xml: bytes) -> Text:
    """Parse one page's element. Never raises: what is broken is its reason."""
    try:
        page = ET.fromstring(xml)  # noqa: S314 - one element of a document can declare no entities
    except ET.ParseError as error:
        return Text(reason=f"its XML is broken ({error})")
    revision = page.find("revision")
    if revision is None:
        return Text(reason="the dump holds no revision of it")
    found = revision.find("text")
    timestamp = revision.findtext("timestamp", "").strip()
    return Text("" if found is None else found.text or "", timestamp, _missing(revision, found))


def _missing(revision: ET.Element, text: ET.Element | None) -> str:
    """Why there is no wikitext in a revision; empty if there is."""
    model = revision.findtext("model", "wikitext").strip()
    if text is None:
        return "it has no <text> element"
    if text.get("vast"):  # so `mediawiki_xml` says it
        return "its text is longer than any page's of a wiki can be"
    if model != "wikitext":
        return f"it is not wikitext but {model}"
    if text.get("deleted"):
        return "its text was deleted"
    return "" if (text.text or "").strip() else "its text is empty"
