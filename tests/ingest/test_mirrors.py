"""Refreshes of a dump mirror and of a web site over a real store: failures remove nothing."""

import asyncio

import pytest

from ingest.types import RefreshRefused, SourceUnavailable
from tests.ingest.servers.dump_mirror import FakeMirror, half, resets, says, stalls
from tests.ingest.servers.site import HTML, FakeSite
from tests.ingest.servers.web import Answer, serve
from tests.ingest.sources import test_dump_mirror, test_site_source
from tests.ingest.sources.dumps import page
from tests.ingest.sources.test_dump_mirror import PLAIN, WIKI, packed
from tests.ingest.waiting import count_changes, until_true
from tests.storage.stores import opened


async def found(store, text, corpus="wiki"):
    return [hit.passage.text for hit in await store.search(text, [corpus], 1)]


ADA = page(1, "Ada", "Ada was a mathematician.", revision=11)
EMPTY = page(2, "Empty", "{{infobox}}", revision=12)
BOB = page(3, "Bob", "Bob is a name.", revision=13)


async def test_nightly_refreshes_of_a_dump_mirror(tmp_path):
    """First a dump, then a night without news, nights that fail, and a new dump."""
    mirror = FakeMirror()
    mirror.publish(WIKI, "20261101", packed(ADA, EMPTY, BOB))
    with serve(mirror) as server, opened(tmp_path) as store:
        world = test_dump_mirror.World(server, tmp_path)
        assert await count_changes(store, world.source()) == (2, 0, 0, 0, 1)

        # An unreadable page of this dump is not read again, but still reported.
        assert await count_changes(store, world.source()) == (0, 0, 2, 0, 0)
        assert [key for key, _ in await store.manifest.failures("wiki")] == ["2"]

        mirror.publish(WIKI, "20261120", packed(ADA.replace("mathematician", "poet").replace("11<", "14<")))
        for fault in (half, resets(0), says(404), says(503, Retry_After="9999")):
            mirror.faults.clear()
            mirror.fault("20261120-" + PLAIN, *[fault] * 9)
            with pytest.raises(SourceUnavailable):
                await count_changes(store, world.source())
            assert await found(store, "Ada was a mathematician") == ["Ada was a mathematician."]
        mirror.faults.clear()

        # Bob is missing from the new dump; a single document needs no confirmation.
        assert await count_changes(store, world.source()) == (0, 1, 0, 1, 0)
        assert await found(store, "Ada was a poet") == ["Ada was a poet."]
        assert world.files() == [name for name in world.files() if "20261120" in name]


async def test_cancelled_download_resumes_the_next_night(tmp_path):
    """Cancelling does not wait for the rest, and received bytes are not requested again."""
    mirror = FakeMirror()
    mirror.publish(WIKI, "20261101", packed(test_dump_mirror.about("pioneer")))
    mirror.fault("20261101-" + PLAIN, stalls(2_000))
    part = tmp_path / "dumps" / f"simplewiki-20261101-{PLAIN}.part"
    with serve(mirror) as server, opened(tmp_path) as store:
        world = test_dump_mirror.World(server, tmp_path)
        task = asyncio.create_task(count_changes(store, world.source()))
        await until_true(lambda: part.exists() and part.stat().st_size == 2_000)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 60)
        assert await count_changes(store, world.source()) == (1, 0, 0, 0, 0)
        assert server.requests[-1].headers["range"] == "bytes=2000-"


async def test_nightly_refreshes_of_a_web_site(tmp_path):
    """Pages are added, change and disappear; logins or 404 for everything change nothing."""
    site = FakeSite()
    for number in range(60):
        site.page(
            f"/rules/{number}", f"Rule {number}", f"Door {'abcdefghij'[number % 10] * (number // 10 + 1)} is shut."
        )
    with serve(site) as server, opened(tmp_path) as store:
        world = test_site_source.SiteWorld(site, server)
        assert await count_changes(store, world.source()) == (60, 0, 0, 0, 0)
        assert await count_changes(store, world.source()) == (0, 0, 60, 0, 0)

        site.everything = lambda _: Answer(200, test_site_source.LOGIN, HTML)
        assert (await count_changes(store, world.source()))[:4] == (0, 0, 0, 0)
        site.everything = lambda _: Answer(404)
        with pytest.raises(RefreshRefused, match="The 60 documents of “wiki” are unchanged"):
            await count_changes(store, world.source())
        site.everything = lambda request: Answer(404) if int(request.path[7:] or 0) % 2 else None
        assert (await count_changes(store, world.source()))[3] == 0
        site.everything = None
        assert await found(store, "Door ccc is shut") == ["Door ccc is shut."]

        site.page("/rules/7", "Rule 7", "Door hhhh is open.")
        del site.pages["/rules/9"]
        assert await count_changes(store, world.source()) == (0, 1, 58, 1, 0)
