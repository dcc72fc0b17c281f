"""What the app needs to be allowed in Discord, each with what for; `footnote doctor` looks whether it was given."""

from collections.abc import Mapping
from types import MappingProxyType

PERMISSIONS: Mapping[str, tuple[int, str]] = MappingProxyType(
    {
        "View Channels": (1 << 10, "sees where it is asked"),
        "Send Messages": (1 << 11, "answers"),
        "Send Messages in Threads": (1 << 38, "answers in threads and forums"),
        "Create Public Threads": (1 << 35, "opens threads for longer exchanges"),
        "Read Message History": (1 << 16, "reads what was said before, and replies"),
    }
)
"""Of the bot's role in a server: a bit each, and what for."""
INVITED = sum(bit for bit, _ in PERMISSIONS.values())
"""What the link that invites the bot asks for."""
ADMINISTRATOR, MANAGE_SERVER, MANAGE_MESSAGES = 1 << 3, 1 << 5, 1 << 13
GUILDS, MESSAGES, DIRECT, CONTENT = 1 << 0, 1 << 9, 1 << 12, 1 << 15
"""Intents; the last is privileged."""
CONTENT_FLAGS = (1 << 18) | (1 << 19)
"""Of an application: that it may read messages, as a large bot that was verified, or as a small one."""


def intents(*, message_content: bool) -> int:
    """Return the intents of the connection."""
    return GUILDS | MESSAGES | DIRECT | (CONTENT if message_content else 0)


def invitation(application: str) -> str:
    """Return the address that invites the bot into a server."""
    scopes = "bot%20applications.commands"
    return f"https://discord.com/oauth2/authorize?client_id={application}&scope={scopes}&permissions={INVITED}"


def moderates(permissions: object) -> bool:
    """Return whether permissions, as Discord writes them, let somebody remove what others write."""
    given = int(permissions) if isinstance(permissions, str) and permissions.isascii() and permissions.isdigit() else 0
    return bool(given & (ADMINISTRATOR | MANAGE_MESSAGES))
