"""The fake platform as the desk sees it: a `Platform` over a network to the server of `fake_server`.

It runs in the process under test, and forgets all when that dies.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import aiohttp

from bot.access import Asker
from bot.desk.platform_port import PostGone
from bot.types import (
    ConversationMessage,
    DeliveryCapabilities,
    IntakeStatus,
    Place,
    PostedMessages,
    ProgressSign,
    Question,
)
from bot.views.turn_view import EvidenceView, View
from tests.platforms.dialects import Dialect
from tests.platforms.fake_server import BOT
from tests.platforms.rendering import Rendered, evidence, rendered
from tests.platforms.wire import HttpWire, Wire

Press = Callable[[str, int, Asker], Awaitable[str | EvidenceView]]
"""What a button does: given action, ticket and who pressed, it returns what that person alone is told."""


@dataclass
class FakePlatform:
    """A client of the fake server, in the server's dialect."""

    dialect: Dialect
    wire: Wire
    url: str
    http: aiohttp.ClientSession
    edits: bool = True
    reads_back: bool = True
    pace: float = 0.0
    press: Press | None = None
    desk: Any = None
    stand: Callable[[Asker], Asker] = lambda asker: asker
    """Says where somebody stands by now."""
    faults: list[BaseException] = field(default_factory=list)
    """What went wrong while events were handed on: tests hold it empty."""
    _shown: dict[str, Rendered] = field(default_factory=dict)
    _handling: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def name(self) -> str:
        return self.dialect.name

    async def asker(self, question: Question) -> Asker:
        return self.stand(question.asker)

    def ways(self, question: Question) -> DeliveryCapabilities:
        if question.only_asker:
            return DeliveryCapabilities(edits=False, reads_back=False, pace=self.pace)
        return DeliveryCapabilities(edits=self.edits, reads_back=self.reads_back, pace=self.pace)

    async def show(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        if not self.ways(question).edits:
            assert view.done, "what cannot be edited was posted before it was whole"
            assert not posted, "what cannot be edited was posted twice"
        pages = rendered(view, self.dialect)
        kept = [
            await self._post(question, page) if old is None else await self._edit(old, page)
            for page, old in zip(pages, (*posted.messages, *[None] * len(pages)), strict=False)
        ]
        for message in posted.messages[len(pages) :]:
            await self._delete(message)
        return PostedMessages(tuple(kept))

    async def show_sign(self, question: Question, view: View) -> ProgressSign:
        del question, view
        return ProgressSign.NONE

    async def find(self, question: Question) -> PostedMessages:
        assert self.ways(question).reads_back, "it was asked what it cannot tell"
        return PostedMessages(tuple(await self.wire.call("find", key=question.key)))

    async def remove(self, question: Question, posted: PostedMessages) -> None:
        del question
        for message in posted.messages:
            await self._delete(message)

    async def tell(self, question: Question, text: str) -> None:
        await self._say(question.place, text, only=question.asker.user)

    async def call(self, place: Place, text: str, people: Sequence[str]) -> PostedMessages:
        mentions = "".join(f"<@{person}> " for person in people)
        return PostedMessages((await self._say(place, text, before=mentions),))

    async def heard(self, question: Question, most: int) -> tuple[ConversationMessage, ...]:
        found, cursor = list[dict[str, Any]](), question.message
        while len(found) < most:
            facts = {"channel": question.place.channel, "thread": question.place.thread, "cursor": cursor}
            page = await self.wire.call("history", **facts)
            found += page["messages"]
            cursor = page["cursor"]
            if not cursor:
                break
        return tuple(map(_heard, reversed(found[:most])))

    @property
    def ready(self) -> str:
        return ""

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        async with self.http.ws_connect(f"{self.url}/events") as socket:
            reading = asyncio.create_task(self._read(socket))
            try:
                yield
            finally:
                reading.cancel()
                with suppress(asyncio.CancelledError):
                    await reading
                await asyncio.gather(*self._handling)

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        async for frame in socket:
            task = asyncio.create_task(self._handle(socket, frame.json()))
            self._handling.add(task)
            task.add_done_callback(self._handling.discard)

    async def _handle(self, socket: aiohttp.ClientWebSocketResponse, event: dict[str, Any]) -> None:
        try:
            if await self._hand_on(event) is not IntakeStatus.REFUSED:
                await self.wire.ack(socket, event["event"])
        except Exception as error:
            self.faults.append(error)
            raise

    async def _hand_on(self, event: dict[str, Any]) -> IntakeStatus | None:
        match event["type"]:
            case "asked":
                return await self.desk.take(self.question(event))
            case "edited":
                await self.desk.edit_question(self.question(event).key, event["text"])
            case "deleted":
                await self.desk.delete_question(self.question(event).key)
            case "pressed":
                await self._pressed(event)
        return None

    async def _pressed(self, event: dict[str, Any]) -> None:
        by = self._asker(event)
        action, ticket = event["action"], event["ticket"]
        if action == "stop":
            await self.desk.stop(ticket, by)
        elif action == "retract":
            await self.desk.retract(ticket, by)
        elif self.press:
            await self._told(await self.press(action, ticket, by), event)

    async def _told(self, told: str | EvidenceView, event: dict[str, Any]) -> None:
        """Show whoever pressed what came of it."""
        place = Place(self.name, event["workspace"], event["channel"], event["thread"])
        if isinstance(told, str):
            await self._say(place, told, only=event["user"])
            return
        where = {"channel": place.channel, "thread": place.thread, "key": "", "only": event["user"]}
        for page in evidence(told, "en", self.dialect):
            await self.wire.call("post", **where, **_json(page))

    def question(self, event: dict[str, Any]) -> Question:
        """Return the question of an event, as adapters make it."""
        place = Place(self.name, event["workspace"], event["channel"], event["thread"] or event["message"])
        if event["dm"]:
            place = replace(place, thread=event["thread"])
        return Question(
            key=f"{place.channel_id}/{event['message']}",
            task=event.get("task", "ask"),
            text=event["text"],
            asker=self._asker(event),
            place=place,
            conversation=f"{place.channel_id}/{place.thread}",
            at=_moment(event["message"]),
            message=event["message"],
            only_asker=event.get("only_asker", False),
            unasked=event.get("unasked", False),
            handle="xoxb-secret-handle",
        )

    def _asker(self, event: dict[str, Any]) -> Asker:
        kind = "dm" if event.get("dm") else "channel"
        place = {"workspace": event["workspace"], "channel": event["channel"], "user": event["user"]}
        shown = {"name": "Ana", "channel_name": "general"}
        return Asker(self.name, kind, **place, **shown, shared_with_other_organisations=False, listed_server=True)

    async def _post(self, question: Question, page: Rendered) -> str:
        place = question.place
        only = question.asker.user if question.only_asker else ""
        facts = {"channel": place.channel, "thread": place.thread, "key": question.key, "only": only}
        message = await self.wire.call("post", **facts, **_json(page))
        self._shown[message] = page
        return message

    async def _edit(self, message: str, page: Rendered) -> str:
        if self._shown.get(message) != page:
            await self.wire.call("edit", message=message, **_json(page))
            self._shown[message] = page
        return message

    async def _delete(self, message: str) -> None:
        with suppress(PostGone):
            await self.wire.call("delete", message=message)

    async def _say(self, place: Place, text: str, *, only: str = "", before: str = "") -> str:
        parts = {"parts": [before + self.dialect.escape(text)], "buttons": []}
        return await self.wire.call("post", channel=place.channel, thread=place.thread, key="", only=only, **parts)


def _json(page: Rendered) -> dict[str, Any]:
    return {"parts": list(page.parts), "buttons": [list(button) for button in page.buttons]}


def _heard(message: dict[str, Any]) -> ConversationMessage:
    user = "" if message["user"] == BOT else message["user"]
    return ConversationMessage(message["id"], user, message["text"], _moment(message["id"]))


def _moment(message: str) -> datetime:
    return datetime.fromtimestamp(float(message), UTC)


def client(wire: HttpWire, dialect: Dialect, **traits: Any) -> FakePlatform:
    """Return the platform over a real network."""
    return FakePlatform(dialect, wire, wire.url, wire.http, **traits)
