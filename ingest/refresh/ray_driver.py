"""The process that uses Ray for `ingest.refresh.ray_engine`.

It receives blocks in groups, called windows, and returns their results in order. It is started as
`python -m ingest.refresh.ray_driver FD`. Only the workers unpickle the blocks, as they have this code installed. The
process ends when its parent ends, and a cluster that it started ends with it.
"""

import os
import pickle
import queue
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

LOCAL_STORE = 200 << 20  # bytes of blocks and results that a cluster on this machine keeps in memory
BLOCK_BYTES = 8 << 20  # bytes of a block of results; much larger ones would keep workers waiting for room
REACH_SECONDS = 10.0  # how long a cluster may take to be reached
RETRIES = 5  # of a block whose worker or machine was lost
WINDOWS = 4  # how many windows are computed at once

_Answer = tuple[str, Any]
_MISSING = "A worker of the cluster cannot run Footnote: {}."
_SAME_HINT = "Install the same version of Footnote, with its locked dependencies, on every machine of the cluster."


def compute_block(row: dict[str, bytes], *, work: bytes, code: str) -> dict[str, Any]:
    try:
        from ingest.refresh.ray_engine import hash_code

        if (mine := hash_code()) != code:
            where = f"a worker on {os.uname().nodename} runs {mine}, this process {code}"
            fault = f"Footnote's version on the cluster differs: {where} (Python / our code)."
            return {"kind": "fault", "content": pickle.dumps((fault, _SAME_HINT))}
        called, item = pickle.loads(work), pickle.loads(row["block"])  # noqa: S301 - our parent wrote them
    except ImportError as error:
        return {"kind": "fault", "content": pickle.dumps((_MISSING.format(error), _SAME_HINT))}
    try:
        return {"kind": "result", "content": pickle.dumps(called(item))}
    except Exception as error:  # noqa: BLE001 - it is raised again where the results are read
        try:
            return {"kind": "error", "content": pickle.dumps(error)}
        except Exception:  # noqa: BLE001 - pickling may raise anything
            return {"kind": "error", "content": pickle.dumps(RuntimeError(repr(error)))}


def connect(address: str, folder: str) -> float:
    """Join the cluster at an address, or start one on this machine; return its number of cores.

    A cluster started here stores its files in `folder`.
    """
    import ray

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error", "configure_logging": True}
    if address:
        host, _, port = address.rpartition(":")
        if port.isdigit():  # Ray itself would try for a minute
            socket.create_connection((host, int(port)), REACH_SECONDS).close()
        ray.init(address=address, **quiet)
    else:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        ray.init(
            address="local",
            num_cpus=cores,
            include_dashboard=False,
            object_store_memory=LOCAL_STORE,
            _node_ip_address="127.0.0.1",
            _temp_dir=folder,
            **quiet,
        )
    import ray.data

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    context.target_max_block_size = BLOCK_BYTES
    return float(ray.cluster_resources().get("CPU", 1))


def compute_window(work: bytes, code: str, window: list[bytes]) -> Iterator[_Answer]:
    """Yield the answers for the blocks of a window, in order."""
    import ray.data

    blocks = ray.data.from_items([{"block": block} for block in window], override_num_blocks=len(window))
    # Concurrent windows share the cores: each block takes one.
    done = blocks.map(partial(compute_block, work=work, code=code), num_cpus=1, max_retries=RETRIES)
    for row in done.iter_rows():
        content = row["content"]
        yield row["kind"], pickle.loads(content) if row["kind"] == "fault" else content  # noqa: S301 - our code wrote it


def serve_windows(pipe: Connection, address: str, folder: str, code: str) -> None:
    """Compute windows for the parent process until it closes the pipe."""
    try:
        cores = connect(address, folder)
    except Exception as error:  # noqa: BLE001 - Ray may raise anything
        pipe.send(("fault", explain_refusal(error, address)))
        return
    pipe.send(("result", pickle.dumps(cores)))
    windows: queue.SimpleQueue[tuple[int, int, queue.SimpleQueue[_Answer]]] = queue.SimpleQueue()
    threading.Thread(target=_send_answers, args=(pipe, windows), name="answers", daemon=True).start()
    pool = ThreadPoolExecutor(WINDOWS, "window")
    with suppress(EOFError, OSError):
        while True:
            number, work, window = pipe.recv()
            answers: queue.SimpleQueue[_Answer] = queue.SimpleQueue()
            windows.put((number, len(window), answers))
            pool.submit(_fill, answers, work, code, window)
    pool.shutdown(wait=False, cancel_futures=True)


def _fill(answers: "queue.SimpleQueue[_Answer]", work: bytes, code: str, window: list[bytes]) -> None:
    try:
        for answer in compute_window(work, code, window):
            answers.put(answer)
    except Exception as error:  # noqa: BLE001 - Ray may raise anything
        hint = "Check the cluster with `ray status`, and run the same command again to continue."
        answers.put(("fault", (f"Ray lost a part of the work: {_first_line(error)}.", hint)))


def _send_answers(pipe: Connection, windows: "queue.SimpleQueue[Any]") -> None:
    with suppress(OSError):
        while True:
            number, count, answers = windows.get()
            for _ in range(count):
                kind, content = answers.get()
                pipe.send((number, kind, content))
                if kind == "fault":
                    break


def explain_refusal(error: Exception, address: str) -> tuple[str, str]:
    """Return why the cluster cannot be used, and a hint. Pure."""
    causes = " ".join(f"{error} {error.__cause__}".split())
    if "ersion mismatch" in causes:
        return f"Ray's or Python's version on the cluster differs: {causes[:300]}", _SAME_HINT
    if "AuthToken" in causes:
        hint = "Set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN_PATH to the file that holds the cluster's token."
        return f"The Ray cluster at {address} refuses this process: its token is missing or wrong.", hint
    if not address:
        return f"Ray cannot be started here: {_first_line(error)}.", "Check this machine's free memory and disk space."
    hint = "Check the address, and that this machine has joined the cluster: ray start --address=... --num-cpus=0."
    return f"The Ray cluster at {address} cannot be reached: {_first_line(error)}.", hint


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200].rstrip(".")


def main() -> None:
    """Serve the parent process. In any case, disconnect from Ray at the end."""
    pipe = Connection(int(sys.argv[1]))
    address, folder, code = pipe.recv()
    try:
        serve_windows(pipe, address, folder, code)
    finally:
        if "ray" in sys.modules:
            sys.modules["ray"].shutdown()
        if folder:  # a killed parent cannot delete it
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


if __name__ == "__main__":
    main()
