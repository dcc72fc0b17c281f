"""response_url: up to five responses to an interaction, within half an hour."""

import copy
import json
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.platforms.slack import limits
from tests.platforms.slack.api import failure, refuse
from tests.platforms.slack.calls import Call, Refusal, Token
from tests.platforms.slack.posting import content, thread_of, unbegun
from tests.platforms.slack.state import BOT, Message

_KNOWN = {
    "text",
    "blocks",
    "response_type",
    "replace_original",
    "delete_original",
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
    """Show what an answer says. Raises `Refusal`."""
    state = slack.state
    original = state.messages.get((hook.channel, hook.message))
    if body.get("delete_original"):
        if original is None or original.user != BOT:
            raise Refusal("message_not_found")
        slack.removed(original) if not original.only else state.messages.pop((hook.channel, hook.message))
        return
    said = content(Call("response_url", body, Token("", "bot", set())), weighed=False)
    if body.get("replace_original") and original is not None and original.user == BOT:
        before = copy.deepcopy(original)
        original.text, original.blocks, original.stream = said.text, said.blocks or [], None
        original.edits += 1
        (slack.showed(original) if original.only else slack.changed(original, before))
        return
    everybody = body.get("response_type") == "in_channel"
    if everybody and state.channels[hook.channel].archived:
        raise Refusal("is_archived")
    thread = thread_of(state, hook.channel, body.get("thread_ts") or (original.thread if original else ""))
    message = Message(state.ts(), hook.channel, BOT, said.text, thread, blocks=said.blocks or [])
    message.metadata, message.only = said.metadata, "" if everybody else hook.user
    message.unshown = bool(message.only) and unbegun(state, hook.channel, thread)
    message.unfurls = everybody and (body.get("unfurl_links") is not False or body.get("unfurl_media") is not False)
    (slack.wrote if everybody else slack.showed)(state.add(message))
