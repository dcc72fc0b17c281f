"""A Slack platform at the strict fake server, with a clock that jumps whenever the bot waits."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from bot.access import Asker
from bot.platforms.shared.api_client import PATIENCE
from bot.platforms.shared.rate_limit import Lanes
from bot.platforms.slack.client import POST, SlackApiClient, open_api
from bot.platforms.slack.messages import render_messages
from bot.platforms.slack.platform import ProgressSigns, SlackPlatform
from bot.types import Place, Question
from bot.views.turn_view import View
from tests.bot.outgoing import Adapter
from tests.platforms.clock import ManualClock
from tests.platforms.slack.server import FakeSlack, serve
from tests.platforms.slack.state import BOT_TOKEN


async def stays(asker: Asker) -> Asker:
    """Return an asker unchanged."""
    return asker


@dataclass
class SlackAdapter(Adapter):
    """The platform, the server, and the clock of both."""

    slack: FakeSlack
    clock: ManualClock
    platform: SlackPlatform
    call: SlackApiClient

    async def post(self, text: str = "One", patience: float = PATIENCE) -> str:
        """Post to a channel, and return the message's id."""
        answer = await self.call(POST, {"channel": "C1", "text": text}, patience=patience, channel="C1")
        return str(answer["ts"])

    async def ask(self, text: str = "When?", *, channel: str = "C1", thread: str = "", **more: Any) -> Question:
        """Ask a question in a channel now, and return it."""
        ts = await self.slack.people.say(text, channel=channel, thread=thread)
        return make_question(channel, ts, thread=thread, at=self.clock.now(), **more)

    def check_shown(self, question: Question, view: View) -> None:
        """Check that the answer's messages show the complete view, once, and with marks."""
        found = self.slack.people.answers(question.message)
        assert [one.blocks for one in found] == [list(message.blocks) for message in render_messages(view)]
        assert not any(one.stream for one in found)
        marks = [one.metadata["event_payload"] for one in found]
        assert marks == [{"key": question.key, "page": page} for page in range(len(found))]
        assert not any(one.unfurls or one.edited for one in found)


def make_question(channel: str, ts: str, *, thread: str = "", at: float = 0, **more: Any) -> Question:
    """Return a question of a message in a channel."""
    place = Place("slack", "T1", channel, thread or ts)
    asker = Asker("slack", "channel", "T1", channel, "U1", shared_with_other_organisations=False)
    key = f"{place.channel_id}/{ts}"
    made = Question(key, "ask", "When?", asker, place, key, datetime.fromtimestamp(at, UTC), ts)
    return replace(made, **more)


@asynccontextmanager
async def opened() -> AsyncIterator[SlackAdapter]:
    """Open an adapter, and assert at the end that the server had no error."""
    clock = ManualClock(1_790_000_000.0)
    async with (
        serve(clock=clock) as slack,
        open_api(BOT_TOKEN, slack.api, Lanes(clock.now, clock.advance)) as call,
    ):
        slack.subscribed = set()
        signs = ProgressSigns(clock.now)
        platform = SlackPlatform(call, signs=signs, refresh_asker=stays, connected=nullcontext, ready=lambda: "")
        yield SlackAdapter(slack, clock, platform, call)
        assert slack.errors == []
