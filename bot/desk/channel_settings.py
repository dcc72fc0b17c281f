"""Resolve a channel's settings, and apply the changes that its admins write.

The settings file is the ceiling, and overrides only narrow it. An override with an unknown key is ignored; one with a
known key and an unreadable value narrows as far as possible.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from textwrap import shorten
from types import MappingProxyType
from typing import Any, Literal

from bot.access import Asker, find_visible_corpora
from bot.answering.study import STUDY
from bot.app import App
from bot.settings.tables.settings_tables import Settings
from bot.views.catalog import has_message, translate
from pipeline.kit import EFFORTS, Effort
from storage.errors import StorageError
from storage.language.lazy_pattern import lazy_compile


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    id: str
    corpora: tuple[str, ...] | None = None  # the readable corpora that are searched here; None for all of them
    system: str = ""  # empty for the default system
    answer: Literal["mention", "every"] = "mention"
    ephemeral: bool = False  # whether only the asker sees an answer
    ask: tuple[str, ...] = ()  # people whom "Ask a person" mentions, such as `slack:T1/U1`
    paused: bool = False  # whether no question is answered here for now
    threads: Literal["never", "long"] = "never"  # whether a longer exchange gets its own thread
    tone: str | None = None  # how a model words answers here; None for the default
    effort: Effort = "normal"  # how much is searched and verified for an answer here
    study: tuple[str, ...] = ()  # the two systems that answer by turns; an override is the admins' agreement to them


def resolve_channel_settings(settings: Settings, overrides: Mapping[str, Any], channel_id: str) -> ChannelSettings:
    """Return the settings of a channel, such as `slack:T1/C1`, narrowed by its admins' overrides."""
    return narrow_channel_settings(read_channel_table(settings, channel_id), overrides)


def read_channel_table(settings: Settings, channel_id: str) -> ChannelSettings:
    """Return the settings of a channel in the settings file."""
    table = next((channel for channel in settings.channel if channel.id == channel_id), None)
    if not table:
        return ChannelSettings(channel_id, effort=settings.effort)
    return ChannelSettings(**dict(table) | {"effort": table.effort or settings.effort})


async def load_channel_settings(app: App, channel_id: str) -> ChannelSettings:
    """Return the effective settings of a channel. Raises `StorageError`."""
    return resolve_channel_settings(app.settings, await app.overrides.of(channel_id), channel_id)


async def load_channel_settings_or_file(app: App, channel_id: str) -> ChannelSettings:
    """Return the effective settings, or those of the file if the overrides cannot be read."""
    try:
        return await load_channel_settings(app, channel_id)
    except StorageError:
        return resolve_channel_settings(app.settings, {}, channel_id)


QUOTING_SYSTEM = "extractive"
"""The system that calls no model; switching to it is the only change of system that narrows."""


async def find_searchable_corpora(app: App, by: Asker) -> frozenset[str]:
    """Return the existing corpora that a person may search in their place. Raises `StorageError`."""
    app = app.snapshot()
    channel = await load_channel_settings(app, by.channel_id)
    allowed = frozenset(await find_visible_corpora(app.settings, app.manifest, by))
    return allowed if channel.corpora is None else allowed & set(channel.corpora)


def narrow_channel_settings(ceiling: ChannelSettings, overrides: Mapping[str, Any]) -> ChannelSettings:
    """Return a channel's settings with its admins' overrides applied, which never widen them."""
    known = {key: narrow for key, narrow in CHANNEL_KEYS.items() if key in overrides or key == STUDY}
    changes: dict[str, Any] = {key: narrow(getattr(ceiling, key), overrides.get(key)) for key, narrow in known.items()}
    if changes.get("system") == QUOTING_SYSTEM:
        changes[STUDY] = ()
    return replace(ceiling, **changes)


def _narrow_corpora(ceiling: tuple[str, ...] | None, value: object) -> tuple[str, ...]:
    chosen = _select_texts(value)
    return chosen if ceiling is None else tuple(name for name in ceiling if name in chosen)


def _narrow_system(ceiling: str, value: object) -> str:
    return QUOTING_SYSTEM if value == QUOTING_SYSTEM else ceiling


def _narrow_study(ceiling: tuple[str, ...], value: object) -> tuple[str, ...]:
    """Return the systems of the file if the admins agreed to exactly these, otherwise none."""
    return ceiling if _select_texts(value) == ceiling else ()


def _narrow_tone(ceiling: str | None, value: object) -> str:
    del ceiling, value
    return ""


def _narrow_effort(ceiling: Effort, value: object) -> Effort:
    effort = next((effort for effort in EFFORTS if effort == value), EFFORTS[0])
    return min(ceiling, effort, key=EFFORTS.index)


def _narrow_answer(ceiling: str, value: object) -> str:
    return ceiling if value == "every" else "mention"


def _narrow_switch(ceiling: bool, value: object) -> bool:  # noqa: FBT001 - it is the setting's value
    return ceiling or value is not False


def _narrow_ask(ceiling: tuple[str, ...], value: object) -> tuple[str, ...]:
    chosen = _select_texts(value)
    return tuple(person for person in ceiling if person in chosen)


def _select_texts(value: object) -> tuple[str, ...]:
    listed = value if isinstance(value, list | tuple) else ()
    return tuple(dict.fromkeys(text for text in listed if isinstance(text, str)))


CHANNEL_KEYS: Mapping[str, Callable[[Any, object], object]] = MappingProxyType(
    {
        "corpora": _narrow_corpora,
        "system": _narrow_system,
        STUDY: _narrow_study,
        "effort": _narrow_effort,
        "tone": _narrow_tone,
        "answer": _narrow_answer,
        "ephemeral": _narrow_switch,
        "ask": _narrow_ask,
        "paused": _narrow_switch,
    }
)  # the keys that a command can set, each with how an override narrows the file's value

RESET = "reset"  # the value that removes an override
_SWITCH = {"on": True, "off": False}
_CHOICES: Mapping[str, Mapping[str, Any]] = {
    "effort": {effort: effort for effort in EFFORTS},
    "answer": {"mention": "mention", "every": "every"},
    "ephemeral": _SWITCH,
    "paused": _SWITCH,
    "tone": {"off": ""},
}
_NOBODY = "nobody"
_MENTION = lazy_compile(r"<@!?([^>|\s]+)(?:\|[^>]*)?>")


class ChangeRefused(Exception):
    """A change is refused; `str()` is the reason, in the admin's language."""


@dataclass(frozen=True, slots=True)
class ChannelChange:
    """A change of a channel's setting: the override to store, and the reply."""

    key: str
    value: Any | None  # None removes the override
    words: str  # the reply to the admin


async def change_channel(
    app: App, channel: str, key: str, value: str, by: Asker, *, is_admin: Callable[[Asker], bool], language: str
) -> str:
    """Change a setting of an admin's channel, and return the reply. Raises `ChangeRefused` or `StorageError`."""
    require_admin(channel, by, is_admin, language)
    app = app.snapshot()
    readable = await find_visible_corpora(app.settings, app.manifest, by)
    ceiling = read_channel_table(app.settings, channel)
    now = narrow_channel_settings(ceiling, await app.overrides.of(channel))
    change = plan_channel_change(ceiling, readable, key.strip().lower(), value.strip(), language=language)
    await app.overrides.set(channel, change.key, change.value, by=by.user_id, was=getattr(now, change.key))
    return change.words


async def describe_channel(
    app: App, channel: str, by: Asker, *, is_admin: Callable[[Asker], bool], language: str
) -> str:
    """Return the settings of an admin's channel, and how to change them. Raises `ChangeRefused` or `StorageError`."""
    require_admin(channel, by, is_admin, language)
    app = app.snapshot()
    now = resolve_channel_settings(app.settings, await app.overrides.of(channel), channel)
    readable = tuple(
        name
        for name in await find_visible_corpora(app.settings, app.manifest, by)
        if now.corpora is None or name in now.corpora
    )
    values = {key: getattr(now, key) for key in CHANNEL_KEYS} | {
        "corpora": readable,
        "system": now.system or app.system,
        "tone": app.settings.tone if now.tone is None else now.tone,
    }
    if not read_channel_table(app.settings, channel).study:
        del values[STUDY]
    lines = [f"{key}: {_explain_value(key, _format_value(value, key), language)}" for key, value in values.items()]
    return "\n".join((translate("channel_now", language), *lines, translate("channel_how", language)))


def require_admin(channel: str, by: Asker, is_admin: Callable[[Asker], bool], language: str) -> None:
    if not is_admin(by):
        raise ChangeRefused(translate("channel_admins", language))
    if channel != by.channel_id:
        raise ChangeRefused(translate("channel_elsewhere", language))


def plan_channel_change(
    ceiling: ChannelSettings, readable: Collection[str], key: str, written: str, *, language: str
) -> ChannelChange:
    """Parse a written change, and return the override to store; pure.

    `ceiling` are the channel's settings in the file, `readable` the corpora that may be read there. Raises
    `ChangeRefused` if the key or value is unknown, or would widen what the file allows.
    """
    if key not in CHANNEL_KEYS:
        raise ChangeRefused(translate("channel_no_key", language, key=_shorten(key), known=", ".join(CHANNEL_KEYS)))
    if key == STUDY and not ceiling.study:
        raise ChangeRefused(translate("study_none", language))
    allowed = getattr(narrow_channel_settings(ceiling, {}), key)
    corpora = tuple(name for name in readable if ceiling.corpora is None or name in ceiling.corpora)
    shown = _format_value(corpora if key == "corpora" else allowed, key)
    if written.lower() == RESET:
        return ChannelChange(key, None, translate("channel_reset", language, key=key, value=shown))
    value = _read_value(ceiling, corpora, key, written, language)
    if getattr(narrow_channel_settings(ceiling, {key: value}), key) != value:
        raise ChangeRefused(translate("channel_wider", language, key=key, value=_shorten(written), allowed=shown))
    override = None if value == allowed else value
    shown = _explain_value(key, _format_value(value, key), language) if key == STUDY else _format_value(value)
    return ChannelChange(key, override, translate("channel_set", language, key=key, value=shown))


def _read_value(ceiling: ChannelSettings, corpora: tuple[str, ...], key: str, written: str, language: str) -> Any:
    """Parse a written value. Raises `ChangeRefused`."""
    if key == "corpora":
        return _read_corpora(corpora, written, language)
    if key == "ask":
        people = _read_people(ceiling, written)
        return tuple(person for person in ceiling.ask if person in people) if people <= set(ceiling.ask) else people
    fits: Mapping[str, Any] = (
        {"on": ceiling.study, "off": ()}
        if key == STUDY
        else _CHOICES.get(key) or {name: name for name in (QUOTING_SYSTEM, ceiling.system) if name}
    )
    if written.lower() not in fits:
        unfit = {"key": key, "value": _shorten(written), "fits": ", ".join(fits)}
        raise ChangeRefused(translate("channel_unfit", language, **unfit))
    return fits[written.lower()]


def _read_corpora(readable: tuple[str, ...], written: str, language: str) -> tuple[str, ...]:
    """Parse a list of corpora. An unreadable corpus is refused exactly like an unknown one."""
    names = _split_list(written)
    unknown = next((name for name in names if name not in readable), None)
    if unknown is not None or not names:
        known = _format_value(readable)
        raise ChangeRefused(translate("channel_no_corpus", language, name=_shorten(unknown or written), known=known))
    return tuple(name for name in readable if name in names)


def _read_people(ceiling: ChannelSettings, written: str) -> frozenset[str]:
    workspace = ceiling.id.rpartition("/")[0]
    names = () if written.lower() == _NOBODY else _split_list(_MENTION.sub(r"\1", written))
    return frozenset(name if "/" in name else f"{workspace}/{name}" for name in names)


def _split_list(written: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, re.split(r"[,;\s]+", written))))


def _explain_value(key: str, shown: str, language: str) -> str:
    known = (f"channel_means_{key}_{shown}", f"channel_means_{key}")
    means = next((translate(occasion, language) for occasion in known if has_message(occasion)), "")
    return f"{shown} ({means})" if means else shown


def _format_value(value: object, key: str = "") -> str:
    """Return a value as it is shown. A comparison is blind, so its systems are not named."""
    value = bool(value) if key == STUDY else value
    match value:
        case bool():
            return "on" if value else "off"
        case tuple():
            return ", ".join(map(str, value)) or "–"
        case _:
            return str(value) or "–"


def _shorten(written: str) -> str:
    return shorten(written, 60, placeholder=" …")
