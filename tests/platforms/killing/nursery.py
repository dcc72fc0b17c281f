"""Starts children fast: it has imported all that they need, and forks one for each connection to its socket.

A connection tells a life in one line, and is told `pid N` when its child is born, and `end N` when it has ended: its
exit code, or the negative signal that ended it. Between the two the child itself tells what it likes, line by line.

    python -m tests.platforms.killing.nursery SOCKET
"""

import gc
import os
import socket
import sys
import traceback
from contextlib import suppress

import chromadb.api.rust  # noqa: F401 - what takes long to import is imported once
import tantivy  # noqa: F401

from pipeline.stages.question_analysis import detect_small_talk
from pipeline.systems import SYSTEMS
from storage.language.detection import detect_language
from tests.platforms.killing.child import main


def _prepare() -> None:
    """Make once what each child would make for itself at its first question: patterns, tables, modules."""
    dict(SYSTEMS)
    detect_language("What was it?")
    detect_small_talk("What was it?")
    gc.freeze()


def _born(line: str, connection: socket.socket) -> int:
    # Born when it is told so: what it tells itself comes after.
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        connection.sendall(f"pid {pid}\n".encode())
        os.close(reading)
        os.close(writing)
        return pid
    os.close(writing)
    os.read(reading, 1)
    code = 1
    try:
        main(line, lambda word, what: connection.sendall(f"{word} {what}\n".encode()))
        code = 0
    except BaseException:  # noqa: BLE001 - what was forked must not go on as its parent
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def nurse(path: str) -> None:
    """Raise one child after another."""
    _prepare()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            connection, _ = listening.accept()
            with connection, connection.makefile("r") as told:
                pid = _born(told.readline(), connection)
                _, status = os.waitpid(pid, 0)
                with suppress(OSError):
                    connection.sendall(f"end {os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    nurse(sys.argv[1])
