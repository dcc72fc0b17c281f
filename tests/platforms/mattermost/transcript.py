"""A post as a user sees it: words, buttons and reactions; and every ping and link that could be read into it."""

import re
from dataclasses import dataclass
from typing import Any

from tests.platforms import markup
from tests.platforms.mattermost.state import Post

_LINK = re.compile(r"(?<!\\)\[((?:\\.|[^\\\[\]])*)\]\((https?://[^\s()]+)\)")
_CHANNEL = re.compile(r"~\w")
_ESCAPED = re.compile(r"\\([`*{}\[\]()#+\-.!_>~|]|\\(?!\w))", re.ASCII)
"""A backslash before a letter is one, as its clients read it."""
_STYLE = re.compile(r"(?<!\\)\*+|^> ", re.MULTILINE)
_MENTION = re.compile(r"(?<!\w)@([a-z0-9][\w.-]*)", re.IGNORECASE)
_SIGNS = {"🛑": "stop", "🔍": "evidence", "👍": "up", "👎": "down", "🙋": "ask", "📢": "share", "🗑": "retract"}
_SIGNS |= {"5️⃣": "rate"}
EMOJI = {
    "stop": "octagonal_sign",
    "evidence": "mag",
    "up": "+1",
    "down": "thumbsdown",
    "ask": "raising_hand",
    "share": "loudspeaker",
    "retract": "wastebasket",
    "example": "star",
}


def words(text: str) -> str:
    """Return the words of a message: links as their labels, without formatting."""
    shown = _STYLE.sub("", _LINK.sub(r"\1", text))
    return str(markup.UNSEEN.sub("", _ESCAPED.sub(r"\1", shown)))


def pressable(post: Post) -> tuple[str, ...]:
    """Return the actions beneath a post, buttons and reactions."""
    attached = "".join(str(one.get("text", "")) for one in attachments(post))
    named = [action["id"] for attachment in attachments(post) for action in attachment.get("actions", ())]
    return (*named, *(action for sign, action in _SIGNS.items() if sign in attached))


def attachments(post: Post) -> list[dict[str, Any]]:
    return list(post.props.get("attachments", []))


def payloads(post: Post) -> list[str]:
    """Return every text of a post that a client reads."""
    labels = [action["name"] for one in attachments(post) for action in one.get("actions", ())]
    return [
        post.message,
        *(str(attachment.get(name, "")) for attachment in attachments(post) for name in ("text", "fallback")),
        *labels,
    ]


@dataclass(frozen=True)
class Text:
    """A state of a post, with every ping and link that clients or the server could read into it."""

    where: str
    pings: tuple[str, ...]
    links: tuple[str, ...]


def of_post(post: Post, users: dict[str, str]) -> Text:
    """Read a post. `users`: ids by name."""
    return Text(post.id, tuple(pings(post, users)), tuple(links(post)))


def pings(post: Post, people: dict[str, str]) -> list[str]:
    """Return all that could notify a user, with their id if there is one of the name."""
    found = [ping for text in payloads(post) for ping in markup.pings(text)]
    plain = [markup.UNSEEN.sub("·", _LINK.sub(r" \1 ", text)) for text in payloads(post)]
    channels = [f"a channel: {one}" for text in plain for one in _CHANNEL.findall(text)]
    named = {match[1].lower(): match[0] for text in payloads(post) for match in _MENTION.finditer(text)}
    return [*channels, *dict.fromkeys(f"{one} {people.get(one[1:].lower(), '')}" for one in (*found, *named.values()))]


def links(post: Post) -> list[str]:
    """Return every address that a client could link, and those that the server would preview."""
    own = [url for text in payloads(post) for url, _ in markup.own_links(text)]
    bare = [link for text in payloads(post) for link in markup.links(text)]
    looked = "attachments" in post.props or post.props.get("unsafe_links") == "true"
    return [*own, *bare, *([] if looked or not own else [f"a preview of {own[0]}"])]
