"""Isolate every test from the network and the user's settings, and define the shared fixtures."""

import asyncio
import gc
import ipaddress
import os
import signal
import socket
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import hypothesis
import pytest
from hypothesis.internal.conjecture import engine

from tests.team_servers import VARIABLE, TeamServers, find_missing, start_team_servers
from tests.thorough import EXAMPLES, QUICK, TEAM


class NetworkForbidden(Exception):
    """A test tried to use the network. Tests may connect only to servers on 127.0.0.1."""


def _guard(event: str, arguments: tuple) -> None:
    if event in {"socket.connect", "socket.sendto"}:
        sock, address = arguments
        if sock.family in {socket.AF_INET, socket.AF_INET6} and not _is_here(str(address[0])):
            raise NetworkForbidden(f"{event} to {address[0]}")
    elif event == "socket.getaddrinfo" and arguments[0] and not _is_here(os.fsdecode(arguments[0])):
        raise NetworkForbidden(f"a look-up of {arguments[0]!r}")


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


sys.addaudithook(_guard)

# A process that a shell starts in the background ignores Ctrl-C, and so do its children: tests of Ctrl-C would hang.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Collected tests stay in memory until the end, so the garbage collector need not look through them.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


# The first run on a machine builds tables of characters, which takes longer than a deadline allows.
hypothesis.settings.register_profile(
    "footnote",
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
hypothesis.settings.load_profile("footnote")
engine.MAX_SHRINKING_SECONDS = 20  # report failures soon


@pytest.fixture(scope="session")
def handbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with the example handbook and the embedding model; tests use a copy."""
    from tests.handbook import make_home

    base = tmp_path_factory.getbasetemp()
    return make_home(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)


HERE = Path(__file__).parent
SLOW = (
    *("bot/cli/test_check", "bot/cli/test_entry_point", "bot/desk", "bot/doctor/test_examiner", "bot/server"),
    *("bot/discord/test_platform", "bot/slack/test_platform", "bot/views/test_pagination"),
    *("bot/test_end", "bot/test_model", "bot/test_simulated", "docs", "evaluation", "examples", "ingest/refresh"),
    *("ingest/sandbox", "ingest/test_corpus_refresh", "ingest/test_killed", "ingest/test_listings", "ingest/test_real"),
    *("ingest/sources/test_real", "platforms", "storage/indexes", "storage/test_unwritable", "tools", "turns"),
)
"""The tests that start processes, servers or homes; `make quick` leaves them out."""


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    inside = collection_path.is_relative_to(HERE) and collection_path.relative_to(HERE).as_posix()
    return True if QUICK and inside and inside.startswith(SLOW) else None


def pytest_xdist_auto_num_workers() -> int:
    """Run one worker more than there are cores, because tests wait a third of the time for processes and sockets."""
    return (os.cpu_count() or 1) + 1


_OURS = ("FOOTNOTE_", "OPENAI_", "AZURE_OPENAI_", "SLACK_", "DISCORD_")


@pytest.fixture(autouse=True)
def _isolate_settings(monkeypatch: pytest.MonkeyPatch, empty_folders: Iterator[Path]) -> None:
    """Remove the environment variables of Footnote, models, platforms and proxies; start in an empty folder."""
    for name in list(os.environ):
        ours = name.startswith(_OURS) and name != "FOOTNOTE_DATA"
        if ours or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(next(empty_folders))


@pytest.fixture(scope="session")
def empty_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return an iterator of new folders; `mktemp` would look through all existing folders for each."""
    base = tmp_path_factory.mktemp("cwd")

    def make() -> Iterator[Path]:
        for number in count():
            folder = base / str(number)
            folder.mkdir()
            yield folder

    return make()


@pytest.fixture(scope="session")
def vaults(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with the three corpora of the tests of access rights; tests use a copy."""
    from tests.bot.desk import rights_matrix

    home = tmp_path_factory.mktemp("vaults") / "home"
    asyncio.run(rights_matrix.fill(home))
    return home


@pytest.fixture(scope="session")
def team_servers() -> Iterator[TeamServers]:
    if missing := find_missing():
        pytest.skip(missing)
    with start_team_servers() as servers:
        yield servers


ON_SERVERS = (
    *("ingest/test_corpus_refresh", "ingest/test_document_refresh", "ingest/test_killed", "ingest/test_running"),
    *(
        "storage/record",
        "storage/test_followers",
        "storage/test_lazy_vectors",
        "storage/test_leases",
        "storage/test_manifest",
        "storage/test_night_log",
    ),
    *("storage/test_passages", "storage/test_queue", "storage/test_refresh_log"),
)
"""The tests that `make team` also runs with the homes of `tests.storage.stores` on PostgreSQL and a Chroma server."""

ALONE = frozenset(
    {
        *("test_leaf_commits_to_every_field_of_its_entry", "test_database_refuses_changes_not_named_by_an_erasure"),
        *("test_body_can_be_erased_only_under_the_newest_entry", "test_export_of_a_changed_record_proves_nothing"),
        *("test_bad_row_does_not_hide_other_findings", "test_changed_record_is_not_signed"),
        *("test_erased_person_leaves_no_texts_and_the_record_verifies", "test_value_that_cannot_be_read_is_a_finding"),
        *("test_blanked_turn_has_figures_but_no_texts_in_the_index", "test_meaningless_body_is_indexed_as_empty"),
        *(
            "test_document_tampered_in_the_database_is_no_longer_quoted",
            "test_cached_versions_are_reused_until_a_write",
        ),
        *(
            "test_vectors_of_another_embedder_are_computed_again",
            "test_interrupted_reindexing_indexes_no_unknown_document",
        ),
    }
)
"""Tests among them that use SQLite's file or dialect, or behaviour that only homes with their own database have."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if TEAM and metafunc.definition.path.relative_to(HERE).as_posix().startswith(ON_SERVERS):
        backends = ["alone"] if metafunc.definition.originalname in ALONE else ["alone", "team"]
        metafunc.parametrize("backend", backends, indirect=True)


@pytest.fixture(autouse=True)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if getattr(request, "param", "alone") == "alone":
        yield
        return
    servers: TeamServers = request.getfixturevalue("team_servers")
    monkeypatch.setenv(VARIABLE, f"{servers.folder}:{servers.port}")
    yield
    servers.drop_databases()
