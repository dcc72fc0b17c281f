"""Read a folder of documents. Every file is listed, reported as unreadable with a reason, or skipped by a rule.

The rules skip hidden files, excluded paths and files that are not documents. Symbolic links are followed if they stay
in the folder. Links that lead out of it are unreadable: otherwise anyone who can add a link could publish any file that
this process can read.
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
from ingest.sources.filters import HIDDEN, TOO_OLD, SelectionRules, build_path_explainer
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
    describe_os_error,
)
from storage.clock import Clock, utc_now

DUPLICATE_NAME = "has the same name as another file, except that its accents are encoded otherwise: rename it"


def is_hidden(name: str) -> bool:
    """Return whether a file or folder with this name is hidden, or is a lock file of Office."""
    return name.startswith((".", "~$"))


def normalize_name(name: str | bytes) -> str:
    """Compose accents and replace bytes that are not UTF-8, so that a name is the same on every system."""
    return unicodedata.normalize("NFC", os.fsencode(name).decode("utf-8", "replace"))


LARGEST_FILE = 200 * 1024 * 1024  # bytes; larger files are unreadable by default
DEEPEST_FOLDER = 350  # nested folders; deeper ones are unreadable, since the walk is recursive
_CHANGED = "changed while it was read: run the same command again"
_IRREGULAR = "is not a regular file"
_NO_LINKS = frozenset({errno.ELOOP, errno.ENOTDIR})  # errors of O_NOFOLLOW on a link
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_Identity = tuple[int, int]


class _FolderFile(NamedTuple):
    key: str
    path: Path  # within the folder, links resolved
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
        now: Clock = utc_now,
        sandbox: Sandbox | None = None,
    ) -> None:
        """Set up the source. Addresses of documents are built from `url_base`, keys and `site`.

        `largest` is the size limit of a file in bytes. `sandbox` reads the formats that may be harmful.
        """
        self._root = Path(path)
        self._real = self._root.resolve()
        self._url_base = url_base
        self._site = site
        self._rules = SelectionRules(tuple(include), tuple(exclude), tuple(ignore), newest_days=newest_days)
        self._explain_file = build_path_explainer(self._rules)
        self._explain_folder = build_path_explainer(self._rules, folder=True)
        self.left_out: Sequence[LeftOut] = ()  # files skipped by the last listing
        self._now = now
        self._largest = largest
        self._sandbox = sandbox or Sandbox()

    def documents(self, known: Mapping[str, str] = EMPTY, since: str = "") -> Listing:
        """List every document, sorted by folder and name. Blocks. Raises `FolderError` at once.

        A subfolder that cannot be listed is reported as unreadable under its own key, which ends with a slash.
        """
        del known, since  # fingerprints need the content anyway
        return Listing(self._items(self._find_files()))

    def one(self, address: str, known: Mapping[str, str]) -> ListedItem | None:
        """Return the file with this address, or this path within the folder. Blocks. Raises `FolderError`."""
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
        """Count the documents without opening files. Blocks. Raises `FolderError`."""
        return sum(1 for _ in self._find_files())

    def preview(self) -> Iterator[tuple[str, str]]:
        """Yield each file's key and the reason why it is skipped; empty if it is read. Blocks. Raises `FolderError`.

        No file is opened. A folder that is skipped appears once, under its own key.
        """
        for entry in self._list_files():
            if isinstance(entry, _FolderFile):
                yield entry.key, _explain_unread(entry.key, entry.status, self._largest, self._sandbox.programs)
            else:
                yield entry.key, entry.reason

    def _find_files(self) -> Iterator[_FolderFile | Unreadable]:
        self.left_out = left_out = list[LeftOut]()
        return _collect_left_out(self._list_files(), left_out)

    def _items(self, listed: Iterator[_FolderFile | Unreadable]) -> Iterator[ListedItem]:
        with self._sandbox:
            for entry in listed:
                yield entry if isinstance(entry, Unreadable) else self._open_document(entry)

    def _list_files(self) -> Iterator[_FolderFile | Unreadable | LeftOut]:
        try:
            self._real = self._root.resolve()
            status = self._real.stat()
            next(self._root.iterdir(), None)
        except OSError as error:
            raise _folder_error(self._root, error) from error
        return _refuse_duplicates(self._walk(Path(), "", ((status.st_dev, status.st_ino),)))

    def _walk(self, folder_path: Path, parent_key: str, ancestors: tuple[_Identity, ...]) -> Iterator[_Entry]:
        try:
            with _open_inside(self._real, folder_path, os.O_DIRECTORY) as folder, os.scandir(folder) as entries:
                names = sorted(entry.name for entry in entries)
        except OSError as error:
            yield Unreadable(parent_key, f"the folder cannot be listed: {describe_os_error(error)}")
            return
        for name in names:
            key = parent_key + normalize_name(name)
            if is_hidden(name):
                yield LeftOut(key, HIDDEN)
            else:
                yield from self._visit(folder_path / name, key, ancestors)

    def _visit(self, relative: Path, key: str, ancestors: tuple[_Identity, ...]) -> Iterator[_Entry]:
        path = self._real / relative
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
            # The key has no slash even for a folder, so that documents read through the link before count as deleted.
            yield Unreadable(key, "is a link that leads out of the folder: put the file itself there")
        elif not is_folder and self._is_old(status):
            yield LeftOut(key, TOO_OLD)
        elif not is_folder:
            yield _FolderFile(key, target.relative_to(self._real), status)
        elif len(ancestors) > DEEPEST_FOLDER:
            yield Unreadable(f"{key}/", f"is more than {DEEPEST_FOLDER} folders deep")
        elif (identity := (status.st_dev, status.st_ino)) not in ancestors:
            yield from self._walk(target.relative_to(self._real), key + "/", (*ancestors, identity))

    def _is_old(self, status: os.stat_result) -> bool:
        days, changed = self._rules.newest_days, _modified(status)
        return days is not None and changed is not None and changed < self._now() - timedelta(days=days)

    def _open_document(self, file: _FolderFile) -> ChangedDocument | Unreadable:
        key, path, status = file
        read = partial(_read_inside, self._real, path)
        if reason := _explain_unread(key, status, self._largest, self._sandbox.programs):
            return Unreadable(key, reason)
        try:
            content = read()
        except UnreadableDocument as error:
            return Unreadable(key, str(error))
        modified = _modified(status)
        digest = hashlib.sha256(content).hexdigest()
        date = "" if modified is None or file_formats.is_dated(key, content) else modified.isoformat()
        mark = file_formats.make_reader_mark(key, self._sandbox.programs)
        fetch = partial(self._fetch, read, key, digest, modified)
        return ChangedDocument(
            key=key,
            fingerprint=hashlib.sha256("\x1f".join((mark, digest, self._url(key), date)).encode()).hexdigest(),
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
        """Return a file's address, which its front matter may state; empty for a file that cannot be read."""
        if _explain_unread(file.key, file.status, self._largest, self._sandbox.programs):
            return ""
        with suppress(UnreadableDocument):
            return self._url(file.key, front_matter.read_fields(_read_inside(self._real, file.path)))
        return ""

    def _url(self, key: str, fields: Mapping[str, Any] = EMPTY) -> str:
        return build_published_url(self._url_base, key, fields, self._site) if self._url_base or fields else ""


def _collect_left_out(entries: Iterator[_Entry], left_out: list[LeftOut]) -> Iterator[_FolderFile | Unreadable]:
    for entry in entries:
        if isinstance(entry, LeftOut):
            left_out.append(entry)
        else:
            yield entry


def _refuse_duplicates(entries: Iterator[_Entry]) -> Iterator[_Entry]:
    """Report a file as unreadable if an earlier one has its key: their names differ only in the encoding of accents."""
    seen: set[str] = set()
    for entry in entries:
        if isinstance(entry, LeftOut):
            yield entry
        elif entry.key in seen:
            yield Unreadable(entry.key, DUPLICATE_NAME)
        else:
            seen.add(entry.key)
            yield entry


def _explain_unread(key: str, status: os.stat_result, largest: int, programs: ReaderPrograms) -> str:
    """Return the reason why a file is not read, by its name and status; empty if it is read."""
    if not stat.S_ISREG(status.st_mode):
        return _IRREGULAR
    too_large = f"is larger than {largest // 2**20} MB" if status.st_size > largest else ""
    return file_formats.explain_refusal(key, programs) or too_large


def _read_inside(root: Path, path: Path) -> bytes:
    """Read a regular file below a folder. Raises `UnreadableDocument`, also if a link or pipe has replaced the file."""
    try:
        # O_NONBLOCK, as opening a pipe or device could otherwise block forever.
        with _open_inside(root, path, os.O_NONBLOCK) as opened, os.fdopen(opened, "rb", closefd=False) as file:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                raise UnreadableDocument(_IRREGULAR)
            return file.read()
    except OSError as error:
        raise UnreadableDocument(_CHANGED if error.errno in _NO_LINKS else _explain_error(error)) from error


@contextmanager
def _open_inside(root: Path, path: Path, flags: int) -> Iterator[int]:
    """Open a path below a folder for the block, without following links that appear meanwhile. Raises `OSError`."""
    parent = os.open(root, _FOLDER)
    try:
        for name in path.parts[:-1]:
            inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)
            os.close(parent)
            parent = inner
        opened = os.open(path.name or ".", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=parent)
    finally:
        os.close(parent)
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
        return None  # archives and foreign file systems may store invalid times


def _folder_error(root: Path, error: OSError) -> FolderError:
    if isinstance(error, FileNotFoundError):
        return FolderError(f"There is no folder {root}.", hint="Check the path.")
    if isinstance(error, NotADirectoryError):
        return FolderError(f"{root} is a file, not a folder.", hint="Give the folder that contains it.")
    return FolderError(f"The folder {root} cannot be read: {describe_os_error(error)}.", hint="Check its permissions.")


def _explain_error(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "is a broken link, or was deleted meanwhile"
    if error.errno == errno.ELOOP:
        return "is a link that leads back to itself"
    return f"cannot be read: {describe_os_error(error)}"
