"""A refresh in a real process is killed by kill -9: another process completes it without traces."""

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.types import RefreshRefused
from storage.types import RunState
from tests.fakes import PageSource
from tests.storage.stores import contents, opened

FIRST = {f"{n:02}": {"": f"Page {n} says old."} for n in range(12)}
SECOND = {f"{n:02}": {"": f"Page {n} says {'old' if n % 2 else 'new'}."} for n in range(3, 15)}
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("writes", "after"), [(1, "before"), (2, "after")])
async def test_another_process_completes_a_killed_refresh(tmp_path, writes, after):
    """It is killed between the two indexes, or while documents are removed from them."""
    with opened(tmp_path / "whole") as store:
        await refresh_corpus(PageSource(SECOND), "handbook", store, progress=lambda _: None)
        expected = await contents(store, "handbook")
    home = tmp_path / "home"
    with opened(home) as store:
        await refresh_corpus(PageSource(FIRST), "handbook", store, progress=lambda _: None)
        before = await contents(store, "handbook")

    command = [sys.executable, "-m", "tests.ingest.killed", str(home), json.dumps(SECOND), str(writes), after]
    died = await asyncio.to_thread(partial(subprocess.run, command, cwd=ROOT, capture_output=True, check=False))

    assert died.returncode == -9, died.stderr.decode()
    with opened(home) as store:
        await store.check()
        between = await contents(store, "handbook")
        assert between.manifest <= before.manifest | expected.manifest
        assert not await _both(store)
        with pytest.raises(RefreshRefused, match="already"):
            await refresh_corpus(PageSource(SECOND), "handbook", store, progress=lambda _: None)
        later = datetime.now(UTC) + timedelta(seconds=61)
        await refresh_corpus(PageSource(SECOND), "handbook", store, progress=lambda _: None, clock=lambda: later)

        assert await contents(store, "handbook") == expected
        assert [run.state for run in await store.runs.recent(2)] == [RunState.DONE, RunState.LOST]


async def _both(store):
    """Return the pages that either index finds in both versions."""
    hits = await store.search("Page says old new", ["handbook"], 100)
    texts = [hit.passage.document for hit in hits]
    return {key for key in texts if texts.count(key) > 1}
