"""A home whose database is lost is refused; a read-only one can still be read."""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ingest.refresh.corpus_refresh import refresh_corpus
from storage.database.engine import open_database
from storage.indexes.index_state import refuse_lost_database
from storage.record.audit_log import AuditLog
from storage.types import EntryKind, LogEntry
from tests.bot.server.server import run, run_json
from tests.fakes import PageSource
from tests.platforms.example_app import PAGES, fill
from tests.storage.stores import opened


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("filled") / "home"
    asyncio.run(fill(home))
    with open_database("", home=home) as database:
        opened = LogEntry("abc", EntryKind.TURN_OPENED, {"question": "Why?"})
        asyncio.run(AuditLog(database).append(opened))
    return home


@pytest.fixture
def home(filled: Path, here: Path) -> Path:
    return Path(shutil.copytree(filled, here / ".footnote"))


def unlink(home: Path) -> None:
    (home / "footnote.db").unlink()


def empty(home: Path) -> None:
    (home / "footnote.db").write_bytes(b"")


def replace(home: Path) -> None:
    unlink(home)
    with open_database("", home=home):
        pass


@pytest.mark.parametrize(("lose", "kept", "command"), [
    (unlink, {"chroma", "lexical"}, ("ask", "Why?")),
    (empty, {"chroma", "lexical"}, ("serve",)),
    (replace, {"chroma", "lexical"}, ("reindex",)),
    (unlink, {"chroma"}, ("corpora",)),
    (replace, {"lexical"}, ("audit", "list")),
])  # fmt: skip
def test_lost_database_is_not_replaced(
    home: Path, lose: Callable[[Path], None], kept: set[str], command: tuple[str, ...]
) -> None:
    lose(home)
    for name in {"chroma", "lexical"} - kept:
        shutil.rmtree(home / name)
    before = {path.name: path.stat().st_size for path in home.glob("footnote.db")}
    refused = run(*command)

    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    assert "footnote.db is missing or empty, but the indexes next to it are not" in refused.stderr
    assert "Restore it from a backup" in refused.stderr
    assert {path.name: path.stat().st_size for path in home.glob("footnote.db")} == before
    assert all((home / name).exists() for name in kept)
    assert any("Restore it" in finding["hint"] for finding in run_json("doctor", "--json", status=1)["findings"])


async def test_new_or_emptied_home_is_used(tmp_path: Path) -> None:
    for pages in (PAGES, {}):
        refuse_lost_database(tmp_path, tmp_path / "chroma")
        with opened(tmp_path) as store:
            source = PageSource(pages)
            await refresh_corpus(source, "handbook", store, progress=lambda _: None, confirm_removal=True)
    unlink(tmp_path)
    refuse_lost_database(tmp_path, tmp_path / "chroma")


def test_record_is_readable_on_a_read_only_medium(home: Path) -> None:
    (home / "footnote.db-shm").symlink_to("/nowhere/at/all")

    assert [turn["question"] for turn in run_json("audit", "list")["turns"]] == ["Why?"]
    assert [corpus["name"] for corpus in run_json("corpora")["corpora"]] == ["handbook"]
    assert run_json("audit", "verify")["findings"] == []
    with closing(sqlite3.connect(f"file:{home}/footnote.db?immutable=1", uri=True)) as connection:
        assert connection.execute("SELECT count(*) FROM entries").fetchone() == (1,)
