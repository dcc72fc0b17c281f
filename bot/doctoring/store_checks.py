"""Checks of what is kept: the database, the embedder's weights, and whether the indexes fit what is listed."""

import asyncio
from collections.abc import Sequence

from bot.doctoring.checks import Finding, Scene, failing
from bot.doctoring.home_checks import size
from bot.printing.tables import counted
from storage.embedding.opening import open_embedder
from storage.examining import stale
from storage.faults import REINDEX
from storage.lock import hold

_RESTORE = "Restore it from a backup, or move the whole folder away and ingest again."
_BEGIN = "`footnote ingest folder PATH --corpus NAME` reads a folder in."


async def database(scene: Scene) -> Sequence[Finding]:
    """Whether it can be read and written, is of this version, and is whole."""
    if scene.fault:
        return (failing(scene.fault),)
    if scene.file is None:
        there = bool(scene.settings.database)
        return (Finding("ok", "Database: PostgreSQL answers." if there else "Database: none yet."),)
    if scene.file.faults:
        return (Finding("fail", f"Database: it is damaged: {scene.file.faults[0]}.", _RESTORE),)
    if scene.file.unwritable:
        return (failing(scene.file.unwritable),)
    return (_revision(scene),)


async def embedder(scene: Scene) -> Sequence[Finding]:
    """Whether what turns text into vectors is there, and is what it should be."""
    chosen = scene.settings.embedding
    found = await asyncio.to_thread(open_embedder, chosen.function, chosen.options)
    return (Finding("ok", f"Embedder: {found.name} is there."),)


async def indexes(scene: Scene) -> Sequence[Finding]:
    """Whether both indexes hold what the database lists, made by this embedder and version."""
    if scene.corpora is None:
        return ()
    passages = sum(info.passages for info in scene.corpora)
    if not passages:
        return (Finding("warn", "Indexes: nothing is ingested yet, so nothing can be answered.", _BEGIN),)
    corpora = "1 corpus" if len(scene.corpora) == 1 else f"{len(scene.corpora)} corpora"
    said = f"{counted(passages, 'passage')} of {corpora}"
    if scene.owner is not None:
        return (Finding("ok", f"Indexes: {said}; whoever owns the home checked them when it opened it."),)
    reasons = await asyncio.to_thread(_stale, scene)
    if reasons:
        return tuple(Finding("fail", f"Indexes: {reason}", REINDEX) for reason in reasons)
    return (Finding("ok", f"Indexes: {said} can be searched."),)


def _stale(scene: Scene) -> tuple[str, ...]:
    settings = scene.settings
    name = open_embedder(settings.embedding.function, settings.embedding.options).name
    with hold(settings.home):
        return stale(settings.home, settings.chroma.url, name, scene.corpora or ())


def _revision(scene: Scene) -> Finding:
    file = scene.file
    if file is None:
        return Finding("ok", "Database: none yet.")
    if file.revision == "newer":
        hint = "Upgrade this Footnote. Nothing was changed."
        return Finding("fail", "Database: it was written by a newer Footnote.", hint)
    if file.revision == "older":
        hint = "The next command that writes copies it and brings it up to date."
        return Finding("warn", "Database: it was written by an older Footnote.", hint)
    if not file.whole:
        hint = "`sqlite3 footnote.db 'PRAGMA quick_check'` in home looks through all of it."
        return Finding(
            "warn", f"Database: {size(file.bytes)} can be written; too large to be checked whole here.", hint
        )
    return Finding("ok", f"Database: {size(file.bytes)}, whole, and can be written.")
