"""What an admin writes to change what holds in a channel, read, judged, and kept with a record of who did.

`channel_settings` says what becomes of it. Whoever is refused is told why, and of no corpus that cannot be read there.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from textwrap import shorten
from types import MappingProxyType
from typing import Any

from bot.access import Asker, readable
from bot.app import App
from bot.channel_settings import KEYS, QUOTING, ChannelSettings, by_file, in_effect, narrowed
from bot.words import has, say

RESET = "reset"
"""Written as a value it gives a key back to the settings file."""
_SWITCH: Mapping[str, bool] = MappingProxyType({"on": True, "off": False})
_CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"answer": ("mention", "every"), "ephemeral": tuple(_SWITCH), "paused": tuple(_SWITCH)}
)
_NOBODY = "nobody"
_MENTION = re.compile(r"<@!?([^>|\s]+)(?:\|[^>]*)?>")


class Refused(Exception):
    """A change is not made; `str()` says why, in the asker's language."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is kept of a change."""

    key: str
    value: Any | None
    """None gives the key back to the settings file."""
    words: str
    """What the admin is told."""


async def change(
    app: App, channel: str, key: str, value: str, by: Asker, *, is_admin: Callable[[Asker], bool], language: str
) -> str:
    """Change what holds in a channel, and return what its admin is told.

    Args:
        app: What is opened.
        channel: Which, such as `slack:T1/C1`; the admin must stand there.
        key: What is to change; one of `KEYS`.
        value: To what, as it was written; `reset` for what the settings file says.
        by: Who changes it, and where.
        is_admin: Says whether somebody may.
        language: The admin's.

    Raises:
        Refused: it is not changed.
        StorageError: it could not be kept.
    """
    here = f"{by.platform}:{by.workspace}"
    if not is_admin(by):
        raise Refused(say("channel_admins", language))
    if channel != f"{here}/{by.channel}":
        raise Refused(say("channel_elsewhere", language))
    readers = app.settings.readers
    known = {corpus.name: readers.get(corpus.name, ()) for corpus in await app.manifest.catalogue()}
    ceiling, now = by_file(app.settings, channel), in_effect(app.settings, await app.overrides.of(channel), channel)
    made = changed(ceiling, readable(known, by), key.strip().lower(), value.strip(), language=language)
    was = getattr(now, made.key)
    await app.overrides.set(channel, made.key, made.value, by=f"{here}/{by.user}", was=was)
    return made.words


async def told(app: App, channel: str, by: Asker, *, is_admin: Callable[[Asker], bool], language: str) -> str:
    """Return what holds in the channel where an admin stands, a line a key, and how it is changed.

    Raises:
        Refused: they are no admin, or stand elsewhere.
        StorageError: it cannot be looked up.
    """
    if not is_admin(by):
        raise Refused(say("channel_admins", language))
    if channel != f"{by.platform}:{by.workspace}/{by.channel}":
        raise Refused(say("channel_elsewhere", language))
    now = in_effect(app.settings, await app.overrides.of(channel), channel)
    readers = app.settings.readers
    known = {corpus.name: readers.get(corpus.name, ()) for corpus in await app.manifest.catalogue()}
    there = tuple(name for name in readable(known, by) if now.corpora is None or name in now.corpora)
    values = {key: getattr(now, key) for key in KEYS} | {"corpora": there, "system": now.system or app.system}
    lines = [f"{key}: {_explained(key, _shown(value), language)}" for key, value in values.items()]
    return "\n".join((say("channel_now", language), *lines, say("channel_how", language)))


def changed(ceiling: ChannelSettings, there: Collection[str], key: str, written: str, *, language: str) -> Change:
    """Return what a change comes to. Pure.

    Args:
        ceiling: What the settings file says of the channel.
        there: The corpora that its readers let be read there.
        key: What is to change.
        written: To what.
        language: Whose words it is told in.

    Raises:
        Refused: there is no such key or value, or it would widen what the file allows.
    """
    if key not in KEYS:
        raise Refused(say("channel_no_key", language, key=_short(key), known=", ".join(KEYS)))
    allowed = getattr(ceiling, key)
    corpora = tuple(name for name in there if ceiling.corpora is None or name in ceiling.corpora)
    shown = _shown(corpora if key == "corpora" else allowed)
    if written.lower() == RESET:
        return Change(key, None, say("channel_reset", language, key=key, value=shown))
    value = _read(ceiling, corpora, key, written, language)
    asked = ChannelSettings(ceiling.id, **{key: value})
    if getattr(narrowed(ceiling, {key: value}), key) != getattr(asked, key):
        raise Refused(say("channel_wider", language, key=key, value=_short(written), allowed=shown))
    kept = None if value == allowed else value
    return Change(key, kept, say("channel_set", language, key=key, value=_shown(value)))


def _read(ceiling: ChannelSettings, corpora: tuple[str, ...], key: str, written: str, language: str) -> Any:
    """Return the value that was written. Raises `Refused` where it is none."""
    if key == "corpora":
        return _corpora(corpora, written, language)
    if key == "ask":
        people = _people(ceiling, written)
        return tuple(person for person in ceiling.ask if person in people) if people <= set(ceiling.ask) else people
    fits = _CHOICES.get(key, tuple(dict.fromkeys(filter(None, (QUOTING, ceiling.system)))))
    if written.lower() not in fits:
        raise Refused(say("channel_unfit", language, key=key, value=_short(written), fits=", ".join(fits)))
    return _SWITCH.get(written.lower(), written.lower())


def _corpora(there: tuple[str, ...], written: str, language: str) -> tuple[str, ...]:
    """Return the corpora that were named, in their order. One out of reach is not told apart from none."""
    names = _listed(written)
    unknown = next((name for name in names if name not in there), None)
    if unknown is not None or not names:
        known = _shown(there)
        raise Refused(say("channel_no_corpus", language, name=_short(unknown or written), known=known))
    return tuple(name for name in there if name in names)


def _people(ceiling: ChannelSettings, written: str) -> frozenset[str]:
    workspace = ceiling.id.rpartition("/")[0]
    names = () if written.lower() == _NOBODY else _listed(_MENTION.sub(r"\1", written))
    return frozenset(name if "/" in name else f"{workspace}/{name}" for name in names)


def _listed(written: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, re.split(r"[,;\s]+", written))))


def _explained(key: str, shown: str, language: str) -> str:
    """Return a value as it is written, and what it means where that can be said."""
    known = (f"channel_means_{key}_{shown}", f"channel_means_{key}")
    means = next((say(occasion, language) for occasion in known if has(occasion)), "")
    return f"{shown} ({means})" if means else shown


def _shown(value: object) -> str:
    """Return a value as it is written."""
    match value:
        case bool():
            return "on" if value else "off"
        case tuple():
            return ", ".join(map(str, value)) or "–"
        case _:
            return str(value) or "–"


def _short(written: str) -> str:
    return shorten(written, 60, placeholder=" …")
