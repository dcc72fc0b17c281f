"""Messages: posted, read, edited, deleted. And typing."""

from typing import Any

from tests.platforms.discord import limits
from tests.platforms.discord.access import (
    allowed,
    may_delete,
    message_in,
    not_archived,
    readable,
    visible,
    writable,
)
from tests.platforms.discord.bodies import CREATE, EDIT, checked, is_new, not_empty
from tests.platforms.discord.calls import NOTHING, Answer, Call, Route
from tests.platforms.discord.components import numbered
from tests.platforms.discord.refusing import invalid_at, refusal
from tests.platforms.discord.state import BOT, SILENT, SUPPRESS_EMBEDS, V2, Channel, Message, sends


def create(discord: Any, call: Call) -> Answer:
    """Post a message. Of two with the same enforced nonce the first is returned."""
    channel = writable(discord, call["channel"])
    body = checked(call.body, CREATE, new=is_new(call.body))
    if earlier := discord.earlier(body):
        return Answer({**discord.json(earlier), "nonce": earlier.nonce})
    not_empty(body.get("content"), body.get("components"))
    message = Message(discord.state.snowflake(), channel.id, BOT, nonce=body.get("nonce"))
    _refer(discord, channel, message, body.get("message_reference"))
    fill(message, body)
    message.flags = (body.get("flags") or 0) & (SUPPRESS_EMBEDS | SILENT | V2)
    made = discord.json(discord.write(message, body.get("allowed_mentions")))
    return Answer(made if message.nonce is None else {**made, "nonce": message.nonce})


def fill(message: Message, body: Any) -> None:
    for name in ("content", "components"):
        if name in body:
            setattr(message, name, body[name] or ("" if name == "content" else []))
    numbered(message.components)


def _refer(discord: Any, channel: Channel, message: Message, reference: Any) -> None:
    if not reference:
        return
    if not readable(discord, channel):
        raise refusal(160002)
    found = discord.state.messages.get(str(reference["message_id"]))
    if found is None or found.channel != channel.id or found.only:
        if not reference.get("fail_if_not_exists", True):
            return
        raise invalid_at("message_reference", "unknown message")
    if found.kind not in {0, 19, 20, 23}:
        raise invalid_at("message_reference", "cannot reply to a system message")
    message.reference = {"message_id": found.id, "channel_id": channel.id}
    message.reference |= {"guild_id": channel.guild} if channel.guild else {}
    message.kind = 19


def edit(discord: Any, call: Call) -> Answer:
    channel = visible(discord, call["channel"])
    message = message_in(discord, channel, call["message"])
    if message.user != BOT:
        raise refusal(50005)
    not_archived(channel)
    return Answer(discord.json(rewrite(discord, message, call.body)))


def rewrite(discord: Any, message: Message, given: Any) -> Message:
    """Change what a message says. Raises `Refusal`."""
    new = is_new(given, message.flags)
    body = checked(given, EDIT, new=new)
    if new and not message.flags & V2 and message.content and "content" not in body:
        raise invalid_at("content", "cannot be used with IS_COMPONENTS_V2")
    after = {name: body.get(name, getattr(message, name)) for name in ("content", "components")}
    not_empty(*after.values())
    fill(message, body)
    flags = body.get("flags")
    if flags is not None:
        message.flags = (message.flags & ~SUPPRESS_EMBEDS) | (flags & (SUPPRESS_EMBEDS | V2))
    message.edited = discord.clock.now()
    discord.changed(message, body.get("allowed_mentions"))
    return message


def delete(discord: Any, call: Call) -> Answer:
    channel = visible(discord, call["channel"])
    message = message_in(discord, channel, call["message"])
    not_archived(channel)
    if refused := may_delete(discord, channel, message):
        raise refused
    discord.remove(message)
    return NOTHING


def one(discord: Any, call: Call) -> Answer:
    channel = visible(discord, call["channel"])
    if not readable(discord, channel):
        raise refusal(50013)
    return Answer(discord.json(message_in(discord, channel, call["message"])))


def several(discord: Any, call: Call) -> Answer:
    """Return messages of a channel, newest first, before or after one."""
    channel = visible(discord, call["channel"])
    most = call.query.get("limit", "50")
    if not most.isdecimal() or not 1 <= int(most) <= limits.PAGE:
        raise invalid_at("limit", f"must be between 1 and {limits.PAGE}")
    if not readable(discord, channel):
        return Answer([])
    found = [one for one in discord.state.here(channel.id) if not one.only]
    return Answer([discord.json(one) for one in reversed(_page(found, call.query, int(most)))])


def _page(found: list[Message], query: Any, most: int) -> list[Message]:
    if before := query.get("before"):
        return [one for one in found if int(one.id) < int(before)][-most:]
    if after := query.get("after"):
        return [one for one in found if int(one.id) > int(after)][:most]
    return found[-most:]


def typing(discord: Any, call: Call) -> Answer:
    """Show that the bot is typing, for ten seconds or until it writes."""
    channel = visible(discord, call["channel"])
    allowed(discord, channel, sends(channel))
    discord.state.typing[channel.id, BOT] = discord.clock.now() + limits.TYPING_SECONDS
    return NOTHING


_HERE = "/channels/{channel}/messages"
ROUTES = (
    Route("create_message", "POST", _HERE, create, 5, 5),
    Route("get_messages", "GET", _HERE, several, 5, 5),
    Route("get_message", "GET", _HERE + "/{message}", one, 5, 5),
    Route("edit_message", "PATCH", _HERE + "/{message}", edit, 5, 5),
    Route("delete_message", "DELETE", _HERE + "/{message}", delete, 5, 1),
    Route("typing", "POST", "/channels/{channel}/typing", typing, 5, 5),
)
