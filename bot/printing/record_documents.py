"""The JSON documents of `footnote audit`, made from the record. Pure, as `documents` is for all other commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.printing.documents import Document, document, error, moment
from bot.printing.tables import counted
from bot.record import status_of
from storage.types import EntryKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bot.record import Listed, Verified
    from storage.types import LogEntry


def turns(listed: Iterable[Listed]) -> Document:
    """Say what `audit list` lists, newest first."""
    return document(turns=[_turn(opened, closed) for opened, closed in listed])


def turn(entries: Iterable[LogEntry]) -> Document:
    """Say what `audit show` shows, oldest first: the entries of a turn, or of a channel, whose id is no turn's."""
    listed = list(entries)
    named = "channel" if listed[0].kind is EntryKind.SETTING else "answer_id"
    shown = [
        {"seq": entry.seq, "at": moment(entry.at), "kind": entry.kind.value, "body": entry.body} for entry in listed
    ]
    return document(**{named: listed[0].turn_id}, entries=shown)


def verified(checked: Verified) -> Document:
    """Say what `audit verify` checked; with an error where something is wrong."""
    done = document(
        answers=checked.answers,
        sentences=checked.sentences,
        citations=checked.citations,
        findings=[{"answer_id": finding.turn_id, "what": finding.what} for finding in checked.findings],
    )
    return done | {"error": broken_record(checked)} if checked.findings else done


def broken_record(checked: Verified) -> Document:
    """Say that the record contradicts itself."""
    message = f"The record has {counted(len(checked.findings), 'fault')}."
    return error("record_broken", message, "`footnote audit show ID` shows an answer; restore a backup of the home.")


def _turn(opened: LogEntry, closed: LogEntry | None) -> Document:
    return {
        "answer_id": opened.turn_id,
        "at": moment(opened.at),
        "question": opened.body.get("question", ""),
        "system": opened.body.get("system", ""),
        "status": status_of(closed),
        "seconds": closed.body.get("seconds") if closed else None,
    }
