"""Interactions: answered once and soon, then for a quarter of an hour by their token."""

from typing import Any

from tests.platforms.discord import components, limits
from tests.platforms.discord.bodies import CREATE, checked, is_new, not_empty
from tests.platforms.discord.bodies import EDIT as EDIT_BODY
from tests.platforms.discord.calls import NOTHING, Answer, Call, Route, check
from tests.platforms.discord.methods.messages import fill, rewrite
from tests.platforms.discord.refusing import invalid, invalid_at, refusal
from tests.platforms.discord.state import (
    APP,
    BOT,
    EPHEMERAL,
    LOADING,
    SILENT,
    SUPPRESS_EMBEDS,
    V2,
    Interaction,
    Message,
)
from tests.platforms.shapes import anything, choice, fields

COMMAND, COMPONENT, SUBMIT = 2, 3, 5
REPLY, LATER, LATER_EDIT, MODAL = 4, 5, 6, 9
_CALLBACK = fields({"type": choice(REPLY, LATER, LATER_EDIT, MODAL)}, {"data": anything})
_FLAGS = EPHEMERAL | SUPPRESS_EMBEDS | SILENT | V2


def callback(discord: Any, call: Call) -> Answer:
    found: Interaction | None = discord.state.interactions.get(call["interaction"])
    late = found and discord.clock.now() > found.at + discord.ack_seconds
    if found is None or found.token != call["token"] or (late and not found.acked):
        raise refusal(10062)
    if found.acked:
        raise refusal(40060)
    body = check(call.body, _CALLBACK)
    kind, data = body["type"], body.get("data")
    _fits(found, kind)
    _done(discord, found, kind, data or {})
    found.acked = kind
    discord.notify()
    return NOTHING


def _fits(found: Interaction, kind: int) -> None:
    fitting = {COMMAND: {REPLY, LATER, MODAL}, COMPONENT: {REPLY, LATER, LATER_EDIT, MODAL}}
    fitting[SUBMIT] = {REPLY, LATER} | ({LATER_EDIT} if found.message else set())
    if kind not in fitting[found.kind]:
        raise invalid_at("type", "does not answer such an interaction")


def _done(discord: Any, found: Interaction, kind: int, data: dict[str, Any]) -> None:
    if kind == MODAL:
        if objections := list(components.modal(data)):
            raise invalid(objections)
        found.modal = data
        discord.modals[found.user] = found
        discord.showed_modal(data)
    elif kind == LATER:
        _loading(discord, found, int(data.get("flags") or 0))
    elif kind == LATER_EDIT:
        found.original = found.message
    else:
        _replied(discord, found, data)


def _loading(discord: Any, found: Interaction, flags: int) -> None:
    message = _new(discord, found)
    message.flags = LOADING | (flags & EPHEMERAL)
    message.only = found.user if flags & EPHEMERAL else ""
    found.original = message.id
    discord.write(message, None)


def _new(discord: Any, found: Interaction) -> Message:
    kind = 0 if found.kind != COMMAND else (20 if "target_id" not in found.data else 23)
    message = Message(discord.state.snowflake(), found.channel, BOT, kind=kind)
    message.webhook, message.interaction = APP, found.id
    return message


def _replied(discord: Any, found: Interaction, data: Any) -> None:
    body = checked(data, CREATE, new=is_new(data), where="/data")
    not_empty(body.get("content"), body.get("components"))
    found.original = _written(discord, found, body).id


def _written(discord: Any, found: Interaction, body: Any) -> Message:
    message = _new(discord, found)
    message.flags = (body.get("flags") or 0) & _FLAGS
    message.only = found.user if message.flags & EPHEMERAL else ""
    fill(message, body)
    return discord.write(message, body.get("allowed_mentions"))  # type: ignore[no-any-return]


def _found(discord: Any, call: Call) -> Interaction:
    """Return the interaction of a token. Raises `Refusal`."""
    known = [interaction for interaction in discord.state.interactions.values() if interaction.token == call["token"]]
    if call["application"] != APP or not known:
        raise refusal(10015)
    if discord.clock.now() > known[0].at + discord.token_seconds:
        raise refusal(50027)
    if not known[0].acked:
        raise refusal(10015)
    return known[0]  # type: ignore[no-any-return]


def _message(discord: Any, call: Call) -> Message:
    found = _found(discord, call)
    number = found.original if call["message"] == "@original" else call["message"]
    message: Message | None = discord.state.messages.get(number)
    if message is None or (message.interaction != found.id and message.id != found.original):
        raise refusal(10008)
    return message


def follow_up(discord: Any, call: Call) -> Answer:
    """Post one more response; the first after a deferral fills it."""
    found = _found(discord, call)
    waiting = discord.state.messages.get(found.original)
    if waiting and waiting.flags & LOADING:
        body = dict(call.body) if isinstance(call.body, dict) else call.body
        return Answer(discord.json(_filled(discord, waiting, body)))
    installed = found.guild and BOT not in discord.state.guilds[found.guild].members
    if installed and found.follow_ups >= limits.FOLLOW_UPS:
        raise refusal(40094)
    body = checked(call.body, CREATE, new=is_new(call.body))
    not_empty(body.get("content"), body.get("components"))
    found.follow_ups += 1
    return Answer(discord.json(_written(discord, found, body)))


def edit(discord: Any, call: Call) -> Answer:
    message = _message(discord, call)
    if message.flags & LOADING:
        checked(call.body, EDIT_BODY, new=is_new(call.body))
        return Answer(discord.json(_filled(discord, message, call.body)))
    return Answer(discord.json(rewrite(discord, message, call.body)))


def _filled(discord: Any, message: Message, given: Any) -> Message:
    body = checked(given, CREATE, new=is_new(given))
    not_empty(body.get("content"), body.get("components"))
    fill(message, body)
    message.flags = (message.flags & EPHEMERAL) | ((body.get("flags") or 0) & (SUPPRESS_EMBEDS | V2))
    discord.changed(message, body.get("allowed_mentions"))
    return message


def get(discord: Any, call: Call) -> Answer:
    return Answer(discord.json(_message(discord, call)))


def delete(discord: Any, call: Call) -> Answer:
    discord.remove(_message(discord, call))
    return NOTHING


_HOOK = "/webhooks/{application}/{token}"
ROUTES = (
    Route("callback", "POST", "/interactions/{interaction}/{token}/callback", callback, token=False),
    Route("follow_up", "POST", _HOOK, follow_up, 5, 2, token=False),
    Route("get_response", "GET", _HOOK + "/messages/{message}", get, 5, 2, token=False),
    Route("edit_response", "PATCH", _HOOK + "/messages/{message}", edit, 5, 2, token=False),
    Route("delete_response", "DELETE", _HOOK + "/messages/{message}", delete, 5, 2, token=False),
)
