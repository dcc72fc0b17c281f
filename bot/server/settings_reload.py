"""Apply changed settings while a server runs. All of them are validated first; an invalid file changes nothing."""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from bot.desk.platform_port import PlatformError, PlatformUnavailable
from bot.desk.supervisor import compute_backoff
from bot.settings.errors import SettingsError, join_errors
from bot.settings.live.channel_names import BY_ID, ListChannels, NameReading, apply_names, list_channel_names, read_name
from bot.settings.live.live_settings import LiveSettings, ReloadReport, list_changes, list_scope, take_live
from bot.settings.live.scope_record import ScopeRecord
from bot.settings.platform_registry import load_platforms, platform_of
from bot.settings.settings_errors import find_serving_faults
from bot.settings.tables.settings_tables import Settings
from pipeline.errors import UnknownSystem
from pipeline.systems import find_system

log = logging.getLogger(__name__)


class _NamesRead(NamedTuple):
    """The channel names of the settings after a look-up: the ids of known ones, and the outcome for each."""

    ids: Mapping[str, str]
    readings: Sequence[NameReading]

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(f"{reading.name} {reading.note}" for reading in self.readings if reading.note)

    @property
    def faults(self) -> tuple[SettingsError, ...]:
        return tuple(
            SettingsError(f"{reading.name}: {reading.fault}.", hint=BY_ID) for reading in self.readings if reading.fault
        )


class SettingsReload:
    """Reads the settings again for a server, and remembers the ids of channel names."""

    def __init__(
        self,
        live: LiveSettings,
        read: Callable[[], Settings],
        record: ScopeRecord,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Set up reloading.

        `read` returns the settings that the file has now; it blocks, and may raise `SettingsError`.
        """
        self._live, self._read, self._record, self._sleep = live, read, record, sleep
        self._written = live.current  # with names instead of ids
        self._ids: Mapping[str, str] = {}  # by name; another server of the same record may know other ids
        self._directories: dict[str, ListChannels] = {}
        self._reading = asyncio.Lock()

    async def begin(self) -> None:
        """Apply the last known ids of channel names, and record who may read what.

        Raises `SettingsError`, `StorageError`.
        """
        names = _NamesRead(await self._load_known(self._written), ())
        await self._take(self._written, names, by="start")

    async def meet(self, platform: str, channels: ListChannels | None) -> None:
        """Look up a platform's channel names, once it is connected and before it is served.

        An unknown name grants no access. Raises `SettingsError` if a channel's own table has an unknown name, because
        its restrictions would not apply. Raises `StorageError`.
        """
        if channels:
            self._directories[platform] = channels
        for attempt in itertools.count():
            try:
                async with self._reading:
                    await self._meet(platform)
            except PlatformUnavailable as error:
                log.warning("cannot read the channels of %s yet", platform, extra={"cause": str(error)})
                await self._sleep(compute_backoff(attempt))
            else:
                return

    async def reload(self) -> ReloadReport:
        """Read the settings again and apply the changes that take effect immediately, or report why nothing changed."""
        async with self._reading:
            try:
                done = await self._reload()
            except SettingsError as error:
                faults = (error, *error.others)
                for fault in faults:
                    log.warning("settings rejected, keeping current ones: %s", fault)
                return ReloadReport(faults=tuple(f"{fault} {fault.hint}".strip() for fault in faults))
        log.info("settings applied: %s", ", ".join(done.changed) or "nothing changed")
        if done.waiting:
            log.warning("settings that take effect after a restart: %s", ", ".join(done.waiting))
        for note in done.notes:
            log.warning("a channel's name: %s", note)
        return done

    async def _meet(self, platform: str) -> None:
        known = await self._load_known(self._written)
        names = await self._read_names(self._written, known, platform)
        tables = {channel.id for channel in self._written.channel}
        for reading in names.readings:
            if reading.fault and reading.name in tables:
                raise SettingsError(f"[[channel]] {reading.name}: {reading.fault}.", hint=BY_ID)
            if reading.fault:
                log.warning("a channel's name grants no access: %s: %s", reading.name, reading.fault)
        for note in names.notes:
            log.warning("a channel's name: %s", note)
        await self._take(self._written, _NamesRead({**known, **names.ids}, ()), by="start")

    async def _reload(self) -> ReloadReport:
        settings_read = await asyncio.to_thread(self._read)
        written = take_live(self._written, settings_read)
        # The changes that take effect now may be invalid without those that wait, although the whole file is valid.
        faults = (*find_serving_faults(settings_read), *find_serving_faults(written), *_find_unknown_systems(written))
        if faults:
            raise join_errors(tuple({str(fault): fault for fault in faults}.values()))
        known, changes = await self._load_known(written), list_changes(self._written, written)
        read = [await self._read_patiently(written, known, platform) for platform in load_platforms()]
        if unread := [fault for names in read for fault in names.faults]:
            raise join_errors(unread)
        ids = {**known, **{name: channel for names in read for name, channel in names.ids.items()}}
        open_names = [name for name in list_channel_names(written) if name not in ids]
        _refuse_unresolved_tables(written, open_names)
        away = (f"{name}: grants no access yet: {platform_of(name)} is not connected" for name in open_names)
        notes = (*(note for names in read for note in names.notes), *away)
        waiting = tuple(change.key for change in list_changes(written, settings_read))
        await self._take(written, _NamesRead(ids, ()), by="reload")
        return ReloadReport(tuple(change.key for change in changes), waiting, notes)

    async def _read_patiently(self, settings: Settings, known: Mapping[str, str], platform: str) -> _NamesRead:
        """Look up the ids of channel names. If the platform is unreachable, names without a known id become faults."""
        try:
            return await self._read_names(settings, known, platform)
        except PlatformUnavailable as error:
            new = [name for name in _select_names(settings, platform) if name not in known]
            return _NamesRead({}, [NameReading(name, fault=f"it cannot be read now: {error}") for name in new])

    async def _read_names(self, settings: Settings, known: Mapping[str, str], platform: str) -> _NamesRead:
        names, directory = _select_names(settings, platform), self._directories.get(platform)
        if not names or not directory:
            return _NamesRead({}, ())
        try:
            channels = await directory(settings)
        except PlatformUnavailable:
            raise
        except PlatformError as error:
            readings = [NameReading(name, known.get(name, ""), "" if name in known else str(error)) for name in names]
        else:
            readings = [read_name(name, channels, known.get(name, "")) for name in names]
        return _NamesRead({reading.name: reading.id for reading in readings if reading.id}, readings)

    async def _load_known(self, settings: Settings) -> dict[str, str]:
        known = {**await self._record.load_names(), **self._ids}
        return {name: known[name] for name in list_channel_names(settings) if name in known}

    async def _take(self, written: Settings, names: _NamesRead, *, by: str) -> None:
        """Record who may read what, and apply the settings. Raises `SettingsError`, `StorageError`."""
        try:
            settings = apply_names(written, names.ids)
        except ValueError as error:
            raise SettingsError(f"{error}.", hint="Keep one of them.") from error
        await self._record.keep(list_scope(settings), names.ids, by=by)
        self._written, self._ids = written, names.ids
        self._live.take(settings)


def _select_names(settings: Settings, platform: str) -> list[str]:
    return [name for name in list_channel_names(settings) if platform_of(name) == platform]


def _refuse_unresolved_tables(settings: Settings, open_names: Collection[str]) -> None:
    """Raise `SettingsError` for a channel's own table whose name cannot be looked up on a configured platform."""
    platforms = load_platforms()
    for channel in settings.channel:
        if channel.id in open_names and platforms[platform_of(channel.id)].read(settings).configured:
            raise SettingsError(
                f"[[channel]] {channel.id}: its platform is not connected, so the name cannot be looked up.", hint=BY_ID
            )


def _find_unknown_systems(settings: Settings) -> Iterator[SettingsError]:
    named = [(f"channel.{channel.id}", name) for channel in settings.channel for name in channel.systems]
    for key, name in [("system", settings.system), *named]:
        try:
            if name:
                find_system(name)
        except UnknownSystem as error:
            yield SettingsError(f"{key}: {error}", hint=error.hint)
