"""What holds in a channel: the settings file's table, narrowed by what admins set by command. Pure.

The file is the ceiling. An override that this version does not know is passed over; one that it knows and cannot read
narrows as far as it can. None widens anything. `channel_commands` reads what admins write and keeps it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from bot.settings import Settings

QUOTING = "extractive"
"""The system that asks no model; to have it answer is the only change of system that narrows."""


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    """What holds in one channel."""

    id: str
    corpora: tuple[str, ...] | None = None
    """Those of the readable ones that are searched here; None for all of them."""
    system: str = ""
    """Empty for the one that answers everywhere."""
    answer: Literal["mention", "every"] = "mention"
    ephemeral: bool = False
    """Whether answers are shown to the asker alone."""
    ask: tuple[str, ...] = ()
    """Whom "Ask a person" mentions, such as `slack:T1/U1`."""
    paused: bool = False
    """Whether nothing is answered here for now."""
    threads: Literal["never", "long"] = "never"
    """Whether a longer exchange gets a thread of its own."""


def in_effect(settings: Settings, overrides: Mapping[str, Any], channel_id: str) -> ChannelSettings:
    """Return what holds in a channel, such as `slack:T1/C1`, under what admins set there."""
    return narrowed(by_file(settings, channel_id), overrides)


def by_file(settings: Settings, channel_id: str) -> ChannelSettings:
    """Return what the settings file says of a channel."""
    table = next((channel for channel in settings.channel if channel.id == channel_id), None)
    return ChannelSettings(**dict(table)) if table else ChannelSettings(channel_id)


def narrowed(ceiling: ChannelSettings, overrides: Mapping[str, Any]) -> ChannelSettings:
    """Return a channel's settings under overrides: what stands under each key, and never more."""
    known = {key: narrow for key, narrow in KEYS.items() if key in overrides}
    changes: dict[str, Any] = {key: narrow(getattr(ceiling, key), overrides[key]) for key, narrow in known.items()}
    return replace(ceiling, **changes)


def _corpora(ceiling: tuple[str, ...] | None, value: object) -> tuple[str, ...]:
    chosen = _texts(value)
    return chosen if ceiling is None else tuple(name for name in ceiling if name in chosen)


def _system(ceiling: str, value: object) -> str:
    return QUOTING if value == QUOTING else ceiling


def _answer(ceiling: str, value: object) -> str:
    return ceiling if value == "every" else "mention"


def _set(ceiling: bool, value: object) -> bool:  # noqa: FBT001 - it is the setting's value
    return ceiling or value is not False


def _ask(ceiling: tuple[str, ...], value: object) -> tuple[str, ...]:
    chosen = _texts(value)
    return tuple(person for person in ceiling if person in chosen)


def _texts(value: object) -> tuple[str, ...]:
    """Return the texts of a list; none of what is no list."""
    listed = value if isinstance(value, list | tuple) else ()
    return tuple(dict.fromkeys(one for one in listed if isinstance(one, str)))


KEYS: Mapping[str, Callable[[Any, object], object]] = MappingProxyType(
    {"corpora": _corpora, "system": _system, "answer": _answer, "ephemeral": _set, "ask": _ask, "paused": _set}
)
"""What can be set by command, each with what becomes of the file's value under the one that was set."""
