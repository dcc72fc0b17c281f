"""Everything that Slack hands to us, whichever way it comes: what it is, who does it, and what Slack hears at once.

One middleware of bolt's stands before all its listeners, of which there are none: bolt acknowledges events before it
runs those. Here an event is acknowledged when what it asks for is on the disk, and not at all where that failed and
nobody could be told, so that Slack delivers it once more.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.server.supervisor import TaskSupervisor
from bot.slack import invoking, reading
from bot.slack.acting import Pressing, press_of
from bot.slack.answering import Answering
from bot.slack.happening import Changed, Ended, Erased, Halted, Opened, Rewritten, Us, Written
from bot.slack.taking import Taking
from bot.slack.transport import Line

Json = Mapping[str, Any]

LOGGER = "slack_bolt.footnote"
BROKEN = 500


@dataclass(slots=True)
class Listening:
    """What listens to one workspace."""

    us: Us
    taking: Taking
    pressing: Pressing
    answering: Answering
    tasks: TaskSupervisor
    line: Line | None = None
    """The way in which all this comes, which ends when the workspace lets us go."""

    async def hear(self, body: Json) -> Json | str:
        """Take in what Slack hands over, and return what it is answered. Raises where it must come once more."""
        if "event" in body:
            await self.event(body)
            return ""
        if "command" in body:
            return await self._commanded(body)
        match body.get("type"):
            case "message_action":
                await self._invoked(body)
            case "block_actions":
                if press := press_of(body):
                    await self.tasks.soon(self.pressing.press(press))
            case "view_submission":
                view = await self.pressing.comment(body)
                return {"response_action": "update", "view": view} if view else ""
        return ""

    async def event(self, body: Json) -> None:
        """Do what an event means. Raises `StorageError` where it must come once more."""
        match reading.read(body, self.us):
            case Written() as written:
                await self.taking.take(written)
            case Rewritten() as rewritten:
                await self.taking.rewritten(rewritten)
            case Erased() as erased:
                await self.taking.erased(erased)
            case Halted() as halted:
                await self.taking.halted(halted)
            case Opened() as opened:
                self.tasks.spawn(self.answering.suggest(opened))
            case Changed() as changed:
                self.taking.places.forget(changed.channel)
            case Ended(why=why) if self.line:
                self.line.end(why)

    async def _commanded(self, body: Json) -> Json | str:
        found = invoking.invoked(body, self.us)
        if found is None:
            return _private(await self.answering.configure(body)) if body["command"] == invoking.CONFIGURING else ""
        if not found.text:
            return _private(await self.answering.usage(found))
        await self.taking.take_invoked(found)
        return ""

    async def _invoked(self, body: Json) -> None:
        if found := invoking.invoked(body, self.us):
            await self.taking.take_invoked(found)


def bolt(us: Us, api_url: str, hear: Callable[[Json], Awaitable[Json | str]]) -> AsyncApp:
    """Return bolt's app, which hands everything to us. It calls nothing, so it gets no token to call with."""
    logger = logging.getLogger(LOGGER)
    # Below warnings it says what people wrote; its warnings are of tokens that are given otherwise, and of listeners.
    logger.setLevel(logging.ERROR)

    async def authorize() -> AuthorizeResult:
        return AuthorizeResult(enterprise_id=us.enterprise or None, team_id=us.team, bot_user_id=us.user)

    app = AsyncApp(
        logger=logger,
        name="footnote",
        client=AsyncWebClient(base_url=api_url, logger=logger),
        authorize=authorize,
        # `transport` has verified requests, and `reading` ignores what is ours: bolt would log what they say.
        request_verification_enabled=False,
        ignoring_self_events_enabled=False,
    )

    async def accept(req: AsyncBoltRequest) -> BoltResponse:
        try:
            return _response(await hear(req.body))
        except Exception as error:  # noqa: BLE001 - whatever it is, Slack must not think that it arrived
            cause = f"{type(error).__name__}: {error}"
            logging.getLogger(__name__).error("something of Slack's was not taken in", extra={"cause": cause})  # noqa: TRY400
            return BoltResponse(status=BROKEN, body="")

    app.use(accept)
    return app


def _response(answer: Json | str) -> BoltResponse:
    return BoltResponse(status=200, body=answer if isinstance(answer, str) else dict(answer))


def _private(text: str) -> Json:
    return {"response_type": "ephemeral", "text": text}
