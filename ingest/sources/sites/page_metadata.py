"""Read a web page's metadata: format, encoding, canonical address and robots directives."""

import mimetypes
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote, urljoin, urlsplit

from ingest.readers import file_formats, html_tree
from storage.language.lazy_pattern import lazy_compile

_TYPES = {
    "text/html": ".html", "application/xhtml+xml": ".html", "application/pdf": ".pdf", "text/plain": ".txt",
    "text/markdown": ".md", "text/csv": ".csv", "application/epub+zip": ".epub", "application/json": ".json",
    "application/rss+xml": ".rss", "application/atom+xml": ".atom", "application/xml": ".xml", "text/xml": ".xml",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
}  # fmt: skip
_UNSPECIFIC = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/x-download"})
_CHARSET = lazy_compile(r"charset\s*=\s*[\"']?([\w.-]+)", re.IGNORECASE)
_HEAD_BYTES = 4096
_LOGIN_WORDS = 250  # a page with a password field and fewer words is a login page
_ROBOTS_NAMES = ("robots", "footnote")


@dataclass(frozen=True, slots=True)
class PageMetadata:
    canonical: str = ""  # absolute canonical address; empty if it states none
    noindex: bool = False
    asks_to_log_in: bool = False


def derive_file_name(url: str, content_type: str) -> str:
    """Return a file name whose suffix fits the page's format, by its content type or else by its address."""
    path = PurePosixPath(unquote(urlsplit(url).path))
    media_type = content_type.partition(";")[0].strip().lower()
    readable = bool(path.suffix) and not file_formats.explain_refusal(path.name)
    if media_type in _UNSPECIFIC or (media_type == "text/plain" and readable):
        suffix = path.suffix
    else:
        suffix = (
            _TYPES.get(media_type)
            or mimetypes.guess_extension(media_type)
            or f".{media_type.rpartition('/')[2] or 'unknown'}"
        )
    stem = path.stem if readable else path.name
    return f"{path.parent.name}/{stem or 'index'}{suffix}"


def parse_page_metadata(content: bytes, url: str, headers: Mapping[str, str]) -> PageMetadata:
    noindex = _forbids(headers.get("x-robots-tag", ""))
    root = html_tree.parse_html(content)
    if root is None:
        return PageMetadata(noindex=noindex)
    for meta in root.iter("meta"):
        if (meta.get("name") or "").strip().lower() in _ROBOTS_NAMES:
            noindex = noindex or _forbids(meta.get("content") or "")
    links = (link for link in root.iter("link") if "canonical" in (link.get("rel") or "").lower().split())
    canonical = next((href for link in links if (href := (link.get("href") or "").strip())), "")
    password = any((field.get("type") or "").lower() == "password" for field in root.iter("input"))
    short = password and len(root.text_content().split()) < _LOGIN_WORDS
    return PageMetadata(join_url(url, canonical), noindex, short)


def _forbids(directives: str) -> bool:
    """Return whether robots directives forbid indexing. `otherbot: noindex` applies only to that other agent."""
    agent, colon, words = directives.lower().rpartition(":")
    if colon and agent.strip() not in _ROBOTS_NAMES:
        return False
    return bool({"noindex", "none"} & {word.strip() for word in words.split(",")})


def join_url(url: str, href: str) -> str:
    try:
        return urljoin(url, href) if href else ""
    except ValueError:
        return ""


def declare_encoding(content: bytes, content_type: str) -> bytes:
    """Convert markup to UTF-8 if its encoding is declared by the content type and nowhere else."""
    charset = _CHARSET.search(content_type)
    if not charset or charset[1].lower() in {"utf-8", "utf8"} or b"charset" in content[:_HEAD_BYTES].lower():
        return content
    try:
        return content.decode(charset[1]).encode()
    except (LookupError, UnicodeError):
        return content
