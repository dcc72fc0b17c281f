"""How messages of ours get to where they stand: as a channel's messages, or as the answer to an interaction.

A channel's message carries a nonce, so that Discord returns the first when it is posted again. An interaction has one
answer, which is edited as often as one likes; what does not fit there is posted in the channel, or, where only the
asker sees it, as a follow-up. For follow-ups there is no nonce, and no list: an empty one is posted first, and filled
once its id is stored, so that whatever breaks off leaves an empty line behind at worst, and never the same text twice.
"""

from collections.abc import Mapping, MutableSequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from bot.desk.types import Question
from bot.discord import routes, threads
from bot.discord.calling import PATIENCE, Calling
from bot.discord.handles import Handle
from bot.discord.posting import EPHEMERAL, channel_of, nonce, post, says, shown
from bot.discord.refusals import Archived, Expired, NoChannel, Refused
from bot.discord.rendering import Message, rendered
from bot.platform import CannotPost, PostGone
from bot.views.render_tree import MessagePage

Json = Mapping[str, Any]

ORIGINAL = "@original"
_NO_REPLY = frozenset({50035, 160002})
"""What Discord says where a message cannot be replied to: it is no person's, or the history is hidden from us."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that was posted."""

    id: str
    empty: bool = False
    """Whether it shows nothing yet, and is to be edited once its id is stored: nobody finds it again."""


class Way(Protocol):
    """Puts the pages of one question's answer where they belong. Every method raises `PlatformError`."""

    async def post(self, page: int, message: Message, *, patience: float = PATIENCE) -> Sent:
        """Post a page."""
        ...

    async def edit(self, page: int, number: str, message: Message, *, patience: float = PATIENCE) -> None:
        """Let what is posted show something else."""
        ...

    async def delete(self, page: int, number: str) -> None:
        """Delete what is posted; what is gone is no error."""
        ...

    def spare(self) -> bool:
        """Return whether there is room for an edit that can be left out."""
        ...


class InChannel:
    """Messages of a channel, a thread or a DM."""

    def __init__(self, call: Calling, question: Question, deleted: MutableSequence[str]) -> None:
        """Take the way to Discord, what is answered, and the ids of what we have deleted ourselves."""
        self._call, self._question, self._deleted = call, question, deleted
        self._channel = channel_of(question.place)

    async def post(self, page: int, message: Message, *, patience: float = PATIENCE, instead: str = "") -> Sent:
        """Post a page. `instead`: of a message that is there, and cannot show it."""
        once = nonce(self._question.key, page, instead)
        body = post(message, self._question.key, once, reply_to=self._reply_to())
        answer = await self._posted(body, patience)
        number = str(answer["id"])
        if number in self._deleted and number != instead:
            return await self.post(page, message, patience=patience, instead=number)
        if not says(answer, body):  # it is what was posted before somebody lost sight of it
            await self.edit(page, number, message, patience=patience)
        return Sent(number)

    async def edit(self, page: int, number: str, message: Message, *, patience: float = PATIENCE) -> None:  # noqa: ARG002
        """Change a message; an archived thread is opened for that, if we may."""
        body = shown(message, self._question.key)
        try:
            await self._call(routes.EDIT, body, patience=patience, channel=self._channel, message=number)
        except Archived as error:
            await self._reopened(error)
            await self._call(routes.EDIT, body, patience=patience, channel=self._channel, message=number)

    async def delete(self, page: int, number: str) -> None:  # noqa: ARG002 - as `Way` has it
        """Delete a message."""
        self._deleted.append(number)
        with suppress(PostGone, NoChannel):
            try:
                await self._call(routes.DELETE, channel=self._channel, message=number)
            except Archived as error:
                await self._reopened(error)
                await self._call(routes.DELETE, channel=self._channel, message=number)

    def spare(self) -> bool:
        """Return whether there is room for an edit that can be left out."""
        return self._call.pacing.spare(routes.EDIT, {"channel": self._channel})

    async def _posted(self, body: Json, patience: float) -> Json:
        try:
            return await self._sent(body, patience)
        except NoChannel:
            if not threads.is_wanted(self._question):
                raise
            await threads.open_for(self._call, self._question)
        return await self._sent(body, patience)

    async def _sent(self, body: Json, patience: float) -> Json:
        try:
            answer: Json = await self._call(routes.POST, body, patience=patience, channel=self._channel)
        except Refused as error:
            if error.code not in _NO_REPLY or "message_reference" not in body:
                raise
            alone = {name: value for name, value in body.items() if name != "message_reference"}
            answer = await self._call(routes.POST, alone, patience=patience, channel=self._channel)
        return answer

    async def _reopened(self, archived: Archived) -> None:
        """Take the thread out of the archive. Raises `Archived` where we may not."""
        try:
            await threads.reopen(self._call, self._channel)
        except CannotPost as error:
            raise archived from error

    def _reply_to(self) -> str:
        """Return the message that asks, where it stands in the same channel."""
        return "" if threads.is_wanted(self._question) else self._question.message


class Answering:
    """The answer to an interaction, as long as its token is good."""

    def __init__(self, call: Calling, question: Question, handle: Handle, channel: InChannel) -> None:
        """Take the way to Discord, what is answered, its token, and the way to its channel."""
        self._call, self._question, self._ids, self._channel = call, question, handle.ids, channel

    async def post(self, page: int, message: Message, *, patience: float = PATIENCE) -> Sent:
        """Post a page: the first is what the interaction waits for."""
        if page == 0:
            return Sent(await self._patched(ORIGINAL, message, patience))
        if not self._question.only_asker:
            try:
                return await self._channel.post(page, message, patience=patience)
            except CannotPost:  # it answers there all the same
                pass
        return await self._followed_up()

    async def edit(self, page: int, number: str, message: Message, *, patience: float = PATIENCE) -> None:
        """Change a page."""
        if page == 0 or self._question.only_asker:
            await self._patched(number, message, patience)
            return
        try:
            await self._channel.edit(page, number, message, patience=patience)
        except Archived:
            raise
        except Refused:  # it was a follow-up
            await self._patched(number, message, patience)

    async def delete(self, page: int, number: str) -> None:
        """Delete a page."""
        if page and not self._question.only_asker:
            try:
                await self._channel.delete(page, number)
            except Archived:
                raise
            except Refused:  # it was a follow-up
                pass
            else:
                return
        with suppress(PostGone):
            await self._call(routes.DELETE_ANSWER, message=number, **self._ids)

    def spare(self) -> bool:
        """Return whether there is room for an edit that can be left out."""
        return self._call.pacing.spare(routes.EDIT_ANSWER, dict[str, str](**self._ids))

    async def original(self) -> Json:
        """Return what the interaction was answered with; nothing where that is gone, or was never begun."""
        try:
            found = await self._call(routes.ANSWER, **self._ids)
        except (PostGone, Expired):
            return {}
        return found if isinstance(found, Mapping) else {}

    async def _patched(self, number: str, message: Message, patience: float) -> str:
        body = shown(message, self._question.key)
        answer = await self._call(routes.EDIT_ANSWER, body, patience=patience, message=number, **self._ids)
        return str(answer["id"])

    async def _followed_up(self) -> Sent:
        empty = shown(rendered(MessagePage()), self._question.key)
        body = {**empty, "flags": empty["flags"] | (EPHEMERAL if self._question.only_asker else 0)}
        return Sent(str((await self._call(routes.FOLLOW_UP, body, **self._ids))["id"]), empty=True)
