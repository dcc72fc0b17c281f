"""Token states off the event loop, from a model that is loaded when the first text is read, and made if need be.

Who only quotes never reads any, and pays nothing for it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from storage.embedding.states import StateReader, TokenStates
    from storage.workers import Worker


class LazyStates:
    """Reads texts with the model that `storage.embedding.states` keeps in the home: `await states(texts)`."""

    def __init__(self, home: Path, worker: Worker) -> None:
        self._home = home
        self._worker = worker
        self._opening = threading.Lock()
        self._reader: StateReader | None = None

    async def __call__(self, texts: Sequence[str]) -> tuple[TokenStates, ...]:
        """Return the states of each text, in their order.

        Raises:
            EmbeddingUnavailable: the model cannot be made or loaded.
        """
        return await self._worker.run(self._read, texts)

    def _read(self, texts: Sequence[str]) -> tuple[TokenStates, ...]:
        with self._opening:
            if self._reader is None:
                from storage.embedding.states import open_states  # imports onnx

                self._reader = open_states(self._home)
        return self._reader.read(texts)
