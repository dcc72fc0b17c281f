"""A Discord platform at the strict fake server, with a clock that jumps whenever the bot waits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from bot.access import Asker
from bot.desk.platform_port import PlatformError
from bot.platforms.discord.client import CALLBACK, DiscordRateLimit, open_api
from bot.platforms.discord.delivery import Deliveries
from bot.platforms.discord.events import DiscordBotIdentity
from bot.platforms.discord.interactions import InteractionToken
from bot.platforms.discord.messages import build_mark, parse_mark, render_messages
from bot.platforms.discord.platform import DiscordPlatform
from bot.platforms.shared.api_client import ApiClient
from bot.types import Place, PostedMessages, Question
from bot.views.turn_view import View
from tests.bot.outgoing import Adapter
from tests.platforms.clock import ManualClock
from tests.platforms.discord import interacting
from tests.platforms.discord.components import nested
from tests.platforms.discord.server import FakeDiscord, serve
from tests.platforms.discord.state import APP, BOT, BOT_TOKEN, GUILD, Message
from tests.platforms.discord.transcript import words

US = DiscordBotIdentity(APP, BOT)


@dataclass
class DiscordAdapter(Adapter):
    """The platform, the server, and the clock of both."""

    discord: FakeDiscord
    clock: ManualClock
    deliveries: Deliveries
    platform: DiscordPlatform
    call: ApiClient

    async def ask(self, text: str = "When?", *, channel: str = "201", thread: str = "", **more: Any) -> Question:
        """Ask a question in a channel or a thread now, and return it."""
        message = await self.discord.people.mention(text, channel=thread or channel)
        return make_question(channel, message, thread=thread, at=self.clock.now(), **more)

    async def invoke(self, *, private: bool = False, channel: str = "201", defer: bool = True) -> Question:
        """Ask a question by a command now, and return it, deferred."""
        made = interacting.hand_out(self.discord, 2, "101", channel, {"id": "1", "name": "ask", "type": 1})
        handle = InteractionToken(APP, made.token)
        if defer:
            data = {"data": {"flags": 64}} if private else {}
            await self.call(CALLBACK, {"type": 5, **data}, interaction=made.id, token=made.token)
        question = make_question(channel, "", at=self.clock.now(), handle=handle.text, only_asker=private)
        return replace(question, key=f"discord:interaction/{made.id}")

    def restart(self) -> None:
        """Replace the platform by a new one, as after a restart of the process."""
        self.deliveries = Deliveries(self.call, self.clock.now)
        self.platform = _platform(self.call, self.clock, self.deliveries)

    def check_shown(self, question: Question, view: View, posted: PostedMessages) -> None:
        """Check that our messages show the complete view, once, with marks, and nothing else."""
        found = self.ours(question)
        assert [plain(one) for one in found] == [bare(message.components) for message in render_messages(view)]
        assert [one.id for one in found] == list(posted.messages)
        assert {parse_mark({"components": one.components}) for one in found} == {build_mark(question.key)}
        assert not any(one.unfurls or one.notified for one in found)

    def ours(self, question: Question) -> list[Message]:
        """Return our messages in a question's channel."""
        return [
            one for one in self.discord.state.ours() if one.channel == (question.place.thread or question.place.channel)
        ]

    def read_text(self, number: str) -> str:
        """Return the words of a message."""
        return words(self.discord.people.find(number), self.discord.state)


def plain(message: Message) -> list[dict[str, Any]]:
    """Return a message's components without the ids that Discord gives them."""
    return bare(message.components)


def bare(components: Any) -> list[dict[str, Any]]:
    """Return flattened components without their ids and children."""
    found = [one for _, one in nested(list(components))]
    return [{name: value for name, value in one.items() if name not in {"id", "components"}} for one in found]


def make_question(channel: str, message: str, *, thread: str = "", at: float = 0, **more: Any) -> Question:
    """Return a question of a message in a channel; `101` asks it."""
    guild = "" if channel.startswith("7") else GUILD
    place = Place("discord", guild, channel, thread)
    asker = Asker("discord", "channel" if guild else "dm", guild, channel, "101", listed_server=True)
    key = f"discord:{guild}/{thread or channel}/{message}"
    made = Question(key, "ask", "When?", asker, place, key, datetime.fromtimestamp(at, UTC), message)
    return replace(made, **more)


async def _stay(asker: Asker) -> Asker:
    return asker


async def _settle(_: str) -> None:
    """Wait for nothing."""


async def _never() -> PlatformError:
    await asyncio.Event().wait()
    raise AssertionError


def _platform(call: ApiClient, clock: ManualClock, deliveries: Deliveries) -> DiscordPlatform:
    return DiscordPlatform(
        call,
        US,
        deliveries,
        connected=nullcontext,
        ready=lambda: "",
        refused=_never,
        refresh_asker=_stay,
        settled=_settle,
        now=clock.now,
    )


@asynccontextmanager
async def opened() -> AsyncIterator[DiscordAdapter]:
    """Open an adapter, and assert at the end that the server had no error."""
    clock = ManualClock(1_790_000_000.0)
    async with (
        serve(clock=clock) as discord,
        open_api(BOT_TOKEN, discord.api, DiscordRateLimit(clock.now, clock.advance)) as call,
    ):
        deliveries = Deliveries(call, clock.now)
        yield DiscordAdapter(discord, clock, deliveries, _platform(call, clock, deliveries), call)
        assert discord.errors == []
