"""A page that an answer cites changes: who is told that the answer no longer holds, where, and how often."""

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.app import App
from bot.server.refresh.citation_recheck import CitationRecheck
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.refresh.document_refresh import forget_documents
from storage.database.refresh_log import NIGHT_LEASE, Leases
from storage.types import EntryKind
from tests.platforms.bots import Bot, text
from tests.platforms.houses import HOUSES, TRIED
from tests.platforms.mattermost.seeing import words as seen
from tests.platforms.slack.seeing import words
from tests.platforms.systems import Gated
from tests.platforms.world import ANSWERS, BUILT, MADE, PAGES, RISES, LinkedPages

LIGHT = PAGES["light.md"]
LATER = "Skarholm lighthouse was built in 1902."
CHANGED = {**PAGES, "light.md": {**LIGHT, "": LIGHT[""].replace(ANSWERS[BUILT], LATER)}}
COSMETIC = {**PAGES, "light.md": {**LIGHT, "": "", "History": f"A keeper lives  beside it.\n\n{ANSWERS[BUILT]}"}}
MOVED = {key: page for key, page in PAGES.items() if key != "light.md"} | {"old/light.md": LIGHT}
GONE = {key: page for key, page in PAGES.items() if key != "light.md"}
BOTH = {**CHANGED, "pier.md": {"title": "Pier", "": "The pier of Skarholm is made of steel."}}


@dataclass
class Watch:
    """A recheck beside a bot, by a clock of its own."""

    bot: Bot
    ahead: timedelta = timedelta()
    _recheck: list[CitationRecheck] = field(default_factory=list)

    async def look(self, pages: Any = None, *, hours: float = 0) -> None:
        """Refresh the corpus, and look at what that changed, so many hours later than before."""
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

    async def told(self) -> list[str]:
        """Return how anybody was told, in order."""
        entries = await self.entries()
        return [body["told"] for body in entries if body.get("told") and body.get("state") != "begun"]

    async def entries(self) -> list[Any]:
        assert self.bot.app
        found = await self.bot.app.audit.of_kind(EntryKind.RECHECK, datetime(2020, 1, 1, tzinfo=UTC))
        return [entry.body for entry in found]

    def posted(self, channel: int = 0) -> list[str]:
        """Return what somebody there sees of us in a channel."""
        street = self.bot.street
        return [one.text for one in street.seen(street.channels[channel], by=street.people[0])]


@pytest.fixture(params=TRIED)
async def bot(request: pytest.FixtureRequest, filled: Path, tmp_path: Path) -> AsyncIterator[Bot]:
    home = Path(shutil.copytree(filled, tmp_path / "home"))
    async with HOUSES[request.param]() as street, AsyncExitStack() as stack:
        yield Bot(street, home, Gated(), stack)


async def start(bot: Bot, recheck: str, **record: Any) -> Watch:
    await bot.start(record={"recheck": recheck, **record}, schedule={"admin_channel": bot.id(2)})
    return Watch(bot)


def _find_thread(street: Any, said: str) -> str:
    """Return the message beneath which the bot said something."""
    if hasattr(street, "slack"):
        (found,) = [one.thread for one in street.slack.world.ours() if said in words(one, street.slack.world)]
        return str(found)
    if hasattr(street, "discord"):
        replies = [one.reference["message_id"] for one in street.discord.world.ours() if one.reference]
        (found,) = [asks for asks in set(replies) if said in text(street.answer(asks))]
        return str(found)
    if street.name == "mattermost":
        (found,) = [one.root for one in street.server.world.posts.values() if said in seen(one.message)]
        return str(found)
    (found,) = [one.thread for one in street.server.messages.values() if said in one.plain]
    return str(found)


async def answered(bot: Bot, question: str = BUILT) -> str:
    """Ask, and wait until the desk is done with it; return the message."""
    asks = await bot.ask(question)
    await bot.answered(asks)
    await bot.done(asks)
    return asks


async def test_the_admins_are_told_once_in_one_digest_a_day(bot: Bot) -> None:
    watch = await start(bot, "digest")
    for question in (BUILT, MADE):
        await answered(bot, question)
    await watch.look()
    assert await watch.told() == []

    await watch.look(CHANGED)
    await watch.look()
    (first,) = watch.posted(2)
    assert "1 answer " in first
    assert bot.id() in first
    await watch.look(BOTH, hours=1)
    watch.restart()
    await watch.look()
    assert len(watch.posted(2)) == 1  # one a day
    await watch.look(hours=24)
    await watch.look(hours=24)

    assert len(watch.posted(2)) == 2
    assert await watch.told() == ["digest", "digest"]
    found = [one for body in await watch.entries() for one in body.get("lost", ())]
    assert [(one["text"], one["now"], one["removed"]) for one in found] == [
        (ANSWERS[BUILT], LATER, False),
        (ANSWERS[MADE], "The pier of Skarholm is made of steel.", False),
    ]
    assert all("Skarholm" not in line for line in watch.posted(2))  # what that channel may not read by its name
    assert bot.street.pings == []


async def test_those_who_see_the_answer_get_one_note_beneath_it(bot: Bot) -> None:
    """With what changed; it goes with the answer."""
    watch = await start(bot, "note")
    asks = await answered(bot)
    before = len(watch.posted())
    for _ in range(2):
        await watch.look(CHANGED)
        watch.restart()

    assert await watch.told() == ["note"]
    (note,) = watch.posted()[before:]
    assert all(part in note for part in (BUILT, ANSWERS[BUILT], LATER, "Skarholm lighthouse"))
    assert _find_thread(bot.street, note) == asks
    assert watch.posted(2) == []
    assert bot.street.pings == []
    await bot.street.erase(asks)
    await bot.done(asks, "retracted")
    assert LATER not in "\n".join(watch.posted())
    assert [body.get("state") for body in await watch.entries() if "told" in body] == ["begun", "done"]


@pytest.mark.parametrize("pages", [COSMETIC, MOVED], ids=["another section", "another key"])
@pytest.mark.parametrize("bot", ["fake slack"], indirect=True)
async def test_what_changes_nothing_brings_nothing(bot: Bot, pages: Any) -> None:
    watch = await start(bot, "note")
    await answered(bot)
    await watch.look(pages)
    assert await watch.entries() == []


@pytest.mark.parametrize("bot", ["fake slack"], indirect=True)
async def test_a_page_that_is_gone_is_told_of(bot: Bot) -> None:
    watch = await start(bot, "note")
    await answered(bot)
    await watch.look(GONE)
    assert "is no longer there" in watch.posted()[-1]


async def _narrow(bot: Bot, app: App) -> None:
    await app.overrides.set(bot.id(), "corpora", [], by="an admin", was=None)


async def _forget(bot: Bot, app: App) -> None:  # noqa: ARG001 - as the others have it
    await forget_documents(app.passages, "handbook", ["light.md"])


@pytest.mark.parametrize("withdraw", [_narrow, _forget])
@pytest.mark.parametrize("bot", TRIED[:2], indirect=True)
async def test_nobody_is_told_beyond_what_may_be_read(bot: Bot, withdraw: Any) -> None:
    """Where the channel may not read it any more, or the page was forgotten."""
    watch = await start(bot, "note")
    await answered(bot)
    assert bot.app
    before = watch.posted()
    await withdraw(bot, bot.app)
    await watch.look(CHANGED)

    assert watch.posted() == before
    assert set(await watch.told()) <= {"nobody"}


@pytest.mark.parametrize("bot", TRIED[1:], indirect=True)
async def test_beneath_an_answer_that_its_asker_alone_saw_stands_no_note(bot: Bot) -> None:
    watch = await start(bot, "note")
    await bot.ask(only_asker=True)
    await bot.street.until(lambda: ANSWERS[BUILT] in "".join(watch.posted()))
    await answered(bot, RISES)
    await watch.look(CHANGED)

    assert LATER not in "".join(watch.posted())
    assert await watch.told() == ["nobody"]


@pytest.mark.parametrize("failure", ["limited", "lost"])
@pytest.mark.parametrize("bot", TRIED[1:], indirect=True)
async def test_a_note_stands_once_however_its_post_fails(bot: Bot, failure: Any) -> None:
    """What was surely not posted is tried again; what was perhaps posted is not."""
    watch = await start(bot, "note")
    await answered(bot)
    bot.street.stumble("post", failure)
    for _ in range(3):
        await watch.look(CHANGED)

    assert "".join(watch.posted()).count(LATER) <= 1
    states = [body["state"] for body in await watch.entries() if body.get("told")]
    assert states[-1] in {"done", "failed"}
    assert failure != "limited" or states[-1] == "done"


@pytest.mark.parametrize("bot", ["fake slack"], indirect=True)
async def test_so_many_notes_a_day_and_no_more(bot: Bot) -> None:
    watch = await start(bot, "note", recheck_most=1)
    for question in (BUILT, MADE):
        await answered(bot, question)
    await watch.look(BOTH)
    await watch.look()
    assert await watch.told() == ["note"]
    await watch.look(hours=25)
    assert await watch.told() == ["note", "note"]


@pytest.mark.parametrize("bot", ["fake slack"], indirect=True)
async def test_what_a_night_changes_is_told_when_it_has_ended(bot: Bot) -> None:
    watch = await start(bot, "digest")
    await answered(bot)
    assert bot.app
    leases = Leases(bot.app.manifest.database)
    assert await leases.take(NIGHT_LEASE, "me", datetime.now(UTC), 600)
    await watch.look(CHANGED)
    assert await watch.entries() == []
    await leases.release(NIGHT_LEASE, "me")
    await watch.look()
    assert await watch.told() == ["digest"]


@pytest.mark.parametrize("record", [{"recheck": "off"}, {"recheck": "note", "recheck_days": 0}])
@pytest.mark.parametrize("bot", ["fake slack"], indirect=True)
async def test_settings_turn_it_off(bot: Bot, record: Any) -> None:
    watch = await start(bot, **record)
    await answered(bot)
    await watch.look(CHANGED)
    assert await watch.entries() == []
