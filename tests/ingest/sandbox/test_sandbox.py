"""Documents read in a process of their own: limits, deaths, and what is left behind."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from ingest.readers.external_programs import NO_PROGRAMS, ReaderPrograms
from ingest.sandbox import Sandbox, SandboxLimits
from ingest.sources.folder import FolderSource
from ingest.types import ChangedDocument, SourceUnavailable, UnreadableDocument
from tests.ingest.sandbox import readers

PATIENCE = 60.0
LIMITS = SandboxLimits(seconds=0.2, memory=256 << 20)


@pytest.fixture(scope="module")
def apart():
    with Sandbox(LIMITS) as made:
        yield made


def wait_for(happened):
    until = time.monotonic() + PATIENCE
    while not (there := happened()):
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)
    return there


def is_there(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (readers.computes, "takes longer than 0.2 s to read"),
        (readers.eats, "needs more than 256 MB of memory"),
        (readers.exits, r"crashes its reader \(exit 3\)"),
        (readers.segfaults, r"crashes its reader \(SIGSEGV\)"),
        (readers.is_killed, "killed from outside"),
        (readers.no_page, "cannot be read: AttributeError"),
        (readers.shouts, "invalid result"),
        (readers.refused, "^holds no text$"),
        (readers.fails, "^cannot be read: KeyError: 'odd'$"),
    ],
)
def test_what_breaks_the_process_is_told_and_the_next_is_read(apart, work, reason):
    with pytest.raises(UnreadableDocument, match=reason):
        apart.done(work)
    assert apart.done(partial(readers.fine, "next")).title == "next"


def test_what_waits_for_ever_is_ended_by_the_clock(tmp_path):
    with Sandbox(SandboxLimits(clock=0.3)) as apart, pytest.raises(UnreadableDocument, match=r"longer than 0\.3 s"):
        apart.done(partial(readers.sleeps, tmp_path / "mark"))


def test_one_process_reads_many_documents_and_is_gone_after_the_block():
    with Sandbox() as apart:
        pids = {apart.done(readers.where).title for _ in range(50)}
        titles = [apart.page(f"Title {n}\n=======\n\nText.".encode(), "a.rst").title for n in range(20)]

        assert len(pids) == 1
        assert titles == [f"Title {n}" for n in range(20)]
    assert not is_there(int(pids.pop()))


def test_outside_of_a_block_nothing_stays():
    assert not is_there(int(Sandbox().done(readers.where).title))


def test_small_and_simple_documents_are_read_here(apart):
    assert apart.done(readers.where, harmless=True).title == str(os.getpid())
    assert apart.page(b"# Title\n\nText.", "a.md").title == "Title"


def test_the_process_knows_no_secrets_and_may_print(monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "s3cret")
    with Sandbox() as fresh:
        assert "TOKEN" not in fresh.done(readers.surroundings).title


def test_want_of_memory_that_others_left_is_no_fault_of_a_document():
    with Sandbox(LIMITS) as apart:
        apart.done(readers.keeps)
        assert apart.done(readers.needs).title == str(150 << 20)


def test_a_process_that_was_ended_between_two_documents_is_begun_anew(apart):
    pid = int(apart.done(readers.where).title)
    os.kill(pid, 9)
    wait_for(lambda: not apart._process.alive)

    assert int(apart.done(readers.where).title) != pid


def test_stopping_ends_what_is_being_read(tmp_path):
    mark = tmp_path / "mark"
    with Sandbox() as apart, ThreadPoolExecutor(1) as thread:
        reading = thread.submit(apart.done, partial(readers.sleeps, mark))
        pid = int(wait_for(lambda: mark.exists() and mark.read_text()))
        apart.stop()

        with pytest.raises(SourceUnavailable, match="stopped"):
            reading.result(PATIENCE)
        with pytest.raises(SourceUnavailable, match="stopped"):
            apart.done(readers.where)
        assert not is_there(pid)


def test_a_folder_is_stopped_in_the_middle_of_a_document(tmp_path):
    (tmp_path / "a.md").write_text("![" * 50_000)
    apart = Sandbox()
    folder = FolderSource(tmp_path, sandbox=apart)
    with ThreadPoolExecutor(1) as thread:
        items = iter(folder.documents())
        found = thread.submit(next, items).result(PATIENCE)
        assert isinstance(found, ChangedDocument)
        reading = thread.submit(found.load)
        pid = wait_for(lambda: apart._process and apart._process.documents and apart._process._process.pid)
        folder.stop()

        with pytest.raises(SourceUnavailable, match="stopped"):
            reading.result(PATIENCE)
        thread.submit(items.close).result(PATIENCE)
    assert not is_there(pid)


def test_a_parent_that_is_killed_leaves_nothing_behind(tmp_path):
    mark = tmp_path / "mark"
    program = (
        "import sys; from functools import partial; from ingest.sandbox import Sandbox\n"
        "from tests.ingest.sandbox import readers\n"
        "Sandbox().done(partial(readers.sleeps, sys.argv[1]))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.Popen([sys.executable, "-c", program, str(mark)], env=environment)
    try:
        pid = int(wait_for(lambda: parent.poll() is None and mark.exists() and mark.read_text()))
    finally:
        parent.kill()
        parent.wait()

    wait_for(lambda: not is_there(pid))


def test_no_thread_is_left_behind():
    before = threading.active_count()
    with Sandbox() as apart:
        apart.done(readers.where)

    wait_for(lambda: threading.active_count() <= before)


def test_a_busy_machine_refuses_nothing():
    """The processor's time is limited; by the clock, what shares it with many others has many times as much."""
    for programs in (NO_PROGRAMS, ReaderPrograms(ocr=True)):
        limits = Sandbox(programs=programs)._limits

        assert limits.clock >= 20 * limits.seconds
