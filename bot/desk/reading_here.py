"""What can be read at a place at this moment: by its readers, and by what its channel is narrowed to."""

from bot.access import Asker, readable
from bot.app import App
from bot.channel_settings import ChannelSettings, in_effect


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
