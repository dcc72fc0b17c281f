"""Read the documents that any LlamaIndex reader returns from `lazy_load_data` or `load_data`.

The reader is named by its import path and installed separately; LlamaIndex is not imported here. Consecutive documents
with the same name, such as the pages of a file, are joined. Texts are parsed as Markdown, or as HTML if they begin like
a web page. Whatever a reader prints goes to stderr.
"""

import hashlib
import importlib
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import chain, groupby, islice
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from ingest.page_cleanup import shorten_message
from ingest.readers import file_formats, value_parsers
from ingest.sandbox import Sandbox
from ingest.sources.filters import DocumentTraits, SelectionRules, build_filter
from ingest.types import (
    EMPTY,
    ChangedDocument,
    ListedItem,
    Listing,
    Page,
    ReadingStopped,
    SingleReadUnsupported,
    SourceUnavailable,
    Unreadable,
)
from storage.clock import Clock, utc_now
from storage.language.lazy_pattern import lazy_compile

_RANDOM_ID = lazy_compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE)
_ADDRESSES = ("url", "source_url", "web_url", "html_url", "permalink", "link", "source")
_NAMES = ("file_path", "path", "page_id", "id", "file_name", "filename", "title", "page_title")
_TITLES = ("title", "page_title", "subject", "name")
_FILES = ("file_name", "filename", "file_path")
_DATES = (
    *("last_modified_date", "last_modified", "lastmod", "modified", "modified_at", "last_edited_time", "updated_at"),
    *("updated", "last_accessed_date", "date", "published", "published_at", "created_at", "creation_date"),
)
_MARKUP = lazy_compile(r"\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)


class LlamaText(NamedTuple):
    """The fields of a LlamaIndex document that are used here."""

    key: str
    text: str
    title: str  # empty if unknown
    file: str
    url: str
    date: datetime | None


def parse_document(document: Any) -> LlamaText | None:
    """Parse a LlamaIndex document; None if it has no text."""
    text = getattr(document, "text", None)
    metadata = getattr(document, "metadata", None)
    if not isinstance(text, str):
        return None
    items = metadata.items() if isinstance(metadata, Mapping) else ()
    fields = {re.sub(r"[\s-]+", "_", str(name)).lower(): value for name, value in items}
    addresses = _metadata_values(fields, _ADDRESSES)
    url = next((value for value in addresses if value.startswith(("http://", "https://"))), "")
    file = next(iter(_metadata_values(fields, _FILES)), "")
    return LlamaText(
        key=_make_key(document, fields, url, text),
        text=text,
        title=" ".join(next(iter(_metadata_values(fields, _TITLES)), "").split()),
        file=PurePosixPath(file.replace("\\", "/")).name,
        url=url,
        date=next(filter(None, (value_parsers.parse_date(fields.get(name)) for name in _DATES)), None),
    )


def make_fingerprint(parts: Sequence[LlamaText]) -> str:
    """Return a hash of a document's parts, and the reader version."""
    first = parts[0]
    date = first.date.isoformat() if first.date else ""
    state = "\x1f".join(
        (file_formats.READER_VERSION, first.title, first.file, first.url, date, *(p.text for p in parts))
    )
    return hashlib.sha256(state.encode("utf-8", "surrogatepass")).hexdigest()


def read_page(parts: Sequence[LlamaText], sandbox: Sandbox) -> Page:
    first = parts[0]
    text = "\n\n".join(part.text for part in parts)
    suffix = ".html" if _MARKUP.match(text) else ".md"
    name = PurePosixPath(first.file or first.key.rstrip("/")).stem or "document"
    read = sandbox.page(text.encode("utf-8", "replace"), name + suffix, url=first.url, modified=first.date)
    return replace(read, title=first.title) if first.title else read


def _make_key(document: Any, fields: Mapping[str, Any], url: str, text: str) -> str:
    own_id = getattr(document, "doc_id", None) or getattr(document, "id_", None)
    if isinstance(own_id, str) and own_id.strip() and not _RANDOM_ID.fullmatch(own_id):
        return own_id.strip().rstrip("/") or own_id
    if url:
        return url.rstrip("/")
    if name := next(iter(_metadata_values(fields, _NAMES)), ""):
        return name.rstrip("/") or name
    return "text:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _metadata_values(fields: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return the texts and numbers that the metadata contain under these names, in the order of the names."""
    values = (fields.get(name) for name in names)
    return [text for value in values if isinstance(value, str | int) and (text := str(value).strip())]


_SECRET = lazy_compile(r"key|token|secret|password|credential|auth", re.IGNORECASE)
_INSTALL = "Install it into Footnote's environment with pip (see docs/sources.md), and check its name."


@dataclass(frozen=True, slots=True)
class LlamaReader:
    """The reader class, its options, and the arguments of its loading method."""

    path: str  # module and class, with a colon between them
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    load: Mapping[str, Any] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)  # option values to redact in messages


class LlamaIndexSource:
    reference = False

    def __init__(self, reader: LlamaReader, rules: SelectionRules | None = None, *, now: Clock = utc_now) -> None:
        self._reader, self._rules, self._now = reader, rules or SelectionRules(), now
        self._stopped = threading.Event()
        self._sandbox = Sandbox()

    def expected(self) -> None:
        """Return None: the count is unknown until all documents are read."""

    def documents(self, known: Mapping[str, str] = EMPTY, since: str = "") -> Listing:
        """List every document, in the order of the reader. Blocks. Raises `SourceUnavailable`, also while iterating."""
        del known, since
        return Listing(self._items(self._parse_documents(self._read_documents())))

    def one(self, address: str, known: Mapping[str, str]) -> ListedItem | None:
        """Raise `SingleReadUnsupported`: a reader cannot load a single document."""
        del address, known
        raise SingleReadUnsupported(
            f"{self._reader.path} cannot read a single document.",
            hint="Read every source instead: `footnote ingest all`.",
        )

    def stop(self) -> None:
        self._stopped.set()
        self._sandbox.stop()

    def _items(self, texts: Iterator[LlamaText | Unreadable]) -> Iterator[ListedItem]:
        is_selected = build_filter(self._rules, self._now())
        seen: dict[str, int] = {}
        with self._sandbox:
            for key, group in groupby(texts, key=lambda text: text.key):
                members = list(group)
                yield from (member for member in members if isinstance(member, Unreadable))
                parts = [member for member in members if isinstance(member, LlamaText)]
                if parts and is_selected(DocumentTraits(key, changed=parts[0].date)):
                    seen[key] = seen.get(key, 0) + 1
                    name = key if seen[key] == 1 else f"{key} ({seen[key]})"
                    size = sum(len(part.text) for part in parts)
                    yield ChangedDocument(name, make_fingerprint(parts), size, partial(read_page, parts, self._sandbox))

    def _parse_documents(self, read: Iterator[Any]) -> Iterator[LlamaText | Unreadable]:
        for number, document in enumerate(read, 1):
            text = parse_document(document)
            yield text or Unreadable(f"document {number}", "is not a LlamaIndex document")

    def _read_documents(self) -> Iterator[Any]:
        """Yield the reader's documents. Any error of the reader becomes `SourceUnavailable`."""
        documents = self._guard(lambda: _load_lazily(self._make_reader(), self._reader.load))
        end = object()
        while (document := self._guard(lambda: next(documents, end))) is not end:
            yield document

    def _make_reader(self) -> Any:
        module, _, name = self._reader.path.partition(":")
        try:
            maker = getattr(importlib.import_module(module), name)
        except ImportError as error:
            message = f"There is no reader {self._reader.path}: {self._redact(error)}."
            raise SourceUnavailable(message, hint=_INSTALL) from error
        except AttributeError as error:
            message = f"{module} has no reader {name}."
            raise SourceUnavailable(message, hint="Check the reader setting of its [[corpus]].") from error
        return maker(**self._reader.options)

    def _guard(self, work: Callable[[], Any]) -> Any:
        if self._stopped.is_set():
            raise ReadingStopped(self._reader.path)
        try:
            # Commands with JSON output must print nothing else. All threads share stdout, so restore it between
            # documents.
            with redirect_stdout(sys.stderr):
                return work()
        except (SourceUnavailable, MemoryError):
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a reader may raise anything, and exit
            # Not chained: its own message may contain secrets.
            raise SourceUnavailable(
                f"The reader {self._reader.path} failed: {self._redact(error)}.",
                hint="Check `options` and `load` in its [[corpus]], and try the reader separately.",
            ) from None

    def _redact(self, error: BaseException) -> str:
        message = f"{type(error).__name__}: {error}"
        named = (str(value) for name, value in self._reader.options.items() if _SECRET.search(name))
        for secret in filter(None, (*self._reader.secrets, *named)):
            message = message.replace(secret, "…")
        return shorten_message(message)


def _load_lazily(reader: Any, load: Mapping[str, Any]) -> Iterator[Any]:
    """Yield documents as the reader loads them, or all at once if it cannot do that."""
    if hasattr(reader, "lazy_load_data"):
        try:
            return _with_first(reader.lazy_load_data(**load))
        except NotImplementedError:
            pass
    return _with_first(reader.load_data(**load))


def _with_first(documents: Any) -> Iterator[Any]:
    if documents is None:
        raise TypeError("it returned None instead of a list")
    rest = iter(documents)
    return chain(tuple(islice(rest, 1)), rest)
