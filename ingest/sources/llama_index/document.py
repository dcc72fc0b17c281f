"""What LlamaIndex calls a document -> its text, name, address and date. Pure.

Each reader names things in its metadata as it likes; these are the names that are met. An identifier that LlamaIndex
drew at random is none: it would be another one tomorrow.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from ingest import converting
from ingest.apart.reading import Apart
from ingest.formats import dates
from ingest.types import Page

_RANDOM = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE)
_ADDRESSES = ("url", "source_url", "web_url", "html_url", "permalink", "link", "source")
_NAMES = ("file_path", "path", "page_id", "id", "file_name", "filename", "title", "page_title")
_TITLES = ("title", "page_title", "subject", "name")
_FILES = ("file_name", "filename", "file_path")
_DATES = (
    *("last_modified_date", "last_modified", "lastmod", "modified", "modified_at", "last_edited_time", "updated_at"),
    *("updated", "last_accessed_date", "date", "published", "published_at", "created_at", "creation_date"),
)
_MARKUP = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)


class Text(NamedTuple):
    """One document of LlamaIndex's, as far as it concerns us."""

    key: str
    text: str
    title: str
    """Empty where it tells none."""
    file: str
    url: str
    date: datetime | None


def text_of(document: Any) -> Text | None:
    """Read a document; None if it is none: it has no text, or no text that is one."""
    text = getattr(document, "text", None)
    metadata = getattr(document, "metadata", None)
    if not isinstance(text, str):
        return None
    said = _folded(metadata) if isinstance(metadata, Mapping) else {}
    url = next((value for value in _all(said, _ADDRESSES) if value.startswith(("http://", "https://"))), "")
    file = next(iter(_all(said, _FILES)), "")
    return Text(
        key=_key(document, said, url, text),
        text=text,
        title=" ".join(next(iter(_all(said, _TITLES)), "").split()),
        file=PurePosixPath(file.replace("\\", "/")).name,
        url=url,
        date=next(filter(None, (dates.parsed(said.get(name)) for name in _DATES)), None),
    )


def fingerprint(parts: Sequence[Text]) -> str:
    """What tells whether a document of these parts has changed."""
    first = parts[0]
    date = first.date.isoformat() if first.date else ""
    said = "\x1f".join((converting.READER_VERSION, first.title, first.file, first.url, date, *(p.text for p in parts)))
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


def page(parts: Sequence[Text], apart: Apart) -> Page:
    """Read a document of these parts. Raises `UnreadableDocument`, and what `apart` raises."""
    first = parts[0]
    text = "\n\n".join(part.text for part in parts)
    suffix = ".html" if _MARKUP.match(text) else ".md"
    name = PurePosixPath(first.file or first.key.rstrip("/")).stem or "document"
    read = apart.page(text.encode("utf-8", "replace"), name + suffix, url=first.url, modified=first.date)
    return replace(read, title=first.title) if first.title else read


def _key(document: Any, said: Mapping[str, Any], url: str, text: str) -> str:
    given = getattr(document, "doc_id", None) or getattr(document, "id_", None)
    if isinstance(given, str) and given.strip() and not _RANDOM.fullmatch(given):
        return given.strip().rstrip("/") or given
    if url:
        return url.rstrip("/")
    if name := next(iter(_all(said, _NAMES)), ""):
        return name.rstrip("/") or name
    return "text:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _folded(metadata: Mapping[Any, Any]) -> dict[str, Any]:
    return {re.sub(r"[\s-]+", "_", str(name)).lower(): value for name, value in metadata.items()}


def _all(said: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """What the metadata tell under these names, in their order, as far as it is a text or a number."""
    found = (said.get(name) for name in names)
    return [text for value in found if isinstance(value, str | int) and (text := str(value).strip())]
