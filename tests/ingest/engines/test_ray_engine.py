"""Ray on this machine: a node that the engine starts, and a cluster of two nodes that loses one."""

import os
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from ingest.refresh.ray_engine import EngineUnavailable, RayEngine
from tests.ingest.engines import jobs

pytest.importorskip("ray", reason="Ray is not installed: see requirements/ray.lock")

LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # otherwise Ray listens at public addresses
PATIENCE = 60.0


@contextmanager
def engine(address="", **environment):
    made = RayEngine(address, environment={**os.environ, **LOOPBACK, **environment})
    try:
        yield made
    finally:
        made.close()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextmanager
def two_nodes():
    command = [sys.executable, "-m", "tests.ingest.engines.ray_cluster"]
    around = {**os.environ, **LOOPBACK, "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=around, text=True, **pipes) as cluster:
        try:
            yield cluster.stdout.readline().strip(), cluster
        finally:
            cluster.stdin.close()
            cluster.wait(PATIENCE)


def test_results_keep_their_order_and_workers_have_no_secrets(tmp_path):
    with engine(OPENAI_API_KEY="s3cret", FOOTNOTE_DATABASE="postgresql://u:s3cret@h/d") as here:
        assert list(here.map(jobs.double, range(40))) == [2 * number for number in range(40)]
        (around,) = here.map(jobs.read_environment, [0])
        assert "s3cret" not in str(around)
        assert not [name for name in around if name.startswith(("OPENAI", "FOOTNOTE"))]
        (listening,) = here.map(jobs.list_listening, [0])
        assert listening <= {"0100007F", "0000000000000000FFFF00000100007F"}
        assert listening
        with pytest.raises(LookupError, match="the test wants it so"):
            list(here.map(jobs.fail, [1]))
        assert [*here.map(jobs.double, [[7], 1, [8, 9], 2, *[[0]] * 100, [10]])] == [7, 2, 8, 9, 4, *[0] * 100, 10]

        doomed = tmp_path / "doomed"
        doomed.touch()
        again = here.map(jobs.die_once, [(number, str(doomed)) for number in range(10)])
        assert list(again) == [2 * number for number in range(10)]
        assert not doomed.exists()

        slow = here.map(jobs.take_time, ((number, str(tmp_path)) for number in range(500)))
        assert next(slow) == 0
        threading.Timer(0.1, here.stop).start()
        with pytest.raises(EngineUnavailable, match="was stopped"):
            list(slow)


def test_work_of_a_lost_node_is_repeated(tmp_path):
    with two_nodes() as (address, cluster), engine(address) as there:
        items = [[-number] if number % 3 else (number, str(tmp_path)) for number in range(180)]
        done = there.map(jobs.take_time, items)
        first = [next(done) for _ in range(20)]
        cluster.stdin.write("lose it\n")
        cluster.stdin.flush()
        assert [*first, *done] == [-number if number % 3 else 2 * number for number in range(180)]


def test_unreachable_cluster_is_reported():
    with engine(f"127.0.0.1:{free_port()}") as cluster, pytest.raises(EngineUnavailable, match="cannot be reached"):
        list(cluster.map(jobs.double, [1]))
