"""The zip archives that office files and e-books are, opened with care: a small file can unpack to a huge one."""

import io
import re
import zipfile
from datetime import datetime
from typing import NamedTuple

from ingest.formats import dates, elements
from ingest.types import UnreadableDocument

LARGEST_UNPACKED = 512 * 1024 * 1024
"""Bytes that all parts may have together; zipfile reads no part beyond the size that the archive gives for it."""
LARGEST_MARKUP = 64 * 1024 * 1024
"""Bytes that all parts of markup may have together which are read into a tree, where each takes several times that."""
_MOST_PARTS = 10_000
_TIGHTEST = 200
"""How many times its packed size a part may have unpacked; markup has 10 to 50."""
_SMALL = 1 << 20
"""Bytes. How tightly smaller parts are packed does not matter."""
_MARKUP = (".xml", ".rels", ".xhtml", ".html", ".htm", ".opf", ".vml")

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_CORE = "docProps/core.xml"


class Properties(NamedTuple):
    """What an office file tells of itself."""

    title: str = ""
    modified: datetime | None = None


def opened(
    content: bytes, *, largest: int = LARGEST_UNPACKED, markup: int = LARGEST_MARKUP, parts: int = _MOST_PARTS
) -> zipfile.ZipFile:
    """Open an archive from its bytes, of which `markup` are how many its parts of markup may have together.

    Raises `UnreadableDocument` if it is protected, broken, or made to take more than it may.
    """
    if content.startswith(_OLE):
        raise UnreadableDocument("is protected by a password, or in an older format: save it anew without a password")
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except zipfile.BadZipFile as error:
        raise UnreadableDocument("is broken: it cannot be unpacked") from error
    found = archive.infolist()
    if sum(part.file_size for part in found) > largest:
        raise UnreadableDocument(f"unpacks to more than {largest // 2**20} MB")
    if len(found) > parts:
        raise UnreadableDocument(f"holds more than {parts:,} parts")
    if any(part.file_size > max(_SMALL, _TIGHTEST * part.compress_size) for part in found):
        raise UnreadableDocument("is packed more tightly than any document: it may be made to do harm")
    if sum(part.file_size for part in found if part.filename.lower().endswith(_MARKUP)) > markup:
        raise UnreadableDocument(f"holds more than {markup // 2**20} MB of markup: split it")
    return archive


def properties(archive: zipfile.ZipFile) -> Properties:
    """The title and date in an office file's core properties; empty where it has none."""
    if _CORE not in archive.namelist():
        return Properties()
    try:
        core = elements.xml(archive.read(_CORE))
    except ValueError:
        return Properties()
    said = {re.sub(r".*\}", "", part.tag): (part.text or "").strip() for part in core}
    return Properties(said.get("title", ""), dates.parsed(said.get("modified") or said.get("created")))
