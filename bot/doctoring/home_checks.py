"""Checks of the home: can it be written, who owns it, is there room on its disk, and do the clocks agree?"""

import asyncio
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType

from bot.doctoring.checks import Finding, Scene
from bot.settings_of.wikipedia import WikipediaSettings
from storage.errors import StorageError
from storage.examining import free_bytes, held_bytes, try_folder

SKEW = timedelta(seconds=5)
"""How far clocks may be apart before it is told."""
_FLOOR = 500_000_000
_SHARE = 10
_HOUR = 3_600
_GROWTH = {".xml": 3, ".bz2": 12, ".gz": 12}
"""How many bytes of home a dump's byte becomes, about: half of its XML is text, and text with vectors and terms takes
six times its size; compressed, XML is a quarter of itself."""
_MIRRORED: Mapping[str, int] = MappingProxyType({"enwiki": 25_000_000_000, "simplewiki": 400_000_000})
"""Bytes of a wiki's compressed dump, about, before its mirror is asked."""
_OTHER_MIRRORED = 3_000_000_000
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


async def home(scene: Scene) -> Sequence[Finding]:
    """Whether the folder is there and can be written, and by whom it can be read."""
    folder = scene.settings.home
    if not folder.exists():
        return (await _to_be_made(folder),)
    await asyncio.to_thread(try_folder, folder)
    if folder.stat().st_mode & _OTHERS:
        hint = f"`chmod 700 {folder}` keeps what was asked and answered from them."
        return (Finding("warn", f"Home: {folder} can be opened by other users of this machine.", hint),)
    return (Finding("ok", f"Home: {folder} can be written."),)


async def lock(scene: Scene) -> Sequence[Finding]:
    """Who owns the home."""
    if scene.owner is None:
        return (Finding("ok", "Lock: nobody owns the home just now."),)
    if scene.serving:
        return (Finding("ok", f"Lock: a server has the home open and answers ({scene.owner})."),)
    hint = (
        "Other commands wait for it. Stop it if it should not run; a server of another version is to be started again."
    )
    return (Finding("warn", f"Lock: the home is owned by {scene.owner}, which is no server that answers.", hint),)


async def disk(scene: Scene) -> Sequence[Finding]:
    """Whether there is room for what is to come."""
    need = await asyncio.to_thread(needed, scene)
    return (room(free_bytes(scene.settings.home), need),)


async def clock(scene: Scene) -> Sequence[Finding]:
    """Whether this machine's clock agrees with the others that there are, and with the record."""
    ahead = {}
    if scene.settings.home.exists():
        with suppress(StorageError):  # the check of the home tells of it
            seconds = await asyncio.to_thread(try_folder, scene.settings.home)
            ahead["the clock of home's file system"] = timedelta(seconds=seconds)
    if scene.clocks and scene.clocks.server:
        ahead["the database server's clock"] = scene.clocks.server - scene.now
    if scene.clocks and scene.clocks.newest and scene.clocks.newest > scene.now:
        ahead["the last entry of the record"] = scene.clocks.newest - scene.now
    hint = "Set this machine's clock by a time server; nights and daily budgets go by it."
    wrong = [f"{what} is {_apart(skew)} this machine's" for what, skew in ahead.items() if abs(skew) > SKEW]
    if wrong:
        return tuple(Finding("fail", f"Clock: {said}.", hint) for said in wrong)
    local = scene.now.astimezone(scene.settings.zone)
    return (Finding("ok", f"Clock: it is {local:%Y-%m-%d %H:%M} in {scene.settings.timezone}."),)


def needed(scene: Scene) -> int:
    """Return about how many bytes are going to be written: a night's changes, a migration's copy, dumps. Blocks."""
    folder = scene.settings.home
    held = held_bytes(folder) if folder.exists() else 0
    copy = scene.file.bytes if scene.file and scene.file.revision == "older" else 0
    known = {info.name for info in scene.corpora or () if info.passages}
    sources = [corpus.source for corpus in scene.settings.corpus if corpus.name not in known]
    dumps = [source for source in sources if isinstance(source, WikipediaSettings)]
    return max(_FLOOR, held // _SHARE) + copy + sum(map(_grown, dumps))


def room(free: int, need: int) -> Finding:
    """Judge whether there is room. Pure."""
    said = f"Disk: {size(free)} free, and about {size(need)} may be needed."
    if free >= need:
        return Finding("ok", said)
    hint = "Free some space, or move home to another disk."
    return Finding("fail" if free < _FLOOR else "warn", said, hint)


def size(count: int) -> str:
    """Write a number of bytes as people do."""
    for unit, factor in (("TB", 10**12), ("GB", 10**9)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count / 10**6:.0f} MB" if count >= 10**6 else f"{count / 10**3:.0f} kB"


async def _to_be_made(folder: Path) -> Finding:
    there = next(path for path in folder.parents if path.exists())
    await asyncio.to_thread(try_folder, there)
    return Finding("ok", f"Home: {folder} is not there yet; the first `footnote ingest` makes it.")


def _grown(source: WikipediaSettings) -> int:
    """Return what a dump becomes; one of a mirror is kept beside that."""
    most = max(_GROWTH.values())
    if source.dump is None:
        return _MIRRORED.get(source.wiki, _OTHER_MIRRORED) * (1 + most)
    return source.dump.stat().st_size * _GROWTH.get(source.dump.suffix, most) if source.dump.is_file() else 0


def _apart(skew: timedelta) -> str:
    seconds = abs(skew.total_seconds())
    amount = f"{seconds / _HOUR:.1f} h" if seconds >= _HOUR else f"{seconds:.0f} s"
    return f"{amount} {'ahead of' if skew > timedelta() else 'behind'}"
