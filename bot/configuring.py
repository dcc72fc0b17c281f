"""`/footnote`: what holds in a channel, for admins to see and to narrow. `channel_commands` decides and keeps it."""

from collections.abc import Callable

from bot.access import Asker
from bot.app import App
from bot.channel_commands import Refused, change, told
from bot.words import say
from storage.errors import StorageError

SHOWING = ("", "settings", "help")
"""What asks to see it; "set" before a key may be left out."""


class Configuring:
    """Shows and changes the settings of one workspace's channels."""

    def __init__(self, app: App, is_admin: Callable[[Asker], bool]) -> None:
        """Take what is opened, and what says who may."""
        self._app, self._is_admin = app, is_admin

    async def answer(self, written: str, by: Asker, language: str) -> str:
        """Do what an admin writes after `/footnote`, and return what they are told; why not, where it is not done."""
        channel = f"{by.platform}:{by.workspace}/{by.channel}"
        key, value = pair(written)
        try:
            if key in SHOWING:
                return await told(self._app, channel, by, is_admin=self._is_admin, language=language)
            return await change(self._app, channel, key, value, by, is_admin=self._is_admin, language=language)
        except Refused as refused:
            return str(refused)
        except StorageError:
            return say("channel_unchangeable", language)


def pair(written: str) -> tuple[str, str]:
    """Return the key and the value that somebody wrote, with or without "set" before them; pure."""
    head, _, rest = " ".join(written.split()).partition(" ")
    if head.lower() == "set":
        head, _, rest = rest.partition(" ")
    return head.lower(), rest
