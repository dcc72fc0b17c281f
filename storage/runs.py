"""The history of refreshes: a row for each run, kept while it goes on and after it has ended."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, func, insert, select, update

from storage.database import Database
from storage.refresh_types import Run, RunOutcome, RunState
from storage.schema import runs
from storage.urgency import Urgency

LOST = "Its process ended before it had; what it had applied stays, and the next run goes on from there."
"""The fault of a run that was lost."""


class Runs:
    """Keeps the rows. Every method raises `StorageError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, corpus: str, at: datetime, owner: str, night: datetime | None = None) -> int:
        """Note that a run begins, and return its number. Only whoever holds the corpus's lease may.

        A run of the same corpus that has not ended is one whose process is gone: it is noted as lost.
        """
        row = {"corpus": corpus, "begun": at, "seen": at, "state": RunState.RUNNING, "owner": owner, "night": night}
        return await self._database.write(lambda connection: _begin(connection, row), Urgency.RECORD)

    async def progress(
        self, run: int, at: datetime, done: int, total: int | None, passages: int, doing: str = ""
    ) -> None:
        """Note how far a run has come: documents looked at, of how many, passages added, what its source is doing."""
        values = {"seen": at, "done": done, "total": total, "passages": passages, "doing": doing}
        await self._change(run, values)

    async def end(self, run: int, at: datetime, outcome: RunOutcome) -> None:
        """Note what a run came to. One that was noted as lost meanwhile stays lost."""
        await self._change(run, {"seen": at, "ended": at, "doing": "", **asdict(outcome)})

    async def recent(self, limit: int = 20, corpus: str = "") -> tuple[Run, ...]:
        """Return the newest runs, newest first: of one corpus, or of all."""
        query = select(runs).order_by(runs.c.id.desc()).limit(limit)
        return await self._all(query.where(runs.c.corpus == corpus) if corpus else query)

    async def last(self) -> Mapping[str, Run]:
        """Return the newest run of each corpus, by its name."""
        return await self._database.read(last_runs)

    async def _change(self, run: int, values: Mapping[str, Any]) -> None:
        change = update(runs).where(runs.c.id == run, runs.c.state == RunState.RUNNING).values(values)
        await self._database.write(lambda connection: connection.execute(change), Urgency.RECORD)

    async def _all(self, query: Select[Any]) -> tuple[Run, ...]:
        rows = await self._database.read(lambda connection: connection.execute(query).mappings().all())
        return tuple(run_of(row) for row in rows)


def last_runs(connection: Connection) -> dict[str, Run]:
    """Return the newest run of each corpus, by its name."""
    newest = select(func.max(runs.c.id)).group_by(runs.c.corpus)
    rows = connection.execute(select(runs).where(runs.c.id.in_(newest))).mappings()
    return {row["corpus"]: run_of(row) for row in rows}


def run_of(row: RowMapping) -> Run:
    """Make a run of its row."""
    values: dict[str, Any] = {column.name: row[column] for column in runs.c}
    return Run(**(values | {"state": RunState(values["state"])}))


def _begin(connection: Connection, row: Mapping[str, Any]) -> int:
    left = update(runs).where(runs.c.corpus == row["corpus"], runs.c.state == RunState.RUNNING)
    connection.execute(left.values(state=RunState.LOST, ended=runs.c.seen, fault=LOST))
    number = connection.execute(insert(runs).values(row).returning(runs.c.id)).scalar_one()
    return int(number)
