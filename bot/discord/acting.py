"""What people do with an answer in Discord: they press a button, turn a page of evidence, or send a comment.

What comes of it is for whoever pressed, and seen by nobody else. All that a button knows is its ticket, so that it
works after a restart too.
"""

import asyncio
import logging
from collections.abc import Awaitable
from datetime import tzinfo

from bot.access import Asker
from bot.desk.answer_actions import AnswerActions, load_evidence_or_denial
from bot.desk.authorized_turn import ActionDenied
from bot.desk.desk import Desk
from bot.discord.answering import Answering, sentence
from bot.discord.buttons import Doubt, asking, doubted, pressed
from bot.discord.invoking import SOURCES, Invoked
from bot.discord.modals import comment_modal, commented, evidence_message, turned
from bot.discord.standing import standing
from bot.discord.taking import Taking
from bot.views.catalog import translate
from bot.views.turn_view import ButtonAction, EvidenceView, build_confirmation
from storage.errors import StorageError

log = logging.getLogger(__name__)

COMMENT_SECONDS = 1.0
"""So long the opinion may take to be noted before the modal for a comment opens."""


class Pressing:
    """Does what people want of answers."""

    def __init__(self, desk: Desk, acting: AnswerActions, answering: Answering, taking: Taking, zone: tzinfo) -> None:
        """Take the desk, what acts on answers, what answers interactions, who takes them, and whose days dates are."""
        self._desk, self._acting, self._answering = desk, acting, answering
        self._taking, self._zone = taking, zone

    async def press(self, found: Invoked) -> None:
        """Do what a button is for, and answer whoever pressed it."""
        page = turned(found.name)
        if page and (page[0] == SOURCES or page[0].isdecimal()):
            await self._answering.accept(found)
            await self._evidence(found, *page)
        elif button := pressed(found.name):
            await self._pressed(found, *button)
        elif doubt := doubted(found.name):
            await self._doubted(found, *doubt)

    async def comment(self, found: Invoked) -> bool:
        """Note a comment that was sent; False if it is none."""
        sent = commented({**found.data})
        if sent is None:
            return False
        ticket, opinion, text = sent
        await self._answering.defer(found, private=True)
        await self._change(found, self._acting.feedback(ticket, await self.by(found), opinion, text, **_in(found)))
        return True

    async def sources(self, found: Invoked) -> None:
        """Show all pages that the conversation cites in which somebody stands."""
        await self._answering.defer(found, private=True)
        await self._evidence(found, SOURCES, 0)

    async def take_back(self, found: Invoked, ticket: int) -> None:
        """Take an answer back for whoever may."""
        await self._answering.defer(found, private=True)
        await self._taken_back(found, ticket)

    async def by(self, found: Invoked) -> Asker:
        """Return who invoked something and where they stand, with what Discord lets them do there."""
        return await standing(self._taking.places, found)

    async def _pressed(self, found: Invoked, action: ButtonAction, ticket: int) -> None:
        by = await self.by(found)
        match action:
            case ButtonAction.STOP:
                await self._answering.accept(found)
                if not await self._obeyed(self._desk.stop(ticket, by)):
                    await self._answering.add(found, translate("discord_not_yours", found.locale))
            case ButtonAction.RETRACT:
                first = build_confirmation(action, found.locale)
                await self._answering.say(found, first.question, asking(first, ticket, Doubt.BACK))
            case ButtonAction.DOWN:
                await self._down(found, ticket, by)
            case ButtonAction.EVIDENCE:
                await self._answering.defer(found, private=True)
                await self._evidence(found, str(ticket), 0)
            case ButtonAction.ASK | ButtonAction.SHARE | ButtonAction.UP:
                await self._answering.defer(found, private=True)
                await self._change(found, self._done(action, ticket, by, found))

    async def _done(self, action: ButtonAction, ticket: int, by: Asker, found: Invoked) -> str:
        match action:
            case ButtonAction.ASK:
                return await self._acting.ask_person(ticket, by, **_in(found))
            case ButtonAction.SHARE:
                return await self._acting.share(ticket, by, **_in(found))
            case _:
                return await self._acting.feedback(ticket, by, "up", **_in(found))

    async def _doubted(self, found: Invoked, doubt: Doubt, ticket: int) -> None:
        """Do only what somebody has said that they are sure of: ask a person about their answer, or take one back."""
        if doubt is Doubt.SURE:
            first = build_confirmation(ButtonAction.ASK, found.locale)
            await self._answering.say(found, first.question, asking(first, ticket))
            return
        await self._answering.accept(found)
        match doubt:
            case Doubt.YES:
                await self._change(found, self._acting.ask_person(ticket, await self.by(found), **_in(found)))
            case Doubt.BACK:
                await self._taken_back(found, ticket)
            case _:
                await self._answering.remove(found)

    async def _taken_back(self, found: Invoked, ticket: int) -> None:
        """Take an answer back, and say whether it was."""
        gone = await self._obeyed(self._desk.retract(ticket, await self.by(found)))
        words = translate("discord_taken_back" if gone else "discord_not_yours", found.locale)
        await self._answering.change(found, sentence(words))

    async def _down(self, found: Invoked, ticket: int, by: Asker) -> None:
        """Note that somebody thinks little of an answer, and ask why. A modal can only be what is answered first."""
        noting = asyncio.ensure_future(self._acting.feedback(ticket, by, "down", **_in(found)))
        done, _ = await asyncio.wait({noting}, timeout=COMMENT_SECONDS)
        refused = noting.exception() if done else None
        if isinstance(refused, ActionDenied):
            await self._answering.say(found, refused.words)
            return
        await self._answering.modal(found, comment_modal(ticket, "down", found.locale))
        try:
            await noting
        except ActionDenied as denied:
            await self._answering.add(found, denied.words)

    async def _evidence(self, found: Invoked, of: str, page: int) -> None:
        """Show a page of what a ticket, or the conversation, stands on; looked up anew."""
        by = await self.by(found)
        if of == SOURCES:
            looking, heading = self._sources(found, by), "sources_heading"
        else:
            looking, heading = self._acting.evidence(int(of), by, **_in(found)), "evidence"
        view = await load_evidence_or_denial(looking, translate(heading, found.locale))
        await self._answering.change(found, evidence_message(view, of, page, found.locale, self._zone))

    async def _sources(self, found: Invoked, by: Asker) -> EvidenceView:
        try:
            conversation = await self._taking.conversation(found)
        except StorageError as error:
            raise ActionDenied(translate("acting_unavailable", found.locale)) from error
        return await self._acting.sources(conversation, by, **_in(found))

    async def _change(self, found: Invoked, doing: Awaitable[str]) -> None:
        try:
            words = await doing
        except ActionDenied as denied:
            words = denied.words
        await self._answering.change(found, sentence(words))

    async def _obeyed(self, doing: Awaitable[bool]) -> bool:
        try:
            return await doing
        except StorageError as error:
            log.error("a button could not be obeyed", extra={"cause": str(error)})  # noqa: TRY400 - the cause is one line
            return False


def _in(found: Invoked) -> dict[str, str]:
    return {"language": found.locale}
