"""Live messages: what is new of a view is appended to what stands there, until the answer is whole.

A live message only grows, dies after some minutes, can be stopped by its reader, and is not to be had everywhere. So it
is only the way to the answer: whenever something is wrong with it, it is given up, and the same message is updated from
then on; and when the answer is whole, it is stopped and updated to the same form as every other answer, in which the
claims take one line. In a channel only the asker sees it grow; the others see its beginning, and then the answer.
"""

from dataclasses import dataclass
from typing import Any

from bot.desk.types import Question
from bot.platform import CannotPost, PlatformError, PlatformUnavailable, PostGone
from bot.slack.calling import PATIENCE, Calling
from bot.slack.chunks import Sent, grown, opening
from bot.slack.refusals import NotStreaming
from bot.views.turn_view import View

REFUSALS, REFUSED_SECONDS = 3, 600.0
"""After how many refusals one after another no live message is begun, and for how long."""


@dataclass(slots=True)
class _Live:
    """A live message."""

    ts: str
    sent: Sent
    given_up: bool = False


class Streaming:
    """The live messages of one workspace, by their questions."""

    def __init__(self, call: Calling) -> None:
        """Take the way to Slack."""
        self._call = call
        self._live: dict[str, _Live] = {}
        self._refused, self._closed_until = 0, 0.0

    def possible(self, question: Question) -> bool:
        """Return whether a question's answer may begin as a live message: in a thread, where Slack has them."""
        return bool(question.place.thread) and self._call.pacing.now() >= self._closed_until

    def live(self, question: Question, ts: str) -> bool:
        """Return whether a message is a live one of ours."""
        live = self._live.get(question.key)
        return live is not None and live.ts == ts

    async def begin(self, question: Question, view: View) -> str:
        """Begin a live message and return its id; empty where Slack will not have one, or the limits leave no room.

        Raises:
            PlatformUnavailable: Without `seconds` it may stand there.
        """
        made, sent = opening(view)
        if not sent.cards:
            return ""
        try:
            answer = await self._call("chat.startStream", patience=0.0, **_where(question), chunks=made)
        except PlatformUnavailable as error:
            if error.seconds is None:
                raise
            return ""
        except (CannotPost, PostGone, NotStreaming):
            self._refused += 1
            if self._refused >= REFUSALS:
                self._refused, self._closed_until = 0, self._call.pacing.now() + REFUSED_SECONDS
            return ""
        ts, self._refused = str(answer["ts"]), 0
        self._live[question.key] = _Live(ts, sent)
        return ts

    async def go_on(self, question: Question, view: View) -> bool:
        """Append what is new if there is room for it within the limits; returns False if it has to be given up."""
        live = self._live[question.key]
        live.given_up = live.given_up or not await self._appended(question, live, view)
        return not live.given_up

    async def _appended(self, question: Question, live: _Live, view: View) -> bool:
        try:
            made, sent = grown(live.sent, view)
        except ValueError:
            return False
        if not made:
            return True
        facts = {"channel": question.place.channel, "ts": live.ts, "chunks": made}
        try:
            await self._call("chat.appendStream", patience=0.0, **facts)
        except PlatformUnavailable as error:
            # Whether it arrived nobody knows, and appended again it would stand there twice.
            return error.seconds is not None
        except PlatformError:
            return False
        live.sent = sent
        return True

    async def end(self, question: Question, ts: str, metadata: dict[str, Any], *, patience: float = PATIENCE) -> None:
        """Stop a live message, so that it can be updated; one that is none any more is no error.

        Raises:
            PlatformUnavailable: It has to be tried again.
        """
        try:
            facts = {"channel": question.place.channel, "ts": ts, "metadata": metadata}
            await self._call("chat.stopStream", patience=patience, **facts)
        except PlatformUnavailable:
            raise
        except PlatformError:
            pass  # The update that follows says whether the message is still there.
        self.forget(question)

    def forget(self, question: Question) -> None:
        """Let go of a question's live message."""
        self._live.pop(question.key, None)


def _where(question: Question) -> dict[str, Any]:
    """Return where a live message goes. In a channel Slack wants to know for whom it is."""
    place, asker = question.place, question.asker
    who = {"recipient_team_id": asker.workspace, "recipient_user_id": asker.user} if asker.user else {}
    return {"channel": place.channel, "thread_ts": place.thread, "task_display_mode": "timeline", **who}
