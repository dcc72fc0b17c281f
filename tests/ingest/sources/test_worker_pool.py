"""The processes of a worker pool end with their parent."""

import multiprocessing
import os
import signal
from multiprocessing.connection import wait

import pytest

from ingest.sources.dumps.worker_pool import WorkerPool


def name_process(_: int) -> int:
    return os.getpid()


def work_on(sender) -> None:
    """Start two processes, print their ids, and wait to be killed."""
    with WorkerPool(2) as pool:
        sender.send(sorted(set(pool.map(name_process, range(20)))))
        signal.pause()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux waits for a process that is not its child")
def test_workers_exit_when_their_parent_is_killed():
    processes = multiprocessing.get_context("spawn")
    ours, theirs = processes.Pipe()
    parent = processes.Process(target=work_on, args=(theirs,))
    parent.start()
    theirs.close()
    workers = [os.pidfd_open(number) for number in ours.recv()]
    assert workers
    parent.kill()
    parent.join()

    try:
        for worker in workers:
            assert wait([worker], timeout=30.0) == [worker]
    finally:
        for worker in workers:
            os.close(worker)
