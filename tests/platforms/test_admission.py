"""Somebody's standing changes after they asked: by every way in, on both platforms, they read what they may by then.

Ways in: a new message, an edit, a question that waited for a restart or was asked during it, a command, a press; in a
channel and in a DM. The corpora are readable by `*`, by the channel and the person, and by a group of theirs.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bot.app import App
from tests.bot.desk.leaking import CORPORA, found_in, telling_all
from tests.platforms.discord import joining as discord_joining
from tests.platforms.discord import server as discord_server
from tests.platforms.discord.talking import actions
from tests.platforms.discord.town import HELPER_ROLE
from tests.platforms.discord.world import GUILD, LOADING
from tests.platforms.slack import joining as slack_joining
from tests.platforms.slack import server as slack_server
from tests.platforms.slack.clock import FastClock
from tests.platforms.slack.world import Group
from tests.platforms.systems import Gated
from tests.platforms.world import open_world
from tests.thorough import THOROUGH

EVERYBODY, NAMED, GROUPED = CORPORA
USUAL = frozenset({EVERYBODY, NAMED})
NOTHING = frozenset[str]()
HELD, WAITS, MISSED, EDITED = (f"What do the vaults {verb}?" for verb in ("hold", "store", "keep", "have"))

Expected = frozenset[str] | None
"""The corpora that are read; None where nobody is answered."""


@dataclass
class Town:
    """The bot on one platform, a person there, and what the platform received."""

    name: str
    fake: Any
    home: Path
    stack: AsyncExitStack
    person: str
    channel: str
    group: str
    app: App | None = None
    system: Gated = field(default_factory=lambda: Gated(telling_all))
    looked: int = 0

    @property
    def acts(self) -> Any:
        return self.fake.acts

    @property
    def direct(self) -> str:
        return str(self.fake.world.dm(self.person).id)

    async def start(self, **settings: Any) -> None:
        """Start the bot anew, perhaps with other settings of the platform."""
        await self.stack.aclose()
        where = f"{self.name}:{'T1' if self.name == 'slack' else GUILD}"
        readers = {EVERYBODY: ["*"], NAMED: [self.channel, self.person], GROUPED: [self.group]}
        corpus = [
            {"name": one, "visible_to": [who if who == "*" else f"{where}/{who}" for who in readers[one]]}
            for one in CORPORA
        ]
        app = self.stack.enter_context(
            open_world(self.home, corpus=corpus, desk={"grace_seconds": 0}, **{self.name: settings})
        )
        self.app = self.system.answering(app)
        joined = slack_joining.joined if self.name == "slack" else discord_joining.joined
        await self.stack.enter_async_context(joined(self.app, self.fake))

    async def say(self, text: str, place: str, **more: Any) -> str:
        """Have the person ask in the channel or in their DM."""
        say = self.acts.mention if place == self.channel else self.acts.say
        return str(await say(text, user=self.person, channel=place, **more))

    async def command(self, text: str) -> None:
        """Have the person ask by a command in the channel."""
        if self.name == "slack":
            await self.acts.command("/ask", text, user=self.person, channel=self.channel)
        else:
            used = await self.acts.command("ask", question=text, user=self.person, channel=self.channel)
            await self.fake.until(lambda: used.acked)

    async def press(self, asked: str) -> None:
        """Have the person look at the evidence of an answer."""
        answer = self.acts.answers(asked)[-1]
        if self.name == "slack":
            before = len(self.fake.received)
            await self.acts.press("footnote:evidence", answer.ts, user=self.person)
            told = {"response_url", "views.open"}
            await self.fake.until(lambda: any(one.method in told for one in self.fake.received[before:]))
        else:
            used = await self.acts.press(actions(answer)["evidence"], answer.id, user=self.person)
            shown = self.fake.world.messages
            await self.fake.until(lambda: used.acked and not shown[used.original].flags & LOADING)

    async def answered(self, *asked: str) -> None:
        """Wait until questions are answered, and nothing else is on its way."""
        await self.fake.until(lambda: all(map(self.acts.answers, asked)))
        async with asyncio.timeout(60):
            while await self._is_busy():  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0.005)

    async def _is_busy(self) -> bool:
        assert self.app
        channels = {"slack": ("slack:T1/", "slack:T1/"), "discord": (f"discord:{GUILD}/", "discord:/")}[self.name]
        places = zip(channels, (self.channel, self.direct), strict=True)
        rows = [await self.app.queue.recent("".join(place), limit=50) for place in places]
        return any(row.state != "done" for one in rows for row in one)

    def shown(self, asked: str) -> frozenset[str]:
        """Return the corpora of which something stands in the answer to a message."""
        return found_in([getattr(one, "blocks", None) or one.components for one in self.acts.answers(asked)])

    def received(self, *, more: bool = False) -> frozenset[str]:
        """Return the corpora of which the platform received something since the last look; `more` looks on."""
        calls = self.fake.received[self.looked :]
        self.looked += 0 if more else len(calls)
        return found_in([one.arguments if self.name == "slack" else one.body for one in calls])


def _guest(kind: str) -> Any:
    def change(town: Town) -> Mapping[str, Any]:
        town.fake.world.users[town.person].guest = kind
        return {}

    return change


def _guest_let_in(town: Town) -> Mapping[str, Any]:
    return {**_guest("restricted")(town), "guests": True}


def _grouped(town: Town) -> Mapping[str, Any]:
    if town.name == "slack":
        town.fake.page, town.fake.world.groups[town.group] = 2, Group(town.group, ["U7", "U8", "U9", town.person])
        return {}
    town.fake.world.guilds[GUILD].members[town.person].roles.add(HELPER_ROLE)
    return {}


def _unscoped(town: Town) -> Mapping[str, Any]:
    for token in town.fake.world.tokens.values():
        token.scopes.discard("usergroups:read")
    return _grouped(town)


def _gone(town: Town) -> Mapping[str, Any]:
    if town.name == "slack":
        town.fake.world.users[town.person].deleted = True
    else:
        del town.fake.world.guilds[GUILD].members[town.person]
    return {}


def _denied(town: Town) -> Mapping[str, Any]:
    return {**_grouped(town), "deny": [HELPER_ROLE]}


def _unlisted(_: Town) -> Mapping[str, Any]:
    return {"servers": ["999"]}


CHANGES: Mapping[str, tuple[str, Any, Expected, Expected]] = {
    "guest": ("slack", _guest("restricted"), frozenset({NAMED}), frozenset({NAMED})),
    "guest of one channel": ("slack", _guest("ultra_restricted"), frozenset({NAMED}), frozenset({NAMED})),
    "guest who is let in": ("slack", _guest_let_in, USUAL, USUAL),
    "in a user group": ("slack", _grouped, USUAL, frozenset(CORPORA)),
    "in a user group that may not be read": ("slack", _unscoped, USUAL, USUAL),
    "deactivated": ("slack", _gone, USUAL, frozenset({NAMED})),
    "has a role": ("discord", _grouped, USUAL, frozenset(CORPORA)),
    "has a denied role": ("discord", _denied, None, None),
    "has left": ("discord", _gone, USUAL, NOTHING),
    "server taken off": ("discord", _unlisted, None, NOTHING),
}
"""On which platform what changes, and what is read then in the channel and in the DM."""
IS_NO_MEMBER = {"deactivated", "has left"}
TRIED = (
    tuple(CHANGES) if THOROUGH else ("guest", "in a user group", "has a denied role", "has left", "server taken off")
)


@pytest.fixture
async def town(request: pytest.FixtureRequest, vaults: Path, tmp_path: Path) -> AsyncIterator[Town]:
    home, name = Path(shutil.copytree(vaults, tmp_path / "home")), CHANGES[request.param][0]
    serve, names = {
        "slack": (slack_server.serve, ("U2", "C2", "S1")),
        "discord": (discord_server.serve, ("102", "202", HELPER_ROLE)),
    }[name]
    async with serve(clock=FastClock(200), leisure=200) as fake, AsyncExitStack() as stack:
        yield Town(name, fake, home, stack, *names)
        await stack.aclose()
        assert fake.errors == []


@pytest.mark.parametrize(("town", "name"), [(name, name) for name in TRIED], indirect=["town"], ids=TRIED)
async def test_by_every_way_in_somebody_reads_what_they_may_by_then(town: Town, name: str) -> None:
    _, change, *expected = CHANGES[name]
    places = dict(zip((town.channel, town.direct), expected, strict=True))
    await town.start()
    before = {place: await town.say(HELD, place) for place in places}
    await town.answered(*before.values())
    assert {town.shown(one) for one in before.values()} == {USUAL}
    town.system.shut.add(WAITS)
    waited = {place: await town.say(WAITS, place) for place in places}
    await town.system.until_asked(4)
    await town.stack.aclose()
    town.received()
    silent = {"silent": True} if town.name == "slack" else {}  # else Slack would come again with it
    missed = {place: await town.say(MISSED, place, **silent) for place in places}
    stood = {asked for asked in (*before.values(), *waited.values()) if town.acts.answers(asked)}
    await town.system.open()
    await town.start(**change(town))

    unanswered = dict[str, frozenset[str]]()
    for place, may in places.items():
        reads, asked = may or NOTHING, [waited[place]]
        if town.name == "slack" or place == town.channel:  # Discord does not tell which DMs there are
            asked.append(missed[place])
        if may is None:
            unanswered |= {waited[place]: NOTHING, missed[place]: NOTHING, before[place]: USUAL}
        else:
            await town.answered(*asked)
            assert [town.shown(one) for one in asked] == [may] * len(asked)
    assert town.received() <= frozenset().union(*(may or NOTHING for may in places.values()))
    for place, may in places.items():
        reads = may or NOTHING
        if name in IS_NO_MEMBER and place == town.channel:
            continue
        await town.press(before[place])
        assert town.received() <= reads
        turns = len(town.system.asked)
        await town.acts.edit(before[place], EDITED)
        asked = await town.say(HELD, place)
        if may is None:
            unanswered[asked] = NOTHING
        else:
            await town.system.until_asked(turns + 2)
            await town.answered(asked, before[place])
            assert town.shown(asked) == town.shown(before[place]) == may
        assert town.received() == reads
        if place == town.channel:
            await town.command(HELD)
            await town.fake.until(lambda reads=reads: town.received(more=True) >= reads)
            assert town.received() == reads
    await town.stack.aclose()
    assert town.received() == NOTHING
    assert {asked: town.shown(asked) for asked in unanswered} == unanswered
    assert {asked for asked in unanswered if town.acts.answers(asked)} <= stood
