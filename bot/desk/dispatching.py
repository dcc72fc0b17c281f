"""Who is next: pure. Channels take turns; within one, and within a conversation, questions start as they were taken.

A question waits in its channel's line, is answered, is delivered, and leaves. Only being answered takes up room, since
a platform that is away for an hour must not keep others from their answers; but the next question of a conversation
starts when the one before has left. While it waits for that, those behind it pass, unless a channel has room for one
question only: then it wants them in their order.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

_NONE: Mapping[int, "Entry"] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Entry:
    """A question as far as its turn to be answered goes. A higher ticket was taken later."""

    ticket: int
    channel: str
    conversation: str


@dataclass(frozen=True, slots=True)
class Room:
    """How many may be answered at once."""

    at_once: int
    per_channel: int


@dataclass(frozen=True, slots=True)
class Lanes:
    """Every question at the desk, and where it stands."""

    waiting: Mapping[str, tuple[Entry, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """The line of each channel that has one. The channel that comes first is served first, and goes to the end."""
    answering: Mapping[int, Entry] = field(default_factory=lambda: _NONE)
    delivering: Mapping[int, Entry] = field(default_factory=lambda: _NONE)


def joined(lanes: Lanes, entry: Entry) -> Lanes:
    """Return the lanes with one more who waits."""
    line = sorted((*lanes.waiting.get(entry.channel, ()), entry), key=lambda one: one.ticket)
    return replace(lanes, waiting={**lanes.waiting, entry.channel: tuple(line)})


def started(lanes: Lanes, room: Room) -> tuple[Lanes, tuple[Entry, ...]]:
    """Return the lanes with all started that may start now, and which those are, in their order."""
    chosen: list[Entry] = []
    while (entry := _next(lanes, room)) is not None:
        lanes = _served(lanes, entry)
        chosen.append(entry)
    return lanes, tuple(chosen)


def answered(lanes: Lanes, ticket: int) -> Lanes:
    """Return the lanes with a question that is being delivered from now on."""
    entry = lanes.answering.get(ticket)
    if entry is None:
        return lanes
    return replace(
        lanes, answering=_without(lanes.answering, ticket), delivering={**lanes.delivering, ticket: entry}
    )  # fmt: skip


def left(lanes: Lanes, ticket: int) -> Lanes:
    """Return the lanes without a question, wherever it stood."""
    lines = {
        channel: tuple(entry for entry in line if entry.ticket != ticket) for channel, line in lanes.waiting.items()
    }
    return Lanes(
        {channel: line for channel, line in lines.items() if line},
        _without(lanes.answering, ticket),
        _without(lanes.delivering, ticket),
    )


def before(lanes: Lanes, ticket: int) -> int:
    """Return how many questions that were taken earlier are not answered yet."""
    waiting = sum(bisect_left(line, ticket, key=lambda one: one.ticket) for line in lanes.waiting.values())
    return waiting + sum(other < ticket for other in lanes.answering)


def _next(lanes: Lanes, room: Room) -> Entry | None:
    if len(lanes.answering) >= room.at_once:
        return None
    busy = Counter(entry.channel for entry in lanes.answering.values())
    talking = {entry.conversation for entry in (*lanes.answering.values(), *lanes.delivering.values())}
    lines = (line for channel, line in lanes.waiting.items() if busy[channel] < room.per_channel)
    able = (entry for line in lines for entry in (line if room.per_channel > 1 else line[:1]))
    return next((entry for entry in able if entry.conversation not in talking), None)


def _served(lanes: Lanes, entry: Entry) -> Lanes:
    """Return the lanes with one of a line started, and the rest of that line behind the other channels."""
    others = {channel: line for channel, line in lanes.waiting.items() if channel != entry.channel}
    rest = tuple(other for other in lanes.waiting[entry.channel] if other != entry)
    waiting = {**others, entry.channel: rest} if rest else others
    return replace(lanes, waiting=waiting, answering={**lanes.answering, entry.ticket: entry})


def _without(entries: Mapping[int, Entry], ticket: int) -> Mapping[int, Entry]:
    return {number: entry for number, entry in entries.items() if number != ticket}
