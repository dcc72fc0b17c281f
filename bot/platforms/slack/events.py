"""Parse Slack's events, commands and shortcuts into frozen values; pure."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType

from bot.access import Asker
from bot.platforms.shared.payload_text import Json, build_stripper
from bot.types import Place, Question, TaskKind
from storage.language.lazy_pattern import lazy_compile

_LEADING_MENTION = lazy_compile(r"\s*<(?:@|!(?=subteam\^|here\b|channel\b|everyone\b))([^|<>]+)(?:\|[^<>]*)?>")
"""A message's leading mention of a person, a group or everyone."""


strip_formatting = build_stripper(lines=r">{1,3}[ \t]*|[•◦▪][ \t]+", marks=(r"\*", "_", "~"))
"""Removes Slack's formatting."""

_ANGLES = lazy_compile(r"<(?P<mark>[@#!]?)(?P<what>[^<>|]*)(?:\|(?P<label>[^<>]*))?>")
_ENTITY = lazy_compile(r"&(amp|lt|gt);")
_PLAIN_FORMS = {"amp": "&", "lt": "<", "gt": ">"}
_BROADCASTS = {"here", "channel", "everyone"}


def decode_mrkdwn(text: str) -> str:
    return _ENTITY.sub(lambda entity: _PLAIN_FORMS[entity[1]], _ANGLES.sub(_decode_angle, text))


def _decode_angle(angle: re.Match[str]) -> str:
    mark, target, label = angle["mark"], angle["what"], angle["label"] or ""
    if mark == "!":
        return label or (f"@{target}" if target in _BROADCASTS else "")
    if mark:
        return f"{mark}{(label or target).lstrip(mark)}"
    return f"{label} ({target})" if label and label != target and not target.endswith(label) else target


@dataclass(frozen=True, slots=True)
class SlackBotIdentity:
    """The bot's ids in a workspace."""

    team: str
    user: str
    bot: str = ""
    enterprise: str = ""


@dataclass(frozen=True, slots=True)
class SlackMessagePosted:
    """A user's message in its current form."""

    team: str
    channel: str
    ts: str
    user: str
    raw: str  # its text with Slack's references to users and channels
    thread: str = ""  # the root of its thread; empty for a message of the channel itself
    direct: bool = False  # whether it is in a DM with us
    edited: bool = False
    shared: bool = False  # whether its event says that other organisations share the channel

    @property
    def key(self) -> str:
        return build_message_key(self.team, self.channel, self.ts)

    @property
    def root(self) -> str:
        return self.thread or self.ts

    @property
    def conversation(self) -> str:
        return f"slack:{self.team}/{self.channel}/{self.root}"

    def mentions(self, us: SlackBotIdentity) -> bool:
        return re.search(rf"<@{re.escape(us.user)}(\|[^<>]*)?>", self.raw) is not None

    def to_others(self, us: SlackBotIdentity) -> bool:
        """Return whether the message begins with a mention of another user, a group or everyone."""
        mention = _LEADING_MENTION.match(self.raw)
        return mention is not None and mention[1] != us.user


def build_message_key(team: str, channel: str, ts: str) -> str:
    return f"slack:{team}/{channel}/{ts}"


@dataclass(frozen=True, slots=True)
class SlackMessageEdited:
    now: SlackMessagePosted


@dataclass(frozen=True, slots=True)
class SlackMessageDeleted:
    team: str
    channel: str
    ts: str

    @property
    def key(self) -> str:
        return build_message_key(self.team, self.channel, self.ts)


@dataclass(frozen=True, slots=True)
class AssistantOpened:
    """A user opened the chat with the bot, or its App Home."""

    channel: str
    user: str
    home: bool = False


@dataclass(frozen=True, slots=True)
class Invited:
    team: str
    channel: str
    by: str


@dataclass(frozen=True, slots=True)
class StopRequested:
    """A user pressed Slack's own stop button."""

    team: str
    channel: str
    thread: str
    user: str
    messages: tuple[str, ...] = ()  # unfinished ones

    @property
    def conversation(self) -> str:
        return f"slack:{self.team}/{self.channel}/{self.thread}"


@dataclass(frozen=True, slots=True)
class ChannelChanged:
    channel: str
    what: str


@dataclass(frozen=True, slots=True)
class WorkspaceDisconnected:
    why: str


SlackEvent = (
    SlackMessagePosted
    | SlackMessageEdited
    | SlackMessageDeleted
    | AssistantOpened
    | Invited
    | StopRequested
    | ChannelChanged
    | WorkspaceDisconnected
    | None
)

_TS = lazy_compile(r"\d{1,12}\.\d{1,9}")
_PEOPLES = frozenset({"", "file_share", "me_message", "thread_broadcast"})
"""The subtypes of users' messages; others report events, such as a user joining."""
_SLACKBOT = "USLACKBOT"


def parse_event(body: Json, us: SlackBotIdentity) -> SlackEvent:
    """Parse an event from its envelope; None if the bot ignores it."""
    event = body.get("event")
    if not isinstance(event, Mapping):
        return None
    reader = PARSERS.get(str(event.get("type")))
    parsed = reader(event, us) if reader else None
    if isinstance(parsed, SlackMessagePosted) and body.get("is_ext_shared_channel") is True:
        return replace(parsed, shared=True)
    return parsed


def build_message_question(
    written: SlackMessagePosted, us: SlackBotIdentity, asker: Asker, *, only_asker: bool = False, unasked: bool = False
) -> Question:
    return Question(
        written.key,
        "ask",
        extract_text(written.raw, us),
        asker,
        Place("slack", written.team, written.channel, written.root),
        written.conversation,
        parse_ts(written.ts),
        message=written.ts,
        only_asker=only_asker,
        unasked=unasked,
    )


def extract_text(raw: str, us: SlackBotIdentity) -> str:
    """Return a message's text as its reader sees it, without mentions of the bot."""
    return decode_mrkdwn(re.sub(rf"<@{re.escape(us.user)}(\|[^<>]*)?>[,:]?[ \t]*", "", raw)).strip()


def parse_ts(ts: str) -> datetime:
    return datetime.fromtimestamp(float(ts), UTC)


def is_direct(channel: str, kind: str = "") -> bool:
    return kind == "im" or (not kind and channel.startswith("D"))


def build_task(name: str) -> TaskKind:
    """Return the task of a command or a shortcut by its name."""
    return "check" if "check" in name else "ask"


def _parse_message(event: Json, us: SlackBotIdentity) -> SlackEvent:
    match event.get("subtype") or "":
        case "message_changed":
            return _parse_edited(event, us)
        case "message_deleted":
            return _parse_deleted(event, us)
        case subtype if subtype in _PEOPLES and not event.get("hidden"):
            return _parse_posted(event, event, us)
        case _:
            return None


def _parse_posted(message: Json, event: Json, us: SlackBotIdentity) -> SlackMessagePosted | None:
    """Parse a user's message, whose channel is in the event; None for other messages."""
    texts = {name: message.get(name) or "" for name in ("ts", "user", "text", "thread_ts")}
    channel, kind = event.get("channel"), event.get("channel_type") or ""
    known = all(isinstance(value, str) for value in (*texts.values(), channel, kind))
    if not known or not channel or not is_ts(texts["ts"]) or not _is_from_person(message, us):
        return None
    ts, thread = texts["ts"], texts["thread_ts"] if is_ts(texts["thread_ts"]) else ""
    return SlackMessagePosted(
        us.team,
        channel,
        ts,
        texts["user"],
        texts["text"],
        thread=thread if thread != ts else "",
        direct=is_direct(channel, kind),
        edited=bool(message.get("edited")),
    )


def _is_from_person(message: Json, us: SlackBotIdentity) -> bool:
    user = message.get("user")
    return bool(user) and user not in {us.user, _SLACKBOT} and not message.get("bot_id")


def _parse_edited(event: Json, us: SlackBotIdentity) -> SlackMessageEdited | SlackMessageDeleted | None:
    now, before = event.get("message"), event.get("previous_message")
    if not isinstance(now, Mapping):
        return None
    if now.get("subtype") == "tombstone":  # replaces a deleted message with replies
        return _parse_deleted({**event, "deleted_ts": now.get("ts")}, us)
    if (now.get("subtype") or "") not in _PEOPLES:
        return None
    # Slack sends the same event when it adds a link preview, or counts replies.
    if isinstance(before, Mapping) and before.get("text") == now.get("text"):
        return None
    written = _parse_posted(now, event, us)
    return SlackMessageEdited(written) if written else None


def _parse_deleted(event: Json, us: SlackBotIdentity) -> SlackMessageDeleted | None:
    before, ts, channel = event.get("previous_message"), event.get("deleted_ts"), event.get("channel")
    if not (isinstance(ts, str) and is_ts(ts) and isinstance(channel, str) and channel):
        return None
    if isinstance(before, Mapping) and "user" in before and not _is_from_person(before, us):
        return None
    return SlackMessageDeleted(us.team, channel, ts)


def is_ts(text: object) -> bool:
    """Return whether a value is a timestamp by which Slack identifies a message."""
    return isinstance(text, str) and bool(_TS.fullmatch(text)) and math.isfinite(float(text))


def _parse_opened(event: Json, _: SlackBotIdentity) -> AssistantOpened | None:
    channel, user, tab = event.get("channel"), event.get("user"), str(event.get("tab"))
    if tab not in {"messages", "home"} or not (isinstance(channel, str) and isinstance(user, str)):
        return None
    return AssistantOpened(channel, user, home=tab == "home")


def _parse_joined(event: Json, us: SlackBotIdentity) -> Invited | None:
    """Parse the event that the bot was invited to a channel; None if someone else joined."""
    channel, by = event.get("channel"), event.get("inviter")
    if event.get("user") != us.user or not (isinstance(channel, str) and channel):
        return None
    return Invited(us.team, channel, by if isinstance(by, str) and by else us.user)


def _parse_stop(event: Json, us: SlackBotIdentity) -> StopRequested | None:
    channel, thread, user = event.get("channel"), event.get("thread_ts"), event.get("user")
    if not (isinstance(channel, str) and is_ts(thread) and isinstance(user, str)):
        return None
    messages = event.get("streaming_message_ts")
    listed = messages if isinstance(messages, list) else [messages]
    return StopRequested(
        us.team, channel, str(thread), user, tuple(message for message in listed if isinstance(message, str))
    )


def _parse_channel_change(event: Json, _: SlackBotIdentity) -> ChannelChanged | None:
    channel = event.get("channel")
    id_ = channel.get("id") if isinstance(channel, Mapping) else channel
    return ChannelChanged(id_, str(event["type"])) if isinstance(id_, str) and id_ else None


def _parse_uninstalled(_: Json, __: SlackBotIdentity) -> WorkspaceDisconnected:
    return WorkspaceDisconnected("The app was uninstalled from the workspace.")


def _parse_revoked(event: Json, us: SlackBotIdentity) -> WorkspaceDisconnected | None:
    tokens = event.get("tokens")
    ours = tokens.get("bot") if isinstance(tokens, Mapping) else None
    if not isinstance(ours, list) or not {us.user, us.bot} & set(filter(None, map(str, ours))):
        return None
    return WorkspaceDisconnected("The workspace revoked the bot token.")


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
)  # events about changes of a channel
PARSERS: Mapping[str, Callable[[Json, SlackBotIdentity], SlackEvent]] = MappingProxyType(
    {
        "message": _parse_message,
        "app_mention": _parse_message,
        "app_home_opened": _parse_opened,
        "member_joined_channel": _parse_joined,
        "agent_session_stopped": _parse_stop,
        "app_uninstalled": _parse_uninstalled,
        "tokens_revoked": _parse_revoked,
        **dict.fromkeys(CHANNELS, _parse_channel_change),
    }
)
"""The parser of each kind of event. Slack sends only those that the app's manifest lists."""
