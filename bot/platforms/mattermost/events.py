"""Parse Mattermost's events, posts, channels and users into values; pure.

An event contains its post as a JSON string. Malformed values are ignored.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from bot.platforms.shared.payload_text import Json, build_stripper, read_object, strip_footnotes
from bot.types import Place
from bot.views.sanitize import WORD_JOINER
from storage.language.lazy_pattern import lazy_compile

DIRECT = "D"  # the type of DMs
_AUTOMATIC = ("from_webhook", "from_bot", "from_plugin", "from_oauth_app")
_TYPES = frozenset({"", "me"})  # of users' posts; other types are the server's own
_ADDED = "system_add_to_channel"
_BROADCAST = frozenset({"all", "channel", "here"})
_MENTION = lazy_compile(r"(?<![\w@.-])@([a-z0-9][\w.-]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MattermostBotIdentity:
    """The bot's account on a server."""

    user: str
    name: str  # used in mentions
    teams: Mapping[str, str]  # the names of the bot's teams, by id


@dataclass(frozen=True, slots=True)
class ChannelInfo:
    id: str
    kind: str  # its type, such as open or private
    team: str = ""
    name: str = ""
    shared: bool = False  # whether users of other servers are in it
    archived: bool = False

    @property
    def direct(self) -> bool:
        return self.kind == DIRECT


@dataclass(frozen=True, slots=True)
class Person:
    name: str = ""  # used in mentions
    locale: str = ""
    guest: bool = False
    present: bool = True  # whether they are an active user of this server, not of another
    rules: bool = False  # whether they administer the server


@dataclass(frozen=True, slots=True)
class PostWritten:
    """A user's post, new or edited."""

    channel: str
    id: str
    user: str
    raw: str
    root: str  # the first post of its thread; empty if it is the first itself
    at: datetime
    edited: bool = False


@dataclass(frozen=True, slots=True)
class PostEdited:
    now: PostWritten


@dataclass(frozen=True, slots=True)
class PostDeleted:
    """A deleted post. If `root` is empty, Mattermost also deletes the post's replies, without an event for each."""

    channel: str
    id: str
    user: str  # its author
    root: str


@dataclass(frozen=True, slots=True)
class Reacted:
    """A user added an emoji to a post."""

    channel: str
    post: str
    user: str
    emoji: str


@dataclass(frozen=True, slots=True)
class ChannelChanged:
    channel: str


@dataclass(frozen=True, slots=True)
class Invited:
    channel: str
    by: str


MattermostEvent = PostWritten | PostEdited | PostDeleted | Reacted | ChannelChanged | Invited


def parse_event(frame: Json, us: MattermostBotIdentity) -> MattermostEvent | None:
    """Parse an event; None if the bot ignores it."""
    data, name = read_object(frame, "data"), str(frame.get("event", ""))
    match name:
        case "posted":
            return parse_post(post := _read_inner(data, "post"), us) or _parse_invitation(post, us)
        case "post_edited":
            now = parse_post(_read_inner(data, "post"), us)
            return PostEdited(now) if now else None
        case "post_deleted":
            return _parse_deleted(_read_inner(data, "post"))
        case "reaction_added":
            return _parse_reaction(_read_inner(data, "reaction"), read_object(frame, "broadcast"), us)
        case "channel_updated" | "channel_converted" | "channel_deleted" | "channel_restored":
            channel = data.get("channel_id") or _read_inner(data, "channel").get("id")
            return ChannelChanged(channel) if isinstance(channel, str) else None
    return None


def parse_post(post: Json, us: MattermostBotIdentity) -> PostWritten | None:
    """Parse a user's post; None if it is ours, a bot's or the server's, or invalid."""
    ids = [post.get(name) for name in ("channel_id", "id", "user_id")]
    raw, root, at = post.get("message"), post.get("root_id") or "", post.get("create_at")
    if not all(isinstance(value, str) and value for value in (*ids, "·")) or not isinstance(raw, str):
        return None
    channel, number, user = map(str, ids)
    ignored = user == us.user or str(post.get("type") or "") not in _TYPES or bool(post.get("delete_at"))
    if ignored or _is_automatic(read_object(post, "props")) or not isinstance(at, int):
        return None
    return PostWritten(channel, number, user, raw, str(root), read_time(at), bool(post.get("edit_at")))


def _is_automatic(props: Json) -> bool:
    """Return whether a bot or an integration wrote a post.

    Such posts are ignored, as bots could answer each other endlessly.
    """
    return any(str(props.get(name, "")).lower() == "true" for name in _AUTOMATIC)


def _parse_invitation(post: Json, us: MattermostBotIdentity) -> Invited | None:
    """Parse the server's post which reports that the bot was added to a channel; None if someone else was added."""
    channel, by, added = post.get("channel_id"), post.get("user_id"), read_object(post, "props").get("addedUserId")
    ours = post.get("type") == _ADDED and added == us.user
    return Invited(channel, by) if ours and isinstance(channel, str) and isinstance(by, str) else None


def _parse_deleted(post: Json) -> PostDeleted | None:
    channel, number = post.get("channel_id"), post.get("id")
    if not (isinstance(channel, str) and isinstance(number, str)):
        return None
    return PostDeleted(channel, number, str(post.get("user_id", "")), str(post.get("root_id") or ""))


def _parse_reaction(reaction: Json, broadcast: Json, us: MattermostBotIdentity) -> Reacted | None:
    channel = reaction.get("channel_id") or broadcast.get("channel_id")
    ids = [reaction.get("post_id"), reaction.get("user_id"), reaction.get("emoji_name")]
    if not all(isinstance(value, str) and value for value in (channel, *ids)) or ids[1] == us.user:
        return None
    return Reacted(str(channel), *map(str, ids))


def _read_inner(data: Json, name: str) -> Json:
    """Return the object in a field's JSON string; an empty one if there is none."""
    try:
        value: Any = json.loads(str(data.get(name, "")))
    except ValueError:
        return {}
    return value if isinstance(value, Mapping) else {}


def read_time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def count_milliseconds(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def read_channel(data: Json) -> ChannelInfo | None:
    """Parse a channel; None if it is invalid."""
    number, kind = data.get("id"), data.get("type")
    if not (isinstance(number, str) and isinstance(kind, str) and number and kind):
        return None
    name = str(data.get("display_name") or data.get("name") or "")
    archived, shared = bool(data.get("delete_at")), data.get("shared") is True
    return ChannelInfo(number, kind, str(data.get("team_id") or ""), name if kind != DIRECT else "", shared, archived)


def read_person(data: Json) -> Person:
    roles = str(data.get("roles", "")).split()
    present = bool(data.get("username")) and not data.get("delete_at") and not data.get("remote_id")
    locale = str(data.get("locale") or "").partition("-")[0].lower()
    return Person(str(data.get("username", "")), locale, "system_guest" in roles, present, "system_admin" in roles)


def list_mentioned(raw: str) -> list[str]:
    """Return the names that a text mentions, in lower case."""
    return [mention[1].rstrip(".-_").lower() for mention in _MENTION.finditer(raw)]


def is_addressed(raw: str, us: MattermostBotIdentity) -> bool:
    return us.name.lower() in list_mentioned(raw)


def is_to_others(raw: str) -> bool:
    """Return whether a text begins with a mention or mentions everyone; for texts that do not mention us."""
    mentioned = list_mentioned(raw)
    begins = raw.lstrip().startswith("@") and bool(mentioned)
    return begins or bool(_BROADCAST.intersection(mentioned))


Command = Literal["check", "private", "sources", "settings", "help"]
_COMMANDS: Mapping[str, Command] = {
    "check": "check",
    "private": "private",
    "sources": "sources",
    "footnote": "settings",
    "settings": "settings",
    "help": "help",
}
_COMMAND = lazy_compile(r"!([a-z]+)(?=\s|\Z)[ \t]*", re.IGNORECASE)

strip_formatting = build_stripper(
    lines=r">[ \t]+|#{1,6}[ \t]+",
    marks=(r"\*\*\*", r"\*\*", r"\*", "___", "__", "_", "~~"),
    link=r"\[([^\[\]\n]+)\]\(<?https?://[^\s()<>]+>?\)",
)  # removes Mattermost's formatting
_LINK = lazy_compile(r"(?<!\\)\[((?:\\.|[^\\\[\]])*)\]\([^()\s]*\)")
_MARKUP = lazy_compile(r"\\([!-/:-@\[-`{-~])|\*\*|(?<![\\*\w])[*_](?=\S)|(?<=\S)(?<!\\)[*_](?!\w)|^> ", re.MULTILINE)


def split_command(raw: str, us: MattermostBotIdentity) -> tuple[Command | None, str]:
    """Return a text's leading command, if it has one, and the rest without Markdown."""
    text = re.sub(rf"(?<![\w@.-])@{re.escape(us.name)}(?![\w-])[,:]?[ \t]*", "", raw, flags=re.IGNORECASE).strip()
    command_word = _COMMAND.match(text)
    command = _COMMANDS.get(command_word[1].lower()) if command_word else None
    return command, strip_formatting(text[command_word.end() :] if command_word and command else text).strip()


def read_own_text(message: str) -> str:
    """Return the text of our own post without Markdown and footnotes."""
    labelled = _LINK.sub(r"\1", message)
    return strip_footnotes(_MARKUP.sub(lambda mark: mark[1] or "", labelled).replace(WORD_JOINER, ""))


def locate(written: PostWritten, channel: ChannelInfo) -> tuple[Place, str]:
    """Return the place and the conversation of a post's answer: its thread, or the DM; pure."""
    place = Place("mattermost", channel.team, channel.id, written.root)
    if channel.direct and not written.root:
        return place, place.channel_id
    root = written.root or written.id
    return replace(place, thread=root), f"{place.channel_id}/{root}"
