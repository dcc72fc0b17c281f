"""Actions of users in the fake Slack: each one changes the state, and sends the app the events that Slack sends."""

import copy
from typing import Any

from tests.platforms.slack import events
from tests.platforms.slack import interactions as made
from tests.platforms.slack.delivery import Delivery
from tests.platforms.slack.events import callback, changed_event, message_event
from tests.platforms.slack.responding import Settling
from tests.platforms.slack.state import BOT, Message, View


class People:
    """The users. A returned `Delivery` shows when and how the app acknowledged."""

    def __init__(self, slack: Any) -> None:
        self._slack = slack
        self._sent: dict[str, list[dict[str, Any]]] = {}
        """The events of each message."""
        self._settling = Settling(slack)

    # Messages.

    async def say(
        self, text: str, *, user: str = "U1", channel: str = "C1", thread: str = "", silent: bool = False, **more: Any
    ) -> str:
        """Write a message, and return its ts. `silent` sends no event; `more` goes into the event."""
        state = self._slack.state
        place = state.channels[channel]
        assert user in place.members - ({user} if place.archived else set()), f"{user} cannot write to {channel}"
        message = state.add(Message(state.ts(), channel, user, text, thread))
        if not silent:
            self._tell(message, **more)
        self._slack.notify()
        return message.ts

    async def mention(self, text: str, **more: Any) -> str:
        """Write a message that mentions the bot. It arrives as two events."""
        return await self.say(f"<@{BOT}> {text}", **more)

    async def dm(self, text: str, *, user: str = "U1", thread: str = "", **more: Any) -> str:
        return await self.say(text, user=user, channel=self._slack.state.dm(user).id, thread=thread, **more)

    async def again(self, ts: str, *, same_id: bool = False) -> None:
        """Deliver the events of a message once more, as new ones or with the same ids."""
        for body in self._sent[ts]:
            again = body if same_id else callback(body["event"], self._slack.state)
            self._slack.courier.hand_out("events_api", copy.deepcopy(again))

    async def edit(self, ts: str, text: str) -> None:
        message = self.find(ts)
        before = copy.deepcopy(message)
        message.text, message.edited = text, self._slack.state.ts()
        self._slack.send_event(changed_event(message, before, self._slack.state))
        if self._mentions(message) and not self._mentions(before):
            self._mention(message)  # [K] a mention that is edited in counts as one
        self._slack.notify()

    async def delete(self, ts: str) -> None:
        self._slack.removed(self.find(ts))

    async def unfurl(self, ts: str) -> None:
        """Let a preview appear under a message: a change without an author."""
        message = self.find(ts)
        event = changed_event(message, copy.deepcopy(message), self._slack.state)
        event["message"]["attachments"] = [{"from_url": "https://example.com/", "id": 1}]
        self._slack.send_event(event)

    def _tell(self, message: Message, **more: Any) -> None:
        event = message_event(message, self._slack.state, **more)
        sent = [self._slack.send_event(event)]
        if self._mentions(message):
            sent.append(self._mention(message, **more))
        self._sent[message.ts] = sent

    def _mention(self, message: Message, **more: Any) -> dict[str, Any]:
        event = message_event(message, self._slack.state, **more) | {"type": "app_mention"}
        return self._slack.send_event({name: value for name, value in event.items() if name != "channel_type"})

    def _mentions(self, message: Message) -> bool:
        place = self._slack.state.channels[message.channel]
        written = not message.subtype and f"<@{BOT}" in message.text
        return written and place.kind != "dm" and BOT in place.members

    # Presses, commands and submissions.

    async def press(self, action_id: str, ts: str, *, user: str = "U1", chosen: Any = None) -> Delivery:
        """Press something in a message that the user sees. `chosen`: positive or negative."""
        message = self.find(ts)
        assert message.only in {"", user}, "the user does not see this message"
        blocks = list(message.blocks)
        for kind, part in message.stream.parts if message.stream else ():
            blocks += part if kind == "blocks" else []
        ((block_id, element),) = [pair for pair in made.elements(blocks) if pair[1]["action_id"] == action_id]
        action = made.action(element, block_id, self._slack.state.ts(), chosen)
        return self._hand_out(made.pressed(self._slack, user, message, action))

    async def press_in_modal(self, action_id: str, *, user: str = "U1") -> Delivery:
        view = self.view(user)
        ((block_id, element),) = [pair for pair in made.elements(view.body) if pair[1]["action_id"] == action_id]
        action = made.action(element, block_id, self._slack.state.ts())
        body = {"container": {"type": "view", "view_id": view.id}, "view": events.view_json(view), "actions": [action]}
        return self._hand_out(made.common(self._slack, "block_actions", user) | body)

    async def submit(self, *, user: str = "U1", **values: Any) -> Delivery:
        """Submit the modal that the user has open; values by action_id, the others unchanged."""
        view = self.view(user)
        assert "submit" in view.body, "there is nothing to submit"
        body = made.common(self._slack, "view_submission", user)
        shown = events.view_json(view) | {"state": {"values": self._values(view, values)}}
        return self._hand_out(body | {"view": shown, "response_urls": []}, view)

    async def command(self, name: str, text: str = "", *, user: str = "U1", channel: str = "C1") -> Delivery:
        """Type a slash command; its acknowledgement is shown to the user."""
        form = made.command(self._slack, user, channel, name, text)
        delivery = self._slack.courier.hand_out("slash_commands", form)
        self._settling.command(delivery, form)
        return delivery

    async def shortcut(self, callback_id: str, ts: str, *, user: str = "U1") -> Delivery:
        return self._hand_out(made.shortcut(self._slack, user, callback_id, self.find(ts)))

    def _hand_out(self, body: dict[str, Any], view: View | None = None) -> Delivery:
        delivery = self._slack.courier.hand_out("interactive", body)
        self._settling.interaction(delivery, body, view)
        return delivery

    def _values(self, view: View, values: dict[str, Any]) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for block_id, element in made.elements(view.body["blocks"]):
            if element["type"] == "plain_text_input":
                value = values.pop(element["action_id"], None)
                found.setdefault(block_id, {})[element["action_id"]] = {"type": element["type"], "value": value}
            if element["type"] == "checkboxes":
                ticked = values.pop(element["action_id"], "")
                chosen = [option for option in element["options"] if option["value"] == ticked]
                found[block_id] = {element["action_id"]: {"type": element["type"], "selected_options": chosen}}
            if element["type"] == "radio_buttons":  # an input that is not optional must be filled in
                picked = values.pop(element["action_id"])
                (option,) = [option for option in element["options"] if option["value"] == picked]
                found[block_id] = {element["action_id"]: {"type": element["type"], "selected_option": option}}
        assert not values, f"the view has no {values}"
        return found

    # Other events.

    async def open_home(self, *, user: str = "U1", tab: str = "messages") -> None:
        place, ts = self._slack.state.dm(user), self._slack.state.ts()
        event = {"type": "app_home_opened", "user": user, "channel": place.id, "tab": tab, "event_ts": ts}
        if tab == "home" and user in self._slack.state.homes:
            event["view"] = events.view_json(self._slack.state.homes[user])
        self._slack.send_event(event)

    async def stop(self, channel: str, thread: str, *, user: str = "U1") -> None:
        streams = [message for message in self._slack.state.thread(channel, thread) if message.stream]
        stopped = [stream for stream in streams if self._slack.streaming(stream)]
        for message in stopped:
            message.stream.state = "stopped_by_user"  # type: ignore[union-attr]
        event = {"type": "agent_session_stopped", "channel": channel, "thread_ts": thread, "user": user}
        names = [one.ts for one in stopped]
        self._slack.send_event(event | {"streaming_message_ts": names, "event_ts": self._slack.state.ts()})

    async def uninstall(self) -> None:
        """Remove the app from the workspace: its tokens end, and it gets an event."""
        for token in self._slack.state.tokens.values():
            token.error = "account_inactive" if token.kind == "bot" else ""
        self._slack.send_event({"type": "tokens_revoked", "tokens": {"oauth": [], "bot": [BOT]}})
        self._slack.send_event({"type": "app_uninstalled"})

    async def rename(self, channel: str, name: str) -> None:
        place = self._slack.state.channels[channel]
        place.old_names.append(place.name)
        place.name = name
        kind = "channel_rename" if place.kind == "public" else "group_rename"
        named = {"id": channel, "name": name, "created": 1_600_000_000}
        self._slack.send_event({"type": kind, "channel": named, "event_ts": self._slack.state.ts()})

    async def share(self, channel: str, *, undo: bool = False) -> None:
        """Share a channel with another organisation, or stop sharing it."""
        self._slack.state.channels[channel].externally = not undo
        kind = "channel_unshared" if undo else "channel_shared"
        event = {"type": kind, "channel": channel, "event_ts": self._slack.state.ts()}
        self._slack.send_event(event | ({"is_ext_shared": False} if undo else {"connected_team_id": "T2"}))

    async def invite(self, channel: str, who: str = BOT) -> None:
        """Add a user, or the bot, to a channel. Slack posts that there."""
        place = self._slack.state.channels[channel]
        place.members.add(who)
        joined = Message(self._slack.state.ts(), channel, who, f"<@{who}> has joined the channel")
        joined.subtype = "channel_join" if place.kind == "public" else "group_join"
        self._tell(self._slack.state.add(joined))
        kind = {"public": "C", "private": "G"}.get(place.kind, "C")
        event = {"type": "member_joined_channel", "user": who, "channel": channel, "channel_type": kind}
        self._slack.send_event(event | {"team": "T1", "inviter": "U9", "event_ts": self._slack.state.ts()})

    # Reading.

    def find(self, ts: str) -> Message:
        (found,) = [message for message in self._slack.state.messages.values() if message.ts == ts]
        return found

    def view(self, user: str = "U1") -> View:
        return self._slack.state.views[user]

    def answers(self, ts: str) -> list[Message]:
        """Return the bot's public messages in a message's thread, after it."""
        message = self.find(ts)
        found = self._slack.state.thread(message.channel, message.root)
        return [one for one in found if one.user == BOT and one.ts > ts]
