"""Read a folder of documents. Every file is accounted for: found, or unreadable with its reason, or left out by a rule.

Left out are hidden files, what the rules say, and what nobody would call a document. Symbolic links are followed within
the folder. One that leads out of it is unreadable: whoever may add a link to a folder could otherwise publish any file
that this process can read.
"""

import errno
import hashlib
import os
import stat
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ingest.readers import file_formats, front_matter
from ingest.readers.external_programs import ReaderPrograms
from ingest.sandbox import Sandbox, plan_reading
from ingest.sources.default_ignore import DEFAULT_IGNORE
from ingest.sources.filters import HIDDEN, TOO_OLD, SelectionRules, build_path_explainer, utc_now
from ingest.sources.published_address import build_published_url
from ingest.types import (
    EMPTY,
    ChangedDocument,
    DeletedDocument,
    LeftOut,
    ListedItem,
    Listing,
    Page,
    ReadTask,
    Site,
    SourceUnavailable,
    Unreadable,
    UnreadableDocument,
)

DUPLICATE_NAME = "has the same name as another file once accents are composed: rename it"
"""Why the second of two files is not read whose names differ only so, for they would have one key."""


def is_hidden(name: str) -> bool:
    """Tell whether a file or folder of this name is hidden, or a file that Office has open."""
    return name.startswith((".", "~$"))


def normalize_name(name: str | bytes) -> str:
    """Make one name on every system: accents composed, bytes that are not UTF-8 replaced."""
    return unicodedata.normalize("NFC", os.fsencode(name).decode("utf-8", "replace"))


LARGEST_FILE = 200 * 1024 * 1024
"""Bytes. A file above it is listed as unreadable unless the folder is told otherwise."""

DEEPEST_FOLDER = 350
"""Folders within folders. What lies below is told, and not read: no walk may exhaust the stack."""

_CHANGED = "changed while it was read: run the same command again"
_IRREGULAR = "is not a regular file"
_NO_LINKS = frozenset({errno.ELOOP, errno.ENOTDIR})  # how a link is refused that is not to be followed
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_Identity = tuple[int, int]


class _FolderFile(NamedTuple):
    key: str
    place: Path  # within the folder, without links
    status: os.stat_result


_Entry = _FolderFile | Unreadable | LeftOut


class FolderError(SourceUnavailable):
    """The folder itself cannot be read."""

    kind = "folder"


class FolderSource:
    reference = False

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        url_base: str = "",
        site: Site = "",
        include: Sequence[str] = ("**/*",),
        exclude: Sequence[str] = (),
        ignore: Sequence[str] = DEFAULT_IGNORE,
        newest_days: float | None = None,
        largest: int = LARGEST_FILE,
        now: Callable[[], datetime] = utc_now,
        sandbox: Sandbox | None = None,
    ) -> None:
        """Make addresses of `url_base`, keys and `site`; `largest` is in bytes; `sandbox` reads what may do harm."""
        self._root = Path(path)
        self._real = self._root.resolve()
        self._url_base, self._site = url_base, site
        self._rules = SelectionRules(tuple(include), tuple(exclude), tuple(ignore), newest_days=newest_days)
        self._explain_file = build_path_explainer(self._rules)
        self._explain_folder = build_path_explainer(self._rules, folder=True)
        self.left_out: Sequence[LeftOut] = ()
        """What the last listing left out."""
        self._now = now
        self._largest = largest
        self._sandbox = sandbox or Sandbox()

    def documents(self, known: Mapping[str, str] = EMPTY, since: str = "") -> Listing:
        """List every document there is now, by folder and name. Blocks. Raises `FolderError` at once.

        A folder within that cannot be listed is unreadable under its own key, which ends in a slash.
        """
        del known, since  # nothing is read before it is asked for
        return Listing(self._items(self._find_files()))

    def one(self, address: str, known: Mapping[str, str]) -> ListedItem | None:
        """Return the file of this address or path within the folder. Blocks. Raises `FolderError`."""
        entries = list(self._find_files())
        for entry in entries:
            if address in (entry.key, self._url(entry.key)):
                return entry if isinstance(entry, Unreadable) else self._open_document(entry)
        for entry in entries if address.startswith(("http://", "https://")) else ():
            if isinstance(entry, _FolderFile) and address == self._read_url(entry):
                return self._open_document(entry)
        return next((DeletedDocument(key) for key in known if address in (key, self._url(key))), None)

    def stop(self) -> None:
        self._sandbox.stop()

    def expected(self) -> int:
        """Count the documents there are now; no file is opened for it. Blocks. Raises `FolderError`."""
        return sum(1 for _ in self._find_files())

    def preview(self) -> Iterator[tuple[str, str]]:
        """Return each file's key, and why it is not read; empty for what would be. Blocks. Raises `FolderError`.

        No file is opened; of a folder that is left out its own key stands for all in it.
        """
        for entry in self._list_files():
            if isinstance(entry, _FolderFile):
                yield entry.key, _explain_unread(entry.key, entry.status, self._largest, self._sandbox.programs)
            else:
                yield entry.key, entry.reason

    def _find_files(self) -> Iterator[_FolderFile | Unreadable]:
        self.left_out = left_out = list[LeftOut]()
        return _set_aside(self._list_files(), left_out)

    def _items(self, listed: Iterator[_FolderFile | Unreadable]) -> Iterator[ListedItem]:
        with self._sandbox:
            for entry in listed:
                yield entry if isinstance(entry, Unreadable) else self._open_document(entry)

    def _list_files(self) -> Iterator[_FolderFile | Unreadable | LeftOut]:
        try:
            self._real = self._root.resolve()
            here = self._real.stat()
            next(self._root.iterdir(), None)
        except OSError as error:
            raise _folder_error(self._root, error) from error
        return _refuse_duplicates(self._walk(Path(), "", ((here.st_dev, here.st_ino),)))

    def _walk(self, place: Path, above: str, ancestors: tuple[_Identity, ...]) -> Iterator[_Entry]:
        try:
            with _open_beneath(self._real, place, os.O_DIRECTORY) as folder, os.scandir(folder) as entries:
                names = sorted(entry.name for entry in entries)
        except OSError as error:
            yield Unreadable(above, f"the folder cannot be listed: {_error_text(error)}")
            return
        for name in names:
            key = above + normalize_name(name)
            if is_hidden(name):
                yield LeftOut(key, HIDDEN)
            else:
                yield from self._visit(place / name, key, ancestors)

    def _visit(self, place: Path, key: str, ancestors: tuple[_Identity, ...]) -> Iterator[_Entry]:
        path = self._real / place
        try:
            status = path.stat()
        except OSError as error:
            reason = self._explain_file(key)
            yield LeftOut(key, reason) if reason else Unreadable(key, _explain_error(error))
            return
        is_folder = stat.S_ISDIR(status.st_mode)
        if reason := self._explain_folder(key) if is_folder else self._explain_file(key):
            yield LeftOut(f"{key}/" if is_folder else key, reason)
            return
        target = Path(os.path.realpath(path)) if path.is_symlink() else path
        if not target.is_relative_to(self._real):
            # Even of a folder the key has no slash: what was read through the link before is gone.
            yield Unreadable(key, "is a link that leads out of the folder: put the file itself there")
        elif not is_folder and self._is_old(status):
            yield LeftOut(key, TOO_OLD)
        elif not is_folder:
            yield _FolderFile(key, target.relative_to(self._real), status)
        elif len(ancestors) > DEEPEST_FOLDER:
            yield Unreadable(f"{key}/", f"lies more than {DEEPEST_FOLDER} folders deep")
        elif (identity := (status.st_dev, status.st_ino)) not in ancestors:
            yield from self._walk(target.relative_to(self._real), key + "/", (*ancestors, identity))

    def _is_old(self, status: os.stat_result) -> bool:
        days, changed = self._rules.newest_days, _modified(status)
        return days is not None and changed is not None and changed < self._now() - timedelta(days=days)

    def _open_document(self, file: _FolderFile) -> ChangedDocument | Unreadable:
        key, place, status = file
        read, url = partial(_read_beneath, self._real, place), self._url(key)
        if reason := _explain_unread(key, status, self._largest, self._sandbox.programs):
            return Unreadable(key, reason)
        try:
            content = read()
        except UnreadableDocument as error:
            return Unreadable(key, str(error))
        modified = _modified(status)
        digest = hashlib.sha256(content).hexdigest()
        date = "" if modified is None or file_formats.is_dated(key, content) else modified.isoformat()
        state = f"{file_formats.make_reader_mark(key, self._sandbox.programs)}\x1f{digest}\x1f{url}\x1f{date}"
        fetch = partial(self._fetch, read, key, digest, modified)
        return ChangedDocument(
            key=key,
            fingerprint=hashlib.sha256(state.encode()).hexdigest(),
            size=len(content),
            load=partial(_load, self._sandbox, fetch),
            fetch=fetch,
        )

    def _fetch(self, read: Callable[[], bytes], key: str, digest: str, modified: datetime | None) -> ReadTask:
        content = read()
        if hashlib.sha256(content).hexdigest() != digest:
            raise UnreadableDocument(_CHANGED)
        url = self._url(key, front_matter.read_fields(content))
        programs = self._sandbox.programs
        revision = f"sha256:{digest[:12]}"
        return plan_reading(content, key, url=url, revision=revision, modified=modified, programs=programs)

    def _read_url(self, file: _FolderFile) -> str:
        """Return the address of a file, as its front matter may have it; empty for one that cannot be read."""
        if _explain_unread(file.key, file.status, self._largest, self._sandbox.programs):
            return ""
        with suppress(UnreadableDocument):
            return self._url(file.key, front_matter.read_fields(_read_beneath(self._real, file.place)))
        return ""

    def _url(self, key: str, fields: Mapping[str, Any] = EMPTY) -> str:
        return build_published_url(self._url_base, key, fields, self._site) if self._url_base or fields else ""


def _set_aside(listed: Iterator[_Entry], left_out: list[LeftOut]) -> Iterator[_FolderFile | Unreadable]:
    for entry in listed:
        if isinstance(entry, LeftOut):
            left_out.append(entry)
        else:
            yield entry


def _refuse_duplicates(found: Iterator[_Entry]) -> Iterator[_Entry]:
    """Refuse the second of two names that differ only in how their accents are composed, for they would be one key."""
    seen: set[str] = set()
    for entry in found:
        if isinstance(entry, LeftOut):
            yield entry
        elif entry.key in seen:
            yield Unreadable(entry.key, DUPLICATE_NAME)
        else:
            seen.add(entry.key)
            yield entry


def _explain_unread(key: str, status: os.stat_result, largest: int, programs: ReaderPrograms) -> str:
    """Return why a file is not read, by its name and status; empty where it is."""
    if not stat.S_ISREG(status.st_mode):
        return _IRREGULAR
    too_large = f"is larger than {largest // 2**20} MB" if status.st_size > largest else ""
    return file_formats.explain_refusal(key, programs) or too_large


def _read_beneath(root: Path, place: Path) -> bytes:
    """Read a regular file beneath a folder. Raises `UnreadableDocument`, also where links or pipes stand by now."""
    try:
        # Opening a pipe or a device might else wait for ever.
        with _open_beneath(root, place, os.O_NONBLOCK) as opened, os.fdopen(opened, "rb", closefd=False) as file:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                raise UnreadableDocument(_IRREGULAR)
            return file.read()
    except OSError as error:
        raise UnreadableDocument(_CHANGED if error.errno in _NO_LINKS else _explain_error(error)) from error


@contextmanager
def _open_beneath(root: Path, place: Path, flags: int) -> Iterator[int]:
    """Open what lies at a place beneath a folder within the block. Who puts a link on the way meanwhile gains nothing.

    Raises `OSError`.
    """
    above = os.open(root, _FOLDER)
    try:
        for name in place.parts[:-1]:
            inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=above)
            os.close(above)
            above = inner
        opened = os.open(place.name or ".", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=above)
    finally:
        os.close(above)
    try:
        yield opened
    finally:
        os.close(opened)


def _load(sandbox: Sandbox, fetch: Callable[[], ReadTask]) -> Page:
    return sandbox.run(fetch())


def _modified(status: os.stat_result) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(status.st_mtime), UTC)
    except (OverflowError, ValueError, OSError):
        return None  # Archives and foreign file systems may leave a time that no calendar has


def _folder_error(root: Path, error: OSError) -> FolderError:
    if isinstance(error, FileNotFoundError):
        return FolderError(f"There is no folder {root}.", hint="Check the path.")
    if isinstance(error, NotADirectoryError):
        return FolderError(f"{root} is a file, not a folder.", hint="Give the folder that it lies in.")
    return FolderError(f"The folder {root} cannot be read: {_error_text(error)}.", hint="Check its permissions.")


def _explain_error(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "is a link to nothing, or was removed meanwhile"
    if error.errno == errno.ELOOP:
        return "is a link that leads back to itself"
    return f"cannot be read: {_error_text(error)}"


def _error_text(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
