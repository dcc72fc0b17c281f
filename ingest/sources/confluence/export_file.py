"""Read the zip archive of a Confluence export, and the pages of an HTML export.

The archive is read in place and never extracted to disk. Entries whose names lead out of it, links, and decompression
bombs are reported and skipped.
"""

import hashlib
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from posixpath import dirname, join, normpath
from typing import IO
from urllib.parse import unquote

from ingest.readers import file_formats, html_tree, value_parsers, web_page
from ingest.readers.parsed_document import ParsedDocument
from ingest.readers.value_parsers import Element
from ingest.sources.filters import DocumentTraits
from ingest.types import Page, SourceUnavailable, Unreadable, UnreadableDocument, describe_os_error
from storage.language.lazy_pattern import lazy_compile

MOST_ENTRIES = 500_000
LARGEST_ARCHIVE = 64 << 30  # total unpacked bytes
_MOST_RATIO = 400  # unpacked to packed bytes; markup reaches 10 to 30, a one-layer bomb 1,000
_SMALL_ENTRY = 1 << 20
_ENCRYPTED = 0x1


class ZipArchive:
    """Reads an open archive. `refused` lists the skipped entries with the reasons."""

    def __init__(self, path: Path, opened: zipfile.ZipFile) -> None:
        self._path = path
        self._zip = opened
        self._entries: dict[str, zipfile.ZipInfo] = {}
        self.refused: list[Unreadable] = []
        for entry in opened.infolist():
            if entry.is_dir():
                continue
            if reason := _find_fault(entry):
                self.refused.append(
                    Unreadable("".join(sign if sign.isprintable() else "?" for sign in entry.filename)[:200], reason)
                )
            else:
                self._entries.setdefault(entry.filename, entry)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._entries)

    def holds(self, name: str) -> bool:
        return name in self._entries

    def size(self, name: str) -> int:
        return self._entries[name].file_size

    def read(self, name: str) -> bytes:
        with self.open(name) as file:
            return file.read()

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Unpack one entry as a stream, up to its stated size.

        Raises `SourceUnavailable`, also while the stream is read.
        """
        try:
            with self._zip.open(self._entries[name]) as file:
                yield file
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise _make_damaged(self._path, f"{name} cannot be unpacked") from error


@contextmanager
def open_archive(path: Path) -> Iterator[ZipArchive]:
    """Open an archive. Raises `SourceUnavailable` if it is not a zip archive, or is encrypted or too large."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as opened:
            _refuse_excess(path, opened)
            yield ZipArchive(path, opened)
    except FileNotFoundError as error:
        raise SourceUnavailable(f"There is no file {path}.", hint="Check the path.") from error
    except zipfile.BadZipFile as error:
        raise _make_damaged(path, "it is damaged, truncated, or not a zip archive") from error
    except OSError as error:
        message = f"{path} cannot be read: {describe_os_error(error)}."
        raise SourceUnavailable(message, hint="Check its permissions.") from error


def make_file_stamp(path: Path) -> str:
    """Return size and modification time of a file as text; empty if the file is missing."""
    try:
        status = path.stat()
    except OSError:
        return ""
    return f"{status.st_size}-{status.st_mtime_ns}"


def _refuse_excess(path: Path, opened: zipfile.ZipFile) -> None:
    entries = opened.infolist()
    if any(entry.flag_bits & _ENCRYPTED for entry in entries):
        raise SourceUnavailable(f"{path} is protected by a password.", hint="Export it again without one.")
    total = sum(entry.file_size for entry in entries)
    if len(entries) > MOST_ENTRIES or total > LARGEST_ARCHIVE:
        contents = f"{len(entries):,} files of {total / 2**30:,.0f} GB in total"
        raise SourceUnavailable(f"{path} contains {contents}, which is too much.", hint="Export one space at a time.")


def _find_fault(entry: zipfile.ZipInfo) -> str:
    """Return why an entry is skipped; empty if it is not."""
    name = entry.filename
    if name.startswith("/") or "\\" in name or name[1:2] == ":" or ".." in PurePosixPath(name).parts or "\0" in name:
        return "its name leads out of the archive"
    if stat.S_ISLNK(entry.external_attr >> 16):
        return "it is a link"
    if entry.file_size > _SMALL_ENTRY and entry.file_size > _MOST_RATIO * max(entry.compress_size, 1):
        return f"it would unpack to {entry.file_size / max(entry.compress_size, 1):,.0f} times its size"
    return ""


def _make_damaged(path: Path, damage: str) -> SourceUnavailable:
    return SourceUnavailable(f"{path}: {damage}.", hint="Export or copy it again; pages ingested earlier remain.")


_PAGE_ID = lazy_compile(r"(?:^|_)(\d+)\.html$")
_MODIFIED = lazy_compile(r"(?:last modified|last updated|updated)[^,]{0,200}?\bon\b\s+(.{6,30})", re.IGNORECASE)
LARGEST_PAGE = 64 << 20  # bytes of a page or an index


@dataclass(frozen=True, slots=True)
class ExportedPage:
    key: str  # the id in its file's name, otherwise that name
    entry: str
    title: str
    path: str
    base: str

    @property
    def traits(self) -> DocumentTraits:
        return DocumentTraits(self.path, status="current")

    def fingerprint(self, content: bytes) -> str:
        return f"{hashlib.sha256(content).hexdigest()[:32]}-{file_formats.READER_VERSION}"

    def page(self, content: bytes) -> Page:
        root = html_tree.parse_html(web_page.decode_markup(content))
        main = None if root is None else root.find(".//*[@id='main-content']")
        if main is None:
            raise UnreadableDocument("is not a page of an export: it has no element marked as main content")
        title = self.title or _find_title(root)
        reading = ParsedDocument(html_tree.read_element(main), title=title, date=_find_date(root), dated=True)
        url = f"{self.base.rstrip('/')}/pages/viewpage.action?pageId={self.key}" if self.base else ""
        return file_formats.build_page(reading, self.entry, url=url)


def list_html_pages(archive: ZipArchive, base: str) -> Iterator[ExportedPage]:
    """Yield the pages of every index in the export, from top to bottom, then the pages that are in no index."""
    listed: set[str] = set()
    for index in sorted(name for name in archive.names if name.rpartition("/")[2] == "index.html"):
        listed.add(index)
        if archive.size(index) > LARGEST_PAGE:
            continue
        root = html_tree.parse_html(web_page.decode_markup(archive.read(index)))
        for entry, titles in _list_entries(root, index) if root is not None else ():
            if archive.holds(entry) and entry not in listed:
                listed.add(entry)
                yield _make_page(entry, titles, base)
    for entry in archive.names:
        if entry.endswith(".html") and entry not in listed and "attachments/" not in entry:
            yield _make_page(entry, (), base)


def _make_page(entry: str, titles: tuple[str, ...], base: str) -> ExportedPage:
    page_id = _PAGE_ID.search(entry.rpartition("/")[2])
    space = dirname(entry).rpartition("/")[2]
    parts = [part.replace("/", "-") for part in (space, *titles)] if titles else [entry]
    title, path = titles[-1] if titles else "", "/".join(filter(None, parts))
    return ExportedPage(page_id[1] if page_id else entry, entry, title, path, base if page_id else "")


def _list_entries(root: Element, index: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each page that an index links to, with the titles of its ancestors and its own title."""
    for link in root.iter("a"):
        target = unquote((link.get("href") or "").partition("#")[0])
        inside = link.getparent()
        if target.endswith(".html") and "://" not in target and inside is not None and inside.tag == "li":
            above = [item.find("a") for item in inside.iterancestors("li")]
            titles = [html_tree.get_element_text(ancestor) for ancestor in reversed(above) if ancestor is not None]
            yield normpath(join(dirname(index), target)), (*titles, html_tree.get_element_text(link))


def _find_title(root: Element) -> str:
    heading = root.find(".//*[@id='title-text']")
    title = (
        html_tree.get_element_text(heading)
        if heading is not None
        else " ".join((root.findtext(".//title") or "").split())
    )
    return title.partition(" : ")[2] or title


def _find_date(root: Element) -> datetime | None:
    metadata = root.find(".//*[@class='page-metadata']")
    dated = _MODIFIED.search(" ".join(metadata.itertext())) if metadata is not None else None
    return value_parsers.parse_date(" ".join(dated[1].split()).rstrip(".")) if dated else None
