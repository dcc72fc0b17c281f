"""Tests that a model runs outside the event loop and is loaded at its first use."""

import asyncio

from storage.database.worker_threads import ThreadPool
from storage.indexes.embedding import LazyFunction, load_token_states


async def test_model_is_loaded_at_the_first_reading() -> None:
    with ThreadPool("states", threads=2) as worker:
        loaded: list[int] = []
        states = LazyFunction(lambda: loaded.append(1) or load_token_states(), worker)
        assert not loaded
        one, other = await asyncio.gather(states(["The gate is closed."]), states(["The gate is closed.", "A dog."]))

    assert loaded == [1]
    assert (len(one), len(other)) == (1, 2)
    assert one[0].ids.tolist() == other[0].ids.tolist()
