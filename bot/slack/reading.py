"""What Slack's events mean: pure functions from their JSON to what somebody wrote, changed, deleted or opened.

A mention arrives twice, as `app_mention` and as `message`, with ids of their own: what is the same is where and when it
was written, and so that is its key. What bots write, what Slack itself says, and what nobody can see is nothing. What
people invoke beside writing, commands and shortcuts, is read in `invoking`.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from bot.access import Asker
from bot.desk.types import Place, Question, TaskKind
from bot.slack.happening import Changed, Ended, Erased, Halted, Meaning, Opened, Rewritten, Us, Written
from bot.slack.unescaping import plain
from storage.language.lazy_pattern import lazy_compile

Json = Mapping[str, Any]

_TS = lazy_compile(r"\d{1,12}\.\d{1,9}")
_PEOPLES = frozenset({"", "file_share", "me_message", "thread_broadcast"})
"""The subtypes of messages that people write; others are what happened, such as that somebody joined."""
_SLACKBOT = "USLACKBOT"


def read(body: Json, us: Us) -> Meaning:
    """Return what an event means to us, given all that it came in; None where it means nothing."""
    event = body.get("event")
    if not isinstance(event, Mapping):
        return None
    reader = READERS.get(str(event.get("type")))
    found = reader(event, us) if reader else None
    if isinstance(found, Written) and body.get("is_ext_shared_channel") is True:
        return replace(found, shared=True)
    return found


def question(written: Written, us: Us, asker: Asker, *, only_asker: bool = False, unasked: bool = False) -> Question:
    """Return the question that a message is."""
    return Question(
        written.key,
        "ask",
        said(written.raw, us),
        asker,
        Place("slack", written.team, written.channel, written.root),
        written.conversation,
        moment(written.ts),
        message=written.ts,
        only_asker=only_asker,
        unasked=unasked,
    )


def said(raw: str, us: Us) -> str:
    """Return a text of Slack's in plain words, without the mentions of us."""
    return plain(re.sub(rf"<@{re.escape(us.user)}(\|[^<>]*)?>[,:]?[ \t]*", "", raw)).strip()


def moment(ts: str) -> datetime:
    """Return when a message was written, by its timestamp."""
    return datetime.fromtimestamp(float(ts), UTC)


def is_direct(channel: str, kind: str = "") -> bool:
    """Return whether a channel is a DM with one person."""
    return kind == "im" or (not kind and channel.startswith("D"))


def task_of(name: str) -> TaskKind:
    """Return the task of a command or a shortcut by its name."""
    return "check" if "check" in name else "ask"


def _message(event: Json, us: Us) -> Meaning:
    match event.get("subtype") or "":
        case "message_changed":
            return _rewritten(event, us)
        case "message_deleted":
            return _erased(event, us)
        case subtype if subtype in _PEOPLES and not event.get("hidden"):
            return _written(event, event, us)
        case _:
            return None


def _written(message: Json, event: Json, us: Us) -> Written | None:
    """Return a message of a person; the event says in which channel."""
    texts = {name: message.get(name) or "" for name in ("ts", "user", "text", "thread_ts")}
    channel, kind = event.get("channel"), event.get("channel_type") or ""
    known = all(isinstance(value, str) for value in (*texts.values(), channel, kind))
    if not known or not channel or not is_ts(texts["ts"]) or not _of_a_person(message, us):
        return None
    ts, thread = texts["ts"], texts["thread_ts"] if is_ts(texts["thread_ts"]) else ""
    return Written(
        us.team,
        channel,
        ts,
        texts["user"],
        texts["text"],
        thread=thread if thread != ts else "",
        direct=is_direct(channel, kind),
        edited=bool(message.get("edited")),
    )


def _of_a_person(message: Json, us: Us) -> bool:
    user = message.get("user")
    return bool(user) and user not in {us.user, _SLACKBOT} and not message.get("bot_id")


def _rewritten(event: Json, us: Us) -> Rewritten | Erased | None:
    now, before = event.get("message"), event.get("previous_message")
    if not isinstance(now, Mapping):
        return None
    if now.get("subtype") == "tombstone":  # stands where a message was that others replied to
        return _erased({**event, "deleted_ts": now.get("ts")}, us)
    if (now.get("subtype") or "") not in _PEOPLES:
        return None
    # Slack says the same when it adds a preview of a link, or counts replies.
    if isinstance(before, Mapping) and before.get("text") == now.get("text"):
        return None
    written = _written(now, event, us)
    return Rewritten(written) if written else None


def _erased(event: Json, us: Us) -> Erased | None:
    before, ts, channel = event.get("previous_message"), event.get("deleted_ts"), event.get("channel")
    if not (isinstance(ts, str) and is_ts(ts) and isinstance(channel, str) and channel):
        return None
    if isinstance(before, Mapping) and "user" in before and not _of_a_person(before, us):
        return None
    return Erased(us.team, channel, ts)


def is_ts(text: object) -> bool:
    """Return whether something is a timestamp of Slack's, which is a message's id."""
    return isinstance(text, str) and bool(_TS.fullmatch(text)) and math.isfinite(float(text))


def _opened(event: Json, _: Us) -> Opened | None:
    channel, user = event.get("channel"), event.get("user")
    if event.get("tab") != "messages" or not (isinstance(channel, str) and isinstance(user, str)):
        return None
    return Opened(channel, user)


def _halted(event: Json, us: Us) -> Halted | None:
    channel, thread, user = event.get("channel"), event.get("thread_ts"), event.get("user")
    if not (isinstance(channel, str) and is_ts(thread) and isinstance(user, str)):
        return None
    messages = event.get("streaming_message_ts")
    listed = messages if isinstance(messages, list) else [messages]
    return Halted(us.team, channel, str(thread), user, tuple(one for one in listed if isinstance(one, str)))


def _changed(event: Json, _: Us) -> Changed | None:
    channel = event.get("channel")
    found = channel.get("id") if isinstance(channel, Mapping) else channel
    return Changed(found, str(event["type"])) if isinstance(found, str) and found else None


def _uninstalled(_: Json, __: Us) -> Ended:
    return Ended("The app was uninstalled from the workspace.")


def _revoked(event: Json, us: Us) -> Ended | None:
    tokens = event.get("tokens")
    ours = tokens.get("bot") if isinstance(tokens, Mapping) else None
    if not isinstance(ours, list) or not {us.user, us.bot} & set(filter(None, map(str, ours))):
        return None
    return Ended("The workspace revoked the bot token.")


CHANNELS = (
    "channel_archive",
    "channel_deleted",
    "channel_rename",
    "channel_shared",
    "channel_unarchive",
    "channel_unshared",
    "group_archive",
    "group_deleted",
    "group_rename",
    "group_unarchive",
)
"""The events that say that a channel is not as it was."""
READERS: Mapping[str, Callable[[Json, Us], Meaning]] = MappingProxyType(
    {
        "message": _message,
        "app_mention": _message,
        "app_home_opened": _opened,
        "agent_session_stopped": _halted,
        "app_uninstalled": _uninstalled,
        "tokens_revoked": _revoked,
        **dict.fromkeys(CHANNELS, _changed),
    }
)
"""What reads each kind of event. Slack hands over no others than those that the app's manifest names."""
