"""An answer is taken back: what stands there is removed, however long the platform is away, and the record says so.

That it is wanted stands in the question's row before anybody is told of it, so that the next start completes what this
one does not. Only where the platform refuses for good it is left there, and that is on record.
"""

import asyncio
import logging
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace

from bot.desk.ending import Resting, opened, rested, stored
from bot.desk.flights import Answered, Flight, Means
from bot.desk.recording import Showed
from bot.desk.reporting import report
from bot.desk.sharing import unshare
from bot.desk.types import Outcome, Posted
from bot.platform import PlatformError
from storage.types import EntryKind, LogEntry


@dataclass(frozen=True, slots=True)
class Removal:
    """What came of removing what was posted."""

    removed: tuple[str, ...] = ()
    standing: tuple[str, ...] = ()
    """What the platform would not remove."""
    why: str = ""
    """Why not."""


async def removed(flight: Flight, means: Means, answered: Answered) -> Showed | None:
    """Take back what stands there, and record by whom before, and what is gone after. None where it rests."""
    flight.delivering = True
    answered()
    try:
        entries = await stored(flight, means, lambda: _begun(flight, means))
        removal = await _unless_resting(flight, entries)
        await stored(flight, means, lambda: _recorded(flight, means, removal))
    except Resting:
        await rested(flight, means)
        return None
    return Showed(Outcome.RETRACTED, Posted(removal.standing), None, recorded=True)


def taken_back(turn_id: str, *, by: str, why: str) -> LogEntry:
    """Return that somebody wants what was posted to be gone; from then on nobody is shown anything of it."""
    return LogEntry(turn_id, EntryKind.EDITED, {"retracted": True, "by": by, "why": why})


def gone(turn_id: str, removal: Removal) -> LogEntry:
    """Return what was removed, and what the platform would not remove."""
    left = {"standing": removal.standing, "why": removal.why} if removal.why else {}
    return LogEntry(turn_id, EntryKind.EDITED, {"removed": removal.removed, **left})


async def _begun(flight: Flight, means: Means) -> tuple[LogEntry, ...]:
    """See to it that the record has its turn, closed, and who takes it back; returns what it has."""
    if not flight.turn_id:
        turn_id = secrets.token_hex(6)
        await means.queue.note(flight.ticket, turn_id=turn_id)
        flight.turn_id = turn_id
    await opened(flight, means, Showed(Outcome.RETRACTED, Posted(), None, "It was taken back before it began."))
    await means.knowing.interrupt(flight.turn_id)
    entries = await means.knowing.entries(flight.turn_id)
    if not any(entry.body.get("retracted") for entry in _edits(entries)):
        await means.knowing.append(taken_back(flight.turn_id, by=flight.by, why=flight.why))
    return entries


async def _unless_resting(flight: Flight, entries: tuple[LogEntry, ...]) -> Removal:
    """Remove what stands there. Raises `Resting` where the server stops before that: it can be done again."""
    work = asyncio.ensure_future(_remove(flight, entries))
    rest = asyncio.ensure_future(flight.resting.wait())
    try:
        await asyncio.wait({work, rest}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise Resting
        return work.result()
    finally:
        work.cancel()
        rest.cancel()


async def _remove(flight: Flight, entries: tuple[LogEntry, ...]) -> Removal:
    """Remove the answer, and what its asker shared of it with the channel: each, whatever becomes of the other."""
    post, removal = flight.post, Removal()

    async def unshared() -> tuple[str, ...]:
        return await post.patiently(lambda: unshare(post.platform, flight.question, entries))

    for remove in (post.remove, unshared) if flight.question.only_asker else (post.remove,):
        try:
            removal = replace(removal, removed=removal.removed + await remove())
        except PlatformError as error:
            report(logging.WARNING, "a post could not be removed", flight.question, error, turn_id=flight.turn_id)
            removal = replace(removal, standing=post.posted.messages, why=str(error))
    return removal


async def _recorded(flight: Flight, means: Means, removal: Removal) -> None:
    entries = _edits(await means.knowing.entries(flight.turn_id))
    # Older records name what is to be removed before it is, with who wants it.
    if not any("removed" in entry.body and not entry.body.get("retracted") for entry in entries):
        await means.knowing.append(gone(flight.turn_id, removal))


def _edits(entries: Iterable[LogEntry]) -> tuple[LogEntry, ...]:
    return tuple(entry for entry in entries if entry.kind is EntryKind.EDITED)
