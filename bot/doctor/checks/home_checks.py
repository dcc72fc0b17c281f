"""Check the home and its contents: access, owner, disk, clocks, database, embedder, indexes."""

import asyncio
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from types import MappingProxyType

from bot.doctor.diagnosis import CheckResult, Inspection, report_error
from bot.server.control.control_socket import connect_service
from bot.settings.tables.source_settings import WikipediaSettings
from bot.views.error_messages import explain_nothing_ingested
from bot.views.text_formats import format_bytes, format_count, format_duration
from storage.errors import REINDEX_HINT, HomeUnusable, StorageError
from storage.home.home_folder import DatabaseFileState, free_bytes, lock_home, probe_folder, used_bytes
from storage.indexes.chroma_connection import ChromaServer, probe_chroma
from storage.indexes.embedders import E5, MODELS
from storage.indexes.embedding import load_cross_encoder, open_embedder
from storage.indexes.index_state import find_stale_indexes, refuse_lost_database
from storage.types import CorpusInfo, DenseMode

SKEW = timedelta(seconds=5)  # a smaller difference between clocks is not reported
_FOLLOWING = timedelta(minutes=1)  # a serving home applies changes within this time
_FLOOR = 500_000_000
_SHARE = 10
_GROWTH = {".xml": 3, ".bz2": 12, ".gz": 12}
"""Bytes in the home for each byte of a dump, approximately: half of the XML is text, and text with vectors and terms
takes six times its size; compressed XML is a quarter of its size."""
_MIRRORED: Mapping[str, int] = MappingProxyType({"enwiki": 25_000_000_000, "simplewiki": 400_000_000})
"""Approximate bytes of a wiki's compressed dump; its mirror is not asked."""
_OTHER_MIRRORED = 3_000_000_000
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


async def check_home(scene: Inspection) -> Sequence[CheckResult]:
    """Check that the home exists, can be written, and cannot be opened by other users."""
    folder = scene.settings.home
    if not folder.exists():
        await asyncio.to_thread(probe_folder, next(path for path in folder.parents if path.exists()))
        return (CheckResult("ok", f"Home: {folder} does not exist yet; the first `footnote ingest` creates it."),)
    await asyncio.to_thread(probe_folder, folder)
    if folder.stat().st_mode & _OTHERS:
        hint = f"`chmod 700 {folder}` prevents that."
        return (CheckResult("warn", f"Home: {folder} can be opened by other users of this machine.", hint),)
    return (CheckResult("ok", f"Home: {folder} can be written."),)


async def check_lock(scene: Inspection) -> Sequence[CheckResult]:
    """Check which process has the home open."""
    if scene.owner is None:
        return (CheckResult("ok", "Lock: no process has the home open."),)
    if scene.serving:
        return (CheckResult("ok", f"Lock: a server has the home open and responds ({scene.owner})."),)
    hint = "Other commands wait for it. Stop it if it should not run; restart a server of another version."
    return (CheckResult("warn", f"Lock: {scene.owner} has the home open, and is not a server that responds.", hint),)


async def check_disk(scene: Inspection) -> Sequence[CheckResult]:
    """Check that there is enough disk space for what will be written."""
    need = await asyncio.to_thread(estimate_bytes, scene)
    return (room(free_bytes(scene.settings.home), need),)


async def check_clock(scene: Inspection) -> Sequence[CheckResult]:
    """Check that this machine's clock agrees with other clocks, and with the record."""
    ahead = {}
    if scene.settings.home.exists():
        with suppress(StorageError):  # the check of the home reports it
            seconds = await asyncio.to_thread(probe_folder, scene.settings.home)
            ahead["the clock of the home's file system"] = timedelta(seconds=seconds)
    if scene.clocks and scene.clocks.server:
        ahead["the database server's clock"] = scene.clocks.server - scene.now
    if scene.clocks and scene.clocks.newest and scene.clocks.newest > scene.now:
        ahead["the last entry of the record"] = scene.clocks.newest - scene.now
    hint = "Synchronise this machine's clock; nightly refreshes and daily budgets depend on it."
    wrong = [f"{clock} is {_describe_skew(skew)} this machine's" for clock, skew in ahead.items() if abs(skew) > SKEW]
    if wrong:
        return tuple(CheckResult("fail", f"Clock: {difference}.", hint) for difference in wrong)
    local = scene.now.astimezone(scene.settings.zone)
    return (CheckResult("ok", f"Clock: it is {local:%Y-%m-%d %H:%M} in {scene.settings.timezone}."),)


def estimate_bytes(scene: Inspection) -> int:
    """Estimate how many bytes will be written: a nightly refresh, a migration's copy, new dumps. Blocks."""
    used = used_bytes(scene.settings.home)
    copy = scene.file.bytes if scene.file and scene.file.revision == "older" else 0
    known = {info.name for info in scene.corpora or () if info.passages}
    sources = [corpus.source for corpus in scene.settings.corpus if corpus.name not in known]
    dumps = [source for source in sources if isinstance(source, WikipediaSettings)]
    return max(_FLOOR, used // _SHARE) + copy + sum(map(_grown, dumps))


def room(free: int, need: int) -> CheckResult:
    message = f"Disk: {format_bytes(free)} free, and about {format_bytes(need)} may be needed."
    if free >= need:
        return CheckResult("ok", message)
    hint = "Free some space, or move home to another disk."
    return CheckResult("fail" if free < _FLOOR else "warn", message, hint)


def _grown(source: WikipediaSettings) -> int:
    """Estimate how many bytes a dump adds to the home, including the dump itself if it is downloaded."""
    most = max(_GROWTH.values())
    if source.dump is None:
        return _MIRRORED.get(source.wiki, _OTHER_MIRRORED) * (1 + most)
    return source.dump.stat().st_size * _GROWTH.get(source.dump.suffix, most) if source.dump.is_file() else 0


def _describe_skew(skew: timedelta) -> str:
    return f"{format_duration(abs(skew.total_seconds()))} {'ahead of' if skew > timedelta() else 'behind'}"


_RESTORE = "Restore it from a backup, or move the whole folder away and ingest again."


async def check_database(scene: Inspection) -> Sequence[CheckResult]:
    """Check that the database can be read and written, fits this version, and is intact."""
    if scene.fault:
        return await _report_database_fault(scene, scene.fault)
    if scene.file is None:
        answers = "PostgreSQL responds" if scene.settings.database else "none yet"
        return (CheckResult("ok", f"Database: {answers}."),)
    if scene.file.faults:
        return (CheckResult("fail", f"Database: it is damaged: {scene.file.faults[0]}.", _RESTORE),)
    if scene.file.unwritable:
        return await _report_database_fault(scene, scene.file.unwritable)
    return (_check_revision(scene.file),)


async def _report_database_fault(scene: Inspection, fault: Exception) -> Sequence[CheckResult]:
    """Report why the database cannot be used; raise the error of the home's own check if that is the cause."""
    if isinstance(fault, HomeUnusable) and scene.settings.home.exists():
        await asyncio.to_thread(probe_folder, scene.settings.home)
    return report_error(fault)


async def check_embedder(scene: Inspection) -> Sequence[CheckResult]:
    """Check that the embedding model and the cross-encoder are installed and intact."""
    chosen = scene.settings.embedding
    embedder = await asyncio.to_thread(open_embedder, chosen.function, chosen.options)
    await asyncio.to_thread(load_cross_encoder)
    ready = f"Embedder: {embedder.name} is installed, and so is the cross-encoder."
    if not scene.foreign or chosen.function or MODELS[E5].weights.is_installed():
        return (CheckResult("ok", ready),)
    hint = f"It knows English best. For {', '.join(scene.foreign)} {MODELS[E5].weights.hint}, then `footnote reindex`."
    return (CheckResult("warn", ready, hint),)


async def check_vectors(scene: Inspection) -> Sequence[CheckResult]:
    """Check, by trying, that the Chroma server can be written, searched and cleaned, if one is configured."""
    place = scene.settings.chroma_location
    if not isinstance(place, ChromaServer):
        return ()
    await asyncio.to_thread(probe_chroma, place)
    return (CheckResult("ok", f"Vectors: the Chroma server at {place.url} can be written, searched and cleaned."),)


async def check_indexes(scene: Inspection) -> Sequence[CheckResult]:
    """Check that both indexes match the database, the embedder and the version, and can be searched."""
    passages = sum(info.passages for info in scene.corpora or ())
    if not passages and scene.owner is None and scene.settings.home.exists():
        await asyncio.to_thread(_refuse_lost_database, scene)
    if scene.corpora is None:
        return ()
    if not passages:
        hint = explain_nothing_ingested(scene.settings.sources).hint
        return (CheckResult("warn", "Indexes: nothing is ingested yet, so nothing can be answered.", hint),)
    corpora = "1 corpus" if len(scene.corpora) == 1 else f"{len(scene.corpora)} corpora"
    content = f"{format_count(passages, 'passage')} of {corpora}{_describe_lazy(scene.corpora)}"
    if scene.serving:
        await _search_through_server(scene)
        return (CheckResult("ok", f"Indexes: {content} can be searched through the server."),)
    if scene.owner is not None:
        return (CheckResult("ok", f"Indexes: {content}; the process that has the home open checks them."),)
    reasons = await asyncio.to_thread(_find_stale, scene)
    if reasons:
        return tuple(CheckResult("fail", f"Indexes: {reason}", REINDEX_HINT) for reason in reasons)
    return (CheckResult("ok", f"Indexes: {content} can be searched."),)


async def check_followers(scene: Inspection) -> Sequence[CheckResult]:
    """Check that the indexes of all homes that share a database have followed its last change."""
    if not (scene.settings.database and scene.followers):
        return ()
    behind = [follower for follower in scene.followers if follower.lacks]
    counted = f"Homes: {format_count(len(scene.followers), 'home')} follow the database"
    if not behind:
        return (CheckResult("ok", f"{counted}, all up to its last change."),)
    most = max(behind, key=lambda follower: follower.lacks)
    age = format_duration((scene.now - most.seen).total_seconds())
    message = f"{counted}; {len(behind)} of them lag: one lacks {most.lacks:,} changes and was last seen {age} ago."
    hint = (
        "A serving home follows within a minute, others when they are opened; deleted homes disappear from this list."
    )
    return (CheckResult("ok" if most.seen > scene.now - _FOLLOWING else "warn", message, hint),)


def _describe_lazy(corpora: Sequence[CorpusInfo]) -> str:
    modes = {DenseMode.LAZY: "embedded on demand", DenseMode.OFF: "found by words alone"}
    some = [f"{info.name} is {modes[info.dense]}" for info in corpora if info.dense in modes]
    return f" ({', '.join(some)})" if some else ""


def _refuse_lost_database(scene: Inspection) -> None:
    if not scene.settings.database:
        with lock_home(scene.settings.home):
            refuse_lost_database(scene.settings.home, scene.settings.chroma_location)


async def _search_through_server(scene: Inspection) -> None:
    async with connect_service(scene.settings.home) as served:
        if served is not None:
            await served.search(scene.probe, [info.name for info in scene.corpora or ()], 1)


def _find_stale(scene: Inspection) -> tuple[str, ...]:
    settings, chosen = scene.settings, scene.settings.embedding
    embedder = open_embedder(chosen.function, chosen.options)
    with lock_home(settings.home):
        return find_stale_indexes(settings.home, settings.chroma_location, embedder, scene.corpora or (), scene.probe)


def _check_revision(file: DatabaseFileState) -> CheckResult:
    if file.revision == "newer":
        hint = "Upgrade this Footnote. Nothing was changed."
        return CheckResult("fail", "Database: it was written by a newer Footnote.", hint)
    if file.revision == "older":
        hint = "The next command that writes upgrades it, after making a copy."
        return CheckResult("warn", "Database: it was written by an older Footnote.", hint)
    if not file.whole:
        hint = "`sqlite3 footnote.db 'PRAGMA quick_check'` in home checks all of it."
        message = f"Database: {format_bytes(file.bytes)} can be written; too large to be checked completely here."
        return CheckResult("warn", message, hint)
    return CheckResult("ok", f"Database: {format_bytes(file.bytes)}, intact, and can be written.")
