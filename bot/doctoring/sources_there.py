"""Checks of the sources of the settings: are their files there, and what lets us in? No server is asked."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from bot.console import fault_of
from bot.doctoring.checks import Finding, Scene
from bot.printing.tables import counted
from bot.refreshing.sources import Surroundings, opened
from bot.settings_of.sources import SourceSettings

_MOUNT = "Mend the path in footnote.toml, or mount what belongs there; what was read from it stays until then."


async def sources(scene: Scene) -> Sequence[Finding]:
    """Whether each source can be opened here: its folder or file is there, its secrets are set."""
    return await asyncio.to_thread(examined, scene.settings.sources, Surroundings(scene.settings.home, os.environ))


def examined(given: Mapping[str, SourceSettings], around: Surroundings) -> tuple[Finding, ...]:
    """Look at the sources of corpora, by name; return what each lacks, or that all are well. Blocks."""
    found = tuple(fault for corpus, source in given.items() if (fault := _fault(corpus, source, around)))
    if found or not given:
        return found
    kinds = ", ".join(f"{corpus} ({source.type.replace('_', ' ')})" for corpus, source in given.items())
    return (Finding("ok", f"Sources: {counted(len(given), 'source')} can be opened: {kinds}."),)


def _fault(corpus: str, source: SourceSettings, around: Surroundings) -> Finding | None:
    for path in (value for _, value in source if isinstance(value, Path)):
        if not path.exists():
            return Finding("fail", f"Sources: {corpus} is read from {path}, which is not there.", _MOUNT)
        if not os.access(path, os.R_OK | (os.X_OK if path.is_dir() else 0)):
            hint = "Let the user that Footnote runs as read it."
            return Finding("fail", f"Sources: {corpus} is read from {path}, which may not be read.", hint)
    try:
        opened(source, around)
    except Exception as error:  # noqa: BLE001 - whatever keeps a source from being opened is a finding
        fault = fault_of(error)
        return Finding("fail", f"Sources: {corpus}: {fault.message}", fault.hint)
    return None
