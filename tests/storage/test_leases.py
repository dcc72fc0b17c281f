"""Tests of leases: one owner at a time among all processes of a database, with settable clocks."""

import asyncio
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from storage.database.refresh_log import Leases, make_owner_id, require_lease
from storage.errors import LeaseLost
from storage.types import Lease
from tests.storage.stores import open_home_database

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def after(seconds):
    return NOON + timedelta(seconds=seconds)


@pytest.fixture
def leases(database):
    return Leases(database)


async def test_lease_has_one_owner_until_it_expires(leases):
    assert await leases.take("n", "a", NOON, 60)
    assert not await leases.take("n", "b", after(59), 60)
    assert await leases.take("other", "b", NOON, 60)
    assert await leases.holder("n", after(59)) == "a"
    assert await leases.holder("n", after(60)) is None

    assert await leases.take("n", "b", after(60), 60)
    assert not await leases.renew("n", "a", after(61), 60)
    assert await leases.holder("n", after(61)) == "b"


async def test_renewed_lease_lasts_and_an_expired_one_stays_until_taken(leases):
    await leases.take("n", "a", NOON, 60)

    assert await leases.renew("n", "a", after(50), 60)
    assert not await leases.take("n", "b", after(100), 60)
    assert await leases.renew("n", "a", after(1000), 60)
    assert not await leases.take("n", "b", after(1050), 60)


async def test_release_frees_only_own_leases(leases):
    await leases.take("n", "a", NOON, 60)
    await leases.release("n", "b")
    assert not await leases.take("n", "b", NOON, 60)

    await leases.release("n", "a")
    assert await leases.take("n", "b", NOON, 60)
    await leases.clear()
    assert await leases.take("n", "c", NOON, 60)


async def test_one_of_many_concurrent_takers_gets_the_lease(tmp_path):
    """Two connections to one file, as two processes have."""
    with open_home_database(tmp_path) as one, open_home_database(tmp_path) as other:
        both = [Leases(one), Leases(other)]
        results = await asyncio.gather(*(both[n % 2].take("n", f"owner {n}", NOON, 60) for n in range(20)))

    assert results.count(True) == 1


TAKE = """
import asyncio, os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from storage.database.refresh_log import Leases
from tests.storage.stores import open_home_database
with open_home_database(Path(sys.argv[1])) as database:
    taken = asyncio.run(Leases(database).take("n", "that process", datetime(2026, 3, 1, 12, tzinfo=UTC), 60))
    print(taken, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


async def test_lease_of_a_killed_process_expires(tmp_path, leases):
    command = [sys.executable, "-c", TAKE, str(tmp_path)]
    root = Path(__file__).parents[2]
    done = await asyncio.to_thread(subprocess.run, command, cwd=root, capture_output=True, text=True, check=False)

    assert (done.stdout.strip(), done.returncode) == ("True", -9)
    assert not await leases.take("n", "a", after(59), 60)
    assert await leases.take("n", "a", after(60), 60)


async def test_leased_write_checks_the_lease_in_its_transaction(tmp_path):
    with open_home_database(tmp_path) as database:
        leases = Leases(database)
        await leases.take("n", "a", NOON, 60)
        await database.write(lambda connection: require_lease(connection, Lease("n", "a")))
        await database.write(lambda connection: require_lease(connection, None))
        await leases.take("n", "b", after(61), 60)

        with pytest.raises(LeaseLost, match="taken over"):
            await database.write(lambda connection: require_lease(connection, Lease("n", "a")))


def test_owner_names_are_unique():
    assert make_owner_id() != make_owner_id()
