"""Reading in a separate process: limits, crashes, and cleanup."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from ingest.readers.external_programs import NO_PROGRAMS, ReaderPrograms
from ingest.sandbox import Sandbox, SandboxLimits
from ingest.sources.folder import FolderSource
from ingest.types import ChangedDocument, SourceUnavailable, UnreadableDocument
from tests.ingest.sandbox import readers

PATIENCE = 60.0
LIMITS = SandboxLimits(seconds=0.2, memory=256 << 20)


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(LIMITS) as sandbox:
        yield sandbox


def wait_for(condition):
    until = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < until, "condition not met in time"
        time.sleep(0.01)
    return value


def has_ended(pid):
    """Return whether a process has exited, reaped or not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z"


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
def test_broken_process_is_reported_and_replaced(sandbox, work, reason):
    with pytest.raises(UnreadableDocument, match=reason):
        sandbox.call(work)
    assert sandbox.call(partial(readers.fine, "next")).title == "next"


def test_endless_wait_ends_at_the_clock_limit(tmp_path):
    with Sandbox(SandboxLimits(clock=0.3)) as sandbox, pytest.raises(UnreadableDocument, match=r"longer than 0\.3 s"):
        sandbox.call(partial(readers.sleeps, tmp_path / "mark"))


def test_sandbox_block_reuses_one_process_and_ends_it():
    with Sandbox() as sandbox:
        pids = {sandbox.call(readers.where).title for _ in range(50)}
        titles = [sandbox.page(f"Title {n}\n=======\n\nText.".encode(), "a.rst").title for n in range(20)]

        assert len(pids) == 1
        assert titles == [f"Title {n}" for n in range(20)]
    assert has_ended(int(pids.pop()))


def test_sandbox_used_without_a_block_ends_its_process():
    assert has_ended(int(Sandbox().call(readers.where).title))


def test_harmless_documents_are_read_in_this_process(sandbox):
    assert sandbox.call(readers.where, harmless=True).title == str(os.getpid())
    assert sandbox.page(b"# Title\n\nText.", "a.md").title == "Title"


def test_process_has_no_secrets_and_may_print(monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "s3cret")
    with Sandbox() as fresh:
        assert "TOKEN" not in fresh.call(readers.surroundings).title


def test_memory_used_by_earlier_documents_is_freed():
    with Sandbox(LIMITS) as sandbox:
        sandbox.call(readers.keeps)
        assert sandbox.call(readers.needs).title == str(150 << 20)


def test_killed_process_is_replaced(sandbox):
    pid = int(sandbox.call(readers.where).title)
    os.kill(pid, 9)
    wait_for(lambda: not sandbox._process.alive)

    assert int(sandbox.call(readers.where).title) != pid


def test_stop_ends_the_current_reading(tmp_path):
    mark = tmp_path / "mark"
    with Sandbox() as sandbox, ThreadPoolExecutor(1) as thread:
        reading = thread.submit(sandbox.call, partial(readers.sleeps, mark))
        pid = int(wait_for(lambda: mark.exists() and mark.read_text()))
        sandbox.stop()

        with pytest.raises(SourceUnavailable, match="stopped"):
            reading.result(PATIENCE)
        with pytest.raises(SourceUnavailable, match="stopped"):
            sandbox.call(readers.where)
        assert has_ended(pid)


def test_folder_stop_ends_the_current_reading(tmp_path):
    (tmp_path / "a.md").write_text("![" * 50_000)
    sandbox = Sandbox()
    folder = FolderSource(tmp_path, sandbox=sandbox)
    with ThreadPoolExecutor(1) as thread:
        items = iter(folder.documents())
        document = thread.submit(next, items).result(PATIENCE)
        assert isinstance(document, ChangedDocument)
        reading = thread.submit(document.load)
        pid = wait_for(lambda: sandbox._process and sandbox._process.documents and sandbox._process._process.pid)
        folder.stop()

        with pytest.raises(SourceUnavailable, match="stopped"):
            reading.result(PATIENCE)
        thread.submit(items.close).result(PATIENCE)
    assert has_ended(pid)


def test_killed_parent_leaves_no_process(tmp_path):
    mark = tmp_path / "mark"
    program = (
        "import sys; from functools import partial; from ingest.sandbox import Sandbox\n"
        "from tests.ingest.sandbox import readers\n"
        "Sandbox().call(partial(readers.sleeps, sys.argv[1]))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.Popen([sys.executable, "-c", program, str(mark)], env=environment)
    try:
        pid = int(wait_for(lambda: parent.poll() is None and mark.exists() and mark.read_text()))
    finally:
        parent.kill()
        parent.wait()

    wait_for(lambda: has_ended(pid))


def test_no_thread_remains():
    before = threading.active_count()
    with Sandbox() as sandbox:
        sandbox.call(readers.where)

    wait_for(lambda: threading.active_count() <= before)


def test_clock_limit_far_exceeds_processor_limit():
    for programs in (NO_PROGRAMS, ReaderPrograms(ocr=True)):
        limits = Sandbox(programs=programs)._limits

        assert limits.clock >= 20 * limits.seconds
