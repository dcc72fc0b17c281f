"""Perform actions on answers in Mattermost: by reactions, buttons and commands in messages."""

import asyncio
import logging
from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from bot.access import Asker
from bot.app import App
from bot.desk.answer_actions import AnswerActions, Opinion, load_evidence_or_denial
from bot.desk.authorized_turn import decode_without_handle
from bot.desk.channel_command import ChannelCommand
from bot.desk.desk import Desk
from bot.desk.platform_port import PlatformError
from bot.desk.supervisor import SOON_SECONDS, TaskSupervisor
from bot.desk.turn_policy import render_exclusion
from bot.platforms.mattermost import client
from bot.platforms.mattermost.directory import MattermostDirectory
from bot.platforms.mattermost.events import (
    ChannelInfo,
    Command,
    MattermostBotIdentity,
    PostWritten,
    Reacted,
    locate,
)
from bot.platforms.mattermost.messages import RATINGS, Callback, build_rating_form, read_emoji, read_mark, read_rating
from bot.platforms.mattermost.platform import DirectMessages
from bot.platforms.shared.api_client import ApiClient, call_or_log
from bot.platforms.shared.button_actions import ButtonActions, explain_refusal, parse_opinion
from bot.platforms.shared.payload_text import Json, read_object
from bot.types import Place
from bot.views.catalog import translate
from bot.views.turn_view import ButtonAction, EvidenceView, View
from storage.language.lazy_pattern import lazy_compile

log = logging.getLogger(__name__)

PATH = "/mattermost/actions"  # where the server sends pressed buttons
_OURS = lazy_compile(r"/footnote\b")


class MattermostActions:
    """Performs what users of one server do with answers: react, press buttons, write commands."""

    def __init__(
        self,
        app: App,
        desk: Desk,
        acting: AnswerActions,
        call: ApiClient,
        us: MattermostBotIdentity,
        directory: MattermostDirectory,
        direct_messages: DirectMessages,
        command: ChannelCommand,
    ) -> None:
        self._app, self._buttons, self._actions = app, ButtonActions(desk, acting), acting
        self._call, self._us = call, us
        self._directory, self._direct_messages, self._command = directory, direct_messages, command

    async def react(self, event: Reacted) -> None:
        """Perform the action of a reaction to our answer, and notify the user."""
        if read_emoji(event.emoji) is None and event.emoji not in RATINGS:
            return
        try:
            post = await self._call(client.READ_ONE, post=event.post)
        except PlatformError as error:
            log.info("cannot read the post of a reaction", extra={"cause": str(error)})
            return
        action = read_emoji(event.emoji) or read_rating(event.emoji, post)
        # A mark on anyone else's post is forged.
        mark = read_mark(post) if post.get("user_id") == self._us.user else None
        channel = await self._directory.find_channel(event.channel) if mark and mark.ticket else None
        words = await self.press(action, mark.ticket, event.user, channel) if action and mark and channel else ""
        if words:
            await self._tell(event.user, View(0, text=words))

    async def press(self, action: ButtonAction | Opinion, ticket: int, user: str, channel: ChannelInfo) -> str:
        """Perform an action and return the sentence for the user; empty if they see the effect anyway."""
        language = (await self._directory.person(user)).locale or "en"
        return await explain_refusal(self._press(action, ticket, user, channel, language), language)

    async def _press(
        self, action: ButtonAction | Opinion, ticket: int, user: str, channel: ChannelInfo, language: str
    ) -> str:
        by = await self._directory.actor(user, channel, await self._find_place(ticket))
        return render_exclusion(by.exclusion, language) or await self._perform(action, ticket, by, language)

    async def open_form(self, trigger: str, ticket: int, user: str, channel: str, callback: Callback) -> str:
        """Open the form for a rating; return a sentence for the user if that failed."""
        language = (await self._directory.person(user)).locale or "en"
        form = build_rating_form(language, callback.sign_form(ticket, user, channel))
        body = {"trigger_id": trigger, "url": callback.url, "dialog": form}
        opened = await call_or_log(self._call(client.OPEN_DIALOG, body), "opening a form failed")
        return "" if opened else translate("acting_unavailable", language)

    async def submit(self, ticket: int, user: str, channel: ChannelInfo, fields: Json) -> str:
        """Store a submitted rating; return why it was refused, or an empty text."""
        language = (await self._directory.person(user)).locale or "en"
        return await explain_refusal(self._submit(ticket, user, channel, fields, language), language)

    async def _submit(self, ticket: int, user: str, channel: ChannelInfo, fields: Json, language: str) -> str:
        by = await self._directory.actor(user, channel, await self._find_place(ticket))
        rating = parse_opinion("rate", missed=False, rating=str(fields.get("rating")))
        if rating is None or by.exclusion:
            return render_exclusion(by.exclusion, language) or translate("button_rate", language)
        words = await self._actions.feedback(ticket, by, rating, str(fields.get("text") or ""), language=language)
        if rating == "0":
            await self._tell(user, View(0, text=words))
        return ""

    async def run(self, command: Command, rest: str, written: PostWritten, channel: ChannelInfo) -> None:
        """Execute a command, and reply to its user alone."""
        by, person = await asyncio.gather(
            self._directory.actor(written.user, channel), self._directory.person(written.user)
        )
        language = person.locale or "en"
        if refusal := render_exclusion(by.exclusion, language):
            await self._tell(written.user, View(0, text=refusal))
            return
        match command:
            case "settings":
                words = _OURS.sub("!footnote", await self._command.answer(rest, by, language))
                await self._tell(written.user, View(0, text=words))
            case "sources":
                loading = self._actions.sources(locate(written, channel)[1], by, language=language)
                view = await load_evidence_or_denial(loading, translate("sources_heading", language))
                await self._tell(written.user, view, language)
            case _:
                await self._tell(written.user, View(0, text=translate("mattermost_help", language, name=self._us.name)))

    async def _perform(self, action: ButtonAction | Opinion, ticket: int, by: Asker, language: str) -> str:
        """Perform an action and return the sentence for its user. Raises `ActionDenied`, `StorageError`."""
        if not isinstance(action, ButtonAction):
            return await self._actions.feedback(ticket, by, action, language=language)
        if action is ButtonAction.EVIDENCE:
            await self._tell(by.user, await self._actions.evidence(ticket, by, language=language), language)
            return ""
        words = await self._buttons.perform(
            action,
            ticket,
            by,
            language,
            find_name=partial(self._find_name, by.user),
            not_yours=translate("mattermost_not_yours", language),
        )
        offered = action is ButtonAction.UP and await self._buttons.offers_example(ticket, by)
        return f"{words}\n⭐ {translate('button_example', language)}" if offered else words

    async def _find_name(self, user: str) -> str:
        return (await self._directory.person(user)).name

    async def _find_place(self, ticket: int) -> Place | None:
        row = await self._app.queue.get(ticket)
        return decode_without_handle(row).place if row else None

    async def _tell(self, user: str, view: View | EvidenceView, language: str = "") -> None:
        await call_or_log(self._direct_messages.tell(user, view, language), "reply to a user failed")


class MattermostCallback:
    """Receives pressed buttons over HTTP from the server, and checks our signature in each."""

    def __init__(
        self, actions: MattermostActions, directory: MattermostDirectory, callback: Callback, tasks: TaskSupervisor
    ) -> None:
        self._actions, self._directory, self._callback, self._tasks = actions, directory, callback, tasks
        self.routes: tuple[BaseRoute, ...] = (Route(PATH, self._receive, methods=["POST"]),)

    async def _receive(self, request: Request) -> Response:
        try:
            body = await request.json()
        except ValueError:
            return Response(status_code=400)
        if isinstance(body, dict) and body.get("type") == "dialog_submission":
            return await self._submit(body)
        context = read_object(body, "context") if isinstance(body, dict) else {}
        button = self._callback.read(context)
        if button is None:
            log.warning("rejected a request that is not from Mattermost")
            return Response(status_code=401)
        return JSONResponse(await self._press(*button, body))

    async def _submit(self, body: Json) -> Response:
        """Store a submitted form; the response says why it was refused, and leaves the form open."""
        ticket, user = self._callback.read_form(body), str(body.get("user_id", ""))
        channel = await self._directory.find_channel(str(body.get("channel_id", "")))
        if ticket is None or channel is None:
            log.warning("rejected a form that is not from Mattermost")
            return Response(status_code=401)
        if body.get("cancelled"):
            return JSONResponse({})
        refusal = await self._actions.submit(ticket, user, channel, read_object(body, "submission"))
        return JSONResponse({"error": refusal} if refusal else {})

    async def _press(self, action: ButtonAction, ticket: int, body: Json) -> Json:
        """Perform an action and return the response with its sentence; an empty one if the action is slow."""
        user, channel = (
            str(body.get("user_id", "")),
            await self._directory.find_channel(str(body.get("channel_id", ""))),
        )
        if channel is None:
            return {}
        if action is ButtonAction.RATE:
            trigger = str(body.get("trigger_id", ""))
            pressing = self._actions.open_form(trigger, ticket, user, channel.id, self._callback)
        else:
            pressing = self._actions.press(action, ticket, user, channel)
        working = self._tasks.spawn(pressing)
        done, _ = await asyncio.wait({working}, timeout=PATIENT_SECONDS)
        words = working.result() if done else ""
        return {"ephemeral_text": words, "skip_slack_parsing": True} if words else {}


PATIENT_SECONDS = 8 * SOON_SECONDS  # longest wait of the response to a press for the action's outcome
