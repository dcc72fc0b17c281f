"""The effects of acknowledgements: commands are answered, modals change, and silence is shown as a failure."""

import asyncio
from typing import Any

from tests.platforms.fake_server import Refused
from tests.platforms.slack.calls import Refusal
from tests.platforms.slack.delivery import Delivery
from tests.platforms.slack.methods.views import checked
from tests.platforms.slack.responding import Hook, take
from tests.platforms.slack.state import Message, View

SLACKBOT = "USLACKBOT"


class Settling:
    """Waits for acknowledgements."""

    def __init__(self, slack: Any) -> None:
        self._slack = slack

    def command(self, delivery: Delivery, form: dict[str, Any]) -> None:
        where = form["channel_id"], form["user_id"]

        def settle(body: Any) -> None:
            if isinstance(body, str) and body:
                body = {"text": body}
            if body:
                take(self._slack, Hook(*where, 0.0), body)

        self._when(delivery, settle, where, f"{form['command']} failed with the error “dispatch_failed”")

    def interaction(self, delivery: Delivery, body: dict[str, Any], view: View | None) -> None:
        """Apply the response to an interaction: only submissions have one."""
        channel = body.get("channel", {}).get("id", "")

        def settle(answer: Any) -> None:
            if body["type"] == "view_submission" and view:
                self._submitted(view, answer or {})
            elif answer:
                self._slack.refused.append(Refused(body["type"], "an answer to what takes none"))

        self._when(delivery, settle, (channel, body["user"]["id"]), "This app did not respond.")

    def _when(self, delivery: Delivery, settle: Any, where: tuple[str, str], failed: str) -> None:
        def done(answer: asyncio.Future[Any]) -> None:
            if answer.cancelled():
                self._tell(*where, failed)
                return
            try:
                settle(answer.result())
            except Refusal as refusal:
                self._slack.refused.append(Refused("acknowledgement", str(refusal)))
                self._tell(*where, failed)
            except Exception as error:  # noqa: BLE001  a callback's error would only be logged
                self._slack.errors.append(error)
            self._slack.notify()

        delivery.answer.add_done_callback(done)

    def _tell(self, channel: str, user: str, text: str) -> None:
        if channel:
            state = self._slack.state
            state.add(Message(state.ts(), channel, SLACKBOT, text, only=user))
            self._slack.notify()

    def _submitted(self, view: View, answer: dict[str, Any]) -> None:
        stack = self._slack.state.views.get(view.user, [])
        match answer.get("response_action"):
            case None:
                stack.pop()
            case "clear":
                stack.clear()
            case "errors":
                if not answer["errors"]:
                    raise Refusal("invalid_arguments")
                view.errors = answer["errors"]
            case "update":
                self._slack.replace(view, checked(answer["view"]))
            case "push":
                self._slack.place(view.user, checked(answer["view"]), stack)
            case _:
                raise Refusal("invalid_arguments")
