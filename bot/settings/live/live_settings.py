"""Hold the settings of a running server, and decide which changes take effect at once.

Marks on the tables (`LIVE`, `SCOPE`, `RESTART`) decide when a changed key takes effect; the innermost mark counts.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic.fields import FieldInfo

from bot.settings.tables.field_types import RESTART, Effect, SettingsTable
from bot.settings.tables.settings_tables import Settings

Table = TypeVar("Table", bound=SettingsTable)
_NAMES = ("name", "id")  # the keys that identify an element of a list of tables


class LiveSettings:
    """The current settings of a server. A turn reads them once, at its start."""

    def __init__(self, settings: Settings) -> None:
        self.current = settings
        self.observers: list[Callable[[Settings], None]] = []
        """Called with new settings; for code that does not read `current` each time."""

    def take(self, settings: Settings) -> None:
        self.current = settings
        for observe in self.observers:
            observe(settings)


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """A key with a changed value, such as `corpus.handbook.visible_to`."""

    key: str
    effect: Effect


@dataclass(frozen=True, slots=True)
class ReloadReport:
    """The result of reading the settings again: keys, never values. With `faults`, nothing changed."""

    changed: tuple[str, ...] = ()  # in effect from the next question on
    waiting: tuple[str, ...] = ()  # for a restart
    notes: tuple[str, ...] = ()  # about names of channels that changed
    faults: tuple[str, ...] = ()


def find_effect(field: FieldInfo, around: Effect | None) -> Effect | None:
    """Return when a change of a field takes effect, by its own mark or that of the enclosing table."""
    return next((mark for mark in field.metadata if isinstance(mark, Effect)), around)


def take_live(running: Table, wanted: Table, around: Effect | None = None) -> Table:
    """Return the settings of a running server with those changes in `wanted` that take effect immediately.

    Changes of fields without a mark, as in a platform's table from another package, wait for a restart.
    """
    taken = dict[str, Any]()
    for name, field in type(running).model_fields.items():
        effect, now, then = find_effect(field, around), getattr(running, name), getattr(wanted, name)
        if isinstance(now, SettingsTable):
            taken[name] = take_live(now, then, effect)
        elif (effect or RESTART).live:
            taken[name] = then
    return running.model_copy(update=taken)


def list_changes(before: SettingsTable, after: SettingsTable) -> tuple[SettingsChange, ...]:
    """List the keys whose values differ. The values are left out, because they may be secrets."""
    return tuple(_compare(before, after, "", None))


def list_scope(settings: SettingsTable) -> dict[str, Any]:
    """Return the values that decide who may read what, by key."""
    return dict(_walk_scope(settings, "", None))


def _compare(
    before: SettingsTable, after: SettingsTable, above: str, around: Effect | None
) -> Iterator[SettingsChange]:
    for name, field in type(before).model_fields.items():
        key, effect = f"{above}{name}", find_effect(field, around)
        was, now = getattr(before, name), getattr(after, name)
        if was == now:
            continue
        if isinstance(was, SettingsTable) and type(was) is type(now):
            yield from _compare(was, now, f"{key}.", effect)
        elif _index_tables(was) or _index_tables(now):
            yield from _compare_lists(_index_tables(was), _index_tables(now), key, effect or RESTART)
        else:
            yield SettingsChange(key, effect or RESTART)


def _compare_lists(
    was: Mapping[str, SettingsTable], now: Mapping[str, SettingsTable], key: str, effect: Effect
) -> Iterator[SettingsChange]:
    for name in [*was, *(name for name in now if name not in was)]:
        if name not in now:
            yield SettingsChange(f"{key}.{name} (gone)", effect)
        elif name not in was:
            yield SettingsChange(f"{key}.{name} (new)", effect)
        else:
            yield from _compare(was[name], now[name], f"{key}.{name}.", effect)
    if list(was) != list(now) and set(was) == set(now):
        yield SettingsChange(f"{key} (order)", effect)


def _walk_scope(table: SettingsTable, above: str, around: Effect | None) -> Iterator[tuple[str, Any]]:
    for name, field in type(table).model_fields.items():
        key, effect, value = f"{above}{name}", find_effect(field, around), getattr(table, name)
        if isinstance(value, SettingsTable):
            yield from _walk_scope(value, f"{key}.", effect)
        elif tables := _index_tables(value):
            for element, inner in tables.items():
                yield from _walk_scope(inner, f"{key}.{element}.", effect)
        elif effect and effect.scope:
            yield key, list(value) if isinstance(value, tuple) else value


def _index_tables(value: object) -> dict[str, SettingsTable]:
    """Return the tables of a list by their name or id; empty for other values."""
    tables = [table for table in value if isinstance(table, SettingsTable)] if isinstance(value, tuple) else []
    return {next(str(getattr(table, name)) for name in _NAMES if hasattr(table, name)): table for table in tables}
