"""What can be read at a place at this moment: by its readers, and by what its channel is narrowed to."""

from bot.access import Asker, readable
from bot.app import App
from bot.channel_settings import ChannelSettings, by_file, in_effect
from storage.errors import StorageError


async def readable_here(app: App, by: Asker) -> frozenset[str]:
    """Return the corpora that there are and that somebody may read where they stand. Raises `StorageError`."""
    readers = app.settings.readers
    known = {corpus.name: readers.get(corpus.name, ()) for corpus in await app.manifest.catalogue()}
    channel = await settings_of(app, f"{by.platform}:{by.workspace}/{by.channel}")
    allowed = frozenset(readable(known, by))
    return allowed if channel.corpora is None else allowed & set(channel.corpora)


async def settings_of(app: App, channel_id: str) -> ChannelSettings:
    """Return the settings of a channel as they are in effect. Raises `StorageError`."""
    return in_effect(app.settings, await app.overrides.of(channel_id), channel_id)


async def settings_at_least(app: App, channel_id: str) -> ChannelSettings:
    """Return the same; where admins' changes cannot be read, what the file says.

    What cannot be read cannot be written either: the desk will not keep a question, and tells.
    """
    try:
        return await settings_of(app, channel_id)
    except StorageError:
        return by_file(app.settings, channel_id)
