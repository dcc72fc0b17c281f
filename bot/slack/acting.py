"""What people do with an answer in Slack: they press a button, turn a page of evidence, or send a comment.

Slack hears at once that it arrived; what comes of it is for whoever pressed, and for nobody else. A trigger opens a
modal within 3 s, so where looking evidence up takes longer, a modal that says so comes first.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from bot.access import Asker
from bot.desk.answer_actions import AnswerActions, load_evidence_or_denial
from bot.desk.authorized_turn import ActionDenied
from bot.desk.desk import Desk
from bot.payloads import part
from bot.platform import PlatformError
from bot.slack.buttons import pressed
from bot.slack.calling import Calling
from bot.slack.escaping import escaped
from bot.slack.modals import comment_modal, commented, evidence_modal, turned, words_modal
from bot.slack.places import Places
from bot.slack.reading import is_direct, is_ts
from bot.views.catalog import translate
from bot.views.turn_view import ButtonAction
from storage.errors import StorageError

Json = Mapping[str, Any]

log = logging.getLogger(__name__)

PATIENT_SECONDS = 1.0
"""So long evidence may take before a modal says that it is looked up."""
_AT = "@"
"""Between what a modal is of and where it was opened."""


@dataclass(frozen=True, slots=True)
class Press:
    """A press of a button: of what, by whom, and how they can be answered."""

    name: str
    value: str
    user: str
    channel: str
    trigger: str
    url: str = ""
    thread: str = ""
    view: str = ""
    """The modal that the button stands in; empty where it stands in a message."""


def press_of(body: Json) -> Press | None:
    """Return the press that `block_actions` is; None where nothing can be made of it. Pure."""
    actions, container, view = body.get("actions"), part(body, "container"), part(body, "view")
    first = actions[0] if isinstance(actions, list) and actions and isinstance(actions[0], Mapping) else {}
    message = part(body, "message")
    thread = container.get("thread_ts") or message.get("thread_ts")
    press = Press(
        str(first.get("action_id", "")),
        str(first.get("value", "")),
        str(part(body, "user").get("id", "")),
        str(part(body, "channel").get("id") or container.get("channel_id") or ""),
        str(body.get("trigger_id", "")),
        str(body.get("response_url", "")),
        str(thread) if is_ts(thread) else "",
        str(view.get("id", "")),
    )
    return press if press.name and press.user else None


class Pressing:
    """Does what people want of one workspace's answers."""

    def __init__(self, desk: Desk, acting: AnswerActions, call: Calling, places: Places, zone: tzinfo) -> None:
        """Take the desk, what acts on answers, the way to Slack, what is known of people, and whose days dates are."""
        self._desk, self._acting, self._call, self._places, self._zone = desk, acting, call, places, zone

    async def press(self, press: Press) -> None:
        """Do what a button is for, and answer whoever pressed it."""
        if press.view:
            await self._turn(press)
            return
        found = pressed(press.name, press.value)
        if found is None:
            return
        by, language = await self._who(press.user, press.channel)
        try:
            words = await self._act(found[0], found[1], press, by, language)
        except ActionDenied as denied:
            words = denied.words
        except StorageError as error:
            log.error("a button could not be obeyed", extra={"cause": str(error)})  # noqa: TRY400 - the cause is one line
            words = translate("acting_unavailable", language or "en")
        if words:
            await self._tell(press, words)

    async def comment(self, body: Json) -> Json | None:
        """Note a comment that was sent, and return the modal that says what came of it; None if it is none of ours."""
        view = part(body, "view")
        metadata, _, channel = str(view.get("private_metadata", "")).partition(_AT)
        found = commented({**view, "private_metadata": metadata})
        if found is None:
            return None
        ticket, opinion, text = found
        by, language = await self._who(str(part(body, "user").get("id", "")), channel)
        try:
            words = await self._acting.feedback(ticket, by, opinion, text, language=language)
        except ActionDenied as denied:
            words = denied.words
        return words_modal(translate("comment", language or "en"), words, language or "en")

    async def _who(self, user: str, channel: str) -> tuple[Asker, str]:
        """Return who pressed and where they stand, and the language that they read."""
        asker = self._places.asker(channel, user, direct=is_direct(channel))
        return await asyncio.gather(asker, self._places.language(user))

    async def _act(self, action: ButtonAction, ticket: int, press: Press, by: Asker, language: str) -> str:
        """Return what whoever pressed is told; empty where they see it anyway. Raises `Denied`, `StorageError`."""
        match action:
            case ButtonAction.STOP | ButtonAction.RETRACT:
                do = self._desk.stop if action is ButtonAction.STOP else self._desk.retract
                return "" if await do(ticket, by) else translate("slack_not_yours", language or "en")
            case ButtonAction.ASK:
                return await self._acting.ask_person(ticket, by, language=language)
            case ButtonAction.SHARE:
                return await self._acting.share(ticket, by, language=language)
            case ButtonAction.EVIDENCE:
                shown = await self._evidence(ticket, press, by, language)
                return "" if shown else translate("acting_unavailable", language or "en")
            case ButtonAction.UP:
                return await self._acting.feedback(ticket, by, "up", language=language)
            case ButtonAction.DOWN:
                words = await self._acting.feedback(ticket, by, "down", language=language)
                await self._opened(press, _comment_on(ticket, press.channel, language or "en"))
                return words

    async def _evidence(self, ticket: int, press: Press, by: Asker, language: str) -> bool:
        """Show a modal of the evidence, and return whether. Raises `Denied` where none is open that could say so."""
        looking = asyncio.ensure_future(self._acting.evidence(ticket, by, language=language))
        done, _ = await asyncio.wait({looking}, timeout=PATIENT_SECONDS)
        of = f"{ticket}{_AT}{press.channel}"
        if done:
            return bool(
                await self._opened(press, evidence_modal(looking.result(), of, 0, language or "en", self._zone))
            )
        heading = translate("evidence", language or "en")
        opened = await self._opened(
            press, words_modal(heading, translate("looking", language or "en"), language or "en")
        )
        view = await load_evidence_or_denial(looking, heading)
        if opened:
            await self._replaced(opened, evidence_modal(view, of, 0, language or "en", self._zone))
        return bool(opened)

    async def _turn(self, press: Press) -> None:
        """Show another page of a modal, looked up anew."""
        found = turned(press.value)
        ticket, _, channel = (found[0] if found else "").partition(_AT)
        if found is None or not ticket.isdigit():
            return
        by, language = await self._who(press.user, channel)
        heading = translate("evidence", language or "en")
        view = await load_evidence_or_denial(self._acting.evidence(int(ticket), by, language=language), heading)
        await self._replaced(press.view, evidence_modal(view, found[0], found[1], language or "en", self._zone))

    async def _opened(self, press: Press, modal: Json) -> str:
        """Open a modal, and return its id; empty where Slack will not have it any more."""
        try:
            answer = await self._call("views.open", trigger_id=press.trigger, view=modal)
        except PlatformError as error:
            log.warning("a modal could not be opened", extra={"cause": str(error)})
            return ""
        return str((answer.get("view") or {}).get("id", ""))

    async def _replaced(self, view: str, modal: Json) -> None:
        try:
            await self._call("views.update", view_id=view, view=modal)
        except PlatformError as error:
            log.warning("a modal could not be changed", extra={"cause": str(error)})

    async def _tell(self, press: Press, words: str) -> None:
        """Say something to whoever pressed, and to nobody else."""
        thread = {"thread_ts": press.thread} if press.thread else {}
        body = {"response_type": "ephemeral", "replace_original": False, "text": escaped(words), **thread}
        try:
            await self._call.respond(press.url, body)
        except PlatformError as error:
            log.warning("somebody could not be answered", extra={"cause": str(error)})


def _comment_on(ticket: int, channel: str, language: str) -> Json:
    """Return the modal that asks what was wrong, which knows where it was opened."""
    modal = comment_modal(ticket, "down", language)
    return {**modal, "private_metadata": f"{modal['private_metadata']}{_AT}{channel}"}
