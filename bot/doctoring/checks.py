"""What a check of `footnote doctor` is, what it finds, and how all are run: whatever goes wrong is a finding too.

Each platform adds checks in a file of its own, and names them in `registry`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from bot.console import fault_of
from bot.settings import Settings
from pipeline.llm.settings import ModelSettings
from pipeline.model import LLM
from storage.examining import Clocks, FileState
from storage.types import CorpusInfo

SECONDS = 60.0
"""After so many a check is given up."""

Level = Literal["ok", "warn", "fail"]
OpenModel = Callable[[ModelSettings], AbstractAsyncContextManager[LLM]]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    level: Level
    what: str
    """One plain line."""
    hint: str = ""
    """What to do; something wherever not all is well."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What checks look at. What could not be found out is None, and is told of by the check whose it is."""

    settings: Settings
    now: datetime
    open_model: OpenModel
    owner: str | None = None
    """Who owns the home; None where nobody does."""
    serving: bool = False
    """Whether that is a server which answers."""
    file: FileState | None = None
    """SQLite's; None where there is none yet, or another database."""
    fault: Exception | None = None
    """Why the database cannot be read."""
    clocks: Clocks | None = None
    corpora: tuple[CorpusInfo, ...] | None = None


Check = Callable[[Scene], Awaitable[Sequence[Finding]]]
"""Looks at something; finds nothing where it is not configured. What it raises is told as a failure."""


async def findings(checks: Sequence[Check], scene: Scene, *, seconds: float = SECONDS) -> tuple[Finding, ...]:
    """Run all checks, several at once, and return what they found, in their order."""
    found = await asyncio.gather(*(_guarded(check, scene, seconds) for check in checks))
    return tuple(finding for each in found for finding in each)


def failing(error: Exception) -> Finding:
    """Return the finding that an error is."""
    fault = fault_of(error)
    return Finding("fail", fault.message, fault.hint)


async def _guarded(check: Check, scene: Scene, seconds: float) -> Sequence[Finding]:
    try:
        async with asyncio.timeout(seconds):
            return await check(scene)
    except TimeoutError:
        subject = getattr(check, "__name__", "a check").replace("_", " ")
        return (Finding("warn", f"Looking at {subject} took longer than {seconds:g} s.", "Try again when less runs."),)
    except Exception as error:  # noqa: BLE001 - a doctor that stumbles over what is broken is of no use
        return (failing(error),)
