"""The doctor's checks: each says what it found in a line, with what to do, whatever is broken."""

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


def _scene(*, llm: GoldLLM | None = None, settings: dict[str, Any] | None = None, **looked: Any) -> Inspection:
    return replace(Inspection(Settings.model_validate(settings or {}), NOW, opens(llm or GoldLLM())), **looked)


def _found(check: HealthCheck, looked: Inspection) -> tuple[CheckResult, ...]:
    return asyncio.run(run_checks((check,), looked))


def _one(check: HealthCheck, looked: Inspection) -> tuple[str, str]:
    (finding,) = _found(check, looked)
    assert finding.hint or finding.level == "ok"
    return finding.level, f"{finding.what} {finding.hint}"


def _corpus(name: str = "handbook", *readers: str) -> dict[str, Any]:
    return {"name": name, "readers": readers, "source": SOURCE}


@pytest.mark.parametrize(
    ("looked", "level", "said"),
    [
        ({}, "ok", "none yet"),
        ({"file": WHOLE}, "ok", "1 MB, whole, and can be written"),
        ({"file": replace(WHOLE, revision="newer")}, "fail", "newer Footnote. Upgrade"),
        ({"file": replace(WHOLE, revision="older")}, "warn", "older Footnote. The next command"),
        ({"file": replace(WHOLE, faults=("row 3 missing",))}, "fail", "damaged: row 3 missing. Restore"),
        ({"file": replace(WHOLE, whole=False)}, "warn", "too large to be checked whole"),
        ({"file": replace(WHOLE, unwritable=DatabaseUnusable("Locked.", hint="Wait."))}, "fail", "Locked. Wait."),
        ({"fault": DatabaseUnusable("Gone.", hint="Mend it.")}, "fail", "Gone. Mend it."),
    ],
)
def test_the_database(looked: dict[str, Any], level: str, said: str) -> None:
    found = _one(home_checks.check_database, _scene(**looked))

    assert found[0] == level
    assert said in found[1]


@pytest.mark.parametrize(
    ("known", "level", "said"),
    [
        (Clocks(None, None), "ok", "it is 2026-03-01 13:00 in Europe/Berlin"),
        (Clocks(NOW, NOW - timedelta(days=1)), "ok", "it is"),
        (Clocks(None, NOW + timedelta(hours=2)), "fail", "last entry of the record is 2.0 h ahead of this machine's"),
        (Clocks(NOW - timedelta(seconds=90), None), "fail", "database server's clock is 90 s behind this machine's"),
    ],
)
def test_the_clock(known: Clocks, level: str, said: str) -> None:
    found = _one(home_checks.check_clock, _scene(settings={"timezone": "Europe/Berlin"}, clocks=known))

    assert found[0] == level
    assert said in found[1]


def test_the_clock_of_the_home_s_file_system_is_looked_at() -> None:
    Path(".footnote").mkdir(mode=0o700)
    now = replace(_scene(), now=datetime.now(UTC))

    assert _one(home_checks.check_clock, now)[0] == "ok"
    assert _one(home_checks.check_home, now)[0] == "ok"


@pytest.mark.parametrize(
    ("looked", "level", "said"),
    [
        ({}, "ok", "no process has"),
        ({"owner": "process 7, `footnote serve`", "serving": True}, "ok", "responds (process 7"),
        (
            {"owner": "process 7, `footnote ingest`"},
            "warn",
            "process 7, `footnote ingest` has the home open, and is not a server",
        ),
    ],
)
def test_the_lock(looked: dict[str, Any], level: str, said: str) -> None:
    found = _one(home_checks.check_lock, _scene(**looked))

    assert found[0] == level
    assert said in found[1]


def test_home_open_to_others_is_a_warning() -> None:
    Path(".footnote").mkdir()
    Path(".footnote").chmod(0o755)

    assert _one(home_checks.check_home, _scene())[0] == "warn"


def test_home_that_is_a_file_fails() -> None:
    Path(".footnote").touch()
    level, said = _one(home_checks.check_home, _scene())

    assert level == "fail"
    assert "Move that file away" in said


def test_unwritable_home_is_reported_once() -> None:
    Path(".footnote").touch()
    checks = (home_checks.check_home, home_checks.check_database, home_checks.check_home)
    unwritable = HomeUnusable("It cannot be written.", hint="Mend it.")
    for looked in ({"fault": unwritable}, {"file": replace(WHOLE, unwritable=unwritable)}):
        (found,) = asyncio.run(run_checks(checks, _scene(**looked)))
        assert found.what == f"{Path('.footnote').absolute()} is a file, not a folder."


def test_room_is_counted_for_a_copy_and_for_dumps() -> None:
    Path("dump.xml.bz2").write_bytes(b"x" * 1_000)
    source = {"type": "wikipedia", "dump": "dump.xml.bz2"}
    looked = _scene(settings={"corpus": [{"name": "wiki", "source": source}]}, file=replace(WHOLE, revision="older"))

    assert home_checks.estimate_bytes(looked) == 500_000_000 + 1_000_000 + 12_000
    assert home_checks.estimate_bytes(_scene()) == 500_000_000


def test_room_is_counted_for_a_dump_that_is_still_to_be_downloaded() -> None:
    source = {"type": "wikipedia", "wiki": "simple", "contact": "ada@example.com"}
    given = {"corpus": [{"name": "handbook", "source": source}]}

    assert home_checks.estimate_bytes(_scene(settings=given)) == 500_000_000 + 13 * 400_000_000
    assert home_checks.estimate_bytes(_scene(settings=given, corpora=(HANDBOOK,))) == 500_000_000


@pytest.mark.parametrize(
    ("free", "level", "said"),
    [
        (2 * 10**12, "ok", "2.0 TB free, and about 40.0 GB may be needed."),
        (30 * 10**9, "warn", "30.0 GB free"),
        (3 * 10**6, "fail", "3 MB free"),
    ],
)
def test_too_little_disk_space_is_reported(free: int, level: str, said: str) -> None:
    found = home_checks.room(free, 40 * 10**9)

    assert found.level == level
    assert said in found.what


@pytest.mark.parametrize(
    ("settings", "indexed", "said"),
    [
        ({"corpus": [_corpus("handbook", "*")], "slack": SLACK}, (HANDBOOK,), []),
        ({"corpus": [_corpus()], "slack": SLACK}, (HANDBOOK,), ["only the terminal may read handbook"]),
        ({"slack": SLACK}, (HANDBOOK,), ["only the terminal may read handbook"]),
        ({"corpus": [_corpus()]}, (HANDBOOK,), []),
        ({"corpus": [_corpus()]}, (), ["handbook has not been ingested completely"]),
        ({"corpus": [{"name": "handbook"}]}, None, ["handbook has not been ingested completely"]),
        ({}, (replace(HANDBOOK, documents=0, passages=0),), ["handbook was ingested, but is empty"]),
        ({}, (replace(HANDBOOK, passages=0, failures=3),), ["is empty; 3 documents could not be read"]),
    ],
)
def test_corpora_want_readers_and_reading(
    settings: dict[str, Any], indexed: tuple[CorpusInfo, ...] | None, said: Sequence[str]
) -> None:
    found = _found(settings_checks.check_corpora, _scene(settings=settings, corpora=indexed))
    warned = [finding.what for finding in found if finding.level != "ok"]

    assert len(warned) == len(said)
    assert all(part in what for part, what in zip(said, warned, strict=True))


@pytest.mark.parametrize(
    ("readers", "indexed", "said"),
    [
        ((), (HANDBOOK,), "all ingested; only the terminal reads handbook, as no platform is configured."),
        (("*",), (HANDBOOK,), "all ingested, and each has readers."),
        (None, (), "none yet."),
    ],
)
def test_good_corpora_are_reported_only_if_known(
    readers: tuple[str, ...] | None, indexed: tuple[CorpusInfo, ...], said: str
) -> None:
    settings = {"corpus": [_corpus("handbook", *readers)] if readers is not None else []}
    found = _found(settings_checks.check_corpora, _scene(settings=settings, corpora=indexed))

    assert [(one.level, one.what) for one in found] == [("ok", f"Corpora: {said}")]
    for unknown in ({"file": replace(WHOLE, revision="older")}, {"fault": DatabaseUnusable("Gone.", hint="")}):
        assert not _found(settings_checks.check_corpora, _scene(settings=settings, **unknown))


def test_channel_with_unreadable_or_empty_corpus_is_a_warning() -> None:
    channel = {"id": "slack:T1/C1", "corpora": ["handbook"]}
    settings = {"corpus": [_corpus("handbook", "slack:T1/C2")], "channel": [channel]}
    found = _found(settings_checks.check_channels, _scene(settings=settings, corpora=()))

    assert [finding.level for finding in found] == ["warn", "warn"]
    assert "which is empty" in found[0].what
    assert "may not be read there" in found[1].what


@pytest.mark.parametrize(
    ("schedule", "corpora", "said"),
    [
        ({}, [_corpus()], ["no nightly refresh is set"]),
        ({"nightly": "03:00"}, [], ["no corpus has a source"]),
        ({"nightly": "03:00"}, [_corpus()], ["the next nightly refresh starts 2026-03-02 03:00 in Europe/Berlin"]),
        ({"nightly": "03:00", "admin_channel": "slack:T1/C1"}, [_corpus()], ["starts", "cannot be posted to slack:T1"]),
    ],
)
def test_the_schedule(schedule: dict[str, str], corpora: list[dict[str, Any]], said: Sequence[str]) -> None:
    settings = {"timezone": "Europe/Berlin", "schedule": schedule, "corpus": corpora}
    found = _found(settings_checks.check_schedule, _scene(settings=settings))

    assert all(part in finding.what for part, finding in zip(said, found, strict=True))


@pytest.mark.parametrize(
    ("slack", "levels"),
    [
        ({}, []),
        ({"bot_token": "xoxb-hush"}, ["fail", "skip"]),
        ({"bot_token": "xapp-hush", "app_token": "xapp-hush"}, ["fail", "skip"]),
        ({**SLACK, "api_url": "http://127.0.0.1:1/"}, ["fail", "skip", "fail"]),
    ],
)
def test_a_platform_is_asked_where_its_secrets_may_be_right(slack: dict[str, str], levels: list[str]) -> None:
    found = _found(settings_checks.build_platform_check(load_platforms()["slack"]), _scene(settings={"slack": slack}))

    assert [finding.level for finding in found] == levels
    assert "hush" not in str(found)


@pytest.mark.parametrize(
    ("model", "reply", "level", "said"),
    [
        ({}, "", "ok", "none; answers are quoted"),
        (MODEL, "Yes.", "ok", "gold at 127.0.0.1:1 replies"),
        (MODEL, ModelRefused("no"), "ok", "replies"),
        (MODEL, ModelUnavailable("it is down", hint="start it"), "fail", "it is down start it"),
        (MODEL | {"api": "azure"}, "", "fail", "no api_version is set for the model"),
    ],
)
def test_the_model(model: dict[str, str], reply: str | Exception, level: str, said: str) -> None:
    found = _one(server_checks.check_model, _scene(settings={"model": model}, llm=_Says(reply)))

    assert found[0] == level
    assert said in found[1]


class _Says(GoldLLM):
    """A model that says one thing to everything."""

    def __init__(self, reply: str | Exception) -> None:
        super().__init__()
        self._reply = reply

    async def complete(self, call: Any, spent: Any) -> Any:
        del call, spent
        if isinstance(self._reply, Exception):
            raise self._reply
        return self._reply


def test_used_port_fails_unless_our_server_uses_it() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings = {"http": {"port": taken.getsockname()[1]}}
        level, said = _one(server_checks.check_port, _scene(settings=settings))
        ours = _one(server_checks.check_port, _scene(settings=settings, owner="process 7", serving=True))

    assert (level, ours[0]) == ("fail", "ok")
    assert "Address already in use" in said
    assert _one(server_checks.check_port, _scene(settings={"http": {"port": 0}}))[0] == "ok"


def test_missing_embedder_fails() -> None:
    level, _ = _one(home_checks.check_embedder, _scene(settings={"embedding": {"function": "no-such"}}))

    assert level == "fail"


def test_indexes_are_left_to_whoever_owns_the_home() -> None:
    level, said = _one(home_checks.check_indexes, _scene(corpora=(HANDBOOK,), owner="process 7"))

    assert level == "ok"
    assert "12 passages of 1 corpus; the process that has the home open checks" in said
    assert not Path(".footnote").exists()


def test_lazy_corpus_is_described() -> None:
    wiki = replace(HANDBOOK, name="wiki", dense=DenseMode.LAZY)
    _, said = _one(home_checks.check_indexes, _scene(corpora=(HANDBOOK, wiki), owner="process 7"))
    found = _found(
        settings_checks.check_corpora,
        _scene(settings={"corpus": [_corpus("wiki") | {"dense": "eager"}]}, corpora=(wiki,)),
    )

    assert "24 passages of 2 corpora (wiki is embedded on demand)" in said
    assert [one.what for one in found if "lazy" in one.what] == [
        "Corpora: wiki is lazy until its next refresh makes it eager."
    ]


def test_missing_indexes_fail() -> None:
    Path(".footnote").mkdir()
    found = _found(home_checks.check_indexes, _scene(corpora=(HANDBOOK,)))

    assert [finding.level for finding in found] == ["fail", "fail"]
    assert all("is missing" in finding.what and "reindex" in finding.hint for finding in found)
    assert {path.name for path in Path(".footnote").iterdir()} <= {"lock"}


def test_a_database_that_homes_share_wants_a_chroma_server_that_they_share() -> None:
    shared = {"database": "postgresql://me@127.0.0.1/footnote"}
    level, said = _one(home_checks.check_vectors, _scene(settings=shared))
    assert (level, "[chroma] url" in said) == ("fail", True)

    shared["chroma"] = {"url": "http://127.0.0.1:1"}
    level, said = _one(home_checks.check_vectors, _scene(settings=shared))
    assert (level, "does not answer" in said) == ("fail", True)
    assert _found(home_checks.check_vectors, _scene()) == ()


@pytest.mark.parametrize(
    ("lacks", "level", "said"), [((0, 0), "ok", "2 homes follow the database, all"), ((0, 7), "warn", "one lacks 7")]
)
def test_followers_behind_are_reported(lacks: tuple[int, ...], level: str, said: str) -> None:
    followers = tuple(Follower(lack, NOW - timedelta(hours=lack)) for lack in lacks)
    scene = _scene(settings={"database": "postgresql://me@127.0.0.1/x"}, followers=followers)
    found = _one(home_checks.check_followers, scene)

    assert (found[0], said in found[1]) == (level, True)
    assert _found(home_checks.check_followers, _scene()) == ()


def test_empty_index_is_a_warning() -> None:
    assert _one(home_checks.check_indexes, _scene(corpora=()))[0] == "warn"
    assert _found(home_checks.check_indexes, _scene()) == ()


async def _broken(looked: Inspection) -> Sequence[CheckResult]:
    raise KeyError(looked.settings.timezone)


async def _endless(looked: Inspection) -> Sequence[CheckResult]:
    del looked
    await asyncio.Event().wait()
    return ()


def test_a_check_that_breaks_or_never_ends_is_a_finding_too() -> None:
    checks = (_broken, _endless, settings_checks.check_platforms)
    found = asyncio.run(run_checks(checks, _scene(), seconds=0.05))

    assert [finding.level for finding in found] == ["fail", "warn", "ok"]
    assert "took longer than 0.05 s" in found[1].what


def _looked(settings: dict[str, Any]) -> tuple[Inspection, tuple[CheckResult, ...]]:
    async def look() -> tuple[Inspection, tuple[CheckResult, ...]]:
        seen = await inspect_home(Settings.model_validate(settings | {"http": {"port": 0}}), opens(GoldLLM()))
        return seen, await run_checks(CHECKS, seen)

    return asyncio.run(look())


def test_a_home_that_is_not_there_yet_is_well_and_is_not_made() -> None:
    seen, found = _looked({})

    assert (seen.owner, seen.file, seen.corpora) == (None, None, None)
    assert {finding.level for finding in found} == {"ok"}
    assert not Path(".footnote").exists()


def test_a_home_as_it_was_made_is_looked_at_whole(here: Path) -> None:
    with open_database("", home=here / ".footnote"):
        pass
    seen, found = _looked({})

    assert seen.corpora == ()
    assert seen.file
    assert (seen.file.revision, seen.file.unwritable) == ("fits", None)
    assert [finding.what for finding in found if finding.level != "ok"] == [
        "Indexes: nothing is ingested yet, so nothing can be answered."
    ]


def test_lock_owner_is_found(here: Path) -> None:
    with lock_home(here / ".footnote"):
        seen, _ = _looked({})

    assert seen.owner
    assert f"process {os.getpid()}" in seen.owner
    assert not seen.serving


@pytest.mark.parametrize("content", [b"", b"garbage" * 4_000])
def test_invalid_database_file_fails_alone(content: bytes) -> None:
    Path(".footnote").mkdir(mode=0o700)
    Path(".footnote/footnote.db").write_bytes(content)
    _, found = _looked({})
    failed = [finding.what for finding in found if finding.level == "fail"]

    assert len(failed) == bool(content)
    assert all("damaged" in what for what in failed)
    assert Path(".footnote/footnote.db").read_bytes() == content


def test_unreachable_database_is_reported_without_password() -> None:
    _, found = _looked({"database": "postgresql://user:hush@127.0.0.1:1/footnote"})
    failed = [finding for finding in found if finding.level == "fail"]

    assert len(failed) == 2  # and its vectors have no server
    assert "hush" not in str(failed)


@pytest.mark.parametrize(
    ("model", "level", "said"),
    [
        (MODEL, "warn", "does not limit gold"),
        ({**MODEL, "prices": {"gold": {"prompt": 1, "completion": 2}}}, "ok", "each model has a price"),
        (
            {**MODEL, "prices": {"gold": {"prompt": 1, "completion": 2}}, "stages": {"verify": "silver"}},
            "warn",
            "does not limit silver",
        ),
    ],
)
def test_a_limit_of_cost_needs_prices(model: dict[str, Any], level: str, said: str) -> None:
    found = _one(settings_checks.check_prices, _scene(settings={"model": model, "limits": {"cost_per_month": 5}}))

    assert found[0] == level
    assert said in found[1]
    assert _found(settings_checks.check_prices, _scene(settings={"model": model})) == ()


def test_a_system_that_there_is_not() -> None:
    channels = [{"id": "slack:T1/C1", "system": "model-alone"}, {"id": "slack:T1/C2", "system": "extractive"}]
    found = _found(settings_checks.check_systems, _scene(settings={"system": "wikichatt", "channel": channels}))

    assert [one.level for one in found] == ["fail", "fail"]
    assert "system names “wikichatt”" in found[0].what
    assert "slack:T1/C1 names “model-alone”" in found[1].what
    assert all("wikichat-fast" in one.hint for one in found)


ENGINES = {
    "it answers": (Engine("searxng", ["https://example.com/"]), KEY, "ok", "web:searxng"),
    "it finds nothing": (Engine("brave"), KEY, "warn", "finds nothing"),
    "no JSON": (Engine("searxng", formats=("html",)), "", "fail", "search.formats"),
    "a wrong key": (Engine("brave"), "another-key", "fail", "api_key"),
}


@pytest.mark.parametrize("case", ENGINES)
def test_the_search_engine(case: str) -> None:
    engine, key, level, said = ENGINES[case]
    with serve(engine) as server:
        path = "/res/v1/web/search" if engine.kind == "brave" else ""
        given = {"type": engine.kind, "url": server.url + path, "api_key": key}
        found = _one(server_checks.check_search_engine, _scene(settings={"search_engine": given}))

    assert found[0] == level
    assert said in found[1]
    assert not key or key not in found[1]


@pytest.mark.parametrize(
    ("visible_to", "corpora", "warned"),
    [(("*",), "", False), (("slack:T1/C1",), ("web:searxng",), False), ((), "", True), (("*",), ("handbook",), True)],
)
def test_a_channel_that_is_to_search_the_web_and_may_not(
    visible_to: Sequence[str], corpora: Sequence[str], *, warned: bool
) -> None:
    engine = {"type": "searxng", "url": "http://127.0.0.1:1", "visible_to": visible_to}
    channel = {"id": "slack:T1/C1", "system": "search-engine", "corpora": corpora}
    settings = {"search_engine": engine, "channel": [channel], "corpus": [_corpus("handbook", "*")]}
    found = _found(settings_checks.check_channels, _scene(settings=settings, corpora=(HANDBOOK,)))

    assert [one.level for one in found] == ["warn"] * warned
    assert all("may not read the web" in one.what for one in found)


@pytest.mark.parametrize(("pages", "level"), [
    ({}, []), ({"enabled": True}, ["ok"]), ({"enabled": True, "host": "0.0.0.0"}, ["fail"]),
    ({"enabled": True, "host": "0.0.0.0", "tokens": f"anna reader {'t' * 20}"}, ["warn"]),
])  # fmt: skip
def test_pages_that_whoever_comes_may_read_are_found(pages: dict[str, object], level: list[str]) -> None:
    found = _found(settings_checks.check_pages, _scene(settings={"pages": pages}))
    assert [one.level for one in found] == level


ANNA = f"anna editors sha256:{'a' * 64}"
EDITORS = [{"name": "handbook", "visible_to": ["mcp:groups/editors"]}]


@pytest.mark.parametrize(("settings", "level"), [
    ({}, []),
    ({"mcp": {"enabled": True}}, ["warn"]),
    ({"mcp": {"enabled": True, "tokens": [ANNA]}, "corpus": EDITORS}, ["ok"]),
    ({"mcp": {"enabled": True, "tokens": [ANNA]}}, ["warn", "ok"]),
    ({"mcp": {"tokens": [ANNA]}, "corpus": [*EDITORS, {"name": "b", "visible_to": ["mcp:tokens/bob"]}]}, ["warn"]),
    ({"mcp": {"enabled": True, "tokens": [ANNA]}, "corpus": EDITORS, "http": {"host": "0.0.0.0"}}, ["warn"]),
])  # fmt: skip
def test_programs_that_cannot_ask_are_found(settings: dict[str, Any], level: list[str]) -> None:
    found = _found(settings_checks.check_programs, _scene(settings=settings))
    assert [one.level for one in found] == level
    assert "aaaa" not in str(found)
