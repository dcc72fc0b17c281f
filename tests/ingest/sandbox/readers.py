"""Fake readers that hang, use up memory, crash, or describe their process.

They are functions of a module, so that the sandbox's process can import them.
"""

import os
import signal
import time
from pathlib import Path

from ingest.types import Page, UnreadableDocument


def fine(title):
    return Page(title, ())


def where():
    """Return the process id as title."""
    return Page(str(os.getpid()), ())


def surroundings():
    """Print, and return the environment as title."""
    os.write(1, b"printed by a library")
    return Page("\n".join(sorted(os.environ)), ())


def refused():
    raise UnreadableDocument("holds no text")


def fails():
    raise KeyError("odd")


def computes():
    while True:
        pass


def sleeps(mark):
    Path(mark).write_text(str(os.getpid()), encoding="ascii")
    time.sleep(3600)


def eats():
    chunks = []
    while True:
        chunks.append(bytearray(1 << 20))


def exits():
    os._exit(3)


def segfaults():
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(3600)


def is_killed():
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(3600)


def no_page():
    return "a text"


def shouts():
    """Write into every open pipe, as a hijacked library might."""
    for number in range(3, 64):
        try:
            os.write(number, b"\xff" * 64)
        except OSError:
            continue
    return Page("", ())


_KEPT = []


def keeps():
    """Keep most of the allowed memory."""
    _KEPT.append(bytearray(150 << 20))
    return Page(str(os.getpid()), ())


def needs():
    return Page(str(len(bytearray(150 << 20))), ())
