"""Load a model that reads texts at its first call, and run it in a thread of its own."""

from __future__ import annotations

import threading
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from storage.database.worker_threads import ThreadPool
    from storage.indexes.token_states import TokenStates
    from storage.types import Evidence

Found = TypeVar("Found")


class LazyReader(Generic[Found]):
    """Ask a model that `load` loads at the first call, in threads of its own: `await model(...)`."""

    def __init__(self, load: Callable[[], Callable[..., Found]], worker: ThreadPool) -> None:
        self._load = load
        self._worker = worker
        self._loading = threading.Lock()
        self._ask: Callable[..., Found] | None = None

    async def __call__(self, *asked: Any) -> Found:
        """Return what the model says of what is asked. Raises `EmbeddingUnavailable` if it cannot be loaded."""
        return await self._worker.run(self._call, *asked)

    def _call(self, *asked: Any) -> Found:
        with self._loading:
            self._ask = self._ask or self._load()
        return self._ask(*asked)


@cache
def load_token_states() -> Callable[[Sequence[str]], tuple[TokenStates, ...]]:
    from storage.indexes.token_states import open_token_states  # imports onnx

    return open_token_states().read


@cache
def load_answer_reader() -> Callable[[str, Sequence[Evidence]], tuple[float, ...]]:
    from storage.indexes.answer_reader import open_answer_reader  # imports onnx

    return open_answer_reader().read
