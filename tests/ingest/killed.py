"""Refresh a home in a process that kills itself at a chosen write to an index, for `test_killed`.

Arguments: the home, the pages as JSON, the number of writes, and `before` or `after` the last of them.
"""

import asyncio
import json
import os
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ingest.refresh.corpus_refresh import refresh_corpus
from tests.fakes import PageSource
from tests.storage.stores import opened


@dataclass
class Deadly:
    """Passes calls on to an index, and kills the process at a certain write."""

    index: Any
    writes: list[int]
    after: bool

    def __getattr__(self, name: str) -> Any:
        """Return the index's method, which counts if it writes."""
        method = getattr(self.index, name)
        return (lambda *args: self._last(method, args)) if name in {"upsert", "delete", "write"} else method

    def _last(self, method: Any, args: tuple[Any, ...]) -> None:
        self.writes[0] -= 1
        if self.writes[0] >= 0:
            method(*args)
            return
        if self.after:
            method(*args)
        os.kill(os.getpid(), signal.SIGKILL)


def main(home: str, pages: str, writes: str, after: str) -> None:
    """Refresh the home, up to the fatal write."""
    left = [int(writes)]
    with opened(Path(home)) as store:
        dense, lexical = (Deadly(index, left, after == "after") for index in (store.dense, store.lexical))
        dying = replace(store, dense=dense, lexical=lexical)
        asyncio.run(refresh_corpus(PageSource(json.loads(pages)), "handbook", dying, progress=lambda _: None))


if __name__ == "__main__":
    main(*sys.argv[1:])
