"""The redirects of a dump by their target, kept in a temporary database: a Wikipedia has more of them than articles.

SQLite keeps it in memory until it outgrows its cache, then in a file that is removed with it.
"""

import sqlite3
import weakref
from collections.abc import Iterable
from types import TracebackType
from typing import Self

_HOPS = 3
"""How far a redirect to a redirect is followed."""


class Redirects:
    """From the title of a page to the titles that lead to it. One thread at a time."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", check_same_thread=False)
        # Whoever asks only how many articles there are never goes through them, and so never closes it.
        weakref.finalize(self, self._database.close)
        self._database.execute("CREATE TABLE redirects (title TEXT, target TEXT)")
        self.number = 0
        """How many there are."""

    def add(self, redirects: Iterable[tuple[str, str]]) -> None:
        """Add (title, target) pairs."""
        self.number += self._database.executemany("INSERT INTO redirects VALUES (?, ?)", redirects).rowcount

    def finish(self) -> None:
        """Call it when all are added, before the first question. Redirects to redirects lead to the last target."""
        run = self._database.execute
        run("CREATE INDEX by_title ON redirects (title)")
        for _ in range(_HOPS):
            moved = run(
                "UPDATE redirects SET target = (SELECT next.target FROM redirects AS next WHERE next.title ="
                " redirects.target LIMIT 1) WHERE EXISTS (SELECT 1 FROM redirects AS next WHERE next.title ="
                " redirects.target AND next.target <> redirects.title AND next.title <> next.target)"
            )
            if not moved.rowcount:
                break
        run("CREATE INDEX by_target ON redirects (target, title)")

    def to(self, target: str) -> tuple[str, ...]:
        """The titles that lead to a page, sorted."""
        if not self.number:
            return ()
        rows = self._database.execute("SELECT DISTINCT title FROM redirects WHERE target = ? ORDER BY title", (target,))
        return tuple(title for (title,) in rows if title != target)

    def close(self) -> None:
        """Remove the database."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
