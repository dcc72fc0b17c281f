"""Send planned spans to a collector by OpenTelemetry. A trace's id is derived from the turn's id."""

import hashlib
from datetime import datetime

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from bot import read_version
from bot.server.monitoring.turn_spans import PlannedSpan

SERVICE = "footnote"
_EXPORT_SECONDS = 5.0


class SpanSender:
    """Sends spans in the background, to `endpoint` or to the address in OpenTelemetry's environment variables."""

    def __init__(self, endpoint: str | None) -> None:
        self._processor = BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, timeout=_EXPORT_SECONDS))
        self.close = self._processor.shutdown  # sends the remaining spans; blocks
        self._resource = Resource.create({"service.name": SERVICE, "service.version": read_version()})

    def send(self, turn_id: str, span: PlannedSpan) -> None:
        self._processor.on_end(_build_span(turn_id, span, self._resource))


def _build_span(turn_id: str, span: PlannedSpan, resource: Resource) -> ReadableSpan:
    return ReadableSpan(
        span.name,
        context=_span_context(turn_id, span.key),
        parent=_span_context(turn_id, span.parent) if span.parent else None,
        resource=resource,
        attributes=dict(span.about),
        kind=SpanKind.CLIENT if span.remote else SpanKind.INTERNAL,
        status=Status(StatusCode.ERROR if span.failed else StatusCode.UNSET),
        start_time=_nanoseconds(span.begun),
        end_time=max(_nanoseconds(span.ended), _nanoseconds(span.begun)),
        instrumentation_scope=InstrumentationScope(SERVICE, read_version()),
    )


def _span_context(turn_id: str, key: str) -> SpanContext:
    return SpanContext(_hash(turn_id, 16), _hash(f"{turn_id} {key}", 8), False, TraceFlags(TraceFlags.SAMPLED))  # noqa: FBT003


def _hash(text: str, size: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:size]) or 1


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000) * 1_000
