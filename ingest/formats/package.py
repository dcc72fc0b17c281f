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

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_CORE = "docProps/core.xml"


class Properties(NamedTuple):
    """What an office file tells of itself."""

    title: str = ""
    modified: datetime | None = None


def opened(content: bytes, *, largest: int = LARGEST_UNPACKED) -> zipfile.ZipFile:
    """Open an archive from its bytes. Raises `UnreadableDocument` if it is protected, broken or too large."""
    if content.startswith(_OLE):
        raise UnreadableDocument("is protected by a password, or in an older format: save it anew without a password")
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except zipfile.BadZipFile as error:
        raise UnreadableDocument("is broken: it cannot be unpacked") from error
    if sum(part.file_size for part in archive.infolist()) > largest:
        raise UnreadableDocument(f"unpacks to more than {largest // 2**20} MB")
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
