"""Back up a home into one file while other processes use it, and restore it elsewhere.

A backup is a tar file: a manifest first, then the parts that it names, each with its hash. The database is SQLite's own
copy of one moment. Indexes are skipped, because they can be rebuilt, and so are secrets.
"""

import hashlib
import io
import json
import os
import sqlite3
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from storage.database.engine import translate_driver_errors
from storage.database.schema import REVISION
from storage.errors import DatabaseUnusable, HomeUnusable, StorageError, explain_folder_error
from storage.home.home_folder import free_bytes, lock_home, make_home, make_private_file

FORMAT = 1
MANIFEST, DATABASE, SETTINGS = "manifest.json", "footnote.db", "footnote.toml"
RESTORED_SETTINGS = "footnote.toml.restored"
_PAGES = 500  # pages that are copied at a time; writers never wait for them
_BLOCK = 1 << 20
_MAX_MANIFEST = 1 << 20
_OTHER_TARGET = "restore into another folder with --home"
_COUNTS: Mapping[str, str] = {
    "entries": "SELECT count(*) FROM entries",
    "turns": "SELECT count(*) FROM turns",
    "questions": "SELECT count(*) FROM questions",
    "corpora": "SELECT count(*) FROM corpora",
    "documents": "SELECT coalesce(sum(documents), 0) FROM corpora",
    "passages": "SELECT coalesce(sum(passages), 0) FROM corpora",
}

Progress = Callable[[str, int, int], None]  # the current step, bytes done, bytes in all


class BackupUnusable(StorageError):
    """A file is not a backup, is damaged, or comes from a newer version."""

    kind = "backup_unusable"


@dataclass(frozen=True, slots=True)
class BackupPart:
    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """The contents and the moment of a backup."""

    made: datetime
    version: str  # of Footnote
    schema: str  # the revision of its database
    counts: Mapping[str, int]
    parts: tuple[BackupPart, ...]
    format: int = FORMAT


def write_backup(
    home: Path, target: Path, *, version: str, made: datetime, settings: bytes = b"", progress: Progress
) -> BackupManifest:
    """Write a backup of a home, which other processes may be reading and writing. Blocks.

    The file gets its name only when it is complete; a name that ends in `gz` makes it compressed. `settings` is the
    text of the settings file without secrets. Raises `StorageError` if there is no database, the disk is full, or
    `target` exists.
    """
    file = home / DATABASE
    if not file.exists():
        raise HomeUnusable(f"There is no database in {home}, so there is nothing to back up.")
    with explain_target_errors(target), TemporaryDirectory(dir=target.parent, prefix=".footnote-") as folder:
        if target.exists():
            raise HomeUnusable(f"{target} is already there.", hint="Give another name, or a folder.")
        copy, part = Path(folder, DATABASE), Path(folder, "part")
        _require_room(target.parent, 2 * file.stat().st_size)
        make_private_file(copy)
        schema, counts = _copy_database(file, copy, progress)
        parts = [_describe_part(DATABASE, copy, progress)]
        if settings:
            parts.append(BackupPart(SETTINGS, len(settings), hashlib.sha256(settings).hexdigest()))
        manifest = BackupManifest(made, version, schema, counts, tuple(parts))
        make_private_file(part)
        with part.open("wb") as opened:
            _pack(opened, manifest, copy, settings, progress, packed=target.name.endswith("gz"))
            opened.flush()
            os.fsync(opened.fileno())
        part.replace(target)
    return manifest


def _copy_database(file: Path, copy: Path, progress: Progress) -> tuple[str, dict[str, int]]:
    """Copy SQLite's file within one read transaction, and return the copy's revision and counts.

    Without the transaction, each write by another process would restart the copy.
    """
    with translate_driver_errors(file), closing(_connect(file, "ro")) as source:
        source.execute("BEGIN")
        tables = {name for (name,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "alembic_version" not in tables:
            raise DatabaseUnusable(f"{file} is not a Footnote database, or is empty.")
        size = int(source.execute("PRAGMA page_size").fetchone()[0])

        def report(_: int, remaining: int, total: int) -> None:
            progress("copying", (total - remaining) * size, total * size)

        with translate_driver_errors(copy), closing(_connect(copy, "rw")) as target:
            source.backup(target, pages=_PAGES, progress=report)
            target.execute("PRAGMA journal_mode = DELETE")  # so that it is one file
            faults = [str(row[0]) for row in target.execute("PRAGMA quick_check(1)")]
            if faults != ["ok"]:
                raise DatabaseUnusable(
                    f"{file} is damaged: {' '.join(faults[0].split())}.", hint="Keep the backups that you have."
                )
            revision = target.execute("SELECT version_num FROM alembic_version").fetchone()[0]
            return str(revision), dict(_count(target))


def _count(connection: sqlite3.Connection) -> Iterator[tuple[str, int]]:
    for name, query in _COUNTS.items():
        with suppress(sqlite3.OperationalError):  # an older database lacks some tables
            yield name, int(connection.execute(query).fetchone()[0])


def _connect(file: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode={mode}", uri=True, timeout=10.0, isolation_level=None)


def _describe_part(name: str, file: Path, progress: Progress) -> BackupPart:
    whole, done, size = hashlib.sha256(), 0, file.stat().st_size
    with file.open("rb") as opened:
        while block := opened.read(_BLOCK):
            whole.update(block)
            done += len(block)
            progress("hashing", done, size)
    return BackupPart(name, size, whole.hexdigest())


def _pack(
    opened: IO[bytes], manifest: BackupManifest, copy: Path, settings: bytes, progress: Progress, *, packed: bool
) -> None:
    text = json.dumps({**asdict(manifest), "made": manifest.made.isoformat()}, indent=2).encode()
    mode: dict[str, Any] = {"mode": "w:gz", "compresslevel": 1} if packed else {"mode": "w"}
    with tarfile.open(fileobj=opened, **mode) as archive, copy.open("rb") as database:
        contents = {MANIFEST: (io.BytesIO(text), len(text)), DATABASE: (database, manifest.parts[0].bytes)}
        if settings:
            contents[SETTINGS] = (io.BytesIO(settings), len(settings))
        for name, (content, size) in contents.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = size, 0o600, int(manifest.made.timestamp())
            archive.addfile(member, content)
        progress("packed", manifest.parts[0].bytes, manifest.parts[0].bytes)


@contextmanager
def explain_target_errors(target: Path) -> Iterator[None]:
    """Convert errors of the system about the backup's file to `HomeUnusable`."""
    try:
        yield
    except OSError as error:
        raise explain_folder_error(error, target.parent, instead="name a file in another folder") from error


@contextmanager
def _explain_home_errors(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise explain_folder_error(error, home, instead=_OTHER_TARGET) from error


def _require_room(folder: Path, wanted: int) -> None:
    if (free := free_bytes(folder)) < wanted:
        megabytes_needed, megabytes_free = wanted / 1e6, free / 1e6
        hint = "Free some space there, or name a file on another disk."
        raise HomeUnusable(
            f"{folder} has {megabytes_free:,.0f} MB free, and up to {megabytes_needed:,.0f} MB are needed.", hint=hint
        )


def read_manifest(file: Path) -> BackupManifest:
    """Read the manifest of a backup. Blocks. Raises `BackupUnusable`, also for a backup of a newer version."""
    with _explain_damage(file), tarfile.open(file) as archive:
        return _read_manifest(archive, file)


def restore_backup(file: Path, home: Path, progress: Progress) -> BackupManifest:
    """Restore the database of a backup into a home without one. Afterwards, its indexes must be rebuilt. Blocks.

    Questions that were waiting when the backup was made may have been answered since. So they are marked: before they
    are answered, the platform is asked whether it shows an answer.

    Raises `BackupUnusable` and `HomeLocked`, and `HomeUnusable` if a database or restored settings exist, or if there
    is not enough space.
    """
    manifest = read_manifest(file)
    make_home(home, instead=_OTHER_TARGET)
    with lock_home(home), _explain_home_errors(home):
        target = home / DATABASE
        if target.exists() and target.stat().st_size:
            hint = "Restore into another folder with --home, or move this one away first. Nothing was changed."
            raise HomeUnusable(f"{home} has a database already.", hint=hint)
        before = home / RESTORED_SETTINGS
        if len(manifest.parts) > 1 and before.exists():
            raise HomeUnusable(f"{before} is already there.", hint="Move it away first. Nothing was changed.")
        _require_room(home, sum(part.bytes for part in manifest.parts))
        with TemporaryDirectory(dir=home, prefix=".restoring-") as folder:
            with _explain_damage(file), tarfile.open(file) as archive:
                _read_manifest(archive, file)
                for part in manifest.parts:
                    _extract(archive, part, Path(folder, part.name), file, progress)
            copy = Path(folder, DATABASE)
            # An older database has no queue.
            with closing(_connect(copy, "rw")) as connection, suppress(sqlite3.OperationalError):
                connection.execute("UPDATE questions SET sending = 1 WHERE state <> 'done'")
            for log in (f"{DATABASE}-wal", f"{DATABASE}-shm"):  # of a database that was lost
                (home / log).unlink(missing_ok=True)
            if len(manifest.parts) > 1:
                Path(folder, SETTINGS).replace(home / RESTORED_SETTINGS)
            copy.replace(target)
    return manifest


def _extract(archive: tarfile.TarFile, one: BackupPart, into: Path, file: Path, progress: Progress) -> None:
    content = archive.extractfile(one.name)
    if content is None:
        raise _damaged(file)
    make_private_file(into)
    whole, done = hashlib.sha256(), 0
    with into.open("wb") as opened:
        while block := content.read(_BLOCK):
            whole.update(block)
            done += opened.write(block)
            progress("restoring", done, one.bytes)
        opened.flush()
        os.fsync(opened.fileno())
    if (done, whole.hexdigest()) != (one.bytes, one.sha256):
        raise _damaged(file)


def _read_manifest(archive: tarfile.TarFile, file: Path) -> BackupManifest:
    first = archive.next()
    content = archive.extractfile(first) if first and first.name == MANIFEST else None
    if content is None:
        raise _damaged(file)
    read = json.loads(content.read(_MAX_MANIFEST))
    if read["format"] > FORMAT or read["schema"] > REVISION:
        hint = "Install that version or a newer one, and restore it there."
        raise BackupUnusable(f"{file} was made by a newer Footnote ({read['version']}).", hint=hint)
    parts = tuple(BackupPart(**part) for part in read["parts"] if part["name"] in {DATABASE, SETTINGS})
    if DATABASE not in {part.name for part in parts}:
        raise _damaged(file)
    return BackupManifest(
        datetime.fromisoformat(read["made"]), read["version"], read["schema"], read["counts"], parts, read["format"]
    )


@contextmanager
def _explain_damage(file: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise BackupUnusable(f"There is no file {file}.") from error
    except (tarfile.TarError, zlib.error, EOFError, ValueError, LookupError, TypeError) as error:
        raise _damaged(file) from error


def _damaged(file: Path) -> BackupUnusable:
    return BackupUnusable(
        f"{file} is damaged, or not a Footnote backup.", hint="Nothing was restored. Try another backup."
    )
