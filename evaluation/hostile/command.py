"""`footnote evaluate hostile`: what reading files takes that are made to do harm, each in a process of its own."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from evaluation.hostile.files import MADE

SECONDS = 300.0
_MEGABYTE = 1 << 20


def hostile(
    only: Annotated[str, typer.Option(help="Only files whose names hold this.")] = "",
    seconds: Annotated[float, typer.Option(help="How long one may take before it is ended.")] = SECONDS,
) -> None:
    """Print for each file what became of it, in how many seconds, and how much memory the process had at most."""
    load = os.getloadavg()[0]
    print(f"Load {load:.1f}. MB: the most that the process held; reader: the one that read for it, if any did.\n")
    print(f"{'file':<22} {'size':>8} {'seconds':>8} {'MB':>6} {'reader':>6}  what became of it")
    for name in filter(lambda name: only in name, MADE):
        _one(name, seconds)


def _one(name: str, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        made = MADE[name]()
        path.write_bytes(made.encode() if isinstance(made, str) else made)
        size = path.stat().st_size / _MEGABYTE
        del made
        command = [sys.executable, "-m", "evaluation.hostile.reading", str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            print(f"{name:<22} {size:>7.1f}M {'':>8} {'':>6} {'':>6}  NOT DONE after {seconds:.0f} s", flush=True)
            return
    if done.returncode:
        print(f"{name:<22} {size:>7.1f}M {'':>8} {'':>6} {'':>6}  THE PROCESS DIED ({done.returncode})", flush=True)
        return
    said = json.loads(done.stdout)
    reader = f"{said['reader']:.0f}" if said["reader"] else ""
    became = said["reason"] or f"{said['passages']:,} passages"
    print(f"{name:<22} {size:>7.1f}M {said['seconds']:>8.2f} {said['mb']:>6.0f} {reader:>6}  {became}", flush=True)
