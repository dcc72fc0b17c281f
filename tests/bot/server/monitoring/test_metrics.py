"""Tests that `/metrics` has the recorded figures in Prometheus's conventions, and no text of people."""

import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta

import httpx
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette

from bot.desk.platform_port import CannotPost, RateLimited
from bot.platforms.shared.api_client import retry_call
from bot.server.monitoring.metrics import ServerMetrics, ServerState, StateCollector
from bot.server.monitoring.telemetry import Telemetry, open_telemetry
from bot.settings.tables.network_settings import HttpSettings
from bot.types import Failure
from storage.database.refresh_log import RunTotal
from storage.types import CorpusInfo, LogEntry, RunState
from tests.bot.server.monitoring.turns import BEGUN, SECRET, make_closing, make_delivery, make_opening

LABELS = {
    *("change", "check", "corpus", "kind", "le", "method", "outcome", "platform", "stage", "state", "status", "store"),
    *("system", "effort", "lowered", "task", "database", "python", "schema", "version"),
}
STATE = ServerState(
    {"version": "1.0"},
    {"waiting": 3, "answering": 1},
    {"index": False},
    (CorpusInfo("handbook", 2, 40, BEGUN, failures=1),),
    (
        RunTotal("handbook", RunState.DONE, 2, {"added": 5, "passages_added": 50}),
        RunTotal("handbook", RunState.FAILED, 1, {"added": 1, "passages_added": 10}),
    ),
    {"database": 4096},
    10,
)


class Registered:
    def __init__(self) -> None:
        self.registry, self.collector = CollectorRegistry(), StateCollector()
        self.metrics = ServerMetrics(self.registry)
        self.registry.register(self.collector)

    @property
    def text(self) -> str:
        return generate_latest(self.registry).decode()

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"footnote_{name}", labels)


@pytest.fixture
def registered() -> Registered:
    registered = Registered()
    failed = make_closing("b", Failure("model_unavailable", SECRET, SECRET))
    turns: Iterable[list[LogEntry]] = (
        [make_opening("a")], make_closing("a"), [make_delivery("a")], [make_opening("b", "terminal"), *failed],
    )  # fmt: skip
    for entries in turns:
        registered.metrics.observe(entries)
    registered.metrics.observe_call("discord", "GET /channels/{channel}", "done", 0.2)
    registered.collector.state = STATE
    return registered


def test_metrics_equal_the_recorded_figures(registered: Registered) -> None:
    figures = [
        (registered.value("questions_total", platform="slack", task="ask"), 1),
        (registered.value("answers_total", platform="terminal", task="ask", system="wikichat", status="failed"), 1),
        (registered.value("efforts_total", effort="quick", lowered="slow"), 2),
        (registered.value("withheld_sentences_total", system="wikichat"), 2),
        (registered.value("failures_total", kind="model_unavailable"), 1),
        (registered.value("queue_wait_seconds_sum", platform="slack"), 4),
        (registered.value("turn_duration_seconds_sum", system="wikichat"), 4),
        (registered.value("stage_duration_seconds_sum", stage="search"), pytest.approx(0.04)),
        (registered.value("deliveries_total", platform="slack", outcome="delivered"), 1),
        (registered.value("delivery_duration_seconds_sum", platform="slack"), 1),
        (registered.value("model_calls_total", stage="verify", outcome="failed"), 2),
        (registered.value("model_tokens_total", stage="draft", kind="prompt"), 200),
        (registered.value("model_cost_total", stage="verify"), 1.0),
        (
            registered.value(
                "platform_calls_total", platform="discord", method="GET /channels/{channel}", outcome="done"
            ),
            1,
        ),
        (registered.value("queue_questions", state="waiting"), 3),
        (registered.value("ready", check="index"), 0),
        (registered.value("corpus_last_success_timestamp_seconds", corpus="handbook"), BEGUN.timestamp()),
        (registered.value("refreshes_total", corpus="handbook", state="failed"), 1),
        (registered.value("refresh_documents_total", corpus="handbook", change="added"), 6),
        (registered.value("refresh_passages_total", corpus="handbook", change="added"), 60),
        (registered.value("store_size_bytes", store="database"), 4096),
    ]
    assert [value for value, _ in figures] == [wanted for _, wanted in figures]


def test_turns_opened_by_an_earlier_process_are_counted(registered: Registered) -> None:
    registered.metrics.observe(make_closing("c"))
    registered.metrics.observe([make_delivery("d")])
    assert (
        registered.value("answers_total", platform="unknown", task="unknown", system="wikichat", status="abstained")
        == 1
    )


def find_faults(family: Metric) -> list[str]:
    """Return the faults that `promtool check metrics` would report."""
    name, kind = family.name, family.type
    faults = {
        "has no help": not re.fullmatch(r"[A-Z].*\.", family.documentation) and not name.startswith("process_"),
        "names its type": re.search(rf"_{kind}(_|$)", name),
        "is abbreviated or no base unit": re.search(r"_(ms|millis\w*|minutes|hours|kb|mb|secs?|latency)(_|$)", name),
        "has another type's suffix": kind != "counter" and name.endswith(("_total", "_count", "_sum")),
        "is not in snake case": not re.fullmatch(r"[a-z][a-z0-9_]*", name),
        "has no name of ours": not name.startswith(("footnote_", "process_")),
        "has a unit that is not its end": re.search(r"_(seconds|bytes)_(?!created|total)", name),
    }
    for sample in family.samples:
        faults[f"has the label {sorted(sample.labels)}"] = not set(sample.labels) <= LABELS
        faults["is a counter without _total"] = kind == "counter" and not sample.name.endswith(("_total", "_created"))
    return [f"{name} {fault}" for fault, present in faults.items() if present]


def test_metric_names_follow_conventions_and_labels_name_no_people(registered: Registered) -> None:
    families = list(text_string_to_metric_families(registered.text))
    assert len(families) > 25
    assert [fault for family in families for fault in find_faults(family)] == []
    for secret in (SECRET, "U1", "C1", "T1"):
        assert secret not in registered.text


def test_entries_that_cannot_be_counted_are_logged_and_raise_nothing(caplog: pytest.LogCaptureFixture) -> None:
    telemetry = Telemetry(Registered().metrics)
    telemetry.observe([LogEntry("a", make_closing("a")[-1].kind, {})])
    assert "counting record entries failed" in caplog.text


class Reader:
    async def read(self) -> ServerState:
        return STATE


@asynccontextmanager
async def asking(settings: HttpSettings) -> AsyncIterator[httpx.AsyncClient]:
    async with open_telemetry(settings, {}) as telemetry:
        routes = telemetry.routes(Reader())  # type: ignore[arg-type]
        transport = httpx.ASGITransport(Starlette(routes=routes))
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            yield client


async def test_metrics_are_hidden_from_proxies_and_when_disabled() -> None:
    async with asking(HttpSettings()) as client:
        answer = await client.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain")
        assert 'footnote_queue_questions{state="waiting"} 3.0' in answer.text
        modern = await client.get("/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})
        assert modern.text.endswith("# EOF\n")
        assert (await client.get("/metrics", headers={"X-Forwarded-For": "1.2.3.4"})).status_code == 404
    async with asking(HttpSettings(metrics=False)) as client:
        assert (await client.get("/metrics")).status_code == 404


class Pace:
    """A clock that advances by sleeping."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds


async def test_each_attempt_of_a_call_is_traced_with_its_outcome() -> None:
    observed, replies = list[tuple[object, str, float]](), [RateLimited("wait", seconds=7.0), None, CannotPost("no")]

    async def attempt(_: float) -> None:
        await pace.sleep(1.0)
        if reply := replies.pop(0):
            raise reply

    def observe(name: object, outcome: str, seconds: float) -> None:
        observed.append((name, outcome, seconds))

    pace = Pace()
    await retry_call(attempt, "post", pace, patience=40, repeatable=False, observe=observe)
    with pytest.raises(CannotPost):
        await retry_call(attempt, "post", pace, patience=40, repeatable=False, observe=observe)
    assert observed == [("post", "rate_limited", 1.0), ("post", "done", 1.0), ("post", "cannot_post", 1.0)]
    assert timedelta(seconds=pace.at) == timedelta(seconds=10)
