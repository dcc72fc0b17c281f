"""Work for the processes of an engine, as functions of a module, so that they can be pickled."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path


def double(number: int) -> int:
    return 2 * number


def read_environment(_: object) -> dict[str, str]:
    return dict(os.environ)


class Unpicklable(Exception):
    def __init__(self) -> None:
        super().__init__()
        self.held = lambda: None


def fail(number: int) -> int:
    if number == 1:
        raise LookupError("the test wants it so")
    raise Unpicklable


def die_once(item: tuple[int, str]) -> int:
    """Double a number; the process that finds the file removes it, and kills itself."""
    number, file = item
    try:
        Path(file).unlink()
    except FileNotFoundError:
        return 2 * number
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def take_time(item: tuple[int, str]) -> int:
    """Create a file named after a number, and double the number slowly."""
    number, folder = item
    (Path(folder) / f"{number}").touch()
    time.sleep(0.3)
    return 2 * number


def list_listening(_: object) -> set[str]:
    """Return the addresses, in hexadecimal, at which this process and its parent, the node, listen."""
    sockets = set[str]()
    for process in (os.getpid(), os.getppid()):
        for file in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                sockets.add(str(file.readlink()))
    rows = [row.split() for kind in ("tcp", "tcp6") for row in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}
