"""Tests that spans of turns, by stage and call and without texts of people, are sent to a collector."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from bot.server.monitoring.turn_spans import open_tracer, plan_turn
from bot.types import Failure
from storage.types import Step
from tests.bot.server.monitoring.turns import BEGUN, SECRET, make_closing, make_delivery, make_opening


@dataclass
class Collector:
    """A collector that accepts only OTLP over HTTP; it records the spans."""

    address: str = ""
    bodies: list[bytes] = field(default_factory=list)

    @property
    def spans(self) -> dict[str, Any]:
        sent = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        scopes = [scope for request in sent for resource in request.resource_spans for scope in resource.scope_spans]
        return {span.name: span for scope in scopes for span in scope.spans}


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            right = self.path == "/v1/traces" and self.headers["Content-Type"] == "application/x-protobuf"
            ExportTraceServiceRequest.FromString(body)
            collector.bodies.append(body)
            self.send_response(200 if right else 400)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01))
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()


def test_spans_nest_calls_in_stages_in_the_turn() -> None:
    planned = plan_turn(make_closing("a"), "slack")
    shown = [(span.parent, span.name, (span.begun - BEGUN).total_seconds(), span.failed) for span in planned]
    assert shown == [
        ("", "turn", 0.0, False),
        ("turn", "stage draft", 0.1, False),
        ("turn", "stage verify", 0.6, False),
        ("turn", "search", 0.0, False),
        ("draft", "chat m", 0.1, False),
        ("verify", "chat m", 0.6, False),
        ("verify", "chat m", 0.62, True),
    ]
    stage = planned[2]
    assert stage.ended - BEGUN == timedelta(milliseconds=970)
    failed = plan_turn(make_closing("a", Failure("model_unavailable", SECRET, SECRET)), "slack")[0]
    assert (failed.failed, failed.about["error.type"]) == (True, "model_unavailable")


def test_decision_of_a_policy_is_no_model_call() -> None:
    (_, decision) = plan_turn(make_closing("a", steps=(Step("policy", {"facts": {"propensity": 0.9}}, 1.0),)), "slack")
    assert (decision.parent, decision.name, decision.remote) == ("turn", "policy", False)


async def test_spans_of_a_turn_form_one_trace_without_its_texts() -> None:
    with collecting() as collector:
        for process in ([make_opening("a")], make_closing("a"), [make_delivery("a")]), ([make_opening("a")],):
            async with open_tracer(f"{collector.address}/", {}) as tracer:
                assert tracer
                for entries in process:
                    tracer.observe(entries)
    spans = collector.spans
    assert {"queue", "turn", "search", "stage draft", "chat m", "delivery"} <= spans.keys()
    assert len({span.trace_id for span in spans.values()}) == 1
    assert spans["queue"].parent_span_id == spans["delivery"].parent_span_id == spans["turn"].span_id
    assert not spans["turn"].parent_span_id
    assert spans["delivery"].end_time_unix_nano - spans["delivery"].start_time_unix_nano == 1_000_000_000
    about = {attribute.key: attribute.value for attribute in spans["chat m"].attributes}
    assert about["gen_ai.response.model"].string_value == "m"
    assert not any(SECRET.encode() in body for body in collector.bodies)


async def test_traces_are_not_sent_unless_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_tracer("", {}) as tracer:
        assert tracer is None
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
        async with open_tracer("", {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address}) as tracer:
            assert tracer
            tracer.observe([make_opening("a")])
    assert list(collector.spans) == ["queue"]
