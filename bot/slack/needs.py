"""What the app needs to be allowed in Slack, each with what for.

`slack-manifest.yaml` asks for exactly these, which a test holds it to; `footnote doctor` looks whether they were given.
"""

from collections.abc import Mapping
from types import MappingProxyType

SCOPES: Mapping[str, str] = MappingProxyType(
    {
        "app_mentions:read": "hears where it is mentioned",
        "assistant:write": "shows what it is doing, and suggests what to ask",
        "channels:history": "reads threads of public channels that it is in",
        "channels:read": "knows whether a public channel is shared with other organisations",
        "chat:write": "answers",
        "commands": "has commands and the shortcut",
        "groups:history": "reads threads of private channels that it is in",
        "groups:read": "knows whether a private channel is shared",
        "im:history": "reads what is written to it alone",
        "im:read": "finds the chats with it again",
        "mpim:history": "reads group messages that it is in",
        "mpim:read": "knows whether a group message is shared",
        "users:read": "knows whose organisation somebody is of, and their language",
    }
)
"""Of the bot token."""
SOCKET_SCOPE = "connections:write"
"""Of the app token, for Socket Mode."""
MESSAGES = ("message.channels", "message.groups", "message.im", "message.mpim")
"""The events that all arrive as `message`."""
