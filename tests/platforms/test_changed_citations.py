"""A page changes that an answer cites: a note below the answer, or a digest for admins, reports it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.app import App
from bot.server.refresh.citation_recheck import CitationRecheck
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.refresh.document_refresh import forget_documents
from storage.database.refresh_log import NIGHT_LEASE, Leases
from storage.types import EntryKind
from tests.platforms.bots import Bot
from tests.platforms.example_app import ANSWERS, BUILT, MADE, PAGES, RISES, LinkedPages
from tests.platforms.workspaces import TESTED

LIGHT = PAGES["light.md"]
LATER = "Skarholm lighthouse was built in 1902."
CHANGED = {**PAGES, "light.md": {**LIGHT, "": LIGHT[""].replace(ANSWERS[BUILT], LATER)}}
COSMETIC = {**PAGES, "light.md": {**LIGHT, "": "", "History": f"A keeper lives  beside it.\n\n{ANSWERS[BUILT]}"}}
MOVED = {key: page for key, page in PAGES.items() if key != "light.md"} | {"old/light.md": LIGHT}
GONE = {key: page for key, page in PAGES.items() if key != "light.md"}
BOTH = {**CHANGED, "pier.md": {"title": "Pier", "": "The pier of Skarholm is made of steel."}}


@dataclass
class Watch:
    """A recheck next to a bot, with its own clock."""

    bot: Bot
    ahead: timedelta = timedelta()
    _recheck: list[CitationRecheck] = field(default_factory=list)

    async def look(self, pages: Any = None, *, hours: float = 0) -> None:
        """Refresh the corpus, let some hours pass, and recheck the citations."""
        assert self.bot.app
        assert self.bot.platform
        self.ahead += timedelta(hours=hours)
        if pages:
            await refresh_corpus(LinkedPages(pages), "handbook", self.bot.app.passages, progress=lambda _: None)
        there = {self.bot.platform.name: self.bot.platform}
        if not self._recheck:
            self._recheck.append(CitationRecheck(self.bot.app, there, "me", lambda: datetime.now(UTC) + self.ahead))
        await self._recheck[0].look()

    def restart(self) -> None:
        self._recheck.clear()

    async def notified(self) -> list[str]:
        """Return how people were notified, in order."""
        entries = await self.entries()
        return [body["told"] for body in entries if body.get("told") and body.get("state") != "begun"]

    async def entries(self) -> list[Any]:
        assert self.bot.app
        found = await self.bot.app.audit.of_kind(EntryKind.RECHECK, datetime(2020, 1, 1, tzinfo=UTC))
        return [entry.body for entry in found]


async def start(bot: Bot, recheck: str, **record: Any) -> Watch:
    await bot.start(record={"recheck": recheck, **record}, schedule={"admin_channel": bot.id(2)})
    return Watch(bot)


async def answered(bot: Bot, question: str = BUILT) -> str:
    """Ask, and wait until the desk is done with it; return the message."""
    asks = await bot.ask(question)
    await bot.answered(asks)
    await bot.done(asks)
    return asks


async def test_changed_citations_are_reported_once_a_day_to_admins(bot: Bot) -> None:
    watch = await start(bot, "digest")
    for question in (BUILT, MADE):
        await answered(bot, question)
    await watch.look()
    assert await watch.notified() == []

    await watch.look(CHANGED)
    await watch.look()
    (first,) = bot.posted(2)
    assert "1 answer " in first
    assert bot.id() in first
    await watch.look(BOTH, hours=1)
    watch.restart()
    await watch.look()
    assert len(bot.posted(2)) == 1  # one a day
    await watch.look(hours=24)
    await watch.look(hours=24)

    assert len(bot.posted(2)) == 2
    assert await watch.notified() == ["digest", "digest"]
    found = [one for body in await watch.entries() for one in body.get("lost", ())]
    assert [(one["text"], one["now"], one["removed"]) for one in found] == [
        (ANSWERS[BUILT], LATER, False),
        (ANSWERS[MADE], "The pier of Skarholm is made of steel.", False),
    ]
    assert all("Skarholm" not in line for line in bot.posted(2))  # what that channel may not read by its name
    assert bot.workspace.pings == []


async def test_changed_citation_adds_one_note_to_the_thread(bot: Bot) -> None:
    watch = await start(bot, "note")
    asks = await answered(bot)
    before = len(bot.posted())
    for _ in range(2):
        await watch.look(CHANGED)
        watch.restart()

    assert await watch.notified() == ["note"]
    (note,) = bot.posted()[before:]
    assert all(part in note for part in (BUILT, ANSWERS[BUILT], LATER, "Skarholm lighthouse"))
    assert bot.workspace.find_thread(note) == asks
    assert bot.posted(2) == []
    assert bot.workspace.pings == []
    await bot.workspace.erase(asks)
    await bot.done(asks, "retracted")
    assert LATER not in "\n".join(bot.posted())
    assert [body.get("state") for body in await watch.entries() if "told" in body] == ["begun", "done"]


@pytest.mark.parametrize("pages", [COSMETIC, MOVED], ids=["another section", "another key"])
@pytest.mark.parametrize("bot", ["mattermost"], indirect=True)
async def test_moved_or_reformatted_page_brings_no_note(bot: Bot, pages: Any) -> None:
    watch = await start(bot, "note")
    await answered(bot)
    await watch.look(pages)
    assert await watch.entries() == []


@pytest.mark.parametrize("bot", ["mattermost"], indirect=True)
async def test_deleted_page_brings_a_note(bot: Bot) -> None:
    watch = await start(bot, "note")
    await answered(bot)
    await watch.look(GONE)
    assert "no longer exists" in bot.posted()[-1]


async def _narrow(bot: Bot, app: App) -> None:
    await app.overrides.set(bot.id(), "corpora", [], by="an admin", was=None)


async def _forget(bot: Bot, app: App) -> None:  # noqa: ARG001 - as the others have it
    await forget_documents(app.passages, "handbook", ["light.md"])


@pytest.mark.parametrize("withdraw", [_narrow, _forget])
@pytest.mark.parametrize("bot", TESTED[:2], indirect=True)
async def test_note_contains_no_withdrawn_corpus_or_page(bot: Bot, withdraw: Any) -> None:
    watch = await start(bot, "note")
    await answered(bot)
    assert bot.app
    before = bot.posted()
    await withdraw(bot, bot.app)
    await watch.look(CHANGED)

    assert bot.posted() == before
    assert set(await watch.notified()) <= {"nobody"}


@pytest.mark.parametrize("bot", TESTED[1:], indirect=True)
async def test_private_answer_gets_no_note(bot: Bot) -> None:
    watch = await start(bot, "note")
    await bot.ask(only_asker=True)
    await bot.workspace.until(lambda: ANSWERS[BUILT] in "".join(bot.posted()))
    await answered(bot, RISES)
    await watch.look(CHANGED)

    assert LATER not in "".join(bot.posted())
    assert await watch.notified() == ["nobody"]


@pytest.mark.parametrize("failure", ["limited", "lost"])
@pytest.mark.parametrize("bot", TESTED[1:], indirect=True)
async def test_note_is_posted_once_over_failures(bot: Bot, failure: Any) -> None:
    watch = await start(bot, "note")
    await answered(bot)
    bot.workspace.fail_next("post", failure)
    for _ in range(3):
        await watch.look(CHANGED)

    assert "".join(bot.posted()).count(LATER) <= 1
    states = [body["state"] for body in await watch.entries() if body.get("told")]
    assert states[-1] in {"done", "failed"}
    assert failure != "limited" or states[-1] == "done"


@pytest.mark.parametrize("bot", ["mattermost"], indirect=True)
async def test_notes_are_limited_per_day(bot: Bot) -> None:
    watch = await start(bot, "note", recheck_most=1)
    for question in (BUILT, MADE):
        await answered(bot, question)
    await watch.look(BOTH)
    await watch.look()
    assert await watch.notified() == ["note"]
    await watch.look(hours=25)
    assert await watch.notified() == ["note", "note"]


@pytest.mark.parametrize("bot", ["mattermost"], indirect=True)
async def test_nightly_changes_are_reported_after_the_refresh(bot: Bot) -> None:
    watch = await start(bot, "digest")
    await answered(bot)
    assert bot.app
    leases = Leases(bot.app.manifest.database)
    assert await leases.take(NIGHT_LEASE, "me", datetime.now(UTC), 600)
    await watch.look(CHANGED)
    assert await watch.entries() == []
    await leases.release(NIGHT_LEASE, "me")
    await watch.look()
    assert await watch.notified() == ["digest"]


@pytest.mark.parametrize("record", [{"recheck": "off"}, {"recheck": "note", "recheck_days": 0}])
@pytest.mark.parametrize("bot", ["mattermost"], indirect=True)
async def test_settings_turn_the_recheck_off(bot: Bot, record: Any) -> None:
    watch = await start(bot, **record)
    await answered(bot)
    await watch.look(CHANGED)
    assert await watch.entries() == []
