"""States that are read off the event loop, by a model that is loaded when it is first needed."""

import asyncio
from functools import partial
from pathlib import Path

from storage.database.worker_threads import ThreadPool
from storage.indexes.embedding import LazyReader, load_token_states


async def test_the_model_is_made_at_the_first_reading_and_not_before(tmp_path: Path) -> None:
    """Several who come first at once wait for one model."""
    with ThreadPool("states", threads=2) as worker:
        states = LazyReader(partial(load_token_states, tmp_path), worker)
        assert not (tmp_path / "models").exists()
        one, other = await asyncio.gather(states(["The gate is closed."]), states(["The gate is closed.", "A dog."]))

    assert len(list((tmp_path / "models").iterdir())) == 1
    assert (len(one), len(other)) == (1, 2)
    assert one[0].ids.tolist() == other[0].ids.tolist()
