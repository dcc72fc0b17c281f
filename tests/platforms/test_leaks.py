"""A platform receives nothing that may not be read there, for all places, three corpora and many sets of readers.

Through the real adapters: posts, edits, live and private messages, modals and responses. `tests.bot.desk.test_leaks`
tests the same for the desk.
"""

import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from bot.views.catalog import translate
from tests.bot.desk.rights_matrix import (
    CORPORA,
    FOLLOW_UP,
    HELD,
    NEAREST,
    combinations,
    find_corpora,
    reveal_everything,
    rounds,
)
from tests.pipeline.world import registered
from tests.platforms.bots import finished, until_idle
from tests.platforms.discord.state import BOT as DISCORD_BOT
from tests.platforms.example_app import open_example_app
from tests.platforms.mattermost.state import BOT as MATTERMOST_BOT
from tests.platforms.workspace import Workspace
from tests.platforms.workspaces import PLATFORMS
from tests.thorough import THOROUGH

OPEN: Mapping[str, Sequence[str]] = dict.fromkeys(CORPORA, ("*", "C1", "C2", "C3", "U1", "U2"))
_SLACK_RESPONSES = {"response_url", "views.open", "views.update"}
_DISCORD_WRITES = {"create_message", "edit_message", "follow_up", "edit_response", "callback"}


@dataclass
class Vaults:
    """A bot that is restarted with other readers, and all that its platform received."""

    workspace: Workspace
    home: Path
    stack: AsyncExitStack
    readers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    app: Any = None
    _checked: int = 0
    pressed: tuple[str, str] = ("", "")
    """The channel and user of the last press."""

    def __post_init__(self) -> None:
        workspace, state = self.workspace, self.workspace.server.state
        self.users = workspace.users[:2]
        self.places = dict(zip(("C1", "C2", "C3", "U1", "U2"), (*workspace.channels, *self.users), strict=True))
        self.foreign = "" if workspace.name == "discord" else workspace.channels[2]
        """The channel that is shared with other organisations or servers."""
        if workspace.name == "slack":
            state.channels[self.foreign].externally = True
        elif workspace.name == "mattermost":
            state.channels[self.foreign].shared = True

    async def allow(self, readers: Mapping[str, Sequence[str]]) -> None:
        """Restart the bot with these readers of each corpus: names of places, or `*`."""
        await self.stack.aclose()
        workspace = self.workspace
        self.readers = {name: [self.places.get(one, one) for one in readers[name]] for name in CORPORA}
        ids = {name: [f"{workspace.name}:{workspace.team}/{one}" for one in self.readers[name]] for name in CORPORA}
        corpus = [
            {"name": name, "readers": ["*" if one.endswith("/*") else one for one in ids[name]]} for name in CORPORA
        ]
        app = self.stack.enter_context(open_example_app(self.home, corpus=corpus))
        self.app = replace(app, systems=registered(extractive=reveal_everything))
        await self.stack.enter_async_context(workspace.joined(self.app))

    def may_read(self, channel: str, user: str) -> frozenset[str]:
        """Return the corpora that may be read in a channel, or, with none, in a user's DM."""
        place = channel or user
        named = {name for name in CORPORA if place in self.readers[name]}
        return frozenset(named | {name for name in CORPORA if "*" in self.readers[name] and place != self.foreign})

    async def ask(self, text: str, before: Mapping[tuple[str, str], str] | None = None) -> dict[tuple[str, str], str]:
        """Let all users ask in all places, or reply to answers, and wait. The channel of a DM is empty."""
        workspace, asked, self.pressed = self.workspace, dict[tuple[str, str], str](), ("", "")
        for user in self.users:
            for channel in (*workspace.channels, ""):
                thread = self.thread(before[channel, user]) if before else ""
                where: dict[str, Any] = {"dm": True} if not channel else {"channel": channel}
                asked[channel, user] = await workspace.say(text, user=user, thread=thread, **where)
        await workspace.until(lambda: all(finished(workspace.answer(one)) for one in asked.values()))
        await until_idle(self.app, workspace)
        return asked

    def thread(self, asked: str) -> str:
        """Return the message to reply to: on Discord the answer."""
        return self.workspace.answer(asked)[-1].id if self.workspace.name == "discord" else asked

    def check_received(self) -> int:
        """Assert that all received since the last check may be read in its place; return the number of texts."""
        checked = self._read_received()
        received, self._checked = checked[self._checked :], len(checked)
        for channel, user, body in received:
            # Mattermost shows evidence in the DM of the user who asked for it.
            is_response = (channel, user) == ("", self.pressed[1]) and self.workspace.name == "mattermost"
            may = self.may_read(*self.pressed) if is_response else self.may_read(channel, user)
            assert find_corpora(body) <= may, (channel, user, body)
        return sum(bool(find_corpora(body)) for _, _, body in received)

    def _read_received(self) -> list[tuple[str, str, Any]]:
        """Return the channel, the user of a DM, and the body of all that the platform received."""
        server = self.workspace.server
        if self.workspace.name == "mattermost":
            return [(*self._place(channel, MATTERMOST_BOT), body) for channel, body in server.post_states]
        calls = []
        for call in server.received:
            if self.workspace.name == "discord":
                place = call.names.get("channel", "")
                assert call.name in _DISCORD_WRITES or not find_corpora(call.body), call
                where = self._place(place, DISCORD_BOT) if place else self.pressed
            elif call.name in _SLACK_RESPONSES:
                where = self.pressed
            else:
                channel = str(call.body.get("channel", ""))
                assert channel in server.state.channels or not find_corpora(call.body), call
                where = ("", channel[1:]) if channel.startswith("D") else (channel, "")
            calls.append((*where, call.body))
        return calls

    def _place(self, channel: str, bot: str) -> tuple[str, str]:
        members = self.workspace.server.state.channels[channel].members
        is_direct = channel not in self.workspace.channels and members
        return ("", next(iter(members - {bot}))) if is_direct else (channel, "")

    def _count_responses(self) -> int:
        """Return how many calls may have answered a press."""
        server = self.workspace.server
        if self.workspace.name == "mattermost":
            return len(server.post_states)
        return sum(call.name in _SLACK_RESPONSES | _DISCORD_WRITES for call in server.received)

    async def press(self, action: str, asked: str, channel: str, user: str) -> None:
        """Press a button of an answer, and wait until it was handled."""
        self.pressed, before = (channel, user), self._count_responses()
        shown = [message for message in self.workspace.answer(asked) if action in message.buttons][-1]
        await self.workspace.press(action, shown.id, user=user)
        await self.workspace.until(lambda: self._count_responses() > before)
        await until_idle(self.app, self.workspace)


@pytest.fixture(name="vaults", params=PLATFORMS)
async def open_vaults(request: pytest.FixtureRequest, vaults: Path, tmp_path: Path) -> AsyncIterator[Vaults]:
    home = Path(shutil.copytree(vaults, tmp_path / "home"))
    async with PLATFORMS[request.param](speed=200)() as workspace:
        workspace.every = False
        async with AsyncExitStack() as stack:
            yield Vaults(workspace, home, stack)
        workspace.check()


async def test_answers_contain_only_corpora_readable_in_their_place(vaults: Vaults) -> None:
    """Both unfinished and final answers, and nearest pages, for several sets of readers."""
    name = vaults.workspace.name
    sets = rounds(name) if name != "mattermost" else list(combinations())[:: 1 if THOROUGH else 30]
    shown = 0
    for number, readers in enumerate(sets):
        await vaults.allow(readers)
        asked = await vaults.ask((HELD, NEAREST)[number % 2])
        for (channel, user), message in asked.items():
            assert find_corpora(vaults.workspace.read_payloads(message)) == vaults.may_read(channel, user)
        shown += vaults.check_received()

    assert shown > len(sets)


async def test_evidence_and_follow_ups_use_the_rights_after_a_change(vaults: Vaults) -> None:
    await vaults.allow(OPEN)
    asked = await vaults.ask(HELD)
    assert vaults.check_received()
    for readers in (dict.fromkeys(CORPORA, ("C1", "U1")), {**OPEN, CORPORA[0]: ()}, dict.fromkeys(CORPORA, ())):
        await vaults.allow(readers)
        for (channel, owner), message in asked.items():
            for user in vaults.users if channel else (owner,):
                await vaults.press("evidence", message, channel, user)
                vaults.check_received()
        await vaults.ask(FOLLOW_UP, asked)
        vaults.check_received()


@pytest.mark.parametrize("narrowed", [False, True])
async def test_private_answer_is_shared_only_if_still_readable_in_the_channel(vaults: Vaults, narrowed: object) -> None:
    workspace, user, channel = vaults.workspace, vaults.users[1], vaults.workspace.channels[1]
    await vaults.allow(OPEN)
    vaults.pressed = channel, user
    asked = await workspace.say(HELD, user=user, channel=channel, only_asker=True)
    await workspace.until(lambda: any("share" in one.buttons for one in workspace.answer(asked)))
    vaults.check_received()
    others = [one.text for one in workspace.seen(channel, by=vaults.users[0])]
    assert not find_corpora(others)
    await vaults.allow({**OPEN, CORPORA[0]: ()} if narrowed else OPEN)
    await vaults.press("share", asked, channel, user)
    words = translate("not_here" if narrowed else "share_done", "en")
    await workspace.until(lambda: any(words in message.text for message in workspace.seen(channel, by=user)))
    vaults.check_received()

    shared = find_corpora([message.text for message in workspace.seen(channel, by=vaults.users[0])])
    assert shared == (frozenset() if narrowed else frozenset(CORPORA))


@pytest.mark.parametrize("vaults", ["discord"], indirect=True)
async def test_unlisted_servers_read_nothing(vaults: Vaults) -> None:
    """A mention and a command there are not answered."""
    channel, discord = "211", vaults.workspace.server
    await vaults.allow(OPEN)
    await discord.people.mention(HELD, user="102", channel=channel)
    used = await discord.people.command("ask", question=HELD, user="102", channel=channel)
    await discord.until(lambda: used.acked)
    await vaults.ask(NEAREST)
    vaults.pressed = channel, ""
    vaults.foreign = channel
    vaults.check_received()

    assert not [message for message in discord.state.ours() if message.channel == channel and not message.only]
