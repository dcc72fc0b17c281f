"""A user's rights change after they asked: every way of asking uses the rights at the time of the answer.

The ways: a new message, an edit, a question that waited for a restart or was asked during it, a command, a button; in
a channel and in a DM. The corpora are readable by `*`, by the channel and the user, and by a group of the user.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.bot.desk.rights_matrix import CORPORA, find_corpora, reveal_everything
from tests.platforms.bots import Bot, bot_in, until_idle
from tests.platforms.discord.state import GUILD, HELPER_ROLE
from tests.platforms.slack.state import Group
from tests.platforms.systems import Gated
from tests.platforms.workspaces import PLATFORMS
from tests.thorough import THOROUGH

EVERYBODY, NAMED, GROUPED = CORPORA
USUAL = frozenset({EVERYBODY, NAMED})
NOTHING = frozenset[str]()
HELD, WAITS, MISSED, EDITED = (f"What do the vaults {verb}?" for verb in ("hold", "store", "keep", "have"))
Expected = frozenset[str] | None
"""The corpora that are read; None if the user is not answered."""


class Member(Bot):
    """The bot, and a user whose rights change."""

    checked: int = 0

    def __init__(self, bot: Bot) -> None:
        super().__init__(bot.workspace, bot.home, bot.stack, Gated(reveal_everything))
        self.is_slack = bot.workspace.name == "slack"
        self.user, self.channel = bot.workspace.users[1], bot.workspace.channels[1]
        self.group = "S1" if self.is_slack else HELPER_ROLE
        self.direct = str(self.server.state.dm(self.user).id)

    async def restart(self, **settings: Any) -> None:
        """Restart the bot, perhaps with other settings of the platform."""
        await self.stack.aclose()
        readers = {EVERYBODY: ["*"], NAMED: [self.channel, self.user], GROUPED: [self.group]}
        prefix = f"{self.workspace.name}:{self.workspace.team}/"
        corpus = [
            {"name": name, "visible_to": [one if one == "*" else prefix + one for one in readers[name]]}
            for name in CORPORA
        ]
        await self.start(corpus=corpus, desk={"grace_seconds": 0}, **{self.workspace.name: settings})

    async def ask_in(self, place: str, text: str, **more: Any) -> str:
        say = self.people.mention if place == self.channel else self.people.say
        return str(await say(text, user=self.user, channel=place, **more))

    async def command(self, text: str) -> None:
        if self.is_slack:
            await self.people.command("/ask", text, user=self.user, channel=self.channel)
        else:
            used = await self.people.command("ask", question=text, user=self.user, channel=self.channel)
            await self.server.until(lambda: used.acked)

    async def press_evidence(self, asked: str) -> None:
        before, last = len(self.server.received), self.people.answers(asked)[-1]
        await self.workspace.press("evidence", last.ts if self.is_slack else last.id, user=self.user)
        calls = {"response_url", "views.open", "edit_response", "callback", "follow_up"}
        await self.server.until(lambda: any(call.name in calls for call in self.server.received[before:]))
        await self.workspace.until(lambda: not self.workspace.pending)

    async def until_answered(self, *asked: str) -> None:
        """Wait until questions are answered, and nothing else is in progress."""
        await self.server.until(lambda: all(map(self.people.answers, asked)))
        await until_idle(self.app, self.workspace)

    def shown(self, asked: str) -> frozenset[str]:
        """Return the corpora in the answer to a message."""
        return find_corpora(self.workspace.read_payloads(asked))

    def received(self, *, advance: bool = True) -> frozenset[str]:
        """Return the corpora of which the platform received something since the last call."""
        calls = self.server.received[self.checked :]
        self.checked += len(calls) if advance else 0
        return find_corpora([call.body for call in calls])


def _become_guest(kind: str, **settings: Any) -> Callable[[Member], Mapping[str, Any]]:
    def change(member: Member) -> Mapping[str, Any]:
        member.server.state.users[member.user].guest = kind
        return settings

    return change


def _join_group(member: Member) -> Mapping[str, Any]:
    if member.is_slack:
        member.server.page = 2
        member.server.state.groups[member.group] = Group(member.group, ["U7", "U8", "U9", member.user])
    else:
        member.server.state.guilds[GUILD].members[member.user].roles.add(HELPER_ROLE)
    return {}


def _join_unreadable_group(member: Member) -> Mapping[str, Any]:
    for token in member.server.state.tokens.values():
        token.scopes.discard("usergroups:read")
    return _join_group(member)


def _leave(member: Member) -> Mapping[str, Any]:
    if member.is_slack:
        member.server.state.users[member.user].deleted = True
    else:
        del member.server.state.guilds[GUILD].members[member.user]
    return {}


CHANGES: Mapping[str, tuple[str, Any, Expected, Expected]] = {
    "guest": ("slack", _become_guest("restricted"), frozenset({NAMED}), frozenset({NAMED})),
    "guest of one channel": ("slack", _become_guest("ultra_restricted"), frozenset({NAMED}), frozenset({NAMED})),
    "admitted guest": ("slack", _become_guest("restricted", guests=True), USUAL, USUAL),
    "in a user group": ("slack", _join_group, USUAL, frozenset(CORPORA)),
    "in an unreadable user group": ("slack", _join_unreadable_group, USUAL, USUAL),
    "deactivated": ("slack", _leave, USUAL, frozenset({NAMED})),
    "has a role": ("discord", _join_group, USUAL, frozenset(CORPORA)),
    "has a denied role": ("discord", lambda member: {**_join_group(member), "deny": [HELPER_ROLE]}, None, None),
    "has left": ("discord", _leave, USUAL, NOTHING),
    "server removed": ("discord", lambda _: {"servers": ["999"]}, None, NOTHING),
}
"""The platform, the change, and the corpora that are read then in the channel and in the DM."""
ABSENT = {"deactivated", "has left"}
TRIED = tuple(CHANGES) if THOROUGH else ("guest", "in a user group", "has a denied role", "has left", "server removed")


@pytest.fixture(params=TRIED)
async def case(request: pytest.FixtureRequest, vaults: Path, tmp_path: Path) -> AsyncIterator[SimpleNamespace]:
    platform, change, *expected = CHANGES[request.param]
    async with bot_in(PLATFORMS[platform](speed=200)(), vaults, tmp_path / "home", every=False) as bot:
        member = Member(bot)
        places = dict(zip((member.channel, member.direct), expected, strict=True))
        yield SimpleNamespace(name=request.param, member=member, change=change, places=places)


async def test_every_way_of_asking_uses_the_rights_at_answer_time(case: SimpleNamespace) -> None:
    member, places = case.member, case.places
    await member.restart()
    before = {place: await member.ask_in(place, HELD) for place in places}
    await member.until_answered(*before.values())
    assert {member.shown(one) for one in before.values()} == {USUAL}
    member.system.shut.add(WAITS)
    waited = {place: await member.ask_in(place, WAITS) for place in places}
    await member.system.until_asked(4)
    await member.stack.aclose()
    member.received()
    silent = {"silent": True} if member.is_slack else {}  # else Slack would send it again
    missed = {place: await member.ask_in(place, MISSED, **silent) for place in places}
    had_posts = {asked for asked in (*before.values(), *waited.values()) if member.people.answers(asked)}
    await member.system.open()
    await member.restart(**case.change(member))

    unanswered = dict[str, frozenset[str]]()
    for place, may in places.items():
        asked = [waited[place]]
        if member.is_slack or place == member.channel:  # Discord does not list DMs
            asked.append(missed[place])
        if may is None:
            unanswered |= {waited[place]: NOTHING, missed[place]: NOTHING, before[place]: USUAL}
        else:
            await member.until_answered(*asked)
            assert [member.shown(one) for one in asked] == [may] * len(asked)
    assert member.received() <= frozenset().union(*(may or NOTHING for may in places.values()))
    for place, may in places.items():
        reads = may or NOTHING
        if case.name in ABSENT and place == member.channel:
            continue
        await member.press_evidence(before[place])
        assert member.received() <= reads
        turns = len(member.system.asked)
        await member.people.edit(before[place], EDITED)
        asked_now = await member.ask_in(place, HELD)
        if may is None:
            unanswered[asked_now] = NOTHING
        else:
            await member.system.until_asked(turns + 2)
            await member.until_answered(asked_now, before[place])
            assert member.shown(asked_now) == member.shown(before[place]) == may
        assert member.received() == reads
        if place == member.channel:
            await member.command(HELD)
            await member.server.until(lambda reads=reads: member.received(advance=False) >= reads)
            assert member.received() == reads
    await member.stack.aclose()
    assert member.received() == NOTHING
    assert {asked: member.shown(asked) for asked in unanswered} == unanswered
    assert {asked for asked in unanswered if member.people.answers(asked)} <= had_posts
