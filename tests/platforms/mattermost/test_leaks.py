"""Channels, people, DMs, three corpora, sets of readers: Mattermost receives nothing that may not be read there."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from bot.app import App
from bot.views.catalog import translate
from tests.bot.desk.leaking import CORPORA, FOLLOW_UP, HELD, NEAREST, combinations, found_in, telling_all
from tests.pipeline.world import registered
from tests.platforms.mattermost import acts
from tests.platforms.mattermost.house import MattermostStreet
from tests.platforms.mattermost.joining import joined
from tests.platforms.mattermost.seeing import words
from tests.platforms.mattermost.server import serve
from tests.platforms.mattermost.world import ANA, BEN, BOT, GENERAL, PIER, PRIVATE, TEAM, Post, made_id
from tests.platforms.slack.clock import FastClock
from tests.platforms.world import open_world
from tests.thorough import THOROUGH

IDS = {"C1": GENERAL, "C2": PIER, "C3": PRIVATE, "U1": ANA, "U2": BEN, "S1": made_id("nobody")}
SHARED = PRIVATE
"""The channel that is shared with other servers."""
OPEN: Mapping[str, Sequence[str]] = dict.fromkeys(CORPORA, ("*", "C1", "C2", "C3", "U1", "U2"))
ROUNDS = list(combinations()) if THOROUGH else list(combinations())[7::30]


@dataclass
class Vaults:
    """The bot, started anew with other readers, and what stands there."""

    street: MattermostStreet
    home: Path
    stack: AsyncExitStack
    readers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    app: App | None = None

    async def allow(self, readers: Mapping[str, Sequence[str]]) -> None:
        await self.stack.aclose()
        corpus = [
            {
                "name": one,
                "visible_to": [who if who == "*" else f"mattermost:{TEAM}/{IDS[who]}" for who in readers[one]],
            }
            for one in CORPORA
        ]
        app = self.stack.enter_context(open_world(self.home, corpus=corpus))
        self.readers = {one: [IDS.get(who, who) for who in readers[one]] for one in CORPORA}
        self.app = replace(app, systems=registered(extractive=telling_all))
        await self.stack.enter_async_context(joined(self.app, self.street.server))
        self.street._up = True

    def may(self, channel: str, user: str) -> frozenset[str]:
        """Say which corpora may be read, in words of this test's own."""
        place = channel or user
        named = {name for name in CORPORA if place in self.readers[name]}
        return frozenset(named | {name for name in CORPORA if "*" in self.readers[name] and place != SHARED})

    async def ask(self, text: str, threads: Mapping[tuple[str, str], str] | None = None) -> dict[tuple[str, str], str]:
        """Have everybody ask everywhere at once, and wait until all is answered."""
        made = {}
        for user in (ANA, BEN):
            for channel in (GENERAL, PIER, PRIVATE, ""):
                thread = threads[channel, user] if threads else ""
                asked = await self.street.say(
                    text, user=user, channel=channel or GENERAL, dm=not channel, thread=thread
                )
                made[channel, user] = asked
        await self.street.until(lambda: all(map(self.answered, made.values())))
        async with asyncio.timeout(60):  # what is delivered and not done with yet is shown once more at a shutdown
            while await self._is_busy():  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0.005)
        return made

    async def _is_busy(self) -> bool:
        assert self.app
        places = {one.channel: self.street.server.world.channels[one.channel].team for one in self._people_s_posts()}
        rows = [
            await self.app.queue.recent(f"mattermost:{team}/{channel}", limit=9) for channel, team in places.items()
        ]
        return any(row.state != "done" for one in rows for row in one)

    def _people_s_posts(self) -> list[Post]:
        return [one for one in self.street.server.world.posts.values() if one.user != BOT]

    def answered(self, asked: str) -> bool:
        return any("evidence" in one.buttons for one in self.street.answer(asked)) or any(
            translate("abstained", "en") in one.text for one in self.street.answer(asked)
        )

    def stands(self, asked: str) -> frozenset[str]:
        world = self.street.server.world
        return found_in([(world.posts[one.id].message, world.posts[one.id].props) for one in self.street.answer(asked)])

    def look(self) -> None:
        """Hold each state of each post since the last look to what may be read where it stands."""
        world, states = self.street.server.world, self.street.server.states
        for place, message in states:
            channel = world.channels[place]
            user = next(iter(channel.members - {BOT})) if channel.kind == "D" else ""
            assert found_in(message) <= self.may("" if user else place, user), (place, message)
        states.clear()

    def told(self, user: str, since: int) -> list[Post]:
        """Return what somebody was told in their DM since then."""
        return acts.ours(self.street.server, self.street.server.world.direct(user, BOT).id)[since:]


@pytest.fixture(name="vaults")
async def open_vaults(vaults: Path, tmp_path: Path) -> AsyncIterator[Vaults]:
    home = Path(shutil.copytree(vaults, tmp_path / "home"))
    async with serve(clock=FastClock(200)) as server:
        server.world.channels[SHARED].shared = True
        async with AsyncExitStack() as stack:
            yield Vaults(MattermostStreet(server), home, stack)
        assert server.errors == []


async def test_whatever_mattermost_receives_may_be_read_where_it_is_shown(vaults: Vaults) -> None:
    """Answers and nearest pages, for sets of readers; what was ever posted, also before it was edited."""
    for number, readers in enumerate(ROUNDS):
        await vaults.allow(readers)
        asked = await vaults.ask((HELD, NEAREST)[number % 2])
        for (channel, user), message in asked.items():
            assert vaults.stands(message) == vaults.may(channel, user), (readers, channel, user)
        vaults.look()


async def test_what_is_pressed_after_readers_changed_shows_what_may_be_read_by_then(vaults: Vaults) -> None:
    """Evidence in DMs, by everybody who sees the answer, and follow-ups."""
    await vaults.allow(OPEN)
    asked = await vaults.ask(HELD)
    for readers in (dict.fromkeys(CORPORA, ("C1", "U1")), dict.fromkeys(CORPORA, ())):
        await vaults.allow(readers)
        for (channel, owner), message in asked.items():
            for user in (ANA, BEN) if channel else (owner,):
                since = len(vaults.told(user, 0))
                shown = [one for one in vaults.street.answer(message) if "evidence" in one.buttons][-1]
                await vaults.street.press("evidence", shown.id, user=user)
                await vaults.street.until(lambda user=user, since=since: vaults.told(user, since))
                seen = found_in([one.message for one in vaults.told(user, since)])
                assert seen in {frozenset(), frozenset(CORPORA)}
                assert seen <= vaults.may(channel, user), (readers, channel, user)
        follows = await vaults.ask(FOLLOW_UP, asked)
        for (channel, user), message in follows.items():
            assert vaults.stands(message) <= vaults.may(channel, user)


@pytest.mark.parametrize("narrowed", [False, True])
async def test_what_only_its_asker_saw_is_shared_only_if_it_may_be_read_by_then(
    vaults: Vaults, narrowed: object
) -> None:
    """By who is a member still of the channel where they asked; nobody else sees it before."""
    server = vaults.street.server
    await vaults.allow(OPEN)
    asked = await vaults.street.say(HELD, user=BEN, channel=PIER, only_asker=True)
    await vaults.street.until(lambda: vaults.answered(asked))
    (answer,) = vaults.street.answer(asked)
    assert [one for one in acts.ours(server, PIER) if found_in(one.message)] == []
    await vaults.allow({**OPEN, CORPORA[0]: ()} if narrowed else OPEN)
    since = len(vaults.told(BEN, 0))
    await vaults.street.press("share", answer.id, user=BEN)
    said = translate("not_here" if narrowed else "share_done", "en")
    await vaults.street.until(lambda: any(said in words(one.message) for one in vaults.told(BEN, since)))

    shared = found_in([one.message for one in acts.ours(server, PIER)])
    assert shared == (frozenset() if narrowed else frozenset(CORPORA))
