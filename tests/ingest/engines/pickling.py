"""An engine without processes, for the tests."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class PicklingEngine:
    """Does all here, and takes only what another process could be sent; it takes `ahead` items before it answers."""

    ahead: int = 3
    lacks: Path | None = None  # a folder that the processes lack
    sent: list[Any] = field(default_factory=list)
    stopped: bool = False
    doing: str = ""

    def check(self) -> None:
        """Be there."""

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Do it, some items at a time."""
        work = pickle.loads(pickle.dumps(work))
        order: list[Any] = []
        for item in items:
            self.sent += [] if isinstance(item, list) else [item]
            order.append(item if isinstance(item, list) else pickle.dumps(item))
            while order and (isinstance(order[0], list) or len(order) > self.ahead):
                yield from self._results(work, order.pop(0))
        for item in order:
            yield from self._results(work, item)

    def stop(self) -> None:
        """Remember it."""
        self.stopped = True

    def _results(self, work: Callable[[Any], Any], item: Any) -> list[Any]:
        if isinstance(item, list):
            return item
        away = self.lacks and self.lacks.rename(self.lacks.with_name("away"))
        try:
            return [pickle.loads(pickle.dumps(work(pickle.loads(item))))]
        finally:
            if away:
                away.rename(self.lacks)
