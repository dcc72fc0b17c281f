"""The contents of a dump without its texts: its articles by stream, and its redirects.

A survey is stored in a file and updated with the next dump: streams that are identical are not unpacked again. If the
file is damaged, it is rebuilt, as everything in it comes from the dump.
"""

import json
import sqlite3
import weakref
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ingest.sources.dumps.dump_file import DumpError
from ingest.wikitext.wikitext_parser import WIKITEXT_VERSION

_REDIRECT_HOPS = 3  # how far a redirect to a redirect is followed
_CACHE_KB = 32_000
_MOST_NAMES = 500  # of one query
_COMMIT_EVERY = 2_000  # streams
_TABLES = (("redirects", "stream"), ("unreadable", "stream"), ("streams", "number"))
_SCHEMA = """
CREATE TABLE streams (number INTEGER PRIMARY KEY, name TEXT UNIQUE, digest BLOB, articles INTEGER, heads BLOB);
CREATE TABLE redirects (stream INTEGER, key INTEGER, title TEXT, target TEXT);
CREATE INDEX by_stream ON redirects (stream);
CREATE TABLE unreadable (stream INTEGER, key TEXT, reason TEXT, PRIMARY KEY (stream, key));
"""


@dataclass(frozen=True, slots=True)
class ArticleHead:
    """An article and its revision. `reason` says why it could not be read before, if so."""

    key: str
    title: str
    stamp: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StreamContent:
    """The pages of a stream: its articles, and its redirects as (key, title, target)."""

    articles: tuple[ArticleHead, ...]
    redirects: tuple[tuple[str, str, str], ...]


class DumpSurvey:
    """The streams of a dump, under names that stay the same in the next dump. One thread may use it at a time."""

    def __init__(self, path: Path | None = None) -> None:
        """Open the file at `path`, or a temporary file if there is no path."""
        self.path = path
        self._database = _open_database(path)
        # A caller that only counts the articles does not iterate, so never closes it.
        weakref.finalize(self, self._database.close)
        self._redirects: bool | None = None
        self._put = 0

    def digest(self, name: str) -> bytes:
        """Return the digest of the stream with this name; empty if there is no such stream."""
        row = self._database.execute("SELECT digest FROM streams WHERE name = ?", (name,)).fetchone()
        return bytes(row[0]) if row else b""

    def keep(self, name: str) -> int:
        """Mark a stream as unchanged, so that `finish` keeps it, and return its number of articles."""
        run = self._database.execute
        run("INSERT OR IGNORE INTO present SELECT number FROM streams WHERE name = ?", (name,))
        return int(run("SELECT articles FROM streams WHERE name = ?", (name,)).fetchone()[0])

    def has(self, name: str) -> bool:
        """Return whether a stream of this name was passed to `put` or `keep` since the survey was opened."""
        query = "SELECT 1 FROM streams JOIN present USING (number) WHERE name = ?"
        return bool(self._database.execute(query, (name,)).fetchone())

    def put(self, name: str, digest: bytes, content: StreamContent) -> None:
        """Store the contents of a stream, in place of those stored under the same name."""
        run = self._database.execute
        if old := run("SELECT number FROM streams WHERE name = ?", (name,)).fetchone():
            for table, column in _TABLES:
                run(f"DELETE FROM {table} WHERE {column} = ?", old)  # noqa: S608 - constant names
        heads = zlib.compress(
            json.dumps([[article.key, article.title, article.stamp] for article in content.articles]).encode(), 1
        )
        values = (name, digest, len(content.articles), heads)
        number = run("INSERT INTO streams (name, digest, articles, heads) VALUES (?, ?, ?, ?)", values).lastrowid
        run("INSERT INTO present VALUES (?)", (number,))
        rows = [(number, *redirect) for redirect in content.redirects]
        self._database.executemany("INSERT INTO redirects VALUES (?, ?, ?, ?)", rows)
        self._put += 1
        if self._put % _COMMIT_EVERY == 0:
            self._database.commit()

    def stamp(self, names: Iterable[str], digest: bytes) -> None:
        """Set the digest of these streams, which are all parts of one file, once the file has been read to its end."""
        self._database.executemany("UPDATE streams SET digest = ? WHERE name = ?", [(digest, name) for name in names])

    def note_unreadable(self, name: str, key: str, reason: str) -> None:
        """Store the reason why an article of a stream is unreadable, so that it is not tried again."""
        query = "INSERT OR REPLACE INTO unreadable SELECT number, ?, ? FROM streams WHERE name = ?"
        self._database.execute(query, (key, reason, name))

    def finish(self) -> None:
        """Delete the streams that were neither passed to `put` nor to `keep`, and create the index."""
        run = self._database.execute
        for table, column in _TABLES:
            run(f"DELETE FROM {table} WHERE {column} NOT IN (SELECT number FROM present)")  # noqa: S608
        run("CREATE INDEX IF NOT EXISTS by_target ON redirects (target, title)")
        self._database.commit()

    def articles(self, name: str) -> tuple[ArticleHead, ...] | None:
        """Return the articles of a stream in order; None if the stream is unknown."""
        run = self._database.execute
        row = run("SELECT number, heads FROM streams WHERE name = ?", (name,)).fetchone()
        if row is None:
            return None
        reasons = dict(run("SELECT key, reason FROM unreadable WHERE stream = ?", row[:1]).fetchall())
        heads = json.loads(zlib.decompress(row[1]))
        return tuple(ArticleHead(key, title, stamp, reasons.get(key, "")) for key, title, stamp in heads)

    def find_aliases(self, titles: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return, for each of these titles, the sorted titles that redirect to it; titles without any are left out."""
        aliases: dict[str, set[str]] = {}
        leading = {title: {title} for title in titles} if self._any_redirects() else {}
        for _ in range(_REDIRECT_HOPS + 1):
            following: dict[str, set[str]] = {}
            for title, target in self._find_redirects([*leading]):
                for root in leading[target]:
                    if title != root and title not in aliases.setdefault(root, set()):
                        aliases[root].add(title)
                        following.setdefault(title, set()).add(root)
            leading = following
        return {title: tuple(sorted(names)) for title, names in aliases.items() if names}

    def _find_redirects(self, targets: Sequence[str]) -> Iterator[tuple[str, str]]:
        for start in range(0, len(targets), _MOST_NAMES):
            some = targets[start : start + _MOST_NAMES]
            query = f"SELECT title, target FROM redirects WHERE target IN ({', '.join('?' * len(some))})"  # noqa: S608
            yield from self._database.execute(query, some)

    def redirect_keys(self) -> Iterator[str]:
        """Yield the keys of all pages that are redirects."""
        return (str(key) for (key,) in self._database.execute("SELECT key FROM redirects"))

    def _any_redirects(self) -> bool:
        if self._redirects is None:
            self._redirects = bool(self._database.execute("SELECT 1 FROM redirects LIMIT 1").fetchone())
        return self._redirects

    @contextmanager
    def translating_errors(self) -> Iterator[None]:
        """Convert database errors to `DumpError`, and delete the file if it is damaged."""
        try:
            yield
        except sqlite3.OperationalError as error:
            hint = "Check whether the disk is full or another process has it open; then run the command again."
            raise DumpError(f"The survey of the dump in {self.path} cannot be used: {error}.", hint=hint) from error
        except sqlite3.DatabaseError as error:
            self._database.close()
            if self.path:
                self.path.unlink(missing_ok=True)
            hint = "It was deleted; the next run rebuilds it."
            raise DumpError(f"The survey of the last dump in {self.path} is damaged.", hint=hint) from error

    def close(self) -> None:
        if self.path:
            with suppress(sqlite3.Error):
                self._database.commit()
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _open_database(path: Path | None) -> sqlite3.Connection:
    """Open the file of a survey, or create it again if it is damaged. If that fails, use a temporary file."""
    if path is not None:
        with suppress(OSError, sqlite3.OperationalError):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                return _prepare(sqlite3.connect(path, check_same_thread=False))
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                path.unlink()
                return _prepare(sqlite3.connect(path, check_same_thread=False))
    return _prepare(sqlite3.connect("", check_same_thread=False))


def _prepare(database: sqlite3.Connection) -> sqlite3.Connection:
    database.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
    database.execute("PRAGMA synchronous = OFF")  # a damaged file is rebuilt
    version = zlib.crc32(f"{_SCHEMA} {WIKITEXT_VERSION}".encode()) & 0x7FFFFFFF
    if database.execute("PRAGMA user_version").fetchone()[0] != version:
        dropped = "".join(f"DROP TABLE IF EXISTS {table};" for table, _ in _TABLES)
        database.executescript(f"{dropped}{_SCHEMA}PRAGMA user_version = {version}")
    database.execute("CREATE TEMP TABLE present (number INTEGER PRIMARY KEY)")
    return database
