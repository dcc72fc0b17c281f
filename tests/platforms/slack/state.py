"""The fake Slack's state: what there is, what came, what was refused, and what methods do to it."""

import asyncio
import copy
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.platforms.slack import limits
from tests.platforms.slack.acts import Acts
from tests.platforms.slack.calls import Received, Refusal, Refused
from tests.platforms.slack.clock import Clock
from tests.platforms.slack.delivery import Courier
from tests.platforms.slack.events import callback, changed_event, deleted_event, message_event
from tests.platforms.slack.faults import Fault
from tests.platforms.slack.pieces import Piece, of_message, of_view
from tests.platforms.slack.rates import Rates
from tests.platforms.slack.request_url import RequestUrl
from tests.platforms.slack.responding import Hook
from tests.platforms.slack.seeing import transcript
from tests.platforms.slack.socket_mode import Sockets
from tests.platforms.slack.world import BOT, Message, View, World
from tests.platforms.waiting import until

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


@dataclass
class FakeSlack:
    """The server's state. What people do is in `acts`, what there is in `world`."""

    clock: Clock
    world: World
    sockets: Sockets
    courier: Courier
    rates: Rates
    requests: RequestUrl
    url: str = ""
    mode: Mode = "socket"
    trigger_seconds: float = limits.TRIGGER_SECONDS
    page: int = limits.PAGE
    """How many items a page of a list holds at most, whatever was asked for."""
    subscribed: set[str] = field(default_factory=lambda: set(EVENTS))
    """The events that the app wants."""
    echoes: bool = True
    """Whether the app hears of its own messages, as it does in truth."""
    faults: dict[str, list[Fault]] = field(default_factory=lambda: defaultdict(list))
    """By method how its next calls fail, one after the other; `response_url` is a method here."""
    received: list[Received] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    limited: list[Received] = field(default_factory=list)
    """What came too soon."""
    posts: int = 0
    """How many messages the bot ever wrote for everybody, streams among them."""
    texts: dict[Piece, None] = field(default_factory=dict)
    """All that a client ever got, as it stood after each change, each once."""
    hooks: dict[str, Hook] = field(default_factory=dict)
    errors: list[BaseException] = field(default_factory=list)
    """What went wrong in the server itself: tests hold it empty."""
    _triggers: dict[str, tuple[str, float]] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.acts = Acts(self)

    @property
    def api(self) -> str:
        """The base of the Web API, for clients."""
        return f"{self.url}/api/"

    # What tests look at.

    def calls(self, method: str) -> list[dict[str, Any]]:
        """Return the arguments of every call of a method, in order."""
        return [one.arguments for one in self.received if one.method == method]

    def seen(self, channel: str, *, by: str) -> str:
        """Return what somebody sees in a channel, as plain text."""
        return transcript(self.world, channel, by)

    @property
    def pings(self) -> list[str]:
        """Everybody that a client would ever have pinged for the bot, once for each message."""
        return [ping for _, ping in dict.fromkeys((one.where, ping) for one in self.texts for ping in one.pings)]

    @property
    def links(self) -> list[str]:
        """Every address that a client would ever have linked to for the bot, once for each message."""
        return [link for _, link in dict.fromkeys((one.where, link) for one in self.texts for link in one.links)]

    async def until(self, holds: Callable[[], object], seconds: float = 20) -> None:
        """Wait until something holds, looked at again after everything that happens here."""
        await until(holds, self._changed, seconds, self._happened)

    def _happened(self) -> str:
        """Return what tests are told who waited in vain."""
        ours = [(one.channel, one.ts, one.text or one.blocks) for one in self.world.ours()]
        last = [(one.method, one.arguments) for one in self.received[-10:]]
        unacked = [(one.kind, one.payload.get("event", one.payload)) for one in self.courier.unacked]
        return f"we posted {ours}; refused {self.refused[-5:]}; calls {last}; unacked {unacked}"

    def notify(self) -> None:
        """Wake whoever waits for a change."""
        self._changed.set()

    # What methods do.

    def wrote(self, message: Message) -> None:
        """Let everybody know of a new message of the bot's."""
        self.posts += 1
        self.world.statuses.pop((message.channel, message.root), None)
        self.showed(message)
        if self.echoes:
            self.tell(message_event(message, self.world))

    def showed(self, message: Message) -> None:
        """Keep what a message says now."""
        self.texts |= dict.fromkeys(of_message(message))
        self.notify()

    def displayed(self, view: dict[str, Any]) -> None:
        """Keep what a view says."""
        self.texts |= dict.fromkeys(of_view(view, f"view {len(self.texts)}"))
        self.notify()

    def changed(self, message: Message, before: Message) -> None:
        """Let everybody know that a message was changed by the bot."""
        self.showed(message)
        if self.echoes:
            self.tell(changed_event(message, before, self.world))

    def removed(self, message: Message) -> None:
        """Take a message away, by whomever."""
        key = message.channel, message.ts
        self.world.gone[key] = self.world.messages[key]
        event = deleted_event(message, self.world)
        if self.world.thread(*key)[1:]:
            # A root with replies stays as a tombstone.
            stone = copy.deepcopy(message)
            stone.text, stone.blocks, stone.user = "This message was deleted.", [], "USLACKBOT"
            stone.stream, stone.metadata, stone.markdown, stone.subtype = None, None, "", "tombstone"
            event = changed_event(stone, message, self.world)
            event["message"]["subtype"] = "tombstone"
            self.world.messages[key] = stone
        else:
            del self.world.messages[key]
        self.tell(event)
        self.notify()

    def streaming(self, message: Message) -> bool:
        """Return whether a message takes more text; its time may be over."""
        stream = message.stream
        if stream and stream.state == "streaming" and self.clock.now() >= stream.began + limits.STREAM_SECONDS:
            stream.state = "expired"
        return bool(stream and stream.state == "streaming")

    def trigger(self, user: str) -> str:
        """Return an id with which a modal can be opened for somebody, once and soon."""
        made = f"{self.world.number()}.FAKETRIGGERNEVERLOGGED"
        self._triggers[made] = (user, self.clock.now() + self.trigger_seconds)
        return made

    def triggered(self, trigger: Any) -> str:
        """Return whose trigger it is; it is used up then. Raises `Refusal`."""
        if trigger not in self._triggers:
            raise Refusal("invalid_trigger_id")
        user, until = self._triggers[trigger]
        if until == 0:
            raise Refusal("exchanged_trigger_id")
        if self.clock.now() > until:
            raise Refusal("expired_trigger_id")
        self._triggers[trigger] = (user, 0)
        return user

    def place(self, user: str, body: dict[str, Any], below: list[View]) -> View:
        """Open a view for somebody, on top of others. Raises `Refusal`."""
        if len(below) >= limits.VIEWS_STACKED:
            raise Refusal("push_limit_reached")
        name, number = f"V{self.world.number()}", self.world.number()
        root, previous = (below[0].id, below[-1].id) if below else (name, "")
        view = View(name, user, body, f"{number}.hash", root, previous)
        self.world.views[user] = [*below, view]
        self.displayed(body)
        return view

    def replace(self, view: View, body: dict[str, Any]) -> None:
        """Let an open view show something else."""
        view.body, view.hash, view.errors = body, f"{self.world.number()}.hash", {}
        self.displayed(body)

    def tell(self, event: dict[str, Any], *, event_id: str = "") -> dict[str, Any]:
        """Hand an event out if the app wants it, and return what it came in."""
        name, kind = event["type"], event.get("channel_type")
        if name == "message":
            name = {"channel": "message.channels", "group": "message.groups"}.get(str(kind), f"message.{kind}")
        made = callback(event, self.world, event_id=event_id)
        if name in self.subscribed and self._hears(event):
            self.courier.hand_out("events_api", made)
        return made

    def _hears(self, event: dict[str, Any]) -> bool:
        """Return whether the bot is where something is said: elsewhere it hears nothing."""
        said = event["type"] in {"message", "app_mention"}
        return not said or BOT in self.world.channels[event["channel"]].members
