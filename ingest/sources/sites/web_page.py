"""What a web server's answer says of a page besides its text: whether it may be read, and whether it is one. Pure."""

import hashlib
import mimetypes
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote, urljoin, urlsplit

from ingest import converting
from ingest.formats import elements
from ingest.types import Page

_TYPES = {
    "text/html": ".html", "application/xhtml+xml": ".html", "application/pdf": ".pdf", "text/plain": ".txt",
    "text/markdown": ".md", "text/csv": ".csv", "application/epub+zip": ".epub", "application/json": ".json",
    "application/rss+xml": ".rss", "application/atom+xml": ".atom", "application/xml": ".xml", "text/xml": ".xml",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
}  # fmt: skip
_UNSAID = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/x-download"})
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.-]+)", re.IGNORECASE)
_HEAD = 4096
_LOGIN_WORDS = 250
"""A page with a field for a password and fewer words than this is there to log in."""
_ROBOTS = ("robots", "footnote")


@dataclass(frozen=True, slots=True)
class Marks:
    """What a page of HTML says of itself."""

    canonical: str = ""
    """The address that it wants to be known by, as a whole; empty if it says none."""
    noindex: bool = False
    asks_to_log_in: bool = False


def name_of(url: str, content_type: str) -> str:
    """Return a file name for what stands at an address: its ending says how it is read.

    What the server says that it sends holds; where it says nothing, or only that it is text, the ending of the address.
    """
    path = PurePosixPath(unquote(urlsplit(url).path))
    said = content_type.partition(";")[0].strip().lower()
    readable = bool(path.suffix) and not converting.refusal(path.name)
    if said in _UNSAID or (said == "text/plain" and readable):
        suffix = path.suffix
    else:
        suffix = _TYPES.get(said) or mimetypes.guess_extension(said) or f".{said.rpartition('/')[2] or 'unknown'}"
    stem = path.stem if readable else path.name
    return f"{path.parent.name}/{stem or 'index'}{suffix}"


def marks(content: bytes, url: str, headers: Mapping[str, str]) -> Marks:
    """Return what an answer of HTML says of itself, in its headers and its markup."""
    noindex = _forbids(headers.get("x-robots-tag", ""))
    root = elements.html(content)
    if root is None:
        return Marks(noindex=noindex)
    for meta in root.iter("meta"):
        if (meta.get("name") or "").strip().lower() in _ROBOTS:
            noindex = noindex or _forbids(meta.get("content") or "")
    links = (link for link in root.iter("link") if "canonical" in (link.get("rel") or "").lower().split())
    said = next((href for link in links if (href := (link.get("href") or "").strip())), "")
    password = any((field.get("type") or "").lower() == "password" for field in root.iter("input"))
    short = password and len(root.text_content().split()) < _LOGIN_WORDS
    return Marks(_joined(url, said), noindex, short)


def _forbids(said: str) -> bool:
    """Whether it forbids to be found. A header may name an agent before its words: `otherbot: noindex` is not ours."""
    agent, colon, words = said.lower().rpartition(":")
    if colon and agent.strip() not in _ROBOTS:
        return False
    return bool({"noindex", "none"} & {word.strip() for word in words.split(",")})


def _joined(url: str, href: str) -> str:
    try:
        return urljoin(url, href) if href else ""
    except ValueError:
        return ""


def with_encoding(content: bytes, content_type: str) -> bytes:
    """Return markup that can be read without its header: one that only the header tells the encoding of, in UTF-8."""
    said = _CHARSET.search(content_type)
    if not said or said[1].lower() in {"utf-8", "utf8"} or b"charset" in content[:_HEAD].lower():
        return content
    try:
        return content.decode(said[1]).encode()
    except (LookupError, UnicodeError):
        return content


_MOMENT = re.compile(r"\d{1,2}:\d{1,2}(?::\d\d)?|\b\d{1,4}([-./])\d{1,2}\1\d{1,4}\b|\b(?=[a-f]*\d)[\da-f]{8,}\b")
"""What differs whenever a page is asked for: clock times, dates, ids of requests. Other numbers may be all it says."""


def likeness(page: Page, url: str) -> bytes:
    """Return what is the same for two pages that say the same, whatever of their own address they repeat, and when."""
    text = " ".join(block.text for section in page.sections for block in section.blocks).lower()
    for part in (url.lower(), urlsplit(url).path.lower(), *urlsplit(url).path.lower().split("/")):
        if len(part) > 1:
            text = text.replace(part, "")
    return hashlib.sha256(re.sub(r"[\W_]+", " ", _MOMENT.sub(" ", text)).encode()).digest()[:12]
