"""Refreshes of wikis over a real store: changes are applied, and failures remove nothing."""

import pytest

from ingest.types import SourceUnavailable
from tests.ingest.servers import confluence, mediawiki
from tests.ingest.servers.web import Answer
from tests.ingest.sources.exports import packed, page, restricted, space, xml
from tests.ingest.sources.test_confluence_export import source as export_source
from tests.ingest.sources.test_confluence_source import source as confluence_source
from tests.ingest.sources.test_mediawiki_source import source as wiki_source
from tests.ingest.waiting import count_changes
from tests.storage.stores import contents, listed_passages, opened

LONG = " ".join(f"Rule number {number} says that door {number} is closed at {number % 12 + 1}." for number in range(30))


async def found(store, text, corpus="wiki"):
    return [(hit.document.title, hit.passage.text) for hit in await store.search(text, [corpus], 3)]


def wiki_of_rules():
    wiki = mediawiki.Wiki()
    wiki.edit("Doors", LONG)
    wiki.edit("Lunch", "Lunch is served at noon.")
    wiki.edit("Vault", "The vault opens at ten.")
    wiki.edit("Gates", "#REDIRECT [[Doors]]")
    wiki.tick(hours=3)
    return wiki


async def test_mediawiki_refreshes_follow_every_change(tmp_path):
    """Pages are edited, created, moved, deleted and restored; the result equals that of a new store."""
    wiki = wiki_of_rules()
    with opened(tmp_path / "one") as store:
        assert await count_changes(store, wiki_source(wiki)) == (3, 0, 0, 0, 0)
        assert await count_changes(store, wiki_source(wiki)) == (0, 0, 3, 0, 0)

        wiki.tick(hours=3)
        wiki.edit("Lunch", "Lunch is served at one.")
        wiki.edit("Parking", "Cars stand behind the office.")
        wiki.delete("Vault")
        assert await count_changes(store, wiki_source(wiki)) == (1, 1, 1, 1, 0)
        assert (await found(store, "when is lunch"))[0] == ("Lunch", "Lunch is served at one.")
        assert not any("vault" in text.lower() for _, text in await found(store, "the vault opens"))

        wiki.tick(hours=3)
        wiki.restore("Vault")
        # The last hour, with two of the pages, is listed again; the third page is not listed.
        assert await count_changes(store, wiki_source(wiki)) == (1, 0, 3, 0, 0)
        mine = await contents(store, "wiki")
    with opened(tmp_path / "two") as store:
        await count_changes(store, wiki_source(wiki))
        assert (await contents(store, "wiki")).manifest == mine.manifest


async def test_moved_page_keeps_its_passages_and_changes_its_title(tmp_path):
    """The passages keep their ids and texts; none is found under the old title."""
    wiki = wiki_of_rules()
    with opened(tmp_path) as store:
        await count_changes(store, wiki_source(wiki))
        key = str(wiki.titled("Doors").id)
        before = [(p.id, p.text) for p in await listed_passages(store.manifest, "wiki", key)]
        wiki.tick(hours=2)
        wiki.move("Doors", "Entrances")

        assert await count_changes(store, wiki_source(wiki)) == (0, 1, 2, 0, 0)

        document = await store.manifest.document("wiki", key)
        assert (document.title, document.aliases) == ("Entrances", ("Doors",))
        assert [(p.id, p.text) for p in await listed_passages(store.manifest, "wiki", key)] == before


async def test_interrupted_wiki_run_keeps_its_pages_and_continues(tmp_path):
    wiki = wiki_of_rules()
    fault = Answer(404, b"")
    with opened(tmp_path) as store:
        await count_changes(store, wiki_source(wiki))
        wiki.tick(hours=3)
        wiki.edit("Lunch", "Lunch is served at one.")
        wiki.delete("Vault")
        wiki.before = lambda query: wiki.faults.append(fault) if "content" in query.get("rvprop", "") else None

        with pytest.raises(SourceUnavailable):
            await count_changes(store, wiki_source(wiki))
        assert ("Vault", "The vault opens at ten.") in await found(store, "the vault opens at ten")

        wiki.before = lambda _: None
        wiki.faults.clear()
        assert await count_changes(store, wiki_source(wiki)) == (0, 1, 1, 1, 0)


async def test_confluence_refreshes_follow_every_change(tmp_path):
    fake = confluence.Confluence(cloud=True)
    fake.write("1", "Home", "<p>Welcome, all of you.</p>")
    fake.write("2", "Pay", "<p>Pay day is the 25th.</p>", parent="1")
    fake.write("3", "Bonus", "<p>The bonus is ten per cent.</p>", parent="2")
    with opened(tmp_path) as store:
        assert await count_changes(store, confluence_source(fake)) == (3, 0, 0, 0, 0)
        fake.write("1", "Home", "<p>Welcome back.</p>")
        fake.faults = [Answer(429, b"", {"Retry-After": "2"})]
        assert await count_changes(store, confluence_source(fake)) == (0, 1, 2, 0, 0)

        fake.contents["2"].readers = ("group:board",)
        assert await count_changes(store, confluence_source(fake)) == (0, 0, 1, 2, 0)
        assert await found(store, "pay day and bonus") == [("Home", "Welcome back.")]


async def test_restricted_pages_are_removed_at_any_number(tmp_path):
    """The limit on mass removal does not apply."""
    fake = confluence.Confluence(most=50)
    fake.write("1", "Home", "<p>Welcome, all of you.</p>")
    fake.write("2", "Board", "<p>Minutes of the board.</p>", parent="1")
    for number in range(100, 160):
        fake.write(str(number), f"Minutes {number}", f"<p>Minutes of meeting {number}.</p>", parent="2")
    with opened(tmp_path) as store:
        await count_changes(store, confluence_source(fake))
        fake.contents["2"].readers = ("group:board",)

        assert await count_changes(store, confluence_source(fake)) == (0, 0, 1, 61, 0)


async def test_second_export_updates_the_first(tmp_path):
    pages = [space(), page(10, "Home", "<p>Welcome, all of you.</p>"), page(11, "Pay", "<p>Pay day is the 25th.</p>")]
    with opened(tmp_path / "home") as store:
        first = packed(tmp_path / "a.zip", xml(*pages))
        assert await count_changes(store, export_source(first)) == (2, 0, 0, 0, 0)
        second = packed(tmp_path / "b.zip", xml(*pages, restricted(11, group="board")))
        assert await count_changes(store, export_source(second)) == (0, 0, 1, 1, 0)
        second.write_bytes(second.read_bytes()[:500])
        with pytest.raises(SourceUnavailable):
            await count_changes(store, export_source(second))
        assert await found(store, "welcome") == [("Home", "Welcome, all of you.")]
