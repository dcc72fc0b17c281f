"""Kills an ingest at random moments and compares what is left, resumed, with a run that nobody disturbed.

`footnote evaluate crashes FOLDER` does this with the real command in a process of its own, so that SIGKILL hits the
embedder, Chroma, tantivy and SQLite wherever they are.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated

import numpy as np
import typer

from bot.app import open_app
from bot.settings import Settings
from storage.embedding import Vectors
from storage.types import Document, Passage

CORPUS = "crashes"
_A_FIRST = 5
"""Each fifth kill hits a first ingest, the others a refresh."""
_WELL = "each document whole and found by both indexes, and equal to the undisturbed one once resumed"


@dataclass(frozen=True)
class Contents:
    """All that a home holds: rows of the manifest, hashes in both indexes by passage id, and the vectors."""

    rows: dict[str, tuple[Passage, Document]]
    dense: dict[str, str]
    lexical: dict[str, str]
    vectors: dict[str, Vectors]


def crashes(
    folder: Annotated[Path, typer.Argument(help="The documents to ingest.")],
    moments: Annotated[int, typer.Option(help="How many times to kill the ingest.")] = 10,
    seed: Annotated[int, typer.Option(help="Chooses the moments.")] = 0,
) -> None:
    """Kill an ingest at random moments, resume it, and compare with an undisturbed one.

    Example: footnote evaluate crashes examples/handbook
    """
    random = Random(seed)
    with tempfile.TemporaryDirectory() as scratch:
        whole, before, killed = (Path(scratch, name) for name in ("whole", "before", "killed"))
        seconds = _ingest(folder, whole)
        idle = _ingest(folder, whole)
        _ingest(_older(folder, Path(scratch, "older")), before)
        print(f"undisturbed: {seconds:.1f} s, of which {idle:.1f} s go by before and after its work; seed {seed}")
        expected, older = asyncio.run(_read(whole)), asyncio.run(_read(before))
        faults = []
        for number in range(1, moments + 1):
            start = before if number % _A_FIRST else None
            moment = _kill(folder, killed, start, (idle * 0.7, seconds), random)
            found = halves(older if start else None, expected, asyncio.run(_read(killed)))
            _ingest(folder, killed)
            found += differences(expected, asyncio.run(_read(killed)))
            faults += found
            what = "a refresh" if start else "a first ingest"
            print(f"kill {number}: {what} after {moment:.2f} s: {'; '.join(found) or _WELL}", flush=True)
        _reindex(killed)
        again = differences(expected, asyncio.run(_read(killed)))
        print(f"reindex: {'; '.join(again) or 'equal'}; {len(expected.rows):,} passages in SQL, Chroma and tantivy")
    raise typer.Exit(bool(faults or again))


def _older(folder: Path, copy: Path) -> Path:
    """Return a copy of a folder in which a third of the files are shorter, a tenth missing and a tenth misnamed."""
    shutil.copytree(folder, copy)
    for number, path in enumerate(sorted(path for path in copy.rglob("*.md"))):
        if number % 3 == 0:
            path.write_text(path.read_text(encoding="utf-8")[: path.stat().st_size // 2], encoding="utf-8")
        elif number % 10 == 1:
            path.unlink()
        elif number % 10 == 2:
            path.rename(path.with_stem(f"{path.stem}-old"))
    return copy


def _kill(folder: Path, home: Path, start: Path | None, between: tuple[float, float], random: Random) -> float:
    """Kill an ingest at a moment at which it really runs, and return the moment."""
    while True:
        shutil.rmtree(home, ignore_errors=True)
        if start:
            shutil.copytree(start, home)
        moment = random.uniform(*between)
        if _ingest(folder, home, kill_after=moment) < 0:
            return moment


def differences(expected: Contents, found: Contents) -> list[str]:
    """Return in words how two homes differ; nothing where they hold the same."""
    faults = [
        f"{name}: {len(set(left) ^ set(right))} ids on one side only, "
        f"{sum(left[key] != right[key] for key in set(left) & set(right))} differ"
        for name, left, right in (
            ("SQL", expected.rows, found.rows),
            ("Chroma", expected.dense, found.dense),
            ("tantivy", expected.lexical, found.lexical),
        )
        if left != right
    ]
    shared = sorted(set(expected.vectors) & set(found.vectors))
    least = min((float(np.dot(expected.vectors[key], found.vectors[key])) for key in shared), default=1.0)
    return faults if least >= 0.9999 else [*faults, f"vectors: a cosine of {least:.6f}"]


def halves(before: Contents | None, after: Contents, found: Contents) -> list[str]:
    """Return in words which documents a killed refresh left neither as they were nor as they are to be.

    Also what is listed and an index does not hold, or holds as something else. What an index holds beyond that, a
    search does not show.
    """
    known = [_by_document(contents) for contents in (before, after) if contents]
    there = _by_document(found)
    half = sorted(key for key, rows in there.items() if rows not in [one.get(key) for one in known])
    lost = [
        f"{name} lacks {len(found.rows.keys() - index.keys())} that are listed"
        for name, index in (("Chroma", found.dense), ("tantivy", found.lexical))
        if found.rows.keys() - index.keys()
    ]
    return [*lost, *(f"half of {key}" for key in half)]


def _by_document(contents: Contents) -> dict[str, frozenset[tuple[str, str]]]:
    names = {passage.document for passage, _ in contents.rows.values()}
    rows = [(passage.document, passage.id, document.title) for passage, document in contents.rows.values()]
    return {name: frozenset((key, title) for of, key, title in rows if of == name) for name in names}


def _ingest(folder: Path, home: Path, *, kill_after: float | None = None) -> float:
    """Run the command, and return its seconds; negative when it was killed on the way."""
    command = [sys.executable, "-m", "bot", "ingest", "folder", str(folder), "--corpus", CORPUS, "--json"]
    started = time.monotonic()
    with subprocess.Popen(command, env=_environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            out, error = process.communicate(timeout=kill_after)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            return -1.0
    if process.returncode:
        raise typer.BadParameter(f"the ingest failed: {error.decode()[-500:]} {out.decode()[-500:]}")
    json.loads(out)
    return time.monotonic() - started


def _reindex(home: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "bot", "reindex", "--json"], env=_environment(home), check=True, capture_output=True
    )


def _environment(home: Path) -> dict[str, str]:
    return {**os.environ, "FOOTNOTE_HOME": str(home)}


async def _read(home: Path) -> Contents:
    async with open_app(Settings(home=home)) as app:
        store = app.passages
        pages = await app.manifest.listed(CORPUS, limit=10_000_000)
        rows = {passage.id: (passage, document) for passage, document in pages}
        vectors = store.dense.vectors(CORPUS, list(rows))
        return Contents(rows, store.dense.contents(CORPUS), store.lexical.contents(), vectors)
