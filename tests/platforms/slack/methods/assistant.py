"""assistant.threads.*: what an agent shows in addition to messages."""

from typing import Any

from tests.platforms.slack import limits
from tests.platforms.slack.calls import Call, Refusal, method
from tests.platforms.slack.posting import visible
from tests.platforms.slack.state import Status
from tests.platforms.slack.transcript import piece


def _status(slack: Any, call: Call) -> dict[str, Any]:
    place, loading = _place(slack, call), call.parsed("loading_messages", "invalid_arguments") or []
    if not isinstance(loading, list) or len(loading) > limits.LOADING_MESSAGES:
        raise Refusal("invalid_arguments", "[ERROR] no more than 10 items allowed [json-pointer:/loading_messages]")
    slack.state.statuses.pop(place, None)
    if call["status"]:
        until = slack.state.clock.now() + limits.STATUS_SECONDS
        slack.state.statuses[place] = Status(call["status"], loading, until)
        slack.texts |= {piece(text, f"status of {place[1]}"): None for text in (call["status"], *loading)}
    slack.notify()
    return {}


def _prompts(slack: Any, call: Call) -> dict[str, Any]:
    prompts = call.parsed("prompts", "invalid_arguments")
    well = isinstance(prompts, list) and all(set(prompt) == {"title", "message"} for prompt in prompts)
    if not well or len(prompts) > limits.PROMPTS:
        raise Refusal("invalid_arguments", "[ERROR] no more than 4 items allowed [json-pointer:/prompts]")
    channel = visible(slack.state, call["channel_id"])
    slack.state.prompts[channel.id, call.get("thread_ts") or ""] = prompts
    slack.notify()
    return {}


def _place(slack: Any, call: Call) -> tuple[str, str]:
    channel, thread = visible(slack.state, call.get("channel_id") or ""), str(call["thread_ts"])
    if (channel.id, thread) not in slack.state.messages:
        raise Refusal("invalid_thread_ts")
    return channel.id, thread


METHODS = {
    "assistant.threads.setStatus": method(
        _status, "channel_id thread_ts status", "loading_messages", scopes="chat:write assistant:write"
    ),
    "assistant.threads.setSuggestedPrompts": method(
        _prompts, "channel_id prompts", "thread_ts title", scopes="assistant:write"
    ),
}
