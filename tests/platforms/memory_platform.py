"""A chat platform in memory, for tests of the desk: it renders, checks and stores messages as Slack or Discord do."""

import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from bot.access import Asker
from bot.desk.platform_port import CannotPost, PlatformUnavailable, PostGone
from bot.platforms.discord import messages as discord_messages
from bot.platforms.slack import messages as slack_messages
from bot.types import ConversationMessage, DeliveryCapabilities, Place, PostedMessages, ProgressSign, Question
from bot.views.message_layout import MessageLimits, MessagePage, TextRun, TextStyle, paginate_view
from bot.views.turn_view import View
from tests.platforms import reading
from tests.platforms.reading import Reader, Reading

BOT = "B0"


@dataclass(frozen=True)
class Dialect:
    """How a platform renders messages, and how many characters and parts a message may have."""

    name: Literal["slack", "discord"]
    read: Reader
    escape: Callable[[str], str]
    link: Callable[[str, str], str]
    limits: MessageLimits
    message: int
    part: int
    parts: int

    def render(self, page: MessagePage) -> tuple[str, ...]:
        texts = ["".join(map(self._render_run, part.runs)) for part in page.parts] or ["…"]
        return tuple(texts) if self.parts > 1 else ("\n\n".join(texts),)

    def _render_run(self, run: TextRun) -> str:
        if run.url:
            return self.link(run.text, run.url)
        return f"<@{run.text}>" if run.style is TextStyle.PERSON else self.escape(run.text)


_SLACK = (reading.slack, slack_messages.escape_mrkdwn, slack_messages.format_link, slack_messages.SECTIONS)
_DISCORD = (
    *(reading.discord, discord_messages.escape_markdown, discord_messages.format_link),
    discord_messages.CONTENT,
)
DIALECTS = {
    "slack": Dialect("slack", *_SLACK, message=12_000, part=3_000, parts=50),
    "discord": Dialect("discord", *_DISCORD, message=2_000, part=2_000, parts=1),
}


@dataclass(frozen=True)
class Failure:
    """How one post fails. With `done` the message is posted and only the response is lost."""

    seconds: float | None = None
    """What the platform asks to wait."""
    done: bool = False


LIMITED, BROKEN, LOST = Failure(0.01), Failure(), Failure(done=True)


@dataclass(frozen=True)
class Message:
    id: str
    channel: str
    thread: str
    user: str
    parts: tuple[str, ...]
    read: tuple[Reading, ...] = ()
    key: str = ""
    """The question that it answers."""
    only: str = ""
    """The one user who sees it; empty for all."""

    @property
    def plain(self) -> str:
        return "\n".join(part.plain for part in self.read) if self.read else "\n".join(self.parts)


@dataclass
class MemoryPlatform:
    """Implements `Platform`. Refuses what every platform refuses: empty and long texts, and others' messages."""

    dialect: Dialect
    messages: dict[str, Message] = field(default_factory=dict)
    received: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """The posts and edits, with their arguments."""
    posts: Counter[str] = field(default_factory=Counter)
    """Messages ever posted, by question key."""
    failures: list[Failure] = field(default_factory=list)
    """How the next posts fail."""
    refresh: Callable[[Asker], Asker] = lambda asker: asker
    """Returns the present rights of an asker."""
    ready: str = ""
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def name(self) -> str:
        return self.dialect.name

    def write(self, text: str, *, user: str, channel: str, thread: str = "") -> str:
        """Write a message as a user, and return its id."""
        return self._add(channel, thread, user, (text,)).id

    def ours(self, channel: str) -> list[Message]:
        """Return the bot's messages that everyone in a channel sees."""
        return [one for one in self.messages.values() if (one.user, one.channel, one.only) == (BOT, channel, "")]

    def question(self, event: dict[str, Any]) -> Question:
        place = Place(self.name, event["workspace"], event["channel"], event["thread"] or event["message"])
        if event["dm"]:
            place = replace(place, thread=event["thread"])
        asker = Asker(
            self.name, "dm" if event["dm"] else "channel", event["workspace"], event["channel"], event["user"]
        )
        return Question(
            key=f"{place.channel_id}/{event['message']}",
            task=event.get("task", "ask"),
            text=event["text"],
            asker=asker,
            place=place,
            conversation=f"{place.channel_id}/{place.thread}",
            at=_parse_time(event["message"]),
            message=event["message"],
            only_asker=event.get("only_asker", False),
        )

    # Platform.

    async def asker(self, question: Question) -> Asker:
        return self.refresh(question.asker)

    def ways(self, question: Question) -> DeliveryCapabilities:
        return DeliveryCapabilities(edits=not question.only_asker, reads_back=not question.only_asker, pace=0.0)

    async def show(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        if question.only_asker:
            assert view.done, "a message that cannot be edited was posted before it was whole"
            assert not posted, "a message that cannot be edited was posted twice"
        pages = [self.dialect.render(page) for page in paginate_view(view, self.dialect.limits)]
        shown = [
            self._post(question.place, question.key, page, question.asker.user if question.only_asker else "")
            if message is None
            else self._edit(message, page)
            for page, message in zip(pages, (*posted.messages, *[None] * len(pages)), strict=False)
        ]
        for message in posted.messages[len(pages) :]:
            self._delete(message)
        return PostedMessages(tuple(shown))

    async def show_sign(self, question: Question, view: View) -> ProgressSign:
        del question, view
        return ProgressSign.NONE

    async def find(self, question: Question) -> PostedMessages:
        marked = (message.id for message in self.messages.values() if message.key == question.key and not message.only)
        return PostedMessages(tuple(marked))

    async def remove(self, question: Question, posted: PostedMessages) -> None:
        del question
        for message in posted.messages:
            self._delete(message)

    async def tell(self, question: Question, text: str) -> None:
        self._post(question.place, "", (self.dialect.escape(text),), question.asker.user)

    async def call(self, place: Place, text: str, people: Sequence[str]) -> PostedMessages:
        mentions = "".join(f"<@{person}> " for person in people)
        return PostedMessages((self._post(place, "", (mentions + self.dialect.escape(text),)),))

    async def heard(self, question: Question, most: int) -> tuple[ConversationMessage, ...]:
        thread = question.place.thread
        here = [
            ConversationMessage(one.id, "" if one.user == BOT else one.user, one.plain, _parse_time(one.id))
            for one in self.messages.values()
            if one.channel == question.place.channel
            and not one.only
            and (not thread or thread in {one.thread, one.id})
            and one.id < question.message
        ]
        return tuple(here[-most:])

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        yield

    def _post(self, place: Place, key: str, parts: tuple[str, ...], only: str = "") -> str:
        failure = self.failures.pop(0) if self.failures else None
        if failure and not failure.done:
            raise PlatformUnavailable("The platform does not answer.", seconds=failure.seconds)
        self.received.append(("post", {"channel": place.channel, "only": only, "parts": parts}))
        read = self._check(parts)
        posted = self._add(place.channel, place.thread, BOT, parts)
        self.messages[posted.id] = replace(posted, read=read, key=key, only=only)
        self.posts[key] += 1
        if failure:
            raise PlatformUnavailable("The response is lost.")
        return posted.id

    def _edit(self, message: str, parts: tuple[str, ...]) -> str:
        old = self._find_own(message)
        if old.parts != parts:
            self.received.append(("edit", {"message": message, "parts": parts}))
            self.messages[message] = replace(old, parts=parts, read=self._check(parts))
        return message

    def _delete(self, message: str) -> None:
        with suppress(PostGone):
            del self.messages[self._find_own(message).id]

    def _find_own(self, message: str) -> Message:
        if message not in self.messages:
            raise PostGone("The platform refuses: message_not_found.")
        if self.messages[message].user != BOT or self.messages[message].only:
            raise CannotPost("The platform refuses: cant_update_message.")
        return self.messages[message]

    def _check(self, parts: tuple[str, ...]) -> tuple[Reading, ...]:
        dialect = self.dialect
        is_long = max(map(len, parts)) > dialect.part or sum(map(len, parts)) > dialect.message
        if is_long or len(parts) > dialect.parts or not any(part.strip() for part in parts):
            raise CannotPost("The platform refuses: msg_too_long or no_text.")
        return tuple(map(dialect.read, parts))

    def _add(self, channel: str, thread: str, user: str, parts: tuple[str, ...]) -> Message:
        number = next(self._numbers)
        message = Message(f"{1_700_000_000 + number}.{number:06}", channel, thread, user, parts)
        return self.messages.setdefault(message.id, message)


def _parse_time(message: str) -> datetime:
    return datetime.fromtimestamp(float(message), UTC)
