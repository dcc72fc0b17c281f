"""An engine for tests that runs everything in this process."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class PicklingEngine:
    """Pickles its work like an engine with processes; takes `ahead` items before it yields a result."""

    ahead: int = 3
    lacks: Path | None = None  # a folder that the processes lack
    sent: list[Any] = field(default_factory=list)
    stopped: bool = False
    doing: str = ""

    def check(self) -> None:
        """Accept."""

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Do the work, some items at a time."""
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
        """Note the call."""
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
