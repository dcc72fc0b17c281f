"""Starts children fast: it has imported all that they need, and forks one for each connection to its socket.

A connection tells a life in one line, and is told `pid N` when its child is born, and `end N` when it has ended: its
exit code, or the negative signal that ended it.

    python -m tests.platforms.killing.nursery SOCKET
"""

import os
import socket
import sys
import traceback
from contextlib import suppress

import chromadb  # noqa: F401 - what takes long to import is imported once
import tantivy  # noqa: F401

from tests.platforms.killing.child import main


def _born(line: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        main(line)
        code = 0
    except BaseException:  # noqa: BLE001 - what was forked must not go on as its parent
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def nurse(path: str) -> None:
    """Raise one child after another."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            connection, _ = listening.accept()
            with connection, connection.makefile("rw") as told:
                pid = _born(told.readline())
                told.write(f"pid {pid}\n")
                told.flush()
                _, status = os.waitpid(pid, 0)
                with suppress(OSError):
                    told.write(f"end {os.waitstatus_to_exitcode(status)}\n")
                    told.flush()


if __name__ == "__main__":
    nurse(sys.argv[1])
