"""What a post of ours is besides its words: marked, so that it is found again, and without previews; pure."""

from collections.abc import Mapping
from typing import Any

from bot.desk.types import Place, Question
from bot.slack.rendering import Message

Json = dict[str, Any]

ANSWER, CALL = "footnote_answer", "footnote_call"
"""What a post is: part of an answer, or a call for help."""


def mark(kind: str, key: str, page: int = 0) -> Json:
    """Return the metadata of a post, by which it is found again. Everybody in the workspace can read it."""
    return {"event_type": kind, "event_payload": {"key": key, "page": page}}


def marked(message: Mapping[str, Any], kind: str) -> str:
    """Return the key that a message is marked with; empty if it is not marked so."""
    metadata = message.get("metadata") or {}
    return str((metadata.get("event_payload") or {}).get("key", "")) if metadata.get("event_type") == kind else ""


def post(place: Place, message: Message, metadata: Json) -> Json:
    """Return the arguments of a post."""
    return {**_thread(place), **_shown(message), "metadata": metadata, "unfurl_links": False, "unfurl_media": False}


def edit(place: Place, ts: str, message: Message, metadata: Json) -> Json:
    """Return the arguments of an update. What was not unfurled stays so."""
    return {"channel": place.channel, "ts": ts, **_shown(message), "metadata": metadata}


def private(question: Question, message: Message) -> Json:
    """Return the arguments of a post that its asker sees."""
    where = {"channel": question.place.channel, **_replies(question)}
    return {**where, "user": question.asker.user, **_shown(message)}


def response(question: Question, message: Message) -> Json:
    """Return what is sent to the address that came with a command or an action: its asker sees it."""
    where = _replies(question)
    unfurl = {"unfurl_links": False, "unfurl_media": False}
    return {"response_type": "ephemeral", "replace_original": False, **where, **_shown(message), **unfurl}


def _thread(place: Place) -> Json:
    return {"channel": place.channel, **({"thread_ts": place.thread} if place.thread else {})}


def _replies(question: Question) -> Json:
    """Return where among replies one person sees a post: what asks may have none, and then it would not be shown."""
    thread = question.place.thread
    return {"thread_ts": thread} if thread and thread != question.message else {}


def _shown(message: Message) -> Json:
    return {"blocks": list(message.blocks), "text": message.text}
