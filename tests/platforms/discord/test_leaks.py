"""Users, channels, DMs, three corpora, every set of readers: Discord receives nothing that may not be read there.

Posts and their edits, what one person sees, modals and first answers to interactions; the real discord.py is in
between. The house's matrix for every platform is `tests.bot.desk.test_leaks`.
"""

import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from bot.views.catalog import translate
from tests.bot.desk.leaking import CORPORA, FOLLOW_UP, HELD, NEAREST, found_in, rounds, telling_all
from tests.pipeline.world import registered
from tests.platforms.discord.joining import joined
from tests.platforms.discord.server import serve
from tests.platforms.discord.state import FakeDiscord
from tests.platforms.discord.talking import actions
from tests.platforms.discord.world import BOT, GUILD, LOADING, Message
from tests.platforms.slack.clock import FastClock
from tests.platforms.world import open_world

ROUNDS = rounds("discord")
FOREIGN = "211"
"""A channel of a server that settings do not name."""
PLACES: Mapping[str, str] = {"C1": "201", "C2": "202", "C3": "203", "U1": "101", "U2": "102"}
"""The matrix's places, as Discord numbers them."""
CHANNELS, USERS = ("201", "202", "203"), ("101", "102")
OPEN: Mapping[str, Sequence[str]] = dict.fromkeys(CORPORA, ("*", *PLACES))
WRITING = {"create_message", "edit_message", "follow_up", "edit_response", "callback"}


@dataclass
class Vaults:
    """The bot in Discord, started anew with other readers, and what Discord has received."""

    discord: FakeDiscord
    home: Path
    stack: AsyncExitStack
    readers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    looked: int = 0
    pressed: tuple[str, str] = ("", "")
    """Where somebody invoked something last, and who."""

    async def allow(self, readers: Mapping[str, Sequence[str]]) -> None:
        """Start anew: the places that may read each corpus, or `*`."""
        await self.stack.aclose()
        self.readers = {name: tuple(PLACES.get(one, one) for one in readers[name]) for name in CORPORA}
        corpus = [{"name": name, "readers": list(map(_place, self.readers[name]))} for name in CORPORA]
        app = self.stack.enter_context(open_world(self.home, corpus=corpus))
        app = replace(app, systems=registered(extractive=telling_all))
        await self.stack.enter_async_context(joined(app, self.discord))

    def may(self, channel: str, user: str) -> frozenset[str]:
        """Say which corpora may be read, in words of this test's own."""
        place = channel if channel in CHANNELS else user
        return frozenset(name for name in CORPORA if {"*", place} & set(self.readers[name]))

    async def ask(self, text: str, before: Mapping[tuple[str, str], Message] | None = None) -> dict[Any, Message]:
        """Have everybody ask everywhere at once, in reply to answers if they are given; return the answers."""
        asked = {}
        for user in USERS:
            for place in (*CHANNELS, self.discord.world.dm(user).id):
                reply = before[place, user].id if before else ""
                asked[place, user] = await self.discord.acts.mention(text, user=user, channel=place, reply=reply)
        await self.discord.until(lambda: all(map(self.answers, asked.values())))
        return {who: self.answers(one)[-1] for who, one in asked.items()}

    def answers(self, asked: str) -> list[Message]:
        """Return the messages that answer one, as they stay."""
        found = self.discord.acts.answers(asked)
        return [] if any("stop" in actions(one) for one in found) else found

    def look(self) -> int:
        """Hold all that came since the last look to what may be read where it is shown, and return how much it was."""
        received, self.looked = self.discord.received[self.looked :], len(self.discord.received)
        for call in received:
            shown = found_in(call.body)
            place = call.names.get("channel", "")
            if call.name not in WRITING:
                assert not shown, call
            elif place:
                kept = self.discord.world.channels[place]
                assert shown <= self.may(place, next(iter(kept.members - {BOT}), "")), call
            else:
                assert shown <= self.may(*self.pressed), call
        return sum(bool(found_in(call.body)) for call in received)

    async def press(self, action: str, message: Message, user: str) -> None:
        """Press something, and wait until it was answered."""
        self.pressed = message.channel, user
        used = await self.discord.acts.press(actions(message)[action], message.id, user=user)
        shown = self.discord.world.messages
        await self.discord.until(lambda: used.acked and not shown[used.original].flags & LOADING)


def _place(place: str) -> str:
    return place if place == "*" else f"discord:{GUILD}/{place}"


@pytest.fixture(name="vaults")
async def open_vaults(vaults: Path, tmp_path: Path) -> AsyncIterator[Vaults]:
    home = Path(shutil.copytree(vaults, tmp_path / "home"))
    async with serve(clock=FastClock(200), leisure=200) as discord:
        async with AsyncExitStack() as stack:
            yield Vaults(discord, home, stack)
        assert discord.errors == []


async def test_whatever_discord_receives_may_be_read_where_it_is_shown(vaults: Vaults) -> None:
    """Answers on their way and whole, and nearest pages, for every set of readers."""
    shown = 0
    for number, readers in enumerate(ROUNDS):
        await vaults.allow(readers)
        for (channel, user), answer in (await vaults.ask((HELD, NEAREST)[number % 2])).items():
            assert found_in(answer.components) == vaults.may(channel, user)
        shown += vaults.look()

    assert shown > len(ROUNDS)


async def test_what_is_pressed_after_readers_changed_shows_what_may_be_read_by_then(vaults: Vaults) -> None:
    """Evidence in modals, follow-ups by replies, by everybody who sees the message."""
    await vaults.allow(OPEN)
    answers = await vaults.ask(HELD)
    assert vaults.look()
    for readers in (dict.fromkeys(CORPORA, ("C1", "U1")), {**OPEN, CORPORA[0]: ()}, dict.fromkeys(CORPORA, ())):
        await vaults.allow(readers)
        for (channel, owner), answer in answers.items():
            for user in USERS:
                if user == owner or channel in CHANNELS:
                    await vaults.press("evidence", answer, user)
                    vaults.look()
        await vaults.ask(FOLLOW_UP, answers)
        vaults.look()


async def test_what_only_its_asker_saw_is_shared_only_if_it_may_be_read_by_then(vaults: Vaults) -> None:
    """And is nowhere but with its asker before."""
    world = vaults.discord.world
    for readers in (OPEN, {**OPEN, CORPORA[0]: ()}):
        await vaults.allow(OPEN)
        vaults.pressed = ("202", "102")
        used = await vaults.discord.acts.command("ask", question=HELD, private=True, user="102", channel="202")

        def private(used: Any = used) -> list[Message]:
            return [one for one in world.ours() if one.interaction == used.id and "share" in actions(one)]

        await vaults.discord.until(private)
        assert private()[-1].only == "102"
        vaults.look()
        before = {one.id for one in world.ours() if not one.only}
        await vaults.allow(readers)
        await vaults.press("share", private()[-1], "102")
        words = translate("share_done" if readers is OPEN else "not_here", "en")
        await vaults.discord.until(lambda words=words: words in vaults.discord.seen("202", by="102"))
        vaults.look()

        posted = [one for one in world.ours() if not one.only and one.id not in before]
        assert found_in([one.components for one in posted]) == (set(CORPORA) if readers is OPEN else set())


async def test_where_the_team_is_not_nothing_is_read(vaults: Vaults) -> None:
    """Neither in another server nor by a command that somebody brought there; and nothing is said of it in DMs."""
    await vaults.allow(OPEN)
    await vaults.discord.acts.mention(HELD, user="102", channel=FOREIGN)
    used = await vaults.discord.acts.command("ask", question=HELD, user="102", channel=FOREIGN)
    await vaults.discord.until(lambda: used.acked)
    await vaults.ask(NEAREST)
    vaults.pressed = FOREIGN, ""
    vaults.look()

    assert not [one for one in vaults.discord.world.ours() if one.channel == FOREIGN and not one.only]
