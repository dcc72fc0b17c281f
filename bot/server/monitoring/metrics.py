"""Count the server's work for Prometheus: entries that enter its record, and calls of platforms.

Labels contain only names of code and settings: no metric shows askers, places or questions.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from storage.database.refresh_log import RunTotal
from storage.types import CorpusInfo, EntryKind, LogEntry

PREFIX = "footnote"
UNKNOWN = "unknown"  # the platform and task of a turn that an earlier process opened
_TURNS_KEPT = 10_000  # the most turns whose beginning or end is remembered
_TURN_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0)
_WAIT_SECONDS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_LAG_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class ServerMetrics:
    """Counters and histograms in a registry. Its methods are called on the event loop and never block."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._opened, self._closed = OrderedDict[str, tuple[str, str]](), OrderedDict[str, datetime]()
        self._observers: Mapping[EntryKind, Callable[[LogEntry], None]] = {
            EntryKind.TURN_OPENED: self._observe_opening,
            EntryKind.STEP: self._observe_step,
            EntryKind.TURN_CLOSED: self._observe_closing,
            EntryKind.DELIVERED: self._observe_delivery,
        }

        def counter(name: str, help_text: str, *labels: str) -> Counter:
            return Counter(name, help_text, labels, namespace=PREFIX, registry=registry)

        def histogram(name: str, help_text: str, buckets: Sequence[float], *labels: str) -> Histogram:
            return Histogram(name, help_text, labels, namespace=PREFIX, buckets=buckets, registry=registry)

        self._questions = counter("questions", "Questions and claims whose turn began.", "platform", "task")
        self._answers = counter("answers", "Turns that ended, by status.", "platform", "task", "system", "status")
        self._efforts = counter(
            "efforts", "Turns by their effort, and why it was lowered, if it was.", "effort", "lowered"
        )
        self._failures = counter("failures", "Turns that failed, were refused or lost their model, by reason.", "kind")
        self._withheld = counter("withheld_sentences", "Sentences that the gate withheld.", "system")
        self._waited = histogram(
            "queue_wait_seconds", "How long questions waited for their turn.", _WAIT_SECONDS, "platform"
        )
        self._turns = histogram("turn_duration_seconds", "How long turns took.", _TURN_SECONDS, "system")
        self._stages = histogram(
            "stage_duration_seconds", "How long searches took, and model calls by stage.", _TURN_SECONDS, "stage"
        )
        self._deliveries = counter(
            "deliveries", "Answers to be shown on a platform, by outcome.", "platform", "outcome"
        )
        self._delivered = histogram(
            "delivery_duration_seconds", "From the end of a turn to its answer's last post.", _TURN_SECONDS, "platform"
        )
        self._model_calls = counter("model_calls", "Calls of a model, by stage.", "stage", "outcome")
        self._tokens = counter("model_tokens", "Tokens read and written by models, by stage.", "stage", "kind")
        self._cost = counter("model_cost", "Cost of model calls, in the currency of the price list.", "stage")
        self._calls = counter("platform_calls", "Attempts of platform calls.", "platform", "method", "outcome")
        self._call_seconds = histogram(
            "platform_call_duration_seconds",
            "How long attempts of platform calls took, including waits for a rate limit.",
            _TURN_SECONDS,
            "platform",
        )
        self._lag = histogram("event_loop_lag_seconds", "Delay of the event loop.", _LAG_SECONDS)
        self._lag.observe(0.0)
        ProcessCollector(registry=registry)

    def observe(self, entries: Iterable[LogEntry]) -> None:
        """Count entries that have just entered the record."""
        for entry in entries:
            if observer := self._observers.get(entry.kind):
                observer(entry)

    def observe_call(self, platform: str, method: object, outcome: str, seconds: float) -> None:
        self._calls.labels(platform, str(method), outcome).inc()
        self._call_seconds.labels(platform).observe(seconds)

    def observe_lag(self, seconds: float) -> None:
        self._lag.observe(seconds)

    def _observe_opening(self, entry: LogEntry) -> None:
        platform, task = _read_platform(entry), str(entry.body.get("task", UNKNOWN))
        _remember(self._opened, entry.turn_id, (platform, task))
        self._questions.labels(platform, task).inc()
        if effort := entry.body.get("effort"):
            self._efforts.labels(effort, (entry.body.get("lowered") or {}).get("because", "no")).inc()
        if (taken := entry.body.get("taken")) and entry.at:
            self._waited.labels(platform).observe(max((entry.at - taken).total_seconds(), 0.0))

    def _observe_step(self, entry: LogEntry) -> None:
        body, stage = entry.body, str(entry.body["stage"])
        self._stages.labels(stage).observe(body["milliseconds"] / 1000)
        if stage == "search" or not body.get("attempts"):
            return
        self._model_calls.labels(stage, "failed" if "error" in body else "done").inc()
        for kind in ("prompt", "completion", "cached"):
            self._tokens.labels(stage, kind).inc(body.get(f"{kind}_tokens") or 0)
        self._cost.labels(stage).inc(body.get("cost") or 0.0)

    def _observe_closing(self, entry: LogEntry) -> None:
        body, (platform, task) = entry.body, self._opened.pop(entry.turn_id, (UNKNOWN, UNKNOWN))
        system, status = str(body["system"] or "none"), str(body["status"])
        failure = body.get("failure") or body.get("quoted_because")
        self._answers.labels(platform, task, system, status).inc()
        self._turns.labels(system).observe(body["seconds"])
        self._withheld.labels(system).inc(len(body["withheld"]))
        if failure:
            self._failures.labels(failure.kind).inc()
        if entry.at:
            _remember(self._closed, entry.turn_id, entry.at)

    def _observe_delivery(self, entry: LogEntry) -> None:
        platform = str(entry.body["platform"])
        self._deliveries.labels(platform, str(entry.body["outcome"])).inc()
        closed = self._closed.pop(entry.turn_id, None)
        if closed and entry.at:
            self._delivered.labels(platform).observe(max((entry.at - closed).total_seconds(), 0.0))


def _read_platform(entry: LogEntry) -> str:
    return str(getattr(entry.body.get("asker"), "platform", UNKNOWN))


def _remember(kept: "OrderedDict[str, Any]", turn_id: str, value: object) -> None:
    kept[turn_id] = value
    if len(kept) > _TURNS_KEPT:
        kept.popitem(last=False)


@dataclass(frozen=True, slots=True)
class ServerState:
    """The server's state at one moment; unknown values are empty."""

    versions: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    jobs: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    ready: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))
    corpora: tuple[CorpusInfo, ...] = ()
    runs: tuple[RunTotal, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    free: int | None = None  # bytes on the home's disk


CORPUS_GAUGES: tuple[tuple[str, str, Callable[[CorpusInfo], float | None]], ...] = (
    ("corpus_documents", "Documents that can be found.", lambda info: info.documents),
    ("corpus_passages", "Passages that can be found.", lambda info: info.passages),
    ("corpus_unreadable_documents", "Documents that the last refresh could not read.", lambda info: info.failures),
    (
        "corpus_last_success_timestamp_seconds",
        "When a refresh last ran to its end.",
        lambda info: info.refreshed.timestamp() if info.refreshed else None,
    ),
)


def describe_state(state: ServerState) -> Iterator[Metric]:
    """Return a state as metrics. Pure."""
    yield InfoMetricFamily(f"{PREFIX}_build", "The versions of the running software.", dict(state.versions))
    yield _gauge("queue_questions", "Questions in progress, by state.", ["state"], _single(state.jobs))
    ready = ((name, is_ready) for name, is_ready in state.ready.items())
    yield _gauge("ready", "Whether the check of /readyz passes.", ["check"], ready)
    yield _gauge("store_size_bytes", "The disk space of each store in the home.", ["store"], _single(state.sizes))
    if state.free is not None:
        yield GaugeMetricFamily(f"{PREFIX}_disk_free_bytes", "Free space on the home's disk.", value=state.free)
    for name, text, count in CORPUS_GAUGES:
        values = [(info.name, count(info)) for info in state.corpora]
        yield _gauge(name, text, ["corpus"], [(label, value) for label, value in values if value is not None])
    yield _counter(
        "refreshes",
        "Recorded refreshes that ended, of all servers.",
        ["corpus", "state"],
        (((total.corpus, total.state), total.runs) for total in state.runs),
    )
    done = [(run.corpus, name, number) for run in state.runs for name, number in run.done.items()]
    for unit in ("documents", "passages"):
        yield _counter(
            f"refresh_{unit}",
            f"{unit.capitalize()} that recorded refreshes changed or checked, of all servers.",
            ["corpus", "change"],
            _sum_changes((corpus, name, number) for corpus, name, number in done if _unit(name) == unit),
        )


def _unit(name: str) -> str:
    return "passages" if name.startswith("passages") else "documents"


def _sum_changes(done: Iterable[tuple[str, str, int]]) -> Iterator[tuple[tuple[str, str], int]]:
    sums: dict[tuple[str, str], int] = {}
    for corpus, name, number in done:
        key = (corpus, name.removeprefix("passages_"))
        sums[key] = sums.get(key, 0) + number
    yield from sums.items()


def _single(values: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    yield from values.items()


def _gauge(name: str, text: str, labels: list[str], values: Iterable[tuple[str, float]]) -> Metric:
    family = GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=labels)
    for value, number in values:
        family.add_metric([value], float(number))
    return family


def _counter(name: str, text: str, labels: list[str], values: Iterable[tuple[tuple[str, str], float]]) -> Metric:
    family = CounterMetricFamily(f"{PREFIX}_{name}", text, labels=labels)
    for key, number in values:
        family.add_metric([str(part) for part in key], number)
    return family


class StateCollector(Collector):
    """Exports, at each scrape, the last state that was read."""

    def __init__(self) -> None:
        self.state = ServerState()

    def collect(self) -> Iterator[Metric]:
        yield from describe_state(self.state)
