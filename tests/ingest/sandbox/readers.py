"""What a process of its own is given to do in tests: readers that hang, eat memory, die, or tell of themselves.

They stand in a module, as the process finds them by their names.
"""

import os
import signal
import time
from pathlib import Path

from ingest.types import Page, UnreadableDocument


def fine(title):
    return Page(title, ())


def where():
    """Say which process read this."""
    return Page(str(os.getpid()), ())


def surroundings():
    """Say what the process was given, having printed what no answer is."""
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
    held = []
    while True:
        held.append(bytearray(1 << 20))


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
    """Write into every pipe that is open, as a library might that was taken over."""
    for number in range(3, 64):
        try:
            os.write(number, b"\xff" * 64)
        except OSError:
            continue
    return Page("", ())


_KEPT = []


def keeps():
    """Leave behind most of the memory that there may be."""
    _KEPT.append(bytearray(150 << 20))
    return Page(str(os.getpid()), ())


def needs():
    return Page(str(len(bytearray(150 << 20))), ())
