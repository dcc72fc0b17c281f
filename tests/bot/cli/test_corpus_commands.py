"""The commands that tell of corpora and make their indexes again."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from storage.types import CorpusInfo, NightRecord, RefreshRun, RunState
from tests.bot.cli.commands import SOURCES, document, run
from tests.bot.fake_services import DAY, FakeServices


def test_corpora_lists_what_is_indexed_and_who_reads_it() -> None:
    other = CorpusInfo("other", 1, 2, None)
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    house = FakeServices(corpora=(*FakeServices().corpora, other))

    assert document(run("corpora", "--json", house=house)) == {
        "missing": ["wikipedia"],
        "corpora": [
            {
                "name": "handbook",
                "documents": 3,
                "passages": 12,
                "dense": "eager",
                "refreshed": "2026-03-01T12:00:00+00:00",
                "failures": 1,
                "edition": "",
                "forgotten": 0,
                "last_run": None,
                "readers": ["slack:T1/C1"],
            },
            {
                "name": "other",
                "documents": 1,
                "passages": 2,
                "dense": "eager",
                "refreshed": None,
                "failures": 0,
                "edition": "",
                "forgotten": 0,
                "last_run": None,
                "readers": [],
            },
        ],
    }
    shown = run("corpora", house=house).stdout
    assert "slack:T1/C1" in shown
    assert "2026-03-01 12:00" in shown
    assert "Not ingested yet: wikipedia." in shown


RUN = RefreshRun(
    RunState.RUNNING, id=7, corpus="handbook", begun=DAY, seen=DAY + timedelta(minutes=2), ended=None, done=250,
    total=1_000, passages=2_100, doing="", owner="box:4711:ab", night=DAY,
)  # fmt: skip


def test_corpora_and_status_tell_the_last_run_and_why_it_failed() -> None:
    failed = replace(
        RUN, id=6, ended=RUN.seen, state=RunState.FAILED, fault="The mirror is away.", edition="2026-02-20"
    )
    known = replace(FakeServices().corpora[0], edition="2026-02-20", last_run=failed)
    night = NightRecord(DAY, DAY, RUN.seen, "box:4711:ab", "failed", ("handbook: not brought up to date.",))
    house = FakeServices(corpora=(known,), runs=(RUN, failed), nights=(night,))

    told = document(run("corpora", "--json", house=house))["corpora"][0]
    assert (told["edition"], told["last_run"]["state"], told["last_run"]["fault"]) == (
        "2026-02-20",
        "failed",
        "The mirror is away.",
    )
    assert "handbook, 2026-03-01 12:00: The mirror is away." in run("corpora", house=house).stdout
    shown = " ".join(run("ingest", "status", house=house).stdout.split())
    for words in ("Running now: handbook: 250 of 1,000 documents, 2,100 passages", "process 4711 on box", "2026-02-20"):
        assert words in shown
    status = document(run("ingest", "status", "--json", house=house))
    running, ended = status["running"][0], status["runs"][0]
    assert (running["done"], running["total"], running["silent"], running["night"]) == (
        250,
        1000,
        True,
        DAY.isoformat(),
    )
    assert running["seconds_left"] > 0
    assert (ended["state"], ended["edition"], status["nights"][0]["outcome"]) == ("failed", "2026-02-20", "failed")


def test_corpora_of_an_empty_home_says_how_to_begin() -> None:
    result = run("corpora", house=FakeServices(corpora=()))

    assert result.exit_code == 0
    assert "footnote ingest folder" in result.stdout


def test_reindex_opens_indexes_that_do_not_serve() -> None:
    house = FakeServices()
    told = document(run("reindex", "--json", house=house))

    assert (told["passages"], set(told)) == (12, {"passages", "seconds"})
    assert house.opened == [True]
    assert "Indexed again: 12 passages" in run("reindex", house=house).stdout
