"""Resolve the names of channels in the settings, such as `slack:#hr`, to channels; pure.

The first channel found for a name is recorded. If that channel is renamed, or another one takes over the name, access
stays with the first channel until the settings change.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.settings.platform_registry import is_channel_name, load_platforms, platform_of, split_channel_name
from bot.settings.tables.settings_tables import Settings

BY_ID = "Write the channel's id instead of its name, or fix the name; only members see a private channel."


@dataclass(frozen=True, slots=True)
class NamedChannel:
    """A channel as its platform lists it."""

    id: str  # as settings name it: `slack:T1/C1`
    name: str

    @property
    def workspace(self) -> str:
        return self.id.partition(":")[2].partition("/")[0]


ListChannels = Callable[[Settings], Awaitable[Sequence[NamedChannel]]]
"""Lists the channels of a platform that the bot sees, on the configured servers. Raises `PlatformError`."""


@dataclass(frozen=True, slots=True)
class NameReading:
    """The result of resolving a channel's name."""

    name: str
    id: str = ""  # empty if unknown
    fault: str = ""  # why it is unknown
    note: str = ""  # how the channel has changed on the platform, to follow the name


def list_channel_names(settings: Settings) -> tuple[str, ...]:
    """List the names of channels that settings use, each once."""
    used = (*sorted(settings.readers), *(channel.id for channel in settings.channel), settings.schedule.admin_channel)
    return tuple(dict.fromkeys(filter(is_channel_name, used)))


def read_name(name: str, channels: Sequence[NamedChannel], known: str = "") -> NameReading:
    """Return the channel of a name. A name that was resolved before keeps its `known` channel."""
    workspace, called = split_channel_name(name)
    here = [channel for channel in channels if workspace in {"", channel.workspace}]
    ids = [channel.id for channel in here if channel.name == called]
    ids = ids or [channel.id for channel in here if channel.name.casefold() == called.casefold()]
    title = load_platforms()[platform_of(name)].title
    if known:
        return NameReading(name, known, note="" if known in ids else _describe_change(known, channels, ids))
    match ids:
        case [only]:
            return NameReading(name, only)
        case []:
            return NameReading(name, fault=f"{title} has no channel of that name that the bot can see")
        case _:
            return NameReading(name, fault=f"{title} has {len(ids)} channels of that name: {', '.join(ids)}")


def _describe_change(known: str, channels: Sequence[NamedChannel], ids: Sequence[str]) -> str:
    called = next((channel.name for channel in channels if channel.id == known), "")
    now = f"is called #{called} now" if called else "the bot can no longer see"
    other = f"; the name now belongs to {', '.join(ids)}, which gets no access by it" if ids else ""
    return f"still means {known}, which {now}{other}"


def apply_names(settings: Settings, ids: Mapping[str, str]) -> Settings:
    """Return settings with ids in place of names. An unresolved name stays, and gives no one access.

    Raises `ValueError` if two tables then name the same channel.
    """

    def replace_all(readers: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(ids.get(reader, reader) for reader in readers))

    corpora = tuple(
        corpus.model_copy(update={"visible_to": replace_all(corpus.visible_to)}) for corpus in settings.corpus
    )
    channels = tuple(channel.model_copy(update={"id": ids.get(channel.id, channel.id)}) for channel in settings.channel)
    named = [channel.id for channel in channels]
    if twice := next((name for name in named if named.count(name) > 1), ""):
        raise ValueError(f"channel has two entries for {twice}, one of them by its name")
    engine, schedule = settings.search_engine, settings.schedule
    changes: dict[str, Any] = {
        "corpus": corpora,
        "channel": channels,
        "search_engine": engine.model_copy(update={"visible_to": replace_all(engine.visible_to)}),
        "schedule": schedule.model_copy(
            update={"admin_channel": ids.get(schedule.admin_channel, schedule.admin_channel)}
        ),
    }
    return settings.model_copy(update=changes) if ids else settings
