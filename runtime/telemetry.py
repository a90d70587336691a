"""Telemetry of a worker: logs, metrics and traces, each enabled by a setting."""

import json
import logging
import sys
from datetime import datetime, timezone
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from temporalio.contrib.opentelemetry import TracingInterceptor
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig

from runtime.log_context import RunLogFilter
from runtime.temporal_client import LOGGING
from sluice.errors import BadEnvironment
from sluice.redaction import redacted
from sluice.setting_groups import TelemetrySettings

WORKER_READY = "worker ready"
"""Log message of a worker that starts to take work; the local stack waits for it."""


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        context = " ".join(f"{key}={value}" for key, value in getattr(record, "log_context", {}).items() if value)
        return redacted(super().format(record) + (f"  [{context}]" if context else ""))


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "log_context", {}),
        }
        workflow = getattr(record, "temporal_workflow", None)
        if isinstance(workflow, dict):
            fields |= {"run": workflow.get("run_id", ""), "workflow_id": workflow.get("workflow_id", "")}
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return redacted(json.dumps(fields, ensure_ascii=False))


def start_logs(settings: TelemetrySettings) -> None:
    """Write logs to standard error, as text or as one JSON object per line, without secrets."""
    handler = logging.StreamHandler(sys.stderr)
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    handler.setFormatter(_Json() if settings.sluice_log_format == "json" else _Text(form))
    handler.addFilter(RunLogFilter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


def start_telemetry(settings: TelemetrySettings) -> dict[str, Any]:
    """Return the client options that send metrics and traces to the addresses in the settings.

    Raises:
        BadEnvironment: metrics cannot be served at their address.
    """
    options: dict[str, Any] = {}
    if settings.sluice_metrics_address:
        prometheus = PrometheusConfig(bind_address=settings.sluice_metrics_address, durations_as_seconds=True)
        try:
            options["runtime"] = Runtime(telemetry=TelemetryConfig(logging=LOGGING, metrics=prometheus))
        except (RuntimeError, ValueError) as error:
            raise BadEnvironment(f"SLUICE_METRICS_ADDRESS={settings.sluice_metrics_address}: {error}") from error
    if settings.sluice_traces:
        provider = TracerProvider(resource=Resource.create({"service.name": "sluice"}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(settings.sluice_traces)))
        trace.set_tracer_provider(provider)
        options["interceptors"] = [TracingInterceptor()]
    return options
