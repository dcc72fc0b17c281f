"""Users, channels, DMs, three corpora, every set of readers: Slack receives nothing that may not be read there.

Posts and their updates, pieces of live messages, what one person sees, modals and answers to response_urls; the real
bolt and SDK are in between. The house's matrix for every platform is `tests.bot.desk.test_leaks`.
"""

import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from bot.views.catalog import translate
from tests.bot.desk.leaking import CORPORA, FOLLOW_UP, HELD, NEAREST, WHO, found_in, rounds, telling_all
from tests.pipeline.world import registered
from tests.platforms.slack.clock import FastClock
from tests.platforms.slack.joining import joined
from tests.platforms.slack.server import serve
from tests.platforms.slack.state import FakeSlack
from tests.platforms.slack.world import BOT
from tests.platforms.world import open_world

ROUNDS = rounds("slack")
OPEN: Mapping[str, Sequence[str]] = dict.fromkeys(CORPORA, ("*", "C1", "C2", "C3", "U1", "U2"))
FOREIGN = "C3"
"""The channel that is shared with another organisation."""
SHOWING = {"response_url", "views.open", "views.update"}


@dataclass
class Vaults:
    """The bot in Slack, started anew with other readers, and what Slack has received."""

    slack: FakeSlack
    home: Path
    stack: AsyncExitStack
    readers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    looked: int = 0
    pressed: tuple[str, str] = ("", "")
    """Where somebody pressed something last, and who."""

    async def allow(self, readers: Mapping[str, Sequence[str]]) -> None:
        """Start anew: the places that may read each corpus, or `*`."""
        await self.stack.aclose()
        corpus = [
            {"name": one, "readers": [who if who == "*" else f"slack:T1/{who}" for who in readers[one]]}
            for one in CORPORA
        ]
        app = self.stack.enter_context(open_world(self.home, corpus=corpus))
        self.readers = readers
        app = replace(app, systems=registered(extractive=telling_all))
        await self.stack.enter_async_context(joined(app, self.slack))

    def may(self, channel: str, user: str) -> frozenset[str]:
        """Say which corpora may be read, in words of this test's own."""
        place = user if channel.startswith("D") else channel
        named = {name for name in CORPORA if place in self.readers[name]}
        everywhere = {name for name in CORPORA if "*" in self.readers[name] and place != FOREIGN}
        return frozenset(named | everywhere)

    async def ask(self, text: str, thread: Mapping[tuple[str, str], str] | None = None) -> dict[tuple[str, str], str]:
        """Have everybody ask everywhere at once, in threads if they are given, and wait until all is answered."""
        asked = {}
        for channel, user in WHO:
            place = channel or self.slack.world.dm(user).id
            begun = thread[place, user] if thread else ""
            asked[place, user] = await self.slack.acts.mention(text, channel=place, user=user, thread=begun)
        await self.slack.until(lambda: all(map(self.answered, asked.values())))
        await self.slack.until(lambda: not self.slack.courier.unacked)
        return asked

    def answered(self, ts: str) -> bool:
        """Return whether what stays stands there."""
        found = [one for one in self.slack.acts.answers(ts) if one.metadata and one.blocks]
        keys = [str(one.metadata["event_payload"]["key"]) for one in found if one.metadata]
        return any(key.endswith(ts) for key in keys) and "footnote:stop" not in repr([one.blocks for one in found])

    def look(self) -> int:
        """Hold all that came since the last look to what may be read where it is shown, and return how much it was."""
        received, self.looked = self.slack.received[self.looked :], len(self.slack.received)
        for call in received:
            facts = call.arguments
            if call.method in SHOWING:
                channel, user = self.pressed
            else:
                channel = str(facts.get("channel", ""))
                user = str(facts.get("user", channel.removeprefix("D")))
            if channel in self.slack.world.channels:
                assert found_in(facts) <= self.may(channel, user), (call.method, channel, facts)
            else:
                assert not found_in(facts), (call.method, facts)
        return sum(bool(found_in(call.arguments)) for call in received)

    async def press(self, action: str, message: Any, who: tuple[str, str]) -> None:
        """Press something, and wait until something came of it."""
        self.pressed, before = who, len(self.slack.received)
        await self.slack.acts.press(action, message.ts, user=who[1])
        told = SHOWING | {"chat.postMessage"}
        await self.slack.until(lambda: any(one.method in told for one in self.slack.received[before:]))
        await self.slack.until(lambda: not self.slack.courier.unacked)

    def ours(self, ts: str) -> Any:
        """Return the last of our messages that answer one."""
        return self.slack.acts.answers(ts)[-1]


@pytest.fixture(name="vaults")
async def open_vaults(vaults: Path, tmp_path: Path) -> AsyncIterator[Vaults]:
    home = Path(shutil.copytree(vaults, tmp_path / "home"))
    async with serve(clock=FastClock(200), leisure=200) as slack:
        slack.world.channels[FOREIGN].externally = True
        async with AsyncExitStack() as stack:
            yield Vaults(slack, home, stack)
        assert slack.errors == []


async def test_whatever_slack_receives_may_be_read_where_it_is_shown(vaults: Vaults) -> None:
    """Answers, live or not, nearest pages, and what is remembered in their threads, for every set of readers."""
    shown = 0
    for number, readers in enumerate(ROUNDS):
        await vaults.allow(readers)
        asked = await vaults.ask((HELD, NEAREST)[number % 2])
        for (channel, user), ts in asked.items():
            assert found_in([one.blocks for one in vaults.slack.acts.answers(ts)]) == vaults.may(channel, user)
        shown += vaults.look()

    assert shown > len(ROUNDS)
    assert vaults.slack.calls("chat.startStream")


async def test_what_is_pressed_after_readers_changed_shows_what_may_be_read_by_then(vaults: Vaults) -> None:
    """Evidence in modals, follow-ups, by everybody who sees the message."""
    await vaults.allow(OPEN)
    asked = await vaults.ask(HELD)
    assert vaults.look()
    for readers in (dict.fromkeys(CORPORA, ("C1", "U1")), {**OPEN, CORPORA[0]: ()}, dict.fromkeys(CORPORA, ())):
        await vaults.allow(readers)
        for (channel, owner), ts in asked.items():
            for user in ("U1", "U2"):
                if user == owner or not channel.startswith("D"):
                    await vaults.press("footnote:evidence", vaults.ours(ts), (channel, user))
                    vaults.look()
        await vaults.ask(FOLLOW_UP, asked)
        vaults.look()
    (view, *_) = vaults.slack.world.views["U1"]
    assert not found_in(view.body)


async def test_what_only_its_asker_saw_is_shared_only_if_it_may_be_read_by_then(vaults: Vaults) -> None:
    """And is nowhere but with its asker before."""
    world = vaults.slack.world

    def private() -> list[Any]:
        return [one for one in world.ours() if one.only == "U2" and "footnote:share" in repr(one.blocks)]

    for count, readers in enumerate((OPEN, {**OPEN, CORPORA[0]: ()})):
        await vaults.allow(OPEN)
        await vaults.slack.acts.command("/ask", HELD, user="U2", channel="C2")
        vaults.pressed = ("C2", "U2")
        await vaults.slack.until(lambda count=count: len(private()) > count)
        vaults.look()
        before = [one.ts for one in world.ours() if not one.only]
        await vaults.allow(readers)
        await vaults.press("footnote:share", private()[-1], ("C2", "U2"))
        words = translate("share_done" if readers is OPEN else "not_here", "en")
        await vaults.slack.until(lambda words=words: words in vaults.slack.seen("C2", by="U2").replace("\u2060", ""))
        vaults.look()

        posted = [one for one in world.messages.values() if one.user == BOT and not one.only and one.ts not in before]
        assert found_in([one.blocks for one in posted]) == (set(CORPORA) if readers is OPEN else set())
