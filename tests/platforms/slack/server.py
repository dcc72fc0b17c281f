"""A strict fake Slack on 127.0.0.1: its Web API, Socket Mode, and requests to an app, over real HTTP and websockets.

async with serve() as slack:
    client = AsyncWebClient(BOT_TOKEN, base_url=slack.api)
    asked = await slack.people.mention("When was the lighthouse built?")
    await slack.until(lambda: slack.people.answers(asked))
    print(slack.seen("C1", by="U1"))
"""

import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import aiohttp
from aiohttp import web

from tests.platforms.clock import Clock, FastClock
from tests.platforms.fake_server import FakeServer, serving
from tests.platforms.slack import limits
from tests.platforms.slack.api import answer
from tests.platforms.slack.calls import Refusal
from tests.platforms.slack.delivery import Courier
from tests.platforms.slack.events import callback, changed_event, deleted_event, message_event
from tests.platforms.slack.people import People
from tests.platforms.slack.rates import Rates
from tests.platforms.slack.request_url import RequestUrl
from tests.platforms.slack.responding import Hook, respond
from tests.platforms.slack.socket_mode import Sockets
from tests.platforms.slack.state import APP, BOT, SIGNING_SECRET, Message, State, View, make_state
from tests.platforms.slack.transcript import of_message, of_view, transcript

Mode = Literal["socket", "http"]
_CHANNELS = ("archive", "unarchive", "rename", "left", "deleted")
EVENTS = frozenset(
    {
        *("app_mention", "app_home_opened", "app_uninstalled", "tokens_revoked", "agent_session_stopped"),
        *("message.channels", "message.groups", "message.im", "message.mpim"),
        *("channel_shared", "channel_unshared", "member_joined_channel", "member_left_channel"),
        *(f"{kind}_{what}" for kind in ("channel", "group") for what in _CHANNELS),
    }
)
_MESSAGES = {"channel": "message.channels", "group": "message.groups"}


@dataclass(kw_only=True)
class FakeSlack(FakeServer):
    """The server. `people` acts as the users; `state` holds the data."""

    state: State
    sockets: Sockets
    courier: Courier
    requests: RequestUrl
    rates: Rates
    mode: Mode = "socket"
    trigger_seconds: float = limits.TRIGGER_SECONDS
    page: int = limits.PAGE
    """Items on a page of a list at most, whatever a call asks for."""
    subscribed: set[str] = field(default_factory=lambda: set(EVENTS))
    """The events that the app wants."""
    echoes: bool = True
    """Whether the app gets events of its own messages, as on Slack."""
    hooks: dict[str, Hook] = field(default_factory=dict)
    _triggers: dict[str, tuple[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.people = People(self)

    @property
    def api(self) -> str:
        """The base of the Web API, for clients."""
        return f"{self.url}/api/"

    def seen(self, channel: str, *, by: str) -> str:
        """Return what a user sees in a channel, as plain text."""
        return transcript(self.state, channel, by)

    def describe(self) -> str:
        ours = [(one.channel, one.ts, one.text or one.blocks) for one in self.state.ours()]
        unacked = [(one.kind, one.payload.get("event", one.payload)) for one in self.courier.unacked]
        return f"the bot wrote {ours}; unacked {unacked}"

    def application(self) -> web.Application:
        async def call(request: web.Request) -> web.StreamResponse:
            return await answer(self, request)

        async def hook(request: web.Request) -> web.StreamResponse:
            return await respond(self, request)

        app = web.Application(client_max_size=10**8)
        app.add_routes([web.route("*", "/api/{method}", call), web.get("/link", self.sockets.connect)])
        app.add_routes([web.post("/hook/{name}", hook)])
        return app

    async def close(self) -> None:
        await self.courier.close()
        await self.sockets.close()

    # Effects of methods.

    def wrote(self, message: Message) -> None:
        """Send the event of a new message of the bot's."""
        self.posts += 1
        self.state.statuses.pop((message.channel, message.root), None)
        self.showed(message)
        if self.echoes:
            self.send_event(message_event(message, self.state))

    def showed(self, message: Message) -> None:
        """Note what a message says now."""
        self.texts |= dict.fromkeys(of_message(message))
        self.notify()

    def displayed(self, view: dict[str, Any]) -> None:
        """Note what a view says."""
        self.texts |= dict.fromkeys(of_view(view, f"view {len(self.texts)}"))
        self.notify()

    def changed(self, message: Message, before: Message) -> None:
        """Send the event that the bot changed a message."""
        self.showed(message)
        if self.echoes:
            self.send_event(changed_event(message, before, self.state))

    def removed(self, message: Message) -> None:
        """Remove a message. A root with replies stays as a tombstone."""
        key = message.channel, message.ts
        self.state.gone[key] = self.state.messages[key]
        event = deleted_event(message, self.state)
        if self.state.thread(*key)[1:]:
            stone = copy.deepcopy(message)
            stone.text, stone.blocks, stone.user = "This message was deleted.", [], "USLACKBOT"
            stone.stream, stone.metadata, stone.subtype = None, None, "tombstone"
            event = changed_event(stone, message, self.state)
            event["message"]["subtype"] = "tombstone"
            self.state.messages[key] = stone
        else:
            del self.state.messages[key]
        self.send_event(event)
        self.notify()

    def streaming(self, message: Message) -> bool:
        """Return whether a message takes more text. Streams expire."""
        stream = message.stream
        if stream and stream.state == "streaming" and self.clock.now() >= stream.began + limits.STREAM_SECONDS:
            stream.state = "expired"
        return bool(stream and stream.state == "streaming")

    def trigger(self, user: str) -> str:
        """Return an id that opens one modal for a user, within seconds."""
        made = f"{self.state.number()}.FAKETRIGGERNEVERLOGGED"
        self._triggers[made] = (user, self.clock.now() + self.trigger_seconds)
        return made

    def triggered(self, trigger: Any) -> str:
        """Use up a trigger, and return whose it is. Raises `Refusal`."""
        if trigger not in self._triggers:
            raise Refusal("invalid_trigger_id")
        user, until = self._triggers[trigger]
        if until == 0:
            raise Refusal("exchanged_trigger_id")
        if self.clock.now() > until:
            raise Refusal("expired_trigger_id")
        self._triggers[trigger] = (user, 0)
        return user

    def place(self, user: str, body: dict[str, Any]) -> View:
        """Open a view for a user."""
        view = View(f"V{self.state.number()}", user, body, f"{self.state.number()}.hash")
        self.state.views[user] = view
        self.displayed(body)
        return view

    def replace(self, view: View, body: dict[str, Any]) -> None:
        """Show something else in an open view."""
        view.body, view.hash = body, f"{self.state.number()}.hash"
        self.displayed(body)

    def send_event(self, event: dict[str, Any], *, event_id: str = "") -> dict[str, Any]:
        """Send an event if the app wants it, and return its envelope."""
        name, kind = event["type"], event.get("channel_type")
        if name == "message":
            name = _MESSAGES.get(str(kind), f"message.{kind}")
        made = callback(event, self.state, event_id=event_id)
        is_message = event["type"] in {"message", "app_mention"}
        if name in self.subscribed and (not is_message or BOT in self.state.channels[event["channel"]].members):
            self.courier.hand_out("events_api", made)
        return made


@asynccontextmanager
async def serve(
    *, clock: Clock | None = None, mode: Mode = "socket", state: State | None = None, leisure: float = 1
) -> AsyncIterator[FakeSlack]:
    """Serve until the block is left. In the mode http, set `requests.url` to the app's.

    `leisure`: how many times longer than on Slack an app has to acknowledge and to use a trigger, so that a fast clock
    does not hurry the machine.
    """
    clock = clock or FastClock()
    async with aiohttp.ClientSession() as session:
        ack = limits.ACK_SECONDS * leisure

        def notify() -> None:
            slack.notify()

        sockets = Sockets(clock, notify, APP, ack)
        requests = RequestUrl(clock, session, SIGNING_SECRET, notify, ack)
        slack = FakeSlack(
            clock=clock,
            state=state or make_state(clock),
            sockets=sockets,
            courier=Courier(clock, notify, sockets if mode == "socket" else requests),
            requests=requests,
            rates=Rates(clock),
            mode=mode,
            trigger_seconds=limits.TRIGGER_SECONDS * leisure,
        )
        async with serving(slack):
            yield slack
