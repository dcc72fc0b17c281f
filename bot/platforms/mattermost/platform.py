"""Show views as posts in Mattermost."""

import asyncio
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, MutableSequence, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, tzinfo

from bot.access import Asker
from bot.desk.platform_port import CannotPost, PlatformError, PostGone
from bot.desk.supervisor import TaskSupervisor
from bot.platforms.mattermost import client, messages
from bot.platforms.mattermost.client import NotAllowed
from bot.platforms.mattermost.directory import MattermostDirectory, find_our_posts, read_conversation
from bot.platforms.mattermost.events import MattermostBotIdentity, count_milliseconds
from bot.platforms.mattermost.messages import EMOJI, Callback, MattermostPost, PostMark, hash_key, list_emoji
from bot.platforms.shared.api_client import PATIENCE, ApiClient, EditRefused, SentMessage, post_once, show_pages
from bot.types import ConversationMessage, DeliveryCapabilities, Place, PostedMessages, ProgressSign, Question
from bot.views.turn_view import Button, ButtonAction, EvidenceView, View

FIRST_POST_PATIENCE = 5.0  # seconds that the first post waits for its turn
PACE = 1.5  # seconds between two changes of one post
TYPING_SECONDS = 4.0  # Mattermost shows typing for 5 s
_REMEMBERED = 1_000
_SKEW = 60_000  # milliseconds between the server's clock and ours


class DirectMessages:
    def __init__(
        self, call: ApiClient, directory: MattermostDirectory, callback: Callback | None, zone: tzinfo = UTC
    ) -> None:
        self._call, self._directory, self._callback, self._zone = call, directory, callback, zone

    async def tell(self, user: str, view: View | EvidenceView, language: str = "") -> None:
        """Post a view in our DM with a user. If it needs several posts, they become a thread."""
        channel, root = await self._directory.direct(user), ""
        if isinstance(view, View):
            pages = messages.render_messages(view, self._zone)
        else:
            pages = messages.render_evidence(view, language, self._zone)
        for post in pages:
            body = {"channel_id": channel, "root_id": root, "message": post.text}
            answer = await self._call(client.POST, {**body, "props": messages.build_props(post, None, self._callback)})
            root = root or str(answer["id"])


class MattermostPlatform:
    """The teams and DMs of one server. Implements `bot.desk.platform_port.Platform`."""

    name = "mattermost"

    def __init__(
        self,
        call: ApiClient,
        us: MattermostBotIdentity,
        directory: MattermostDirectory,
        tasks: TaskSupervisor,
        direct_messages: DirectMessages,
        deleted: MutableSequence[str],
        *,
        connected: Callable[[], AbstractAsyncContextManager[None]],
        ready: Callable[[], str],
        refused: Callable[[], Awaitable[PlatformError]],
        callback: Callback | None = None,
        now: Callable[[], float] = time.time,
        zone: tzinfo = UTC,
    ) -> None:
        self._call, self._us, self._directory, self._callback = call, us, directory, callback
        self._tasks, self._reacting = tasks, asyncio.Lock()
        self._direct_messages, self._deleted = direct_messages, deleted
        self.connected, self._ready, self.refused, self._now, self._zone = connected, ready, refused, now, zone
        self._shown: dict[str, MattermostPost] = {}
        self._typed: dict[str, float] = {}
        self._instead = OrderedDict[tuple[str, int], str]()
        """The deleted post that the next one replaces, by key and page."""
        self._stoppable = deque[str](maxlen=_REMEMBERED)  # posts that have our stop reaction

    @property
    def ready(self) -> str:
        return self._ready()

    async def asker(self, question: Question) -> Asker:
        return await self._directory.refresh_asker(question.asker)

    def ways(self, question: Question) -> DeliveryCapabilities:
        """Return how an answer can be shown: a private one can be edited too, as a post in our DM with the asker."""
        del question
        return DeliveryCapabilities(pace=PACE)

    async def show(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        show_view = self._show_final if view.done else self._show_partial
        try:
            return await show_view(question, view, posted)
        except (CannotPost, PostGone):
            self._shown.pop(question.key, None)
            raise

    async def show_sign(self, question: Question, view: View) -> ProgressSign:
        del view
        channel, root = await self._locate(question)
        return ProgressSign.SHOWN if await self._show_typing(channel, root) else ProgressSign.NONE

    async def find(self, question: Question) -> PostedMessages:
        channel, root = await self._locate(question)
        since = count_milliseconds(question.at) - _SKEW
        return await find_our_posts(self._call, question.key, channel, root, since, self._us)

    async def remove(self, question: Question, posted: PostedMessages) -> None:
        for page, number in enumerate(posted.messages):
            await self._delete(question, page, number)
        self._shown.pop(question.key, None)

    async def tell(self, question: Question, text: str) -> None:
        """Post a sentence to the asker alone."""
        await self._direct_messages.tell(question.asker.user, View(0, text=text))

    async def call(self, place: Place, text: str, people: Sequence[str]) -> PostedMessages:
        """Post a sentence that mentions `people`.

        If the response is lost, look for the post before posting again.
        """
        names = {person: (await self._directory.person(person)).name for person in people}
        view, key = View(0, text=text, mentions=tuple(people)), secrets.token_hex(8)
        since = int(self._now() * 1000) - _SKEW

        async def post(page: int, message: MattermostPost) -> str:
            return await self._post(place.channel, place.thread, message, key, page, 0)

        async def find(page: int) -> Sequence[str]:
            posts = await find_our_posts(self._call, key, place.channel, place.thread, since, self._us)
            return posts.messages[page : page + 1]

        return await post_once(messages.render_messages(view, self._zone, names), post, find)

    async def heard(self, question: Question, most: int) -> tuple[ConversationMessage, ...]:
        return await read_conversation(self._call, question, self._us, most)

    async def _locate(self, question: Question) -> tuple[str, str]:
        """Return the channel and thread of an answer: our DM if only the asker may see it."""
        if question.only_asker and question.asker.kind != "dm":
            return await self._directory.direct(question.asker.user), ""
        return question.place.channel, question.place.thread

    async def _show_partial(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        channel, root = await self._locate(question)
        post = _offer(question, messages.render_first(view, self._zone))
        if not posted:
            number = await self._post(channel, root, post, question.key, 0, view.ticket, patience=FIRST_POST_PATIENCE)
            self._shown[question.key] = post
            self._typed.pop(f"{channel}/{root}", None)  # a post ends the typing sign
            self._tasks.spawn(self._react(number, post.buttons))
            return PostedMessages((number,))
        if self._shown.get(question.key) != post and self._call.pacing.spare(client.EDIT):
            self._shown[question.key] = post
            with suppress(EditRefused):
                await self._edit(
                    posted.messages[0], post, PostMark(hash_key(question.key), 0, view.ticket), patience=0.0
                )
        await self._show_typing(channel, root)
        return posted

    async def _show_final(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        channel, root = await self._locate(question)

        async def edit(page: int, number: str, content: MattermostPost) -> None:
            await self._edit(number, content, PostMark(hash_key(question.key), page, view.ticket))

        async def post(page: int, instead: str, content: MattermostPost) -> SentMessage:
            if instead:
                self._note_instead(question.key, page, instead)
            return SentMessage(await self._post(channel, root, content, question.key, page, view.ticket))

        async def delete(page: int, number: str) -> None:
            await self._delete(question, page, number)

        pages = messages.render_messages(view, self._zone)
        last = _offer(question, pages[-1])
        shown = await show_pages((*pages[:-1], last), posted, edit=edit, post=post, delete=delete)
        self._shown.pop(question.key, None)
        first, newest = shown.messages[0], shown.messages[-1]
        self._tasks.spawn(self._react(newest, last.buttons))
        if first != newest:
            self._tasks.spawn(self._react(first, ()))
        return shown

    async def _post(
        self,
        channel: str,
        root: str,
        post: MattermostPost,
        key: str,
        page: int,
        ticket: int,
        *,
        patience: float = PATIENCE,
    ) -> str:
        mark = PostMark(hash_key(key), page, ticket)
        body = {
            "channel_id": channel,
            "root_id": root,
            "message": post.text,
            "props": messages.build_props(post, mark, self._callback),
            "pending_post_id": messages.build_pending_id(key, page, self._instead.get((key, page), "")),
        }
        answer = await self._call(client.POST, body, patience=patience)
        number = str(answer["id"])
        if answer.get("message") != post.text:  # for a known id the server returns the first post
            await self._edit(number, post, mark)
        return number

    async def _edit(self, number: str, post: MattermostPost, mark: PostMark, *, patience: float = PATIENCE) -> None:
        props = messages.build_props(post, mark, self._callback)
        try:
            await self._call(client.EDIT, {"message": post.text, "props": props}, patience=patience, post=number)
        except NotAllowed:
            await self._call(client.READ_ONE, post=number)  # a deleted post is refused with the same code
            raise

    async def _delete(self, question: Question, page: int, number: str) -> None:
        self._deleted.append(number)
        self._note_instead(question.key, page, number)
        with suppress(PostGone):
            await self._call(client.DELETE, post=number)

    def _note_instead(self, key: str, page: int, number: str) -> None:
        self._instead[key, page] = number
        if len(self._instead) > _REMEMBERED:
            self._instead.popitem(last=False)

    async def _react(self, number: str, buttons: Sequence[Button]) -> None:
        """Add a reaction for each of a post's actions, so that one click suffices; remove an obsolete stop reaction."""
        if self._callback:
            return
        async with self._reacting:  # one post after another
            with suppress(PlatformError):
                await self._put_reactions(number, buttons)

    async def _put_reactions(self, number: str, buttons: Sequence[Button]) -> None:
        for emoji in list_emoji(buttons):
            if not self._call.pacing.spare(client.REACT):
                break
            body = {"user_id": self._us.user, "post_id": number, "emoji_name": emoji}
            await self._call(client.REACT, body, patience=FIRST_POST_PATIENCE)
        stops = any(button.action is ButtonAction.STOP for button in buttons)
        if stops:
            self._stoppable.append(number)
        elif number in self._stoppable:
            self._stoppable.remove(number)
            stop = EMOJI[ButtonAction.STOP]
            await self._call(client.UNREACT, patience=FIRST_POST_PATIENCE, post=number, emoji=stop)

    async def _show_typing(self, channel: str, root: str) -> bool:
        """Show that the bot is typing, if the rate limit has room; return whether it is shown, now or already."""
        now, place = self._call.pacing.now(), f"{channel}/{root}"
        if now < self._typed.get(place, 0.0):
            return True
        if not self._call.pacing.spare(client.TYPING):
            return False
        self._typed = {name: until for name, until in self._typed.items() if until > now}
        self._typed[place] = now + TYPING_SECONDS
        try:
            await self._call(client.TYPING, {"channel_id": channel, "parent_id": root}, patience=0.0)
        except PlatformError:
            self._typed.pop(place, None)
            return False
        return True


def _offer(question: Question, post: MattermostPost) -> MattermostPost:
    """Return a post; a private one loses "Ask a person", which would publish the answer without a confirmation."""
    offered = (button for button in post.buttons if not (question.only_asker and button.action is ButtonAction.ASK))
    return MattermostPost(post.text, tuple(offered))
