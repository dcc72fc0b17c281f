"""The XML that MediaWiki exports, schemas 0.3 to 0.11, cut into its pages as it streams by.

The stream is cut at page ends, which costs next to nothing, and each page is then XML of its own: a page that is broken
costs itself alone, pages can be parsed on other cores, and no more than one of them is held. `mediawiki_page` says what
is in one.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ingest.sources.dumps.file import DumpCutShort
from ingest.sources.mediawiki.page import site, title

LARGEST_REVISION = 64 << 20
"""Bytes. MediaWiki refuses articles of more than two megabytes; what is so much longer has lost its end."""

_COMPACT = 4 << 20
"""Bytes of a page from which on its older revisions are dropped while it is still coming."""
_START = 1 << 16
"""Bytes of a page in which it says what it is, before its text."""
_PAGE_END = re.compile(rb"</page>|<page>")
_HEADER_END = re.compile(rb"<page>|(?<=</siteinfo>)|</mediawiki>")
_TIMESTAMP = re.compile(rb"<timestamp>\s*([^<]*?)\s*</timestamp>")


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


class Export:
    """An export as it streams by: its `site`, then its `pages`."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        """Reads the header. Raises `DumpError` as the blocks do; a dump cut short is told by `pages`."""
        self._blocks = iter(blocks)
        self._buffer = bytearray()
        self._byte = 0
        self._line = 1
        self._broken: DumpCutShort | None = None
        try:
            while not _HEADER_END.search(self._buffer) and self._more():
                pass
        except DumpCutShort as error:
            self._broken = error
        end = _HEADER_END.search(self._buffer)
        self.site = site(bytes(self._buffer[: end.start() if end else len(self._buffer)]))

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
        byte, line, searched, compact = self._byte, self._line, 0, _COMPACT
        place = f"line {line:,}, byte {byte:,} of the XML"
        while (end := self._buffer.find(b"</page>", searched)) < 0:
            searched = max(len(self._buffer) - len(b"</page>"), 0)
            if len(self._buffer) > compact:
                self._compact()
                # One revision cannot be made smaller: tried at each block, it would be copied again and again.
                searched, compact = 0, max(_COMPACT, 2 * len(self._buffer))
            if len(self._buffer) > LARGEST_REVISION:
                return self._vast(place, byte, line)
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

    def _vast(self, place: str, byte: int, line: int) -> RawPage:
        """Go past a page that no memory should hold, and return what it says of itself before its text."""
        start = bytes(self._buffer[:_START])
        named = _named(start)
        while not (end := _PAGE_END.search(self._buffer, 1)):
            self._drop(max(len(self._buffer) - len(b"</page>"), 0))
            if not self._more():
                raise DumpCutShort(f"{named} ({place}) does not end")
        self._drop(end.end() if end[0] == b"</page>" else end.start())
        said = start.partition(b"<text")[0]
        return RawPage(said + b'<text vast="vast" /></revision></page>', byte, line)

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
        if self._broken:
            raise self._broken
        block = next(self._blocks, b"")
        self._buffer += block
        return bool(block)


def _named(xml: bytes | bytearray) -> str:
    named = title(bytes(xml[:4096]))
    return f"the page “{named}”" if named else "a page without a title"


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
