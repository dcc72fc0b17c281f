"""Open a complete passage store in a folder, with a small embedder."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

from bot.answering.turn_record import read_versions
from storage.database.engine import Database, open_database
from storage.database.queue import Queue
from storage.database.worker_threads import IndexThreads
from storage.indexes.chroma_connection import ChromaLocation, ChromaServer
from storage.indexes.dense import DenseIndex
from storage.indexes.embedding import Embedder
from storage.indexes.lexical import IndexedVersion, LexicalIndex, passage_terms
from storage.manifest import Manifest
from storage.passages import PassageStore
from storage.record.admin_choices import ApprovedExamples, ChannelOverrides
from storage.record.audit_log import AuditLog
from storage.record.proof.receipts import find_position
from storage.record.turn_index import Spending
from storage.types import Document, Passage
from tests.fakes import WordEmbedder
from tests.team_servers import TeamServers, name_database


@cache
def empty_home() -> Path:
    """Return an empty home to copy, which takes a tenth of the time of making one."""
    folder = Path(tempfile.mkdtemp(prefix="footnote-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with _open_store(folder / "home", WordEmbedder(), folder / "home"):
        return folder / "home"


@contextmanager
def open_empty_database(home: Path) -> Iterator[Database]:
    home.mkdir(exist_ok=True)
    if not TeamServers.current():
        shutil.copy(empty_home() / "footnote.db", home)
    with open_home_database(home) as database:
        yield database


@contextmanager
def open_home_database(home: Path) -> Iterator[Database]:
    """Open a home's database: its file, or a database on one of the test's servers."""
    servers = TeamServers.current()
    with open_database(servers.find_database(home) if servers else "", home=home) as database:
        yield database


@contextmanager
def opened(home: Path, embedder: Embedder | None = None, *, beside: Path | None = None) -> Iterator[PassageStore]:
    """Open what `home` contains; threads, indexes and database are closed at the end.

    A home `beside` another shares its database and its vectors.
    """
    exists = any((home / name).exists() for name in ("footnote.db", "chroma", "lexical"))
    if not exists and not beside and not TeamServers.current():
        shutil.copytree(empty_home(), home, dirs_exist_ok=True)
    with _open_store(home, embedder or WordEmbedder(), beside or home) as store:
        yield store


@contextmanager
def _open_store(home: Path, embedder: Embedder, shared: Path) -> Iterator[PassageStore]:
    with ExitStack() as stack:
        database = stack.enter_context(open_home_database(shared))
        dense = DenseIndex(locate_vectors(shared), embedder=embedder.name)
        stack.callback(dense.close)
        lexical = LexicalIndex(home / "lexical")
        stack.callback(lexical.close)
        threads = IndexThreads.start(stack)  # closed first, as a cancelled call may still be writing
        yield PassageStore(Manifest(database), dense, lexical, embedder, threads)


def locate_vectors(home: Path) -> ChromaLocation:
    """Return where a home's vectors are; on a server they are in a database of their own."""
    servers = TeamServers.current()
    if servers is None:
        return home / "chroma"
    servers.make_chroma_database(name_database(home))
    return ChromaServer(servers.chroma_url, database=name_database(home))


def kept(store: PassageStore) -> dict[str, Any]:
    """Return the stores of a database by the field names of `App`."""
    database = store.manifest.database
    return {
        "manifest": store.manifest,
        "audit": AuditLog(database),
        "queue": Queue(database),
        "spending": Spending(database),
        "overrides": ChannelOverrides(database),
        "examples": ApprovedExamples(database),
        "find_position": partial(find_position, database),
        "versions": read_versions(store.embedder.name),
    }


async def listed_passages(manifest: Manifest, corpus: str, key: str) -> tuple[Passage, ...]:
    stored = await manifest.stored(corpus, [key])
    return stored[key].passages if key in stored else ()


def damage_postings(folder: Path, corpus: str, words: str) -> None:
    """Damage a lexical index so that it opens, and tantivy panics when these words are searched."""
    with closing(LexicalIndex(folder)) as index:
        start = index.followed
        versions = [
            IndexedVersion(
                start + n,
                corpus,
                "en",
                passage_terms(Document(corpus, f"{n}", ""), [Passage(f"{n}", corpus, f"{n}", "", words, 0, f"{n}")]),
            )
            for n in range(1, 301)
        ]
        index.follow(versions, (), start + 300)
    file = max(folder.glob("*.idx"), key=lambda path: path.stat().st_size)
    content = file.read_bytes()  # its end identifies the file, and is kept
    file.write_bytes(Random(3).randbytes(len(content) - 200) + content[-200:])


@dataclass(frozen=True)
class Contents:
    """All that a store contains of one corpus, in a comparable form."""

    manifest: frozenset[tuple[str, str, str, str, int]]
    dense: dict[str, str]
    lexical: dict[str, str]


async def contents(store: PassageStore, corpus: str) -> Contents:
    listed = await store.manifest.listed(corpus, limit=100_000)
    rows = frozenset((p.id, p.hash, p.text, page.document.title, p.position) for page in listed for p in page.passages)
    known = {key for key, *_ in rows}
    words_held = await store.words_held()
    lexical = {key: value for key, value in words_held.items() if key in known or corpus == "handbook"}
    return Contents(rows, store.dense.contents(corpus), lexical)
