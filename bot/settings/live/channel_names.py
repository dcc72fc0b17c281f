"""Read the names of channels in the settings, such as `slack:#hr`, as the channels that they mean; pure.

A name means one channel from the moment it is first told, and that is on record: a channel that is called so later,
or one that was renamed, changes nothing of who reads what until somebody changes the settings.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.settings.platform_registry import is_channel_name, load_platforms, platform_of, split_channel_name
from bot.settings.tables.settings_tables import Settings

BY_ID = "Write the channel's id in place of its name, or mend the name; a private channel is seen by who is in it."


@dataclass(frozen=True, slots=True)
class NamedChannel:
    """A channel as its platform lists it."""

    id: str  # as settings name it: `slack:T1/C1`
    name: str

    @property
    def workspace(self) -> str:
        return self.id.partition(":")[2].partition("/")[0]


ListChannels = Callable[[Settings], Awaitable[Sequence[NamedChannel]]]
"""Lists the channels of a platform that the bot sees, of the servers that settings name. Raises `PlatformError`."""


@dataclass(frozen=True, slots=True)
class NameReading:
    """What a name means."""

    name: str
    id: str = ""  # empty where nobody can tell
    fault: str = ""  # why not
    note: str = ""  # how the platform has it by now, where that differs


def list_channel_names(settings: Settings) -> tuple[str, ...]:
    """List the names of channels that settings use, each once."""
    used = (*sorted(settings.readers), *(channel.id for channel in settings.channel), settings.schedule.admin_channel)
    return tuple(dict.fromkeys(filter(is_channel_name, used)))


def read_name(name: str, channels: Sequence[NamedChannel], known: str = "") -> NameReading:
    """Return which of a platform's channels a name means; the `known` one, where it was told before."""
    workspace, called = split_channel_name(name)
    here = [one for one in channels if workspace in {"", one.workspace}]
    found = [one.id for one in here if one.name == called]
    found = found or [one.id for one in here if one.name.casefold() == called.casefold()]
    title = load_platforms()[platform_of(name)].title
    if known:
        return NameReading(name, known, note="" if known in found else _describe_change(known, channels, found))
    match found:
        case [only]:
            return NameReading(name, only)
        case []:
            return NameReading(name, fault=f"{title} has no channel of that name that the bot can see")
        case _:
            return NameReading(name, fault=f"{title} has {len(found)} channels of that name: {', '.join(found)}")


def _describe_change(known: str, channels: Sequence[NamedChannel], found: Sequence[str]) -> str:
    called = next((one.name for one in channels if one.id == known), "")
    now = f"is called #{called} now" if called else "cannot be seen there any more"
    other = f"; the name is now that of {', '.join(found)}, which gets nothing by it" if found else ""
    return f"{known}, which it was told for, {now}{other}"


def apply_names(settings: Settings, ids: Mapping[str, str]) -> Settings:
    """Return settings with ids in the place of names. A name that has none stays, and so names nobody.

    Raises `ValueError` where two tables are of one channel then.
    """

    def replace_all(readers: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(ids.get(reader, reader) for reader in readers))

    corpora = tuple(
        corpus.model_copy(update={"visible_to": replace_all(corpus.visible_to)}) for corpus in settings.corpus
    )
    channels = tuple(channel.model_copy(update={"id": ids.get(channel.id, channel.id)}) for channel in settings.channel)
    named = [channel.id for channel in channels]
    if twice := next((one for one in named if named.count(one) > 1), ""):
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
