"""Tests of several homes on one database: each finds what another wrote, and none undoes a running write."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ingest.refresh.corpus_refresh import refresh_corpus
from storage.passages import PassageStore
from tests.fakes import PageSource
from tests.storage.stores import contents, opened

PAGES = {f"{n}": {"": f"Page {n} says old."} for n in range(6)}
LATER = {f"{n}": {"": f"Page {n} says new."} for n in range(3, 9)}


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[tuple[PassageStore, PassageStore]]:
    with opened(tmp_path / "one") as one, opened(tmp_path / "other", beside=tmp_path / "one") as other:
        yield one, other


async def refresh(store: PassageStore, pages: dict) -> None:
    await refresh_corpus(PageSource(pages), "handbook", store, progress=lambda _: None)


async def find(store: PassageStore) -> set[str]:
    return {hit.passage.text for hit in await store.search("Page says old new", ["handbook"], 50)}


async def test_home_finds_passages_of_another_home_once_it_has_followed_its_changes(homes):
    one, other = homes
    await refresh(one, PAGES)
    assert await find(other) == set()
    await other.tidy()
    assert await find(other) == await find(one) == {page[""] for page in PAGES.values()}

    await refresh(one, LATER)
    await other.tidy()

    assert await find(other) == await find(one) == {page[""] for page in LATER.values()}
    assert await contents(other, "handbook") == await contents(one, "handbook")
    assert [follower.lacks for follower in await one.manifest.followers()] == [0, 0]


@dataclass
class Disturbed:
    """An index during whose writes another home follows the changes."""

    index: Any
    other: PassageStore
    loop: asyncio.AbstractEventLoop

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.index, name)
        return (lambda *given: self._disturb(method(*given))) if name in {"upsert", "delete"} else method

    def _disturb(self, done: Any) -> Any:
        asyncio.run_coroutine_threadsafe(self.other.recover(), self.loop).result()
        return done


async def test_vectors_rebuilt_by_another_home_are_found(homes):
    one, other = homes
    await refresh(one, PAGES)
    await other.tidy()
    assert other.dense.count("handbook") == len(PAGES)

    one.dense.remove("handbook")
    await one.reindex(lambda *_: None)

    assert other.dense.count("handbook") == len(PAGES)
    assert await find(other) == {page[""] for page in PAGES.values()}


async def test_following_during_anothers_write_undoes_nothing(homes):
    one, other = homes
    await one.recover()
    disturbed = replace(one, dense=Disturbed(one.dense, other, asyncio.get_running_loop()))

    await refresh(disturbed, PAGES)
    await refresh(disturbed, LATER)

    stored = await contents(one, "handbook")
    assert stored.dense == stored.lexical == {key: hash_ for key, hash_, *_ in stored.manifest}
    await one.check()
    await other.check()
