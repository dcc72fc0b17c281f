"""The JSON documents that tell of refreshes. Pure; the contract for whoever reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.printing.documents import Document, document, moment
from bot.refreshing.refreshes import rate, silent

if TYPE_CHECKING:
    from datetime import datetime

    from bot.refreshing.refreshes import Refreshes
    from storage.refresh_types import NightRecord, Run


def refreshes(found: Refreshes) -> Document:
    """Say what `ingest status` tells."""
    return document(
        running=[run_told(run) | _pace(run, found.now) | {"silent": silent(run, found.now)} for run in found.running],
        next_night=moment(found.next_night),
        nights=[_night(night) for night in found.nights],
        runs=[run_told(run) for run in found.ended],
    )


def run_told(run: Run) -> Document:
    """Return what a document says of a run."""
    return {
        "id": run.id,
        "corpus": run.corpus,
        "state": run.state.value,
        "begun": moment(run.begun),
        "ended": moment(run.ended),
        "night": moment(run.night),
        "documents": {
            "added": run.added,
            "changed": run.changed,
            "unchanged": run.unchanged,
            "removed": run.removed,
            "failed": run.failed,
            "held_back": run.held_back,
        },
        "passages": {"added": run.passages_added, "removed": run.passages_removed},
        "edition": run.edition,
        "fault": run.fault,
        "owner": run.owner,
    }


def _pace(run: Run, now: datetime) -> Document:
    """Return how far a run that goes on has come: what was looked at, documents a second, seconds left."""
    per_second = rate(run, now)
    left = (run.total - run.done) / per_second if run.total is not None and per_second else None
    return {
        "done": run.done,
        "total": run.total,
        "per_second": round(per_second, 3),
        "seconds_left": None if left is None else round(max(left, 0.0)),
        "seen": moment(run.seen),
        "doing": run.doing,
    }


def _night(night: NightRecord) -> Document:
    return {
        "due": moment(night.due),
        "outcome": night.outcome,
        "begun": moment(night.begun) if night.owner else None,
        "ended": moment(night.ended),
        "lines": list(night.lines),
        "owner": night.owner,
    }
