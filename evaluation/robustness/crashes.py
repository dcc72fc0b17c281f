"""Kill a refresh at random moments, resume it, and compare the result with that of an undisturbed refresh.

Each process to be killed is forked from one that has loaded all modules, so that SIGKILL interrupts the refresh itself.
"""

import asyncio
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from pathlib import Path
from random import Random
from typing import Annotated

import numpy as np
import typer

from bot.app import App
from evaluation import EvaluationError
from evaluation.workbench import open_home
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.sources.folder import FolderSource
from ingest.types import DocumentSource
from storage.indexes.embedding import Vectors
from storage.types import DenseMode, Document, Passage

CORPUS = "crashes"
_FIRST_INGEST_EVERY = 5  # every fifth kill interrupts a first ingest, the others a refresh
_ALL_WELL = "each document whole and found by both indexes, and equal to the undisturbed one once resumed"


@dataclass(frozen=True)
class HomeContents:
    """The contents of a home: the manifest's rows, the hashes in both indexes by passage id, and the vectors."""

    rows: dict[str, tuple[Passage, Document]]
    dense: dict[str, str]
    lexical: dict[str, str]
    vectors: dict[str, Vectors]


def crashes(
    path: Annotated[Path, typer.Argument(help="The documents to ingest: a folder, or a dump, which is read lazily.")],
    before: Annotated[Path | None, typer.Option(help="An older dump, from which most refreshes start.")] = None,
    moments: Annotated[int, typer.Option(help="How many times to kill the refresh.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the random moments.")] = 0,
) -> None:
    """Kill a refresh at random moments, resume it, and compare with an undisturbed refresh.

    Example: footnote evaluate crashes examples/handbook
    """
    if path.is_dir() is (before is not None):
        raise EvaluationError("A dump needs an older dump as --before; for a folder, an older copy is made.")
    random = Random(seed)
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["bot.wiring", "chromadb", "ingest.sources.folder", "onnxruntime", "tantivy"])
    with tempfile.TemporaryDirectory() as scratch:
        whole, earlier, killed = (Path(scratch, name) for name in ("whole", "earlier", "killed"))
        _, expected = asyncio.run(_resume_refresh(path, whole))
        _, older = asyncio.run(_resume_refresh(before or _copy_older(path, Path(scratch, "older")), earlier))
        faults: list[str] = []
        durations: dict[Path | None, float] = {}
        for number in range(1, moments + 1):
            start = earlier if number % _FIRST_INGEST_EVERY else None
            dying = _KilledRefresh(processes, path, killed, start)
            if start not in durations:
                durations[start] = dying.run(None)
            moment, total = dying.kill(random, durations[start]), durations[start]
            left, resumed = asyncio.run(_resume_refresh(path, killed))
            wrong = [
                *list_torn_documents(older if start else None, expected, left),
                *list_differences(expected, resumed),
            ]
            faults += wrong
            what = "a refresh" if start else "a first ingest"
            print(
                f"kill {number}: {what} after {moment:.2f} of {total:.2f} s: {'; '.join(wrong) or _ALL_WELL}",
                flush=True,
            )
        command = [sys.executable, "-m", "bot", "reindex", "--json"]
        subprocess.run(command, env={**os.environ, "FOOTNOTE_HOME": str(killed)}, check=True, capture_output=True)
        again = list_differences(expected, asyncio.run(_read_home(killed)))
        print(f"reindex: {'; '.join(again) or 'equal'}; {len(expected.rows):,} passages in SQL, Chroma and tantivy")
        print(f"{moments} kills, seed {seed}: {len(faults)} faults; load {os.getloadavg()[0]:.1f}")
    raise typer.Exit(bool(faults or again))


@dataclass
class _KilledRefresh:
    """A refresh in a process of its own, which is killed at a random moment."""

    processes: BaseContext
    path: Path
    home: Path
    start: Path | None  # the home at its start; None for an empty home

    def kill(self, random: Random, seconds: float) -> float:
        """Run the refresh and kill it at a random moment, again if it ended earlier. Return the moment in seconds."""
        while True:
            moment = random.uniform(0.0, seconds)
            if self.run(moment) < 0:
                return moment

    def run(self, moment: float | None) -> float:
        """Run the refresh and kill it after `moment` seconds, if set. Return its seconds, or -1 if it was killed."""
        shutil.rmtree(self.home, ignore_errors=True)
        if self.start:
            shutil.copytree(self.start, self.home)
        ours, theirs = self.processes.Pipe()
        process = self.processes.Process(target=_run_refresh, args=(self.path, self.home, theirs))  # type: ignore[attr-defined]
        process.start()
        theirs.close()
        ours.recv()
        began = time.monotonic()
        process.join(moment)
        if process.is_alive():
            process.kill()
            process.join()
            return -1.0
        if process.exitcode:
            raise EvaluationError(f"The ingest failed with {process.exitcode}.")
        return time.monotonic() - began


def _run_refresh(path: Path, home: Path, started: Connection) -> None:
    async def refresh() -> None:
        async with open_home(home) as app:
            started.send(None)
            await _refresh(path, app)

    asyncio.run(refresh())


def _copy_older(folder: Path, copy: Path) -> Path:
    """Copy a folder, with a third of the files shortened, a tenth removed and a tenth renamed. Return the copy."""
    shutil.copytree(folder, copy)
    for number, path in enumerate(sorted(path for path in copy.rglob("*.md"))):
        if number % 3 == 0:
            path.write_text(path.read_text(encoding="utf-8")[: path.stat().st_size // 2], encoding="utf-8")
        elif number % 10 == 1:
            path.unlink()
        elif number % 10 == 2:
            path.rename(path.with_stem(f"{path.stem}-old"))
    return copy


def list_differences(expected: HomeContents, found: HomeContents) -> list[str]:
    """Describe how two homes differ; empty if they have the same contents."""
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


def list_torn_documents(before: HomeContents | None, after: HomeContents, found: HomeContents) -> list[str]:
    """Describe each document in `found` that is in neither its old nor its new state, after a refresh was killed.

    Also describe how many listed passages an index lacks. Passages that only an index has do not matter: no search
    finds them.
    """
    known = [_by_document(contents) for contents in (before, after) if contents]
    present = _by_document(found)
    half = sorted(key for key, rows in present.items() if rows not in [documents.get(key) for documents in known])
    lost = [
        f"{name} lacks {len(found.rows.keys() - index.keys())} that are listed"
        for name, index in (("Chroma", found.dense if after.dense else found.rows), ("tantivy", found.lexical))
        if found.rows.keys() - index.keys()
    ]
    return [*lost, *(f"half of {key}" for key in half)]


def _by_document(contents: HomeContents) -> dict[str, frozenset[tuple[str, str]]]:
    names = {passage.document for passage, _ in contents.rows.values()}
    rows = [(passage.document, passage.id, document.title) for passage, document in contents.rows.values()]
    return {name: frozenset((key, title) for of, key, title in rows if of == name) for name in names}


async def _refresh(path: Path, app: App) -> None:
    source, mode = _open_source(path)
    await refresh_corpus(source, CORPUS, app.passages, progress=lambda _: None, dense=mode)


def _open_source(path: Path) -> tuple[DocumentSource, DenseMode]:
    return (FolderSource(path), DenseMode.EAGER) if path.is_dir() else (WikipediaDump(path), DenseMode.LAZY)


async def _resume_refresh(path: Path, home: Path) -> tuple[HomeContents, HomeContents]:
    """Resume the refresh of a home. Return the contents of the home before and after."""
    async with open_home(home) as app:
        before = await _read_contents(app)
        await _refresh(path, app)
        return before, await _read_contents(app)


async def _read_home(home: Path) -> HomeContents:
    async with open_home(home) as app:
        return await _read_contents(app)


async def _read_contents(app: App) -> HomeContents:
    store = app.passages
    pages = await app.manifest.listed(CORPUS, limit=10_000_000)
    rows = {passage.id: (passage, page.document) for page in pages for passage in page.passages}
    vectors = store.dense.vectors(CORPUS, list(rows))
    return HomeContents(rows, store.dense.contents(CORPUS), await store.words_held(), vectors)
