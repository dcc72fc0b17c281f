"""What people invoke beside writing: `/ask`, `/check`, and the shortcut of a message; pure.

Their answers are their own: only they see them, until they share them. The address to answer at comes with it, and is a
secret, as is the trigger's id; so of that a hash goes into the key.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.access import Asker
from bot.desk.types import Place, Question, TaskKind
from bot.payloads import part
from bot.slack.happening import Us
from bot.slack.reading import is_direct, is_ts, said, task_of
from bot.slack.unescaping import unformatted
from bot.unformatting import without_footnotes

Json = Mapping[str, Any]

ASKING = ("/ask", "/check")
"""The commands that ask."""
CONFIGURING = "/footnote"
SHORTCUT = "footnote_check"
"""The callback id of **Fact-check this message**."""


@dataclass(frozen=True, slots=True)
class Invoked:
    """A question that somebody put by a command or a shortcut."""

    task: TaskKind
    kind: str
    trigger: str
    user: str
    channel: str
    text: str
    url: str
    thread: str = ""

    @property
    def direct(self) -> bool:
        """Whether it was in a DM with us or with somebody else: Slack tells them apart for nobody."""
        return is_direct(self.channel)


def invoked(body: Json, us: Us) -> Invoked | None:
    """Return what a command or a shortcut asks; None where it is none of those that ask."""
    if body.get("command") in ASKING:
        task, text = task_of(str(body["command"])), said(str(body.get("text") or ""), us)
        return Invoked(
            task,
            "command",
            str(body.get("trigger_id", "")),
            str(body.get("user_id", "")),
            str(body.get("channel_id", "")),
            unformatted(text) if task == "check" else text,
            str(body.get("response_url", "")),
        )
    if body.get("type") == "message_action" and body.get("callback_id") == SHORTCUT:
        return _shortcut(body, us)
    return None


def _shortcut(body: Json, us: Us) -> Invoked:
    message = part(body, "message")
    # Of a thread that nobody has begun yet, nothing would be shown that one person is to see.
    root = message.get("thread_ts")
    text = unformatted(said(str(message.get("text") or ""), us))
    return Invoked(
        "check",
        "shortcut",
        str(body.get("trigger_id", "")),
        str(part(body, "user").get("id", "")),
        str(part(body, "channel").get("id", "")),
        without_footnotes(text) if message.get("user") == us.user else text,
        str(body.get("response_url", "")),
        thread=str(root) if is_ts(root) else "",
    )


def question(invoked: Invoked, us: Us, asker: Asker, at: datetime) -> Question:
    """Return the question that it is: a conversation by itself."""
    key = f"slack:{us.team}/{invoked.kind}/{hashlib.sha256(invoked.trigger.encode()).hexdigest()[:32]}"
    place = Place("slack", us.team, invoked.channel, invoked.thread)
    return Question(key, invoked.task, invoked.text, asker, place, key, at, only_asker=True, handle=invoked.url)
