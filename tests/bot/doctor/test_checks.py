"""The doctor's checks: each reports one line with a hint, even if something else is broken."""

import asyncio
import os
import socket
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.doctor.checks import CHECKS, home_checks, server_checks, settings_checks
from bot.doctor.diagnosis import CheckResult, HealthCheck, Inspection, inspect_home, run_checks
from bot.settings.platform_registry import load_platforms
from bot.settings.tables.settings_tables import Settings
from pipeline.errors import ModelRefused, ModelUnavailable
from storage.database.engine import open_database
from storage.database.manifest_tx import Follower
from storage.errors import DatabaseUnusable, HomeUnusable
from storage.home.home_folder import DatabaseFileState, lock_home
from storage.indexes.embedders import E5, MODELS
from storage.record.audit_log import Clocks
from storage.types import CorpusInfo, DenseMode
from tests.bot.doctor.gold import GoldLLM, opens
from tests.ingest.servers.search_engines import KEY, Engine
from tests.ingest.servers.web import serve

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HANDBOOK = CorpusInfo("handbook", 3, 12, NOW, 0)
WHOLE = DatabaseFileState(1_000_000, "fits", (), whole=True, unwritable=None)
SOURCE = {"type": "folder", "path": "docs"}
SLACK = {"bot_token": "xoxb-hush", "app_token": "xapp-hush"}
MODEL = {"name": "gold", "base_url": "http://127.0.0.1:1/v1"}


def inspect(*, llm: GoldLLM | None = None, settings: dict[str, Any] | None = None, **facts: Any) -> Inspection:
    return replace(Inspection(Settings.model_validate(settings or {}), NOW, opens(llm or GoldLLM())), **facts)


def run_check(check: HealthCheck, inspection: Inspection) -> tuple[CheckResult, ...]:
    return asyncio.run(run_checks((check,), inspection))


def _corpus(name: str = "handbook", *readers: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "readers": readers, "source": SOURCE, **more}


def _reply(reply: str | Exception) -> GoldLLM:
    class Scripted(GoldLLM):
        async def complete(self, call: Any, spent: Any) -> Any:
            del call, spent
            if isinstance(reply, Exception):
                raise reply
            return reply

    return Scripted()


def _channel(visible_to: Sequence[str], corpora: Sequence[str] | str) -> dict[str, Any]:
    """Return settings with a channel that searches the web, for an engine with these readers and these corpora."""
    engine = {"type": "searxng", "url": "http://127.0.0.1:1", "visible_to": visible_to}
    channel = {"id": "slack:T1/C1", "system": "search-engine", "corpora": corpora}
    return {"search_engine": engine, "channel": [channel], "corpus": [_corpus("handbook", "*")]}


def _follow(*lacks: int) -> dict[str, Any]:
    return {"followers": tuple(Follower(count, NOW - timedelta(hours=count)) for count in lacks)}


BERLIN = {"timezone": "Europe/Berlin"}
SHARED = {"database": "postgresql://me@127.0.0.1/footnote"}
PRICES = {"gold": {"prompt": 1, "completion": 2}}
LAZY = replace(HANDBOOK, name="wiki", dense=DenseMode.LAZY)
ANNA = f"anna editors sha256:{'a' * 64}"
EDITORS = [{"name": "handbook", "visible_to": ["mcp:groups/editors"]}]
SERVING = {"owner": "process 7, `footnote serve`", "serving": True}
SLACK_CHECK = settings_checks.build_platform_check(load_platforms()["slack"])
NIGHTLY = {"nightly": "03:00"}
CASES: list[tuple[HealthCheck, dict[str, Any], dict[str, Any], list[tuple[str, str]]]] = [
    (home_checks.check_database, {}, {}, [("ok", "none yet")]),
    (home_checks.check_database, {}, {"file": WHOLE}, [("ok", "1 MB, intact, and can be written")]),
    (home_checks.check_database, {}, {"file": replace(WHOLE, revision="newer")},
     [("fail", "newer Footnote. Upgrade")]),
    (home_checks.check_database, {}, {"file": replace(WHOLE, revision="older")},
     [("warn", "older Footnote. The next")]),
    (home_checks.check_database, {}, {"file": replace(WHOLE, faults=("row 3 missing",))},
     [("fail", "row 3 missing. Re")]),
    (home_checks.check_database, {}, {"file": replace(WHOLE, whole=False)},
     [("warn", "too large to be checked completely")]),
    (home_checks.check_database, {}, {"file": replace(WHOLE, unwritable=DatabaseUnusable("Locked.", hint="Wait."))},
     [("fail", "Locked. Wait.")]),
    (home_checks.check_database, {}, {"fault": DatabaseUnusable("Gone.", hint="Fix it.")},
     [("fail", "Gone. Fix it.")]),
    (home_checks.check_clock, BERLIN, {}, [("ok", "it is 2026-03-01 13:00 in Europe/Berlin")]),
    (home_checks.check_clock, {}, {"clocks": Clocks(NOW, NOW - timedelta(days=1))}, [("ok", "it is")]),
    (home_checks.check_clock, {}, {"clocks": Clocks(None, NOW + timedelta(hours=2))},
     [("fail", "last entry of the record is 2 h 0 min ahead of this machine's")]),
    (home_checks.check_clock, {}, {"clocks": Clocks(NOW - timedelta(seconds=90), None)},
     [("fail", "database server's clock is 2 min behind this machine's")]),
    (home_checks.check_lock, {}, {}, [("ok", "no process has")]),
    (home_checks.check_lock, {}, SERVING, [("ok", "responds (process 7")]),
    (home_checks.check_lock, {}, {"owner": "process 7, `footnote ingest`"}, [("warn", "and is not a server")]),
    (home_checks.check_embedder, {"embedding": {"function": "no-such"}}, {}, [("fail", "no-such")]),
    (home_checks.check_embedder, {}, {}, [("ok", "is installed, and so is the cross-encoder")]),
    (home_checks.check_vectors, {}, {}, []),
    (home_checks.check_vectors, SHARED, {}, [("fail", "[chroma] url")]),
    (home_checks.check_vectors, {**SHARED, "chroma": {"url": "http://127.0.0.1:1"}}, {},
     [("fail", "does not answer")]),
    (home_checks.check_followers, {}, _follow(0, 7), []),
    (home_checks.check_followers, SHARED, _follow(0, 0), [("ok", "2 homes follow the database, all")]),
    (home_checks.check_followers, SHARED, _follow(0, 7), [("warn", "one lacks 7")]),
    (home_checks.check_indexes, {}, {}, []),
    (home_checks.check_indexes, {}, {"corpora": ()}, [("warn", "nothing is ingested yet")]),
    (home_checks.check_indexes, {}, {"corpora": (HANDBOOK,), "owner": "process 7"},
     [("ok", "12 passages of 1 corpus; the process that has the home open checks")]),
    (home_checks.check_indexes, {}, {"corpora": (HANDBOOK, LAZY), "owner": "process 7"},
     [("ok", "24 passages of 2 corpora (wiki is embedded on demand)")]),
    (settings_checks.check_corpora, {"corpus": [_corpus("handbook", "*")], "slack": SLACK}, {"corpora": (HANDBOOK,)},
     [("ok", "all ingested, and each has readers.")]),
    (settings_checks.check_corpora, {"corpus": [_corpus()], "slack": SLACK}, {"corpora": (HANDBOOK,)},
     [("warn", "only the terminal may read handbook")]),
    (settings_checks.check_corpora, {"slack": SLACK}, {"corpora": (HANDBOOK,)},
     [("warn", "only the terminal may read")]),
    (settings_checks.check_corpora, {"corpus": [_corpus()]}, {"corpora": (HANDBOOK,)},
     [("ok", "all ingested; only the terminal reads handbook, because no platform is configured.")]),
    (settings_checks.check_corpora, {}, {"corpora": ()}, [("ok", "none yet.")]),
    (settings_checks.check_corpora, {}, {"file": replace(WHOLE, revision="older")}, []),
    (settings_checks.check_corpora, {}, {"fault": DatabaseUnusable("Gone.", hint="")}, []),
    (settings_checks.check_corpora, {"corpus": [_corpus()]}, {"corpora": ()},
     [("warn", "handbook has not been ingested completely")]),
    (settings_checks.check_corpora, {"corpus": [{"name": "handbook"}]}, {},
     [("warn", "handbook has not been ingested completely")]),
    (settings_checks.check_corpora, {}, {"corpora": (replace(HANDBOOK, passages=0, failures=3),)},
     [("warn", "handbook was ingested, but is empty; 3 documents could not be read")]),
    (settings_checks.check_corpora, {"corpus": [_corpus("wiki", dense="eager")]}, {"corpora": (LAZY,)},
     [("warn", "wiki is lazy until its next refresh makes it eager.")]),
    (settings_checks.check_channels, {"corpus": [_corpus("handbook", "slack:T1/C2")],
     "channel": [{"id": "slack:T1/C1", "corpora": ["handbook"]}]}, {"corpora": ()},
     [("warn", "which is empty"), ("warn", "may not be read there")]),
    (settings_checks.check_channels, _channel(("*",), ""), {"corpora": (HANDBOOK,)}, []),
    (settings_checks.check_channels, _channel(("slack:T1/C1",), ("web:searxng",)), {"corpora": (HANDBOOK,)}, []),
    (settings_checks.check_channels, _channel((), ""), {"corpora": (HANDBOOK,)}, [("warn", "may not read the web")]),
    (settings_checks.check_channels, _channel(("*",), ("handbook",)), {"corpora": (HANDBOOK,)},
     [("warn", "may not read the web")]),
    (settings_checks.check_schedule, {"corpus": [_corpus()]}, {}, [("ok", "no nightly refresh is set")]),
    (settings_checks.check_schedule, {"schedule": NIGHTLY}, {}, [("warn", "no corpus has a source")]),
    (settings_checks.check_schedule, {**BERLIN, "schedule": {**NIGHTLY, "admin_channel": "slack:T1/C1"},
     "corpus": [_corpus()]}, {},
     [("ok", "starts 2026-03-02 03:00 in Europe/Berlin"), ("warn", "cannot be posted to slack:T1/C1")]),
    (SLACK_CHECK, {}, {}, []),
    (SLACK_CHECK, {"slack": {"bot_token": "xoxb-hush"}}, {}, [("fail", ""), ("skip", "not contacted")]),
    (SLACK_CHECK, {"slack": {"bot_token": "xapp-hush", "app_token": "xapp-hush"}}, {},
     [("fail", ""), ("skip", "not contacted")]),
    (SLACK_CHECK, {"slack": {**SLACK, "api_url": "http://127.0.0.1:1/"}}, {},
     [("fail", ""), ("skip", ""), ("fail", "")]),
    (server_checks.check_model, {}, {}, [("ok", "none; answers are quoted")]),
    (server_checks.check_model, {"model": MODEL}, {"llm": _reply("Yes.")}, [("ok", "gold at 127.0.0.1:1 replies")]),
    (server_checks.check_model, {"model": MODEL}, {"llm": _reply(ModelRefused("no"))}, [("ok", "replies")]),
    (server_checks.check_model, {"model": MODEL}, {"llm": _reply(ModelUnavailable("it is down", hint="start it"))},
     [("fail", "it is down start it")]),
    (server_checks.check_model, {"model": MODEL | {"api": "azure"}}, {}, [("fail", "no api_version is set")]),
    (server_checks.check_port, {"http": {"port": 0}}, {}, [("ok", "is free")]),
    (settings_checks.check_prices, {"model": MODEL}, {}, []),
    (settings_checks.check_prices, {"model": MODEL, "limits": {"cost_per_month": 5}}, {},
     [("warn", "does not limit gold")]),
    (settings_checks.check_prices, {"model": {**MODEL, "prices": PRICES}, "limits": {"cost_per_month": 5}}, {},
     [("ok", "each model has a price")]),
    (settings_checks.check_prices, {"model": {**MODEL, "prices": PRICES, "stages": {"verify": "silver"}},
     "limits": {"cost_per_month": 5}}, {}, [("warn", "does not limit silver")]),
    (settings_checks.check_systems, {"system": "wikichatt", "channel": [{"id": "slack:T1/C1",
     "system": "model-alone"}, {"id": "slack:T1/C2", "system": "extractive"}]}, {},
     [("fail", "system names “wikichatt”"), ("fail", "slack:T1/C1 names “model-alone”")]),
    (settings_checks.check_systems, {"channel": [{"id": "slack:T1/C1", "study": ["extractive", "wikichat"]}]}, {},
     [("warn", "slack:T1/C1 names “wikichat”, which needs a model")]),
    (settings_checks.check_systems, {"search_engine": {"every_system": True}}, {},
     [("warn", "every_system does nothing without a search engine")]),
    (settings_checks.check_pages, {}, {}, []),
    (settings_checks.check_pages, {"pages": {"enabled": True}}, {}, [("ok", "on this machine")]),
    (settings_checks.check_pages, {"pages": {"enabled": True, "host": "0.0.0.0"}}, {}, [("fail", "to everyone")]),
    (settings_checks.check_pages, {"pages": {"enabled": True, "host": "0.0.0.0",
     "tokens": f"anna reader {'t' * 20}"}}, {}, [("warn", "without TLS")]),
    (settings_checks.check_programs, {}, {}, []),
    (settings_checks.check_programs, {"mcp": {"enabled": True}}, {}, [("warn", "has no token")]),
    (settings_checks.check_programs, {"mcp": {"enabled": True, "tokens": [ANNA]}, "corpus": EDITORS}, {},
     [("ok", "programs may ask")]),
    (settings_checks.check_programs, {"mcp": {"enabled": True, "tokens": [ANNA]}}, {},
     [("warn", "may read nothing"), ("ok", "programs may ask")]),
    (settings_checks.check_programs, {"mcp": {"tokens": [ANNA]}, "corpus": [*EDITORS, {"name": "b",
     "visible_to": ["mcp:tokens/bob"]}]}, {}, [("warn", "no such token")]),
    (settings_checks.check_programs, {"mcp": {"enabled": True, "tokens": [ANNA]}, "corpus": EDITORS,
     "http": {"host": "0.0.0.0"}}, {}, [("warn", "hosts under [mcp] is empty")]),
]  # fmt: skip


def test_extra_is_recommended_if_it_is_not_installed_and_a_corpus_is_not_in_english() -> None:
    (result,) = run_check(home_checks.check_embedder, inspect(foreign=("handbuch",)))

    lacking = not MODELS[E5].weights.is_installed()
    assert (result.level, "handbuch" in result.hint) == (("warn", True) if lacking else ("ok", False))


@pytest.mark.parametrize(("check", "settings", "inspected", "expected"), CASES)
def test_check_reports_each_state_with_level_and_hint(
    check: HealthCheck, settings: dict[str, Any], inspected: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    results = run_check(check, inspect(settings=settings, **inspected))

    assert [result.level for result in results] == [level for level, _ in expected]
    for result, (_, text) in zip(results, expected, strict=True):
        assert text in f"{result.what} {result.hint}"
        assert result.hint or result.level in {"ok", "skip"}
    assert not any(secret in str(results) for secret in ("hush", "aaaa"))


@pytest.mark.parametrize(
    ("mode", "level", "text"),
    [(0o700, "ok", "can be written"), (0o755, "warn", "other users"), (None, "fail", "Move that file")],
)
def test_home_is_checked_for_access(mode: int | None, level: str, text: str) -> None:
    if mode is None:
        Path(".footnote").touch()
    else:
        Path(".footnote").mkdir()
        Path(".footnote").chmod(mode)
    inspection = replace(inspect(), now=datetime.now(UTC))
    (result,) = run_check(home_checks.check_home, inspection)

    assert (result.level, text in f"{result.what} {result.hint}") == (level, True)
    if mode == 0o700:
        assert [each.level for each in run_check(home_checks.check_clock, inspection)] == ["ok"]


@pytest.mark.parametrize(("free", "level", "text"), [
    (2 * 10**12, "ok", "2.0 TB free, and about 40.0 GB may be needed."),
    (30 * 10**9, "warn", "30.0 GB free"),
    (3 * 10**6, "fail", "3 MB free"),
])  # fmt: skip
def test_too_little_disk_space_is_reported(free: int, level: str, text: str) -> None:
    result = home_checks.room(free, 40 * 10**9)

    assert (result.level, text in result.what) == (level, True)


def test_used_port_fails_unless_our_server_uses_it() -> None:
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        settings = {"http": {"port": used.getsockname()[1]}}
        (foreign,) = run_check(server_checks.check_port, inspect(settings=settings))
        (own,) = run_check(server_checks.check_port, inspect(settings=settings, **SERVING))

    assert (foreign.level, "Address already in use" in foreign.what, own.level) == ("fail", True, "ok")


ENGINES = {
    "it answers": (Engine("searxng", ["https://example.com/"]), KEY, "ok", "web:searxng"),
    "it finds nothing": (Engine("brave"), KEY, "warn", "finds nothing"),
    "no JSON": (Engine("searxng", formats=("html",)), "", "fail", "search.formats"),
    "a wrong key": (Engine("brave"), "another-key", "fail", "api_key"),
}


@pytest.mark.parametrize("case", ENGINES)
def test_search_engine_is_tried_without_showing_the_key(case: str) -> None:
    engine, key, level, text = ENGINES[case]
    with serve(engine) as server:
        path = "/res/v1/web/search" if engine.kind == "brave" else ""
        values = {"type": engine.kind, "url": server.url + path, "api_key": key}
        (result,) = run_check(server_checks.check_search_engine, inspect(settings={"search_engine": values}))

    assert (result.level, text in f"{result.what} {result.hint}") == (level, True)
    assert not key or key not in str(result)


def test_unwritable_home_is_reported_once() -> None:
    Path(".footnote").touch()
    checks = (home_checks.check_home, home_checks.check_database, home_checks.check_home)
    unwritable = HomeUnusable("It cannot be written.", hint="Mend it.")
    for inspection in ({"fault": unwritable}, {"file": replace(WHOLE, unwritable=unwritable)}):
        (finding,) = asyncio.run(run_checks(checks, inspect(**inspection)))
        assert finding.what == f"{Path('.footnote').absolute()} is a file, not a folder."


def test_disk_estimate_includes_a_copy_dumps_and_a_tenth_of_the_home() -> None:
    Path("dump.xml.bz2").write_bytes(b"x" * 1_000)
    source = {"type": "wikipedia", "dump": "dump.xml.bz2"}
    inspection = inspect(
        settings={"corpus": [{"name": "wiki", "source": source}]}, file=replace(WHOLE, revision="older")
    )

    assert home_checks.estimate_bytes(inspection) == 500_000_000 + 1_000_000 + 12_000
    assert home_checks.estimate_bytes(inspect()) == 500_000_000
    Path(".footnote").mkdir()
    with Path(".footnote/sparse").open("wb") as file:
        file.truncate(6_000_000_000)
    assert home_checks.estimate_bytes(inspect()) == 600_000_000


def test_disk_estimate_includes_a_dump_to_download() -> None:
    source = {"type": "wikipedia", "wiki": "simple", "contact": "ada@example.com"}
    values = {"corpus": [{"name": "handbook", "source": source}]}

    assert home_checks.estimate_bytes(inspect(settings=values)) == 500_000_000 + 13 * 400_000_000
    assert home_checks.estimate_bytes(inspect(settings=values, corpora=(HANDBOOK,))) == 500_000_000


def test_missing_indexes_fail() -> None:
    Path(".footnote").mkdir()
    results = run_check(home_checks.check_indexes, inspect(corpora=(HANDBOOK,)))

    assert [finding.level for finding in results] == ["fail", "fail"]
    assert all("is missing" in finding.what and "reindex" in finding.hint for finding in results)
    assert {path.name for path in Path(".footnote").iterdir()} <= {"lock"}


async def _broken(inspection: Inspection) -> Sequence[CheckResult]:
    raise KeyError(inspection.settings.timezone)


async def _endless(inspection: Inspection) -> Sequence[CheckResult]:
    del inspection
    await asyncio.Event().wait()
    return ()


def test_failing_and_endless_checks_become_results() -> None:
    checks = (_broken, _endless, settings_checks.check_platforms)
    results = asyncio.run(run_checks(checks, inspect(), seconds=0.05))

    assert [finding.level for finding in results] == ["fail", "warn", "ok"]
    assert "took longer than 0.05 s" in results[1].what


def inspect_all(settings: dict[str, Any]) -> tuple[Inspection, tuple[CheckResult, ...]]:
    async def look() -> tuple[Inspection, tuple[CheckResult, ...]]:
        inspection = await inspect_home(Settings.model_validate(settings | {"http": {"port": 0}}), opens(GoldLLM()))
        return inspection, await run_checks(CHECKS, inspection)

    return asyncio.run(look())


def test_missing_home_is_healthy_and_not_created() -> None:
    inspection, results = inspect_all({})

    assert (inspection.owner, inspection.file, inspection.corpora) == (None, None, None)
    assert {finding.level for finding in results} == {"ok"}
    assert not Path(".footnote").exists()


def test_new_home_passes_all_checks(here: Path) -> None:
    with open_database("", home=here / ".footnote"):
        pass
    inspection, results = inspect_all({})

    assert inspection.corpora == ()
    assert inspection.file
    assert (inspection.file.revision, inspection.file.unwritable) == ("fits", None)
    assert [finding.what for finding in results if finding.level != "ok"] == [
        "Indexes: nothing is ingested yet, so nothing can be answered."
    ]


def test_lock_owner_is_found(here: Path) -> None:
    with lock_home(here / ".footnote"):
        inspection, _ = inspect_all({})

    assert inspection.owner
    assert f"process {os.getpid()}" in inspection.owner
    assert not inspection.serving


@pytest.mark.parametrize("content", [b"", b"garbage" * 4_000])
def test_damaged_database_file_fails_only_its_own_check(content: bytes) -> None:
    Path(".footnote").mkdir(mode=0o700)
    Path(".footnote/footnote.db").write_bytes(content)
    _, results = inspect_all({})
    failed = [finding.what for finding in results if finding.level == "fail"]

    assert len(failed) == bool(content)
    assert all("damaged" in what for what in failed)
    assert Path(".footnote/footnote.db").read_bytes() == content


def test_unreachable_database_is_reported_without_password() -> None:
    _, results = inspect_all({"database": "postgresql://user:hush@127.0.0.1:1/footnote"})
    failed = [finding for finding in results if finding.level == "fail"]

    assert len(failed) == 2  # and its vectors have no server
    assert "hush" not in str(failed)
