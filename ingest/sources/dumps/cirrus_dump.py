"""Read a dump of CirrusSearch, the search engine of Wikimedia's wikis: pages as plain text with their redirects."""

import bz2
import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

from ingest.readers import value_parsers
from ingest.sources.dumps.dump_file import detect_compression, refuse_single
from ingest.types import (
    EMPTY,
    Block,
    ChangedDocument,
    ListedItem,
    Listing,
    Page,
    Section,
    Unreadable,
    UnreadableDocument,
    list_unchanged,
)
from ingest.wikitext.wiki_site import WikiSite, describe_database, is_disambiguation

CIRRUS_VERSION = "c1"  # part of every fingerprint: raise it when pages are read differently
LARGEST_LINE = 64 << 20  # bytes; longer lines are not pages
_DOWNLOAD_AGAIN = "Download the dump again for the rest."


class CirrusDump:
    """Reads the pages of a CirrusSearch dump, which consists of one or several files."""

    reference = True
    one = staticmethod(refuse_single)

    def __init__(self, *paths: Path, wiki: str = "", namespaces: tuple[int, ...] = (0,)) -> None:
        self._paths = paths
        self._wiki = wiki
        self._namespaces = frozenset(namespaces)

    def expected(self) -> None:
        """Return None: the count is unknown until the end."""

    def documents(self, known: Mapping[str, str] = EMPTY, since: str = "") -> Listing:
        """List every page, in file order. Raises `DumpError` at once if a file is missing.

        If a file is damaged, known pages that were not found are listed as unchanged.
        """
        del since  # a dump contains every page
        for path in self._paths:
            detect_compression(path)
        return Listing(self._list_items(known))

    def stop(self) -> None:
        """Do nothing: reading never waits."""

    def _list_items(self, known: Mapping[str, str]) -> Iterator[ListedItem]:
        seen: set[str] = set()
        damaged = False
        for path in self._paths:
            try:
                for item in self._read_pages(path):
                    if item.key not in seen:
                        seen.add(item.key)
                        yield item
            except (OSError, EOFError, zlib.error, ValueError) as error:
                damaged = True
                reason = f"the file is damaged: {error}. The pages before the damage were read. {_DOWNLOAD_AGAIN}"
                yield Unreadable(path.name, reason)
        if damaged:
            yield from (list_unchanged(key, known[key]) for key in known if key not in seen)

    def _read_pages(self, path: Path) -> Iterator[ListedItem]:
        with _open_packed(path) as file:
            lines = _read_lines(file)
            for number, action in lines:
                key = _parse_id(number, action)
                following = next(lines, None)
                if following is None:
                    raise ValueError(f"line {number:,} is the last, and its page is missing")
                if item := self._make_item(key, *following, path):
                    yield item

    def _make_item(self, key: str, number: int, line: bytes, path: Path) -> ListedItem | None:
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):
            return Unreadable(key, f"line {number:,} of {path.name} is broken. {_DOWNLOAD_AGAIN}")
        if not isinstance(fields, Mapping) or fields.get("namespace", 0) not in self._namespaces:
            return None
        title = fields.get("title")
        if not isinstance(title, str) or not title:
            return Unreadable(key, f"the page has no title (line {number:,} of {path.name})")
        aliases = _list_aliases(fields)
        stamp = fields.get("version") or fields.get("timestamp") or ""
        fingerprint = f"{stamp}-{CIRRUS_VERSION}-{zlib.crc32(chr(10).join(aliases).encode()):08x}"
        known = describe_database(self._wiki or str(fields.get("wiki", "")))
        return ChangedDocument(key, fingerprint, len(line), partial(_make_page, fields, known, aliases))


def _open_packed(path: Path) -> BinaryIO:
    packed = detect_compression(path)
    if packed == "bz2":
        return cast("BinaryIO", bz2.open(path))
    return cast("BinaryIO", gzip.open(path)) if packed == "gz" else path.open("rb")


def _read_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    number = 0
    while content := file.readline(LARGEST_LINE + 1):
        number += 1
        if len(content) > LARGEST_LINE:
            raise ValueError(f"line {number:,} is incomplete")
        if content.strip():
            yield number, content


def _parse_id(number: int, line: bytes) -> str:
    """Return the id of the next page, which is in this line. Raises `ValueError` if it is not."""
    try:
        page_id = json.loads(line)["index"]["_id"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"line {number:,} does not name the next page") from error
    return str(page_id)


def _list_aliases(fields: Mapping[str, Any]) -> tuple[str, ...]:
    listed = fields.get("redirect")
    redirects = [entry for entry in listed if isinstance(entry, Mapping)] if isinstance(listed, list) else []
    articles = (entry for entry in redirects if entry.get("namespace", 0) == 0)
    return tuple(sorted({str(entry["title"]) for entry in articles if entry.get("title")}))


def _make_page(fields: Mapping[str, Any], known: WikiSite, aliases: tuple[str, ...]) -> Page:
    title, revision = str(fields["title"]), str(fields.get("version") or "")
    blocks = _split_blocks(str(fields.get("text") or ""), str(fields.get("opening_text") or ""))
    if not blocks:
        raise UnreadableDocument(f"“{title}”: it contains no text")
    used = fields.get("template")  # titles with namespace
    templates = [f"{{{{{str(name).rpartition(':')[2]}}}}}" for name in used] if isinstance(used, list) else []
    return Page(
        title=title,
        sections=(Section((), blocks),),
        url=known.url(title, revision),
        revision=revision,
        date=value_parsers.parse_date(str(fields.get("timestamp") or "")),
        language=str(fields.get("language") or "").partition("-")[0] or known.language,
        aliases=aliases,
        disambiguation=is_disambiguation(title, "\n".join(templates)),
    )


def _split_blocks(text: str, opening: str) -> tuple[Block, ...]:
    """Split a page's text into the blocks of its opening and of the rest."""
    text, opening = " ".join(text.split()), " ".join(opening.split())
    parts = (opening, text[len(opening) :].strip()) if opening and text.startswith(opening) else (text,)
    return tuple(Block(part) for part in parts if part)
