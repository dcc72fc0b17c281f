"""Any reader of LlamaIndex: what its `lazy_load_data` or `load_data` yields, as documents.

The reader is named by its import path, and installed beside Footnote by whoever wants it; nothing of LlamaIndex is
imported here. Documents that follow each other under one name, as the pages of a file do, are one document. Their texts
are read as Markdown, or as HTML where they begin like a web page.

A reader gives all that it has, every time: it is asked for everything, and what is unchanged is told by its text. What
it prints goes to stderr.
"""

import importlib
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import chain, groupby, islice
from types import MappingProxyType
from typing import Any

from ingest import cleaning
from ingest.apart.reading import Apart
from ingest.choosing import Rules, Traits, chooser
from ingest.sources.llama_index.document import Text, fingerprint, page, text_of
from ingest.types import Found, Item, Listing, ReadAsWhole, SourceUnavailable, Unreadable

_SECRET = re.compile(r"key|token|secret|password|credential|auth", re.IGNORECASE)
_LONGEST = 200
_INSTALL = "Install it into Footnote's own environment with pip, as docs/sources.md says, and check its name."


@dataclass(frozen=True, slots=True)
class Reader:
    """Which reader, made with which options, and asked how."""

    path: str
    """Module and class, with a colon between them."""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    load: Mapping[str, Any] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """What of the options may stand in no message."""


def _now() -> datetime:
    return datetime.now(UTC)


class LlamaIndex:
    """The documents of one reader."""

    reference = False

    def __init__(self, reader: Reader, rules: Rules | None = None, *, now: Callable[[], datetime] = _now) -> None:
        """`rules` are applied to the names of documents and to the dates that their metadata tell."""
        self._reader, self._rules, self._now = reader, rules or Rules(), now
        self._stopped = threading.Event()
        self._apart = Apart()

    def expected(self) -> None:
        """Nobody knows before all was read."""

    def documents(self, known: Mapping[str, str] = MappingProxyType({}), since: str = "") -> Listing:
        """Every document, in the reader's order. Blocks. Raises `SourceUnavailable`, also while it is gone through."""
        del known, since
        return Listing(self._items(self._texts(self._read())))

    def one(self, address: str, known: Mapping[str, str]) -> Item | None:
        """Raise `ReadAsWhole`: a reader knows no single documents."""
        del address, known
        raise ReadAsWhole(
            f"{self._reader.path} cannot read a single document.", hint="Read all of it: `footnote ingest all`."
        )

    def stop(self) -> None:
        """End before the next document. From any thread."""
        self._stopped.set()
        self._apart.stop()

    def _items(self, texts: Iterator[Text | Unreadable]) -> Iterator[Item]:
        chosen = chooser(self._rules, self._now())
        seen: dict[str, int] = {}
        with self._apart:
            for key, group in groupby(texts, key=lambda text: text.key):
                together = list(group)
                yield from (one for one in together if isinstance(one, Unreadable))
                parts = [one for one in together if isinstance(one, Text)]
                if parts and chosen(Traits(key, changed=parts[0].date)):
                    seen[key] = seen.get(key, 0) + 1
                    yield _found(key if seen[key] == 1 else f"{key} ({seen[key]})", parts, self._apart)

    def _texts(self, read: Iterator[Any]) -> Iterator[Text | Unreadable]:
        for at, document in enumerate(read, 1):
            text = text_of(document)
            yield text or Unreadable(f"document {at}", "is nothing that LlamaIndex calls a document")

    def _read(self) -> Iterator[Any]:
        """Go through what the reader gives; whatever it does meanwhile is told as a fault of this source."""
        given = self._guarded(lambda: _begun(self._made(), self._reader.load))
        nothing = object()
        while (document := self._guarded(lambda: next(given, nothing))) is not nothing:
            yield document

    def _made(self) -> Any:
        module, _, name = self._reader.path.partition(":")
        try:
            maker = getattr(importlib.import_module(module), name)
        except ImportError as error:
            message = f"There is no reader {self._reader.path}: {self._told(error)}."
            raise SourceUnavailable(message, hint=_INSTALL) from error
        except AttributeError as error:
            message = f"{module} has no reader {name}."
            raise SourceUnavailable(message, hint="Check reader under its [[corpus]].") from error
        return maker(**self._reader.options)

    def _guarded(self, work: Callable[[], Any]) -> Any:
        if self._stopped.is_set():
            raise SourceUnavailable(f"Reading by {self._reader.path} was stopped.", hint="Run it again.")
        try:
            # A command that prints JSON prints nothing else. All threads share one stdout, which is why it is given
            # back between two documents.
            with redirect_stdout(sys.stderr):
                return work()
        except (SourceUnavailable, MemoryError):
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a reader may raise anything, and exit
            # Its own message may hold what must not be told, so that it is not chained.
            raise SourceUnavailable(
                f"The reader {self._reader.path} failed: {self._told(error)}.",
                hint="Check options and load under its [[corpus]], and try the reader by itself.",
            ) from None

    def _told(self, error: BaseException) -> str:
        said = f"{type(error).__name__}: {error}"
        named = (str(value) for name, value in self._reader.options.items() if _SECRET.search(name))
        for secret in filter(None, (*self._reader.secrets, *named)):
            said = said.replace(secret, "…")
        line = " ".join(cleaning.text(said).split()).rstrip(":. ")
        return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _begun(reader: Any, load: Mapping[str, Any]) -> Iterator[Any]:
    """Ask a reader for its documents, lazily if it can; it may say that it cannot when the first is asked for."""
    if hasattr(reader, "lazy_load_data"):
        try:
            return _with_first(reader.lazy_load_data(**load))
        except NotImplementedError:
            pass
    return _with_first(reader.load_data(**load))


def _with_first(given: Any) -> Iterator[Any]:
    if given is None:
        raise TypeError("it returned nothing at all, not even an empty list")
    rest = iter(given)
    return chain(tuple(islice(rest, 1)), rest)


def _found(key: str, parts: Sequence[Text], apart: Apart) -> Found:
    return Found(key, fingerprint(parts), sum(len(part.text) for part in parts), partial(page, parts, apart))
