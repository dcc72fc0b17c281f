"""Read what is in an export of Confluence: the zip archive, the objects of its `entities.xml`, the pages of its HTML.

The archive is read in place: nothing in it is written anywhere, and it cannot grow at will. What stands in it under a
name that leads out of it, is a link, or unpacks to absurd amounts is reported and left alone.
"""

import hashlib
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from posixpath import dirname, join, normpath
from typing import IO, Any
from urllib.parse import unquote
from xml.parsers import expat

from ingest.readers import file_formats, html_tree, value_parsers, web_page
from ingest.readers.parsed_document import ParsedDocument
from ingest.readers.value_parsers import Element
from ingest.sources.filters import DocumentTraits
from ingest.types import Page, SourceUnavailable, Unreadable, UnreadableDocument
from storage.language.lazy_pattern import lazy_compile

MOST_ENTRIES = 500_000
LARGEST_ARCHIVE = 64 << 30  # bytes that all entries may unpack to together
_MOST_RATIO = 400
"""Of unpacked to packed bytes. Markup comes to a tenth or a thirtieth; a bomb of one layer to a thousandth."""
_SMALL_ENTRY = 1 << 20
_ENCRYPTED = 0x1


class ZipArchive:
    """Read an open archive. `refused` is what in it is left alone, and why."""

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
        """Unpack one entry bit by bit, never more than the archive says. Raises `SourceUnavailable` also within."""
        try:
            with self._zip.open(self._entries[name]) as file:
                yield file
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise _make_damaged(self._path, f"{name} cannot be unpacked") from error


@contextmanager
def open_archive(path: Path) -> Iterator[ZipArchive]:
    """Open an archive. Raises `SourceUnavailable` in one line if it is none, or none that is to be read."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as there:
            _refuse_excess(path, there)
            yield ZipArchive(path, there)
    except FileNotFoundError as error:
        raise SourceUnavailable(f"There is no file {path}.", hint="Check the path.") from error
    except zipfile.BadZipFile as error:
        raise _make_damaged(path, "it is damaged, cut short, or no zip archive") from error
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise SourceUnavailable(f"{path} cannot be read: {reason}.", hint="Check its permissions.") from error


def make_file_stamp(path: Path) -> str:
    """Return what tells one version of a file from another without reading it; empty if there is none."""
    try:
        there = path.stat()
    except OSError:
        return ""
    return f"{there.st_size}-{there.st_mtime_ns}"


def _refuse_excess(path: Path, there: zipfile.ZipFile) -> None:
    entries = there.infolist()
    if any(entry.flag_bits & _ENCRYPTED for entry in entries):
        raise SourceUnavailable(f"{path} is protected by a password.", hint="Export it again without one.")
    total = sum(entry.file_size for entry in entries)
    if len(entries) > MOST_ENTRIES or total > LARGEST_ARCHIVE:
        what = f"{len(entries):,} files of {total / 2**30:,.0f} GB together"
        raise SourceUnavailable(f"{path} holds {what}, which is too much.", hint="Export a space at a time.")


def _find_fault(entry: zipfile.ZipInfo) -> str:
    """Return why an entry is left alone; empty if it is not."""
    name = entry.filename
    if name.startswith("/") or "\\" in name or name[1:2] == ":" or ".." in PurePosixPath(name).parts or "\0" in name:
        return "its name leads out of the archive"
    if stat.S_ISLNK(entry.external_attr >> 16):
        return "it is a link"
    if entry.file_size > _SMALL_ENTRY and entry.file_size > _MOST_RATIO * max(entry.compress_size, 1):
        return f"it would unpack to {entry.file_size / max(entry.compress_size, 1):,.0f} times its size"
    return ""


def _make_damaged(path: Path, what: str) -> SourceUnavailable:
    return SourceUnavailable(f"{path}: {what}.", hint="Export or copy it again; what was read before still answers.")


BLOCK_BYTES = 1 << 18
LONGEST_TEXT = 16 << 20  # characters of one property
_CONTROL_BYTES = bytes(code for code in range(32) if code not in b"\t\n\r")
_WITHOUT_CONTROL = bytes.maketrans(_CONTROL_BYTES, b" " * len(_CONTROL_BYTES))
"""Databases hold control characters that XML may not."""


class EntitiesBroken(Exception):
    """It is no such file, or is damaged. `str()` says what is wrong with it."""


@dataclass(slots=True)
class ExportEntity:
    """Hold one object: its properties as text, and the ids that they refer to."""

    kind: str
    id: str = ""
    said: dict[str, str] = field(default_factory=dict)
    refers: dict[str, str] = field(default_factory=dict)
    cut: bool = False  # whether a text of it was longer than the limit


def read_entities(file: IO[bytes], kinds: Collection[str]) -> Iterator[ExportEntity]:
    """Go through the objects of these classes, in the file's order. Raises `EntitiesBroken`."""
    made: list[ExportEntity] = []
    reader = _EntityReader(frozenset(kinds), made.append)
    while True:
        block = file.read(BLOCK_BYTES)
        reader.feed(block.translate(_WITHOUT_CONTROL), last=not block)
        yield from made
        made.clear()
        if not block:
            return


class _EntityReader:
    """Hear what the parser finds, and keep nothing of objects of other classes."""

    def __init__(self, kinds: frozenset[str], made: Callable[[ExportEntity], None]) -> None:
        self._kinds = kinds
        self._made = made
        self._entity: ExportEntity | None = None
        self._path: list[str] = []
        self._name = ""
        self._text: list[str] = []
        self._length = 0
        parser: Any = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._data
        parser.StartDoctypeDeclHandler = self._doctype
        self._parser = parser

    def feed(self, block: bytes, *, last: bool) -> None:
        try:
            self._parser.Parse(block, last)
        except expat.ExpatError as error:
            raise EntitiesBroken(f"its XML is broken ({error})") from error

    def _doctype(self, *_said: object) -> None:
        raise EntitiesBroken("it declares a document type, as no export does")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._path.append(tag)
        if len(self._path) == 1 and tag != "hibernate-generic":
            raise EntitiesBroken(f"it is no export of Confluence: it begins with <{tag[:40]}>")
        if tag == "object":
            kind = attributes.get("class", "")
            self._entity = ExportEntity(kind) if kind in self._kinds else None
        elif tag == "property":
            self._name = attributes.get("name", "")
        if tag in {"id", "property"}:
            self._text, self._length = [], 0

    def _end(self, tag: str) -> None:
        self._path.pop()
        one = self._entity
        if one is None:
            return
        text = "".join(self._text).strip()
        if tag == "object":
            self._made(one)
            self._entity = None
        elif tag == "property":
            if text and self._name not in one.refers:
                one.said[self._name] = text
            self._text = []
        elif tag == "id":
            if self._path[-1] == "object":
                one.id = text
            elif self._path[-1] == "property":
                one.refers[self._name] = text
            self._text = []

    def _data(self, data: str) -> None:
        if self._entity is None:
            return
        self._length += len(data)
        if self._length > LONGEST_TEXT:
            self._entity.cut = True
        else:
            self._text.append(data)


_PAGE_ID = lazy_compile(r"(?:^|_)(\d+)\.html$")
_MODIFIED = lazy_compile(r"(?:last modified|last updated|updated)[^,]{0,200}?\bon\b\s+(.{6,30})", re.IGNORECASE)
LARGEST_PAGE = 64 << 20  # bytes of a page or an index


@dataclass(frozen=True, slots=True)
class ExportedPage:
    key: str  # its id, as its file's name tells it; else that name
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
            raise UnreadableDocument("is no page of an export: nothing in it is marked as its content")
        title = self.title or _find_title(root)
        reading = ParsedDocument(html_tree.read_element(main), title=title, date=_find_date(root), dated=True)
        url = f"{self.base.rstrip('/')}/pages/viewpage.action?pageId={self.key}" if self.base else ""
        return file_formats.build_page(reading, self.entry, url=url)


def list_html_pages(there: ZipArchive, base: str) -> Iterator[ExportedPage]:
    """Go through the pages of every index in the export, top down; then those that no index names."""
    met: set[str] = set()
    for index in sorted(name for name in there.names if name.rpartition("/")[2] == "index.html"):
        met.add(index)
        if there.size(index) > LARGEST_PAGE:
            continue
        root = html_tree.parse_html(web_page.decode_markup(there.read(index)))
        for entry, titles in _list_entries(root, index) if root is not None else ():
            if there.holds(entry) and entry not in met:
                met.add(entry)
                yield _make_page(entry, titles, base)
    for entry in there.names:
        if entry.endswith(".html") and entry not in met and "attachments/" not in entry:
            yield _make_page(entry, (), base)


def _make_page(entry: str, titles: tuple[str, ...], base: str) -> ExportedPage:
    found = _PAGE_ID.search(entry.rpartition("/")[2])
    space = dirname(entry).rpartition("/")[2]
    parts = [part.replace("/", "-") for part in (space, *titles)] if titles else [entry]
    return ExportedPage(
        found[1] if found else entry, entry, titles[-1] if titles else "", "/".join(filter(None, parts)),
        base if found else "",
    )  # fmt: skip


def _list_entries(root: Element, index: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return the entries that an index leads to, each with the titles of the pages above it and its own."""
    for link in root.iter("a"):
        target = unquote((link.get("href") or "").partition("#")[0])
        inside = link.getparent()
        if target.endswith(".html") and "://" not in target and inside is not None and inside.tag == "li":
            above = [item.find("a") for item in inside.iterancestors("li")]
            titles = [html_tree.get_element_text(one) for one in reversed(above) if one is not None]
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
    found = _MODIFIED.search(" ".join(metadata.itertext())) if metadata is not None else None
    return value_parsers.parse_date(" ".join(found[1].split()).rstrip(".")) if found else None
