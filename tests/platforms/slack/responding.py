"""The app's responses to interactions: acknowledgements, and up to five posts to a response_url in half an hour."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.platforms.fake_server import Refused
from tests.platforms.slack import limits
from tests.platforms.slack.api import failure, refuse
from tests.platforms.slack.calls import Call, Refusal, Token
from tests.platforms.slack.delivery import Delivery
from tests.platforms.slack.methods.views import checked
from tests.platforms.slack.posting import content, thread_of, unbegun
from tests.platforms.slack.state import BOT, Message, View

_KNOWN = {
    "text",
    "blocks",
    "response_type",
    "replace_original",
    "thread_ts",
    "unfurl_links",
    "unfurl_media",
    "metadata",
    "mrkdwn",
}


@dataclass
class Hook:
    """One response_url."""

    channel: str
    user: str
    until: float
    message: str = ""
    """The ts of the message whose button was pressed; empty for commands."""
    uses: int = 0


def made(slack: Any, channel: str, user: str, message: str = "") -> str:
    name = f"{slack.state.number()}-FAKEHOOKNEVERLOGGED"
    slack.hooks[name] = Hook(channel, user, slack.clock.now() + limits.RESPONSE_SECONDS, message)
    return f"{slack.url}/hook/{name}"


async def respond(slack: Any, request: web.Request) -> web.StreamResponse:
    text = await request.text()
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    fault = slack.log("response_url", body if isinstance(body, dict) else {})
    if fault and not fault.done and (failed := failure(slack, request, fault, "response_url")):
        return failed
    answer = _answer(slack, request.match_info["name"], body)
    return (fault and fault.done and failure(slack, request, fault, "response_url")) or answer


def _answer(slack: Any, name: str, body: Any) -> web.Response:
    try:
        _use(slack, slack.hooks.get(name), body)
        return web.json_response({"ok": True})
    except Refusal as refusal:
        # [K] the statuses
        return refuse(slack, "response_url", refusal, 404 if str(refusal).endswith("_url") else 400)
    finally:
        slack.notify()


def _use(slack: Any, hook: Hook | None, body: Any) -> None:
    if not isinstance(body, dict) or set(body) - _KNOWN:
        raise Refusal("invalid_payload")
    if hook is None or slack.clock.now() > hook.until:
        raise Refusal("expired_url")
    if hook.uses >= limits.RESPONSES:
        raise Refusal("used_url")
    take(slack, hook, body)
    hook.uses += 1


def take(slack: Any, hook: Hook, body: dict[str, Any]) -> None:
    """Post the message of a response. Raises `Refusal`."""
    state = slack.state
    if body.get("replace_original"):
        raise Refusal("invalid_payload")
    original = state.messages.get((hook.channel, hook.message))
    said = content(Call("response_url", body, Token("", "bot", set())), weighed=False)
    everybody = body.get("response_type") == "in_channel"
    if everybody and state.channels[hook.channel].archived:
        raise Refusal("is_archived")
    thread = thread_of(state, hook.channel, body.get("thread_ts") or (original.thread if original else ""))
    message = Message(state.ts(), hook.channel, BOT, said.text, thread, blocks=said.blocks or [])
    message.metadata, message.only = said.metadata, "" if everybody else hook.user
    message.unshown = bool(message.only) and unbegun(state, hook.channel, thread)
    message.unfurls = everybody and (body.get("unfurl_links") is not False or body.get("unfurl_media") is not False)
    (slack.wrote if everybody else slack.showed)(state.add(message))


class Settling:
    """Waits for acknowledgements, and applies them."""

    def __init__(self, slack: Any) -> None:
        self._slack = slack

    def command(self, delivery: Delivery, form: dict[str, Any]) -> None:
        def settle(body: Any) -> None:
            body = {"text": body} if isinstance(body, str) and body else body
            if body:
                take(self._slack, Hook(form["channel_id"], form["user_id"], 0.0), body)

        self._when(delivery, settle)

    def interaction(self, delivery: Delivery, body: dict[str, Any], view: View | None) -> None:
        """Apply the response to an interaction: only submissions have one."""

        def settle(answer: Any) -> None:
            if body["type"] == "view_submission" and view:
                self._submitted(view, answer or {})
            elif answer:
                self._slack.refused.append(Refused(body["type"], "an answer to what takes none"))

        self._when(delivery, settle)

    def _when(self, delivery: Delivery, settle: Any) -> None:
        def done(answer: asyncio.Future[Any]) -> None:
            if answer.cancelled():
                return
            try:
                settle(answer.result())
            except Refusal as refusal:
                self._slack.refused.append(Refused("acknowledgement", str(refusal)))
            except Exception as error:  # noqa: BLE001  a callback's error would only be logged
                self._slack.errors.append(error)
            self._slack.notify()

        delivery.answer.add_done_callback(done)

    def _submitted(self, view: View, answer: dict[str, Any]) -> None:
        """Close the modal, or show another one in its place."""
        if answer.get("response_action") == "update":
            self._slack.replace(view, checked(answer["view"]))
        elif answer:
            raise Refusal("invalid_arguments")
        else:
            del self._slack.state.views[view.user]
