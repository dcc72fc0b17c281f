"""Tests of a shared PostgreSQL: simultaneous writes act like successive ones, and it migrates like a file."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, NullPool, create_engine, func, insert, select, text

from ingest.refresh.corpus_refresh import refresh_corpus
from storage.database.engine import Database, open_database
from storage.database.queue import Queue, mark_retracted
from storage.database.refresh_log import NightLog, _end_night
from storage.database.schema import corpora
from storage.errors import IndexStale
from storage.manifest import Manifest
from storage.record.admin_choices import ApprovedExamples, ChannelOverrides
from storage.record.audit_log import AuditLog
from storage.record.proof.record_check import verify_record
from storage.types import ApprovedExample, DenseMode, EntryKind, LogEntry, NewQuestion
from tests.fakes import PageSource, WordEmbedder
from tests.storage.release_0_1_0 import list_entries, list_statements
from tests.storage.stores import open_home_database, opened
from tests.storage.test_migrations import describe_tables
from tests.team_servers import VARIABLE, TeamServers
from tests.thorough import TEAM

if not TEAM:
    pytest.skip("make team starts PostgreSQL", allow_module_level=True)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname <> 'postgres'"
Meanwhile = Callable[[Callable[[Connection], Any], Callable[[Database], Awaitable[Any]]], Awaitable[Any]]


@pytest.fixture
def two(team_servers: TeamServers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Database, ...]]:
    """Return the connections of two servers to one database."""
    monkeypatch.setenv(VARIABLE, f"{team_servers.folder}:{team_servers.port}")
    with open_home_database(tmp_path) as one, open_home_database(tmp_path) as other:
        yield one, other
    team_servers.drop_databases()


@pytest.fixture
def meanwhile(two: tuple[Database, ...], team_servers: TeamServers) -> Meanwhile:
    """Run a second writer while a first has written without committing; return the second's result."""
    one, other = two

    async def run(first: Callable[[Connection], Any], second: Callable[[Database], Awaitable[Any]]) -> Any:
        written, go_on = threading.Event(), threading.Event()

        def hold(connection: Connection) -> None:
            first(connection)
            written.set()
            go_on.wait(60)

        holding = asyncio.create_task(one.write(hold))
        await asyncio.to_thread(written.wait, 10)
        writing = asyncio.ensure_future(second(other))
        await asyncio.to_thread(wait_for, lambda: writing.done() or team_servers.run_sql(WAITING)[0][0])
        go_on.set()
        await holding
        return await writing

    return run


def wait_for(condition: Callable[[], Any]) -> None:
    while not condition():
        time.sleep(0.01)


async def ask(database: Database) -> int:
    question, _ = await Queue(database).put(NewQuestion("k", "slack:T1/C1", "v", "u", "m", {"text": "old"}))
    return question.ticket


async def test_answer_retracted_while_finishing_is_not_done(two, meanwhile):
    ticket = await ask(two[0])

    done = await meanwhile(
        lambda it: mark_retracted(it, ticket, {"by": "u", "why": "x"}),
        lambda database: Queue(database).finish(ticket, "delivered"),
    )

    assert (done, (await Queue(two[0]).get(ticket)).state) == (False, "waiting")


async def test_concurrent_changes_of_a_question_both_apply(two, meanwhile):
    ticket = await ask(two[0])

    await meanwhile(
        lambda it: mark_retracted(it, ticket, {"by": "u", "why": "x"}),
        lambda database: Queue(database).note(ticket, text="new"),
    )

    assert set((await Queue(two[0]).get(ticket)).body) == {"text", "taken_back"}


async def test_night_ended_by_another_server_is_not_restarted(two, meanwhile):
    await NightLog(two[0]).begin(NOON, NOON, "one")
    begun = await meanwhile(
        lambda it: _end_night(it, NOON, NOON, "done", "", "one"),
        lambda database: NightLog(database).begin(NOON, NOON + timedelta(hours=1), "other"),
    )

    assert (begun, [night.outcome for night in await NightLog(two[0]).recent()]) == (False, ["done"])


async def test_concurrent_admin_choices_are_both_recorded(two):
    each = [ChannelOverrides(database).set("c", "system", n, by="u", was=None) for n, database in enumerate(two * 5)]
    await asyncio.gather(*each)

    assert (await ChannelOverrides(two[0]).of("c"))["system"] in range(10)


async def test_answer_approved_by_two_admins_is_new_only_once(two):
    entry, example = LogEntry("t", EntryKind.SETTING, {}), ApprovedExample("t", "u", {"a": 1}, NOON, pinned=False)
    added = await asyncio.gather(*(ApprovedExamples(database).add(example, entry) for database in two * 5))

    assert added.count(True) == 1


async def test_corpus_described_twice_at_once_exists_once(two, meanwhile):
    await meanwhile(
        lambda it: it.execute(insert(corpora), {"name": "a"}),
        lambda database: Manifest(database).describe("a", reference=True),
    )

    rows = await two[0].read(lambda it: it.execute(select(corpora.c.name, corpora.c.reference)).all())
    assert rows == [("a", True)]


async def test_read_transaction_sees_one_state(two):
    between, go_on = threading.Event(), threading.Event()

    def count_twice(connection: Connection) -> list[int]:
        def count() -> int:
            return connection.execute(select(func.count()).select_from(corpora)).scalar_one()

        before = count()
        between.set()
        go_on.wait(60)
        return [before, count()]

    reading = asyncio.create_task(two[0].read(count_twice))
    await asyncio.to_thread(between.wait, 10)
    await Manifest(two[1]).describe("a", reference=True)
    go_on.set()

    assert await reading == [0, 0]


async def test_servers_starting_at_once_create_the_tables_once(team_servers, tmp_path):
    team_servers.run_sql("CREATE DATABASE home_new")

    def start(_number: int) -> None:
        with open_database(team_servers.database_url("home_new"), home=tmp_path):
            pass

    await asyncio.gather(*(asyncio.to_thread(start, number) for number in range(3)))
    team_servers.drop_databases()


async def test_home_with_another_embedder_leaves_shared_vectors(team_servers, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, f"{team_servers.folder}:{team_servers.port}")
    with opened(tmp_path / "one") as one:
        await one.manifest.describe("c", reference=False, dense=DenseMode.LAZY)
        await refresh_corpus(PageSource({"a": {"": "A page."}}), "c", one, progress=lambda _: None)
        await one.search("page", ["c"], 1)
        await one.flush()
        vectors = one.dense.contents("c")
        with opened(tmp_path / "other", WordEmbedder("words@2"), beside=tmp_path / "one") as other:
            await other.recover()
            with pytest.raises(IndexStale, match="another embedding function"):
                await other.check()

        assert vectors == one.dense.contents("c") != {}
    team_servers.drop_databases()


async def test_database_of_release_0_1_0_is_migrated(team_servers, tmp_path):
    team_servers.run_sql("CREATE DATABASE home_old")
    url = team_servers.database_url("home_old")
    with create_engine(url, poolclass=NullPool).begin() as connection:
        for statement in list_statements("postgresql"):
            connection.exec_driver_sql(statement)
        insert_entry = text("INSERT INTO entries (turn_id, kind, at, body) VALUES (:turn, :kind, :at, :body)")
        for turn, kind, body in list_entries(2):
            connection.execute(insert_entry, {"turn": turn, "kind": kind, "at": NOON, "body": body})

    with open_database(url, home=tmp_path) as database:
        manifest = Manifest(database)
        version = (await manifest.stored("c", ["k"]))["k"]
        (corpus,), (entry, *_) = await manifest.corpora(), await AuditLog(database).turn("t1")
        assert [passage.text for passage in version.passages] == ["A text.", "Second text."]
        assert (corpus.documents, corpus.passages, corpus.failures) == (2, 2, 1)
        assert entry.body["question"] == "Größe?"
        assert (await verify_record(database)).findings == ()
        team_servers.run_sql("CREATE DATABASE home_new")
        with open_database(team_servers.database_url("home_new"), home=tmp_path / "new") as new:
            assert await describe_tables(database) == await describe_tables(new)
    team_servers.drop_databases()
